/** What every hypervisor must do when a guest moves between two hosts, whichever it is. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type {
  Guest,
  GuestDefinition,
  Hypervisor,
  ReceiveRequest,
  SendRequest,
} from '../../../agents/node/drivers/hypervisor/hypervisor.ts'

export interface MoveHost {
  /** A hypervisor as a newly started agent opens it. */
  attach(): Promise<Hypervisor>
  /** Of the guest that moves; its disk is shared by both hosts, or the host's own. */
  definition(name: string, disk: 'shared' | 'own'): Promise<GuestDefinition>
  killGuest(name: string): Promise<void>
}

export interface MoveWorld {
  readonly hosts: readonly [MoveHost, MoveHost]
  settled<T>(promise: Promise<T>): Promise<T>
  until(isTrue: () => boolean): Promise<void>
  close(): Promise<void>
}

const NAME = '0d7c1f6e-2b0a-4c51-8d53-1c9a3c1f7a22'
const PROMPT = 'root@web-1:~# '
const KEY = 'a1'.repeat(32)

export function moveContract(open: () => Promise<MoveWorld>): void {
  describe('a guest that moves', () => {
    let world: MoveWorld
    let source: Hypervisor
    let target: Hypervisor

    beforeEach(async () => {
      world = await open()
      source = await world.hosts[0].attach()
      target = await world.hosts[1].attach()
    })
    afterEach(async () => {
      for (const hypervisor of [source, target]) {
        await world.settled(hypervisor.forget(NAME)).catch(() => {})
        await hypervisor.close()
      }
      await world.close()
    })

    async function reaches(
      what: string,
      hypervisor: () => Hypervisor,
      isWanted: (guest: Guest | undefined) => boolean,
    ): Promise<Guest | undefined> {
      let seen: Guest | undefined
      let isLooking = false
      await world
        .until(() => {
          if (!isLooking) {
            isLooking = true
            void hypervisor()
              .inspect(NAME)
              .then(
                (guest) => (seen = guest),
                () => {},
              )
              .finally(() => (isLooking = false))
          }
          return isWanted(seen)
        })
        .catch((error: unknown) => {
          throw new Error(`${what} did not come true: ${JSON.stringify(seen)}`, { cause: error })
        })
      return seen
    }
    const textOf = (hypervisor: Hypervisor) => hypervisor.console(NAME).tail().toString()
    async function talks(hypervisor: () => Hypervisor): Promise<void> {
      const before = textOf(hypervisor()).length
      await world.until(() => hypervisor().console(NAME).write(Buffer.from('hostname\n')))
      await world.until(() => /\nweb-1\r?\n/.test(textOf(hypervisor()).slice(before)))
    }
    async function boot(disk: 'shared' | 'own'): Promise<void> {
      await world.settled(source.start(await world.hosts[0].definition(NAME, disk)))
      await world.until(() => textOf(source).includes(PROMPT))
    }
    async function awaitGuest(
      disk: 'shared' | 'own',
      attempt = 1,
      key = KEY,
    ): Promise<ReceiveRequest & Pick<SendRequest, 'host' | 'port' | 'diskPort'>> {
      const reception = { id: 'op-1', attempt, key, mirroredDisks: disk === 'own' ? [0] : [] }
      const guest = await world.settled(target.receive(await world.hosts[1].definition(NAME, disk), reception))
      expect(guest).toMatchObject({
        state: 'receiving',
        incarnation: 1,
        transfer: { id: 'op-1', attempt, role: 'receive', phase: 'transferring' },
      })
      const { host = '', port = 0, diskPort } = guest.transfer ?? {}
      expect(port).toBeGreaterThan(0)
      expect(diskPort !== undefined).toBe(disk === 'own')
      return { ...reception, host, port, diskPort }
    }
    const orders = { downtimeLimitMilliseconds: 2_000, isThrottled: true, timeoutSeconds: 60 }
    const send = async (reception: Awaited<ReturnType<typeof awaitGuest>>, over: Partial<SendRequest> = {}) =>
      world.settled(source.send(NAME, { ...reception, ...orders, ...over }))
    const isHandedOver = () =>
      reaches(
        'the hand-over',
        () => source,
        (guest) => guest?.state === 'handed_over',
      )
    const isRunning = (hypervisor: () => Hypervisor) =>
      reaches(
        'the guest to run',
        hypervisor,
        (guest) => guest?.state === 'running' && guest.transfer?.phase === 'completed',
      )
    const hasFailed = () =>
      reaches(
        'the failure',
        () => source,
        (guest) => guest?.state === 'running' && guest.transfer?.phase === 'failed',
      )

    it.each(['shared', 'own'] as const)('continues at the receiver and nowhere else (disk: %s)', async (disk) => {
      await boot(disk)
      await send(await awaitGuest(disk))
      const left = await isHandedOver()
      expect(left?.transfer).toMatchObject({ id: 'op-1', attempt: 1, role: 'send', phase: 'completed' })
      expect(left?.transfer?.downtimeMilliseconds).toBeGreaterThan(0)
      expect(left?.transfer?.iteration).toBeGreaterThan(0)
      expect(left?.transfer?.transferredBytes).toBeGreaterThan(0)
      await isRunning(() => target)
      await talks(() => target)
      expect(source.console(NAME).write(Buffer.from('x'))).toBe(false)

      // It is handed over for the next agents too.
      await source.close()
      source = await world.hosts[0].attach()
      await isHandedOver()
      await world.settled(source.forget(NAME))

      // And may come back.
      const back = await world.settled(
        source.receive(await world.hosts[0].definition(NAME, disk), {
          id: 'op-2',
          attempt: 1,
          key: KEY,
          mirroredDisks: disk === 'own' ? [0] : [],
        }),
      )
      const { host = '', port = 0, diskPort } = back.transfer ?? {}
      await world.settled(
        target.send(NAME, {
          ...orders,
          id: 'op-2',
          attempt: 1,
          key: KEY,
          mirroredDisks: disk === 'own' ? [0] : [],
          host,
          port,
          diskPort,
        }),
      )
      await reaches(
        'the way back',
        () => source,
        (guest) => guest?.state === 'running',
      )
      await talks(() => source)
    })

    it('continues at the sender when nobody waits for it, and may be sent again', async () => {
      await boot('shared')
      const reception = await awaitGuest('shared')
      await world.hosts[1].killGuest(NAME)
      expect(
        await reaches(
          'the end of the receiver',
          () => target,
          (guest) => guest?.state === 'gone',
        ),
      ).toMatchObject({ transfer: { role: 'receive', phase: expect.not.stringMatching('completed') } })
      await send(reception)
      expect((await hasFailed())?.transfer?.detail).not.toBe('')
      await talks(() => source)
      await world.settled(target.destroy(NAME))
      await send(await awaitGuest('shared', 2))
      await isHandedOver()
      await isRunning(() => target)
    })

    it('is not given to a stranger', async () => {
      await boot('shared')
      await send(await awaitGuest('shared'), { key: 'b2'.repeat(32) })
      await hasFailed()
      await talks(() => source)
      expect((await world.settled(target.inspect(NAME)))?.state).not.toBe('running')
    })

    it('stays when ordered before the hand-over, and is on exactly one host at any time of the order', async () => {
      await boot('shared')
      await send(await awaitGuest('shared'))
      await world.settled(source.cancelSend(NAME))
      const end = await reaches(
        'the end',
        () => source,
        (guest) => guest?.transfer !== undefined && guest.transfer.phase !== 'transferring',
      )
      if (end?.state === 'running') {
        expect(end.transfer?.phase).toBe('failed')
        await talks(() => source)
        await reaches(
          'the end of the receiver',
          () => target,
          (guest) => guest?.state === 'gone' || guest?.state === 'receiving',
        )
      } else {
        expect(end?.state).toBe('handed_over')
        await isRunning(() => target)
      }
    })

    it.each(['shared', 'own'] as const)(
      'arrives although both agents are killed on the way (disk: %s)',
      async (disk) => {
        await boot(disk)
        await send(await awaitGuest(disk))
        await Promise.all([source.close(), target.close()])
        source = await world.hosts[0].attach()
        target = await world.hosts[1].attach()
        const end = await reaches(
          'the end',
          () => source,
          (guest) => guest?.transfer !== undefined && guest.transfer.phase !== 'transferring',
        )
        expect(end?.state).toBe('handed_over')
        await isRunning(() => target)
        await talks(() => target)
      },
    )

    it('is not waited for by an agent that was killed before it listened, nor started by it', async () => {
      const reception = world.hosts[1]
        .definition(NAME, 'shared')
        .then((definition) => target.receive(definition, { id: 'op-1', attempt: 1, key: KEY, mirroredDisks: [] }))
      reception.catch(() => {})
      await target.close()
      await world.settled(reception).catch(() => {})
      target = await world.hosts[1].attach()
      const guest = await world.settled(target.inspect(NAME))
      expect([undefined, 'gone', 'receiving']).toContain(guest?.state)
    })
  })
}
