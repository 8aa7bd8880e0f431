import { expect, it } from 'vitest'
import { eventually } from '../../eventually.ts'
import { moveContract } from './move-contract.ts'
import { openQemuMachine } from './qemu-machine.ts'

moveContract(async () => {
  const { host, definition, ...machine } = await openQemuMachine()
  const hostOf = (number: 0 | 1) => ({ ...host(number), definition: (name: string, disk: 'shared' | 'own') => definition(name, 1, disk === 'shared' ? 'boot' : `own-${number}`) })
  return { ...machine, hosts: [hostOf(0), hostOf(1)] }
})

const NAME = '5b1c2d0e-77aa-4c51-9d53-2c9a3c1f7a33'
const RECEPTION = { id: 'op-1', attempt: 1, mirroredDisks: [], key: 'b2'.repeat(32) }

/** An agent without processor time: nothing else of it goes on meanwhile. */
const standStill = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)

it('a guest that prints without a pause goes on printing where no agent listens yet', async () => {
  const { host, definition, close } = await openQemuMachine()
  const source = await host(0).attach()
  let target = await host(1).attach()
  const goesOnAt = async (hypervisor: typeof source) => {
    const text = () => hypervisor.console(NAME).tail().toString()
    const before = text()
    await eventually('more of what it prints', () => text() !== before || undefined)
  }
  try {
    const guest = await definition(NAME, 1, 'boot')
    await source.start(guest)
    await eventually('the prompt', () => source.console(NAME).tail().includes('root@web-1:~# ') || undefined)
    expect(source.console(NAME).write(Buffer.from('while :; do echo something to read; done\n'))).toBe(true)
    await goesOnAt(source)
    const { transfer } = await target.receive(guest, RECEPTION)
    await target.close()
    await source.send(NAME, { ...RECEPTION, host: transfer?.host ?? '', port: transfer?.port ?? 0, downtimeLimitMilliseconds: 2_000, isThrottled: true, timeoutSeconds: 50 })
    await eventually('the end of the sending', async () => {
      standStill()
      return (await source.inspect(NAME))?.state === 'handed_over' || undefined
    })
    target = await host(1).attach()
    await eventually('the guest', async () => (await target.inspect(NAME))?.state === 'running' || undefined)
    await goesOnAt(target)
  } finally {
    for (const hypervisor of [source, target]) {
      await hypervisor.forget(NAME)
      await hypervisor.close()
    }
    await close()
  }
})
