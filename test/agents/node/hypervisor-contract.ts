/** What every hypervisor must do, whichever it is. Time passes through the world: really, or virtually. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  type Guest,
  type GuestDefinition,
  type GuestDisk,
  GuestExists,
  type Hypervisor,
} from '../../../agents/node/drivers/hypervisor/hypervisor.ts'
import { Unavailable } from '../../../domain/problem.ts'

export interface HypervisorWorld {
  /** A hypervisor as a newly started agent opens it, on the same host. */
  attach(): Promise<Hypervisor>
  definition(name: string, incarnation: number): Promise<GuestDefinition>
  /** Another disk of 1 GiB that no guest has. */
  disk(): Promise<GuestDisk>
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
      await until(() => /\nweb-1\r?\n/.test(text().slice(before)))
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

    const disksOf = async () => (await inspect())?.disks ?? []
    /** Waits until the guest has these disks besides its boot disk. */
    async function disksBecome(...paths: readonly string[]): Promise<void> {
      const boot = (await world.definition(NAME, 1)).disks[0]?.path
      let seen: readonly string[] = []
      await until(() => {
        void hypervisor.inspect(NAME).then((guest) => (seen = guest?.disks ?? []))
        return [boot, ...paths].toSorted().join() === seen.toSorted().join()
      })
    }

    it('gives a running guest a disk, lets it grow, and takes it when the guest has released it', async () => {
      await start()
      await booted()
      const disk = await world.disk()
      await world.settled(hypervisor.plugDisk(NAME, disk))
      await world.settled(hypervisor.plugDisk(NAME, disk)) // free
      expect(await disksOf()).toContain(disk.path)
      expect(await world.settled(hypervisor.growDisk(NAME, disk.path, 2))).toBe(true)
      expect(await world.settled(hypervisor.growDisk(NAME, '/elsewhere', 2))).toBe(false)
      for (const verb of ['take', 'remove'] as const) {
        const change = { verb, label: 'point' }
        expect(await world.settled(hypervisor.changeSnapshots(NAME, disk.path, change))).toBe(true)
        expect(await world.settled(hypervisor.changeSnapshots(NAME, '/elsewhere', change))).toBe(false)
      }

      await hypervisor.close()
      hypervisor = await world.attach()
      expect(await disksOf()).toContain(disk.path)
      await world.settled(hypervisor.unplugDisk(NAME, disk.path, false))
      await disksBecome()
      await world.settled(hypervisor.unplugDisk(NAME, disk.path, false)) // free
      await world.settled(hypervisor.plugDisk(NAME, disk))
      await disksBecome(disk.path)
      expect(await inspect()).toMatchObject({ state: 'running', isResponsive: true })
    })

    it('takes a disk by force from a guest that does not release it', async () => {
      await start()
      const disk = await world.disk()
      await world.settled(hypervisor.plugDisk(NAME, disk))
      // It has not booted: nobody there hears that the disk is to go.
      await world.settled(hypervisor.unplugDisk(NAME, disk.path, false))
      expect(await disksOf()).toContain(disk.path)
      await world.settled(hypervisor.unplugDisk(NAME, disk.path, true))
      await disksBecome()
      await world.settled(hypervisor.unplugDisk(NAME, disk.path, true)) // free

      // The device is there until the guest has released it, for every query: no other disk is where it was.
      expect(await inspect()).toMatchObject({ cutOffSlots: [1] })
      expect(await world.settled(hypervisor.plugDisk(NAME, disk))).toBe(false)
      expect(await disksOf()).not.toContain(disk.path)
      await hypervisor.close()
      hypervisor = await world.attach()
      expect(await inspect()).toMatchObject({ cutOffSlots: [1] })
      await booted()
      let has: boolean | undefined
      await until(() => {
        void hypervisor.plugDisk(NAME, disk).then(
          (now) => (has = now),
          () => {},
        )
        return has === true
      })
      await disksBecome(disk.path)
      expect(await inspect()).not.toHaveProperty('cutOffSlots')
    })

    it('joins an interface again that was asked for and is wanted after all', async () => {
      const added = { macAddress: '52:54:00:00:00:99', portName: 'port-1', slot: 3 }
      await start()
      await world.settled(hypervisor.plugInterface(NAME, added))
      // It has not booted: nobody there hears that the interface is to go.
      await world.settled(hypervisor.unplugInterface(NAME, 'port-1'))
      expect(await inspect()).toMatchObject({ leavingInterfaces: ['port-1'] })
      await hypervisor.close()
      hypervisor = await world.attach()
      expect(await inspect()).toMatchObject({ leavingInterfaces: ['port-1'] })
      await world.settled(hypervisor.plugInterface(NAME, added))
      const kept = await inspect()
      expect(kept?.interfaces).toContain('port-1')
      expect(kept).not.toHaveProperty('leavingInterfaces')
    })

    it('gives a running guest an interface, and takes it when the guest has released it', async () => {
      const portsOf = async () => (await inspect())?.interfaces ?? []
      const portsBecome = async (...ports: readonly string[]) => {
        let seen: readonly string[] = []
        await until(() => {
          void hypervisor.inspect(NAME).then((guest) => (seen = guest?.interfaces ?? []))
          return ports.toSorted().join() === seen.toSorted().join()
        })
      }
      await start()
      const before = await portsOf()
      const added = { macAddress: '52:54:00:00:00:99', portName: 'port-1', slot: 3 }
      await booted()
      await world.settled(hypervisor.plugInterface(NAME, added))
      await world.settled(hypervisor.plugInterface(NAME, added)) // free
      expect(await portsOf()).toEqual([...before, 'port-1'])

      await hypervisor.close()
      hypervisor = await world.attach()
      expect(await portsOf()).toEqual([...before, 'port-1'])
      await world.settled(hypervisor.unplugInterface(NAME, 'port-1'))
      await portsBecome(...before)
      await world.settled(hypervisor.unplugInterface(NAME, 'port-1')) // free
      await world.settled(hypervisor.unplugInterface(NAME, NAME)) // that with which it began stays
      await world.settled(hypervisor.plugInterface(NAME, { ...added, portName: 'port-2' }))
      await portsBecome(...before, 'port-2')
      expect(await inspect()).toMatchObject({ state: 'running', isResponsive: true })
      await world.killGuest(NAME)
      await stateBecomes('gone')
      await expect(world.settled(hypervisor.plugInterface(NAME, added))).rejects.toThrow(Unavailable)
    })

    it('gives no disk to a guest that has ended, which is no bug', async () => {
      await start()
      const disk = await world.disk()
      let state: string | undefined = 'running'
      await world.killGuest(NAME)
      await until(() => {
        void hypervisor.inspect(NAME).then((guest) => (state = guest?.state))
        return state !== 'running'
      })
      await expect(world.settled(hypervisor.plugDisk(NAME, disk))).rejects.toThrow(Unavailable)
    })

    it('distinguishes a guest that vanished from one that powered itself off', async () => {
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
