/** What every hypervisor must do, whichever it is. Time passes through the world: really, or virtually. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  type Guest,
  type GuestDefinition,
  GuestExists,
  type Hypervisor,
} from '../../../agents/node/drivers/hypervisor/hypervisor.ts'

export interface HypervisorWorld {
  /** A hypervisor as a newly started agent opens it, on the same host. */
  attach(): Promise<Hypervisor>
  definition(name: string, incarnation: number): Promise<GuestDefinition>
  /** Ends the guest's process from outside, as a crash would. */
  killGuest(name: string): Promise<void>
  /** Lets time pass until the promise is settled. */
  settled<T>(promise: Promise<T>): Promise<T>
  /** Lets time pass until it is true; throws when it does not become true. */
  until(isTrue: () => boolean): Promise<void>
  close(): Promise<void>
}

const NAME = '6f1c9f0e-5b0a-4c51-9d53-0c9a3c1f7a11'
const PROMPT = 'root@web-1:~# '

export function hypervisorContract(open: () => Promise<HypervisorWorld>): void {
  describe('a hypervisor', () => {
    let world: HypervisorWorld
    let hypervisor: Hypervisor

    beforeEach(async () => {
      world = await open()
      hypervisor = await world.attach()
    })
    afterEach(async () => {
      await world.settled(hypervisor.forget(NAME)).catch(() => {})
      await hypervisor.close()
      await world.close()
    })

    const inspect = (): Promise<Guest | undefined> => world.settled(hypervisor.inspect(NAME))
    const text = () => hypervisor.console(NAME).tail().toString()
    const start = async (incarnation = 1) => world.settled(hypervisor.start(await world.definition(NAME, incarnation)))
    const until = (isTrue: () => boolean) =>
      world.until(isTrue).catch((error: unknown) => {
        throw new Error(
          `the console says ${JSON.stringify(text())} and ${JSON.stringify(hypervisor.console(NAME).status())}`,
          { cause: error },
        )
      })
    const booted = (since = 0) => until(() => text().slice(since).includes(PROMPT))
    const type = (line: string) => expect(hypervisor.console(NAME).write(Buffer.from(`${line}\n`))).toBe(true)
    /** Waits for a change that leaves the guest in the state. */
    async function stateBecomes(state: Guest['state']): Promise<void> {
      let seen: Guest['state'] | undefined
      const look = () => void hypervisor.inspect(NAME).then((guest) => (seen = guest?.state))
      const stop = hypervisor.onChange((name) => name === NAME && look())
      look()
      await until(() => seen === state)
      stop()
    }

    it('starts a guest once, talks with it, and keeps the fact that it powered itself off', async () => {
      expect(await inspect()).toBeUndefined()
      const guest = await start()
      expect(guest).toMatchObject({ name: NAME, uid: 'uid-1', incarnation: 1, state: 'running', isResponsive: true })
      expect(hypervisor.console(NAME).status()).toEqual({ isConnected: true, isRunning: true, incarnation: 1 })
      await expect(start()).rejects.toThrow(GuestExists)
      await booted()
      const before = text().length
      type('hostname')
      await until(() => /hostname\s+web-1\r?\n/.test(text().slice(before)))
      const counters = await world.settled(hypervisor.counters(NAME))
      expect(counters?.diskReadOperations).toBeTypeOf('number')

      await world.settled(hypervisor.pressPowerButton(NAME))
      await stateBecomes('off')
      expect(hypervisor.console(NAME).status()).toEqual({ isConnected: false, isRunning: false, incarnation: 1 })
      expect(hypervisor.console(NAME).write(Buffer.from('x'))).toBe(false)
      await expect(start(2)).rejects.toThrow(GuestExists)
      await world.settled(hypervisor.destroy(NAME))
      expect(await inspect()).toBeUndefined()
      expect(text()).toContain('hostname')

      const length = text().length
      expect(await start(2)).toMatchObject({ incarnation: 2, state: 'running' })
      await booted(length)
      expect(text().slice(0, length)).toContain('hostname')
      await world.settled(hypervisor.destroy(NAME))
      expect(await inspect()).toBeUndefined()
      await world.settled(hypervisor.forget(NAME))
      expect(text()).toBe('')
    })

    it('adopts the guests of an earlier agent', async () => {
      const started = await start(7)
      await booted()
      await hypervisor.close()

      hypervisor = await world.attach()
      expect(await world.settled(hypervisor.list())).toEqual([started])
      expect(text()).toContain(PROMPT)
      await expect(start(8)).rejects.toThrow(GuestExists)
      type('echo still-here')
      await until(() => /\nstill-here/.test(text()))

      // Nobody is attached when it powers itself off: that it did so is known all the same.
      type('poweroff')
      await until(() => /poweroff\r?\n/.test(text()))
      await hypervisor.close()
      hypervisor = await world.attach()
      await stateBecomes('off')
      expect(await inspect()).toMatchObject({ incarnation: 7, state: 'off' })
    })

    it('tells a guest that vanished from one that powered itself off', async () => {
      await start()
      await world.killGuest(NAME)
      await stateBecomes('gone')
      expect(hypervisor.console(NAME).status().isRunning).toBe(false)
      await world.settled(hypervisor.destroy(NAME))
      expect(await inspect()).toBeUndefined()

      await start(2)
      await hypervisor.close()
      await world.killGuest(NAME)
      hypervisor = await world.attach()
      expect(await inspect()).toMatchObject({ incarnation: 2, state: 'gone' })
    })
  })
}
