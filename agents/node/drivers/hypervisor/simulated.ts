/** A host whose guests are only pretended: no kernel, no disk, a toy shell on the console. For hosts without QEMU, for scale, and for the
 *  simulation. The host outlives the agents that attach to it, and is the truth about which guests run.
 *  The same clock and randomness give the same history. */
import type { Clock } from '../../../../kit/sys/clock.ts'
import type { Random } from '../../../../kit/sys/random.ts'
import { ConsoleLine } from './console-line.ts'
import { type Guest, type GuestDefinition, GuestExists, type GuestIdentity, GuestStartFailed, type Hypervisor } from './hypervisor.ts'

export interface SimulatedGuestRecord extends GuestIdentity {
  readonly hostname: string
  readonly startedAt: string
  readonly disks: readonly string[]
  readonly state: Guest['state']
}

export interface SimulatedHostOptions {
  readonly clock: Clock
  readonly random: Random
  /** Guests that were there before, as a `onChange` told. */
  readonly guests?: readonly SimulatedGuestRecord[]
  /** Told all guests, synchronously, whenever one changed. */
  readonly onChange?: (guests: readonly SimulatedGuestRecord[]) => void
}

export interface SimulatedHost {
  /** A connection to the host, for one agent. Once closed it does nothing more, like an agent that was killed. */
  attach(): Hypervisor
  /** Every guest that runs at this instant, with the disks that it writes to. */
  running(): readonly SimulatedGuestRecord[]
  /** The guest's process vanishes. */
  crashGuest(name: string): void
  /** The guest powers itself off. */
  powerOffGuest(name: string): void
  /** The guest does not hear its power button from now on. */
  hangGuest(name: string): void
  /** The next start fails with this reason. */
  failNextStart(reason: string): void
  /** Every process of the host is gone. */
  reboot(): void
}

const START_MILLISECONDS = { least: 20, most: 120 }
const BOOT_MILLISECONDS = { least: 300, most: 2_000 }
const SHUTDOWN_MILLISECONDS = { least: 50, most: 500 }
const INTERRUPT = 0x03

interface SimulatedGuest {
  record: SimulatedGuestRecord
  isBooted: boolean
  isHung: boolean
  typed: string
}

export function newSimulatedHost({ clock, random, guests: before = [], onChange = () => {} }: SimulatedHostOptions): SimulatedHost {
  const guests = new Map<string, SimulatedGuest>(before.map((record) => [record.name, { record, isBooted: true, isHung: false, typed: '' }]))
  const lines = new Map<string, ConsoleLine>()
  const listeners = new Set<(name: string) => void>()
  let startFailure: string | undefined

  const between = ({ least, most }: { least: number; most: number }) => least + (most - least) * random.fraction()
  const line = (name: string): ConsoleLine => {
    const known = lines.get(name) ?? new ConsoleLine()
    lines.set(name, known)
    return known
  }
  const changed = (name: string) => {
    onChange([...guests.values()].map(({ record }) => record))
    for (const listener of [...listeners]) listener(name)
  }
  const print = (guest: SimulatedGuest, text: string) => line(guest.record.name).append(Buffer.from(text.replaceAll('\n', '\r\n')))
  const isCurrent = (guest: SimulatedGuest) => guests.get(guest.record.name) === guest && guest.record.state === 'running'
  const connect = (guest: SimulatedGuest) =>
    line(guest.record.name).running(guest.record.incarnation, (bytes) => {
      type(guest, bytes)
      return true
    })

  function endWith(guest: SimulatedGuest, state: 'off' | 'gone'): void {
    if (!isCurrent(guest)) return
    guest.record = { ...guest.record, state }
    line(guest.record.name).stopped()
    changed(guest.record.name)
  }

  function shutDown(guest: SimulatedGuest): void {
    print(guest, 'The system is going down.\n')
    clock.after(between(SHUTDOWN_MILLISECONDS), () => endWith(guest, 'off'))
  }

  function type(guest: SimulatedGuest, bytes: Buffer): void {
    if (!guest.isBooted || guest.isHung) return
    for (const byte of bytes) {
      const character = String.fromCharCode(byte)
      if (byte === INTERRUPT) {
        guest.typed = ''
        print(guest, `^C\n${promptOf(guest)}`)
      } else if (character === '\r' || character === '\n') {
        print(guest, '\n')
        runCommand(guest, guest.typed.trim())
        guest.typed = ''
      } else {
        guest.typed += character
        print(guest, character)
      }
    }
  }

  function runCommand(guest: SimulatedGuest, command: string): void {
    const [word = '', ...rest] = command.split(/\s+/)
    if (word === 'poweroff') return shutDown(guest)
    if (word === 'hostname') print(guest, `${guest.record.hostname}\n`)
    else if (word === 'echo') print(guest, `${rest.join(' ')}\n`)
    else if (word !== '') print(guest, `sh: ${word}: not found\n`)
    print(guest, promptOf(guest))
  }

  const observe = ({ record }: SimulatedGuest): Guest => ({
    name: record.name, uid: record.uid, incarnation: record.incarnation, startedAt: record.startedAt, state: record.state, isResponsive: record.state !== 'gone', forwards: [],
  })
  const ended = (name: string, state: 'off' | 'gone') => {
    const guest = guests.get(name)
    if (guest !== undefined) endWith(guest, state)
  }
  for (const guest of guests.values()) if (guest.record.state === 'running') connect(guest)

  function attach(): Hypervisor {
    const mine = new Set<() => void>()
    let isClosed = false
    const alive = () => {
      if (isClosed) throw new Error('the agent of this connection is gone')
    }
    return {
      kind: 'simulated',
      async list() {
        alive()
        return [...guests.values()].map(observe)
      },
      async inspect(name) {
        alive()
        const guest = guests.get(name)
        return guest === undefined ? undefined : observe(guest)
      },
      async start(definition: GuestDefinition) {
        alive()
        const { name, uid, incarnation, hostname } = definition
        if (guests.has(name)) throw new GuestExists(name)
        await clock.sleep(between(START_MILLISECONDS))
        alive()
        if (guests.has(name)) throw new GuestExists(name)
        const failure = startFailure
        startFailure = undefined
        if (failure !== undefined) throw new GuestStartFailed(failure)
        const record = { name, uid, incarnation, hostname, startedAt: clock.now().toISOString(), disks: definition.disks.map(({ path }) => path), state: 'running' as const }
        const guest: SimulatedGuest = { record, isBooted: false, isHung: false, typed: '' }
        guests.set(name, guest)
        connect(guest)
        clock.after(between(BOOT_MILLISECONDS), () => {
          if (!isCurrent(guest)) return
          guest.isBooted = true
          print(guest, `\nThis guest is simulated.\n\n${promptOf(guest)}`)
        })
        changed(name)
        return observe(guest)
      },
      async pressPowerButton(name) {
        alive()
        const guest = guests.get(name)
        if (guest !== undefined && isCurrent(guest) && guest.isBooted && !guest.isHung) shutDown(guest)
      },
      async destroy(name) {
        alive()
        if (!guests.delete(name)) return
        line(name).stopped()
        changed(name)
      },
      async forget(name) {
        await this.destroy(name)
        lines.get(name)?.removed()
        lines.delete(name)
      },
      console: line,
      async counters(name) {
        alive()
        return guests.get(name)?.record.state === 'running' ? { diskReadBytes: 0, diskWrittenBytes: 0, diskReadOperations: 0, diskWriteOperations: 0 } : undefined
      },
      onChange(listener) {
        const stop = () => void listeners.delete(listener)
        listeners.add(listener)
        mine.add(stop)
        return stop
      },
      async close() {
        isClosed = true
        for (const stop of mine) stop()
      },
    }
  }

  return {
    attach,
    running: () => [...guests.values()].filter(({ record }) => record.state === 'running').map(({ record }) => record),
    crashGuest: (name) => ended(name, 'gone'),
    powerOffGuest: (name) => ended(name, 'off'),
    hangGuest(name) {
      const guest = guests.get(name)
      if (guest !== undefined) guest.isHung = true
    },
    failNextStart: (reason) => void (startFailure = reason),
    reboot() {
      for (const name of guests.keys()) {
        const guest = guests.get(name)
        // What was off is gone too: the process that held the fact is.
        if (guest !== undefined) guest.record = { ...guest.record, state: 'gone' }
        line(name).stopped()
        changed(name)
      }
    },
  }
}

const promptOf = ({ record }: SimulatedGuest): string => `root@${record.hostname}:~# `
