/** What is true of guests of QEMU once they were moved. In a separate file, so that both halves run at once. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readGuestRecord, writeGuestRecord } from '../../../agents/node/drivers/hypervisor/guest-record.ts'
import type { Guest, GuestDefinition, Hypervisor } from '../../../agents/node/drivers/hypervisor/hypervisor.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { until } from '../../eventually.ts'
import { openQemuMachine } from './qemu-machine.ts'

const NAME = '5b1c2d0e-77aa-4c51-9d53-2c9a3c1f7a33'
const ORDERS = { downtimeLimitMilliseconds: 2_000, isThrottled: true, timeoutSeconds: 50 }
const RECEPTION = { id: 'op-1', attempt: 1, mirroredDisks: [], key: 'b2'.repeat(32) }

/** An agent without processor time: nothing else of it goes on meanwhile. */
const standStill = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)

/** Counts every cell of a table up, over and over, and says so; or that it found one that is not what it wrote. No
 *  other program runs meanwhile. */
const TABLE =
  `awk 'BEGIN { for (;;) { for (i = 0; i < 40000; i++) { if (cell[i] + 0 != round) { print "lost", "a write"; exit ` +
  `} cell[i] = round + 1 } print "round", ++round } }'\n`

describe('a guest that was moved', () => {
  let machine: Awaited<ReturnType<typeof openQemuMachine>>
  let guest: GuestDefinition
  let source: Hypervisor
  let target: Hypervisor

  beforeEach(async () => {
    machine = await openQemuMachine()
    source = await machine.host(0).attach()
    target = await machine.host(1).attach()
    guest = await machine.definition(NAME, 1, 'boot')
    await source.start(guest)
    await until(
      'the prompt',
      () => textOf(source),
      (text) => text.includes('root@web-1:~# '),
    )
  })
  afterEach(async () => {
    for (const hypervisor of [source, target]) {
      await hypervisor.forget(NAME)
      await hypervisor.close()
    }
    await machine.close()
  })

  const textOf = (hypervisor: Hypervisor) => hypervisor.console(NAME).tail().toString()
  const guestWhen = (what: string, hypervisor: () => Hypervisor, isSo: (guest: Guest | undefined) => boolean) =>
    until(what, () => hypervisor().inspect(NAME), isSo)
  async function goesOnAt(hypervisor: Hypervisor): Promise<void> {
    const before = textOf(hypervisor)
    await until(
      'more of what it prints',
      () => textOf(hypervisor),
      (text) => text !== before,
    )
  }
  const listeningAt = ({ transfer }: Guest) => ({ host: transfer?.host ?? '', port: transfer?.port ?? 0 })

  it('keeps printing where no agent listens yet', async () => {
    expect(source.console(NAME).write(Buffer.from('while :; do echo something to read; done\n'))).toBe(true)
    await goesOnAt(source)
    const awaited = await target.receive(guest, RECEPTION)
    await target.close()
    await source.send(NAME, { ...RECEPTION, ...ORDERS, ...listeningAt(awaited) })
    await guestWhen(
      'the end of the sending',
      () => (standStill(), source),
      (seen) => seen?.state === 'handed_over',
    )
    target = await machine.host(1).attach()
    await guestWhen(
      'the guest',
      () => target,
      (seen) => seen?.state === 'running',
    )
    await goesOnAt(target)
  })

  it('stays, and may be sent on, when its agent was killed just before it would have been', async () => {
    await source.send(NAME, { ...RECEPTION, ...ORDERS, ...listeningAt(await target.receive(guest, RECEPTION)) })
    await guestWhen(
      'the guest',
      () => target,
      (seen) => seen?.state === 'running' && seen.transfer?.phase === 'completed',
    )
    await source.forget(NAME)
    await target.close()

    const folder = machine.host(1).guestFolder(NAME)
    const record = await readGuestRecord(folder)
    if (record === undefined) throw new Error('no record')
    const onward = { ...RECEPTION, id: 'op-2' }
    const orders = { ...onward, ...listeningAt(await source.receive(guest, onward)) }
    const { key: _key, ...noted } = orders
    await writeGuestRecord(folder, {
      ...record,
      move: { ...noted, role: 'send', orders: ORDERS, isStarted: true, beganAt: systemClock.now().toISOString() },
    })
    target = await machine.host(1).attach()
    expect(
      await guestWhen(
        'the end of the attempt',
        () => target,
        (seen) => seen?.transfer?.phase === 'failed',
      ),
    ).toMatchObject({
      state: 'running',
      transfer: { id: 'op-2', detail: 'the sending was interrupted before it began' },
    })

    await target.send(NAME, { ...orders, ...ORDERS, attempt: 2 })
    await guestWhen(
      'the guest',
      () => source,
      (seen) => seen?.state === 'running',
    )
  })

  it('has everything that it wrote while it was sent', async () => {
    const countsOnAt = async (hypervisor: Hypervisor) => {
      const before = textOf(hypervisor).length
      await until(
        'three rounds more',
        () => textOf(hypervisor),
        (text) => text.includes('lost a write') || [...text.slice(before).matchAll(/round \d+/g)].length >= 3,
      )
      expect(textOf(hypervisor)).not.toContain('lost a write')
    }
    expect(source.console(NAME).write(Buffer.from(TABLE))).toBe(true)
    await countsOnAt(source)
    for (const [from, to, id] of [
      [source, target, 'op-1'],
      [target, source, 'op-2'],
      [source, target, 'op-3'],
      [target, source, 'op-4'],
    ] as const) {
      const reception = { ...RECEPTION, id }
      await from.send(NAME, {
        ...reception,
        ...ORDERS,
        isThrottled: false,
        ...listeningAt(await to.receive(guest, reception)),
      })
      await guestWhen(
        'the end of the sending',
        () => from,
        (seen) => seen?.state === 'handed_over',
      )
      await guestWhen(
        'the guest',
        () => to,
        (seen) => seen?.state === 'running',
      )
      await from.forget(NAME)
      await countsOnAt(to)
    }
  })
})
