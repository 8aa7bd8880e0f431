/** A host with simulated guests: no kernel, no disk, a minimal shell on the console. For hosts without QEMU, for scale
 *  tests, and for the simulation. The host outlives the agents that attach to it, and decides which guests run. The
 *  same clock and randomness give the same history. */
import type { Clock } from '../../../../kit/sys/clock.ts'
import { newUuid, type Random } from '../../../../kit/sys/random.ts'
import { ConsoleLine } from './console-line.ts'
import { type Guest, type GuestDefinition, GuestExists, GuestStartFailed, type Hypervisor } from './hypervisor.ts'
import { newSimulatedGuest, type SimulatedGuest, type SimulatedGuestRecord } from './simulated-guest.ts'
import { newSimulatedMigrations } from './simulated-migration.ts'
import { type GuestTransport, newSimulatedNetwork } from './simulated-network.ts'

export interface SimulatedHostOptions {
  readonly clock: Clock
  readonly random: Random
  /** Guests that were there before, as `onChange` last reported them. */
  readonly guests?: readonly SimulatedGuestRecord[]
  /** Told all guests, synchronously, whenever one changed. */
  readonly onChange?: (guests: readonly SimulatedGuestRecord[]) => void
  /** The hosts that guests can move to and from, and its name among them; none by default. */
  readonly network?: GuestTransport
  readonly name?: string
  /** Guests continue on both hosts of a move, which must never happen: proves that the checks for it detect it. */
  readonly isSplitBrainAllowed?: boolean
}

export interface SimulatedHost {
  /** A connection to the host, for one agent. Once closed it does nothing more, like an agent that was killed. */
  attach(): Hypervisor
  /** Every guest that runs at this instant, with the disks that it writes to. One that is being handed over stands
   *  still. */
  running(): readonly SimulatedGuestRecord[]
  /** The guest's process dies. */
  crashGuest(name: string): void
  /** The guest powers itself off. */
  powerOffGuest(name: string): void
  /** The guest ignores its power button from now on. */
  hangGuest(name: string): void
  /** The guest changes its memory so fast that its hand-over needs this much downtime. */
  keepGuestBusy(name: string, neededDowntimeMilliseconds: number): void
  /** The next start or reception fails with this reason. */
  failNextStart(reason: string): void
  /** Every process of the host is gone. */
  reboot(): void
}

const START_MILLISECONDS = { least: 20, most: 120 }
const BOOT_MILLISECONDS = { least: 300, most: 2_000 }
const SHUTDOWN_MILLISECONDS = { least: 50, most: 500 }
const INTERRUPT = 0x03

/** What the end of the process that simulated it leaves of a guest: nothing under way goes on. */
const interrupted = (record: SimulatedGuestRecord): SimulatedGuestRecord => ({
  ...record,
  state: record.state === 'receiving' ? 'gone' : record.state,
  ...(record.transfer?.phase === 'transferring'
    ? { transfer: { ...record.transfer, phase: 'failed' as const, detail: 'interrupted' } }
    : {}),
})

export function newSimulatedHost({
  clock,
  random,
  guests: before = [],
  onChange = () => {},
  network = newSimulatedNetwork(),
  name: host = 'simulated',
  isSplitBrainAllowed = false,
}: SimulatedHostOptions): SimulatedHost {
  const guests = new Map<string, SimulatedGuest>(
    before.map((record) => [record.name, newSimulatedGuest(interrupted(record), true)]),
  )
  const lines = new Map<string, ConsoleLine>()
  const listeners = new Set<(name: string) => void>()
  let startFailure: string | undefined
  let agents = 0

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
  const print = (guest: SimulatedGuest, text: string) =>
    line(guest.record.name).append(Buffer.from(text.replaceAll('\n', '\r\n')))
  const isHere = (guest: SimulatedGuest) => guests.get(guest.record.name) === guest
  const isCurrent = (guest: SimulatedGuest) => isHere(guest) && guest.record.state === 'running'
  const connect = (guest: SimulatedGuest) =>
    line(guest.record.name).running(guest.record.incarnation, (bytes) => {
      type(guest, bytes)
      return true
    })

  function update(guest: SimulatedGuest, change: Partial<SimulatedGuestRecord>): void {
    guest.record = { ...guest.record, ...change }
    if (guest.record.state !== 'running') line(guest.record.name).stopped()
    changed(guest.record.name)
  }

  const migrations = newSimulatedMigrations({
    clock,
    random,
    network,
    host,
    isSplitBrainAllowed,
    isHere,
    update,
    hasAgent: () => agents > 0,
    arrive(guest, memory) {
      Object.assign(guest, memory)
      const { transfer } = guest.record
      connect(guest)
      if (!memory.isBooted) boot(guest)
      update(guest, {
        state: 'running',
        executionId: memory.executionId,
        ...(transfer === undefined
          ? {}
          : { transfer: { ...transfer, phase: 'completed', reportedAt: clock.now().toISOString() } }),
      })
    },
  })

  function boot(guest: SimulatedGuest): void {
    clock.after(between(BOOT_MILLISECONDS), () => {
      if (!isCurrent(guest)) return
      guest.isBooted = true
      print(guest, `\nThis guest is simulated.\n\n${promptOf(guest)}`)
    })
  }

  function endWith(guest: SimulatedGuest, state: 'off' | 'gone'): void {
    if (
      !isHere(guest) ||
      !LIVE_STATES.includes(guest.record.state) ||
      (state === 'off' && (!isCurrent(guest) || guest.isPaused))
    )
      return
    if (state === 'off') migrations.cancel(guest, 'the guest powered itself off')
    migrations.disconnect(guest)
    update(guest, { state })
  }

  /** Makes the guest of the definition, as far as the host lets it. */
  async function make(
    { name, uid, incarnation, hostname, disks }: GuestDefinition,
    assertOpen: () => void,
    rest: Pick<SimulatedGuestRecord, 'state' | 'executionId'>,
  ): Promise<SimulatedGuest> {
    if (guests.has(name)) throw new GuestExists(name)
    await clock.sleep(between(START_MILLISECONDS))
    assertOpen()
    if (guests.has(name)) throw new GuestExists(name)
    const failure = startFailure
    startFailure = undefined
    if (failure !== undefined) throw new GuestStartFailed(failure)
    const guest = newSimulatedGuest({
      name,
      uid,
      incarnation,
      hostname,
      startedAt: clock.now().toISOString(),
      disks: disks.map(({ path }) => path),
      ...rest,
    })
    guests.set(name, guest)
    return guest
  }

  function shutDown(guest: SimulatedGuest): void {
    print(guest, 'The system is going down.\n')
    clock.after(between(SHUTDOWN_MILLISECONDS), () => endWith(guest, 'off'))
  }

  function type(guest: SimulatedGuest, bytes: Buffer): void {
    if (!guest.isBooted || guest.isHung || guest.isPaused) return
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
    const [program = '', ...rest] = command.split(/\s+/)
    if (program === 'poweroff') return shutDown(guest)
    if (program === 'hostname') print(guest, `${guest.record.hostname}\n`)
    else if (program === 'echo') print(guest, `${rest.join(' ')}\n`)
    else if (program !== '') print(guest, `sh: ${program}: not found\n`)
    print(guest, promptOf(guest))
  }

  const observe = ({ record }: SimulatedGuest): Guest => ({
    name: record.name,
    uid: record.uid,
    incarnation: record.incarnation,
    startedAt: record.startedAt,
    state: record.state,
    isResponsive: record.state !== 'gone',
    forwards: [],
    ...(record.transfer === undefined ? {} : { transfer: record.transfer }),
  })
  const ended = (name: string, state: 'off' | 'gone') => {
    const guest = guests.get(name)
    if (guest !== undefined) endWith(guest, state)
  }
  for (const guest of guests.values()) if (guest.record.state === 'running') connect(guest)

  function attach(): Hypervisor {
    const mine = new Set<() => void>()
    let isClosed = false
    agents += 1
    const look = (guest: SimulatedGuest): Guest => {
      migrations.continueWithAgent(guest)
      return observe(guest)
    }
    const assertOpen = () => {
      if (isClosed) throw new Error('the agent of this connection is gone')
    }
    return {
      kind: 'simulated',
      async list() {
        assertOpen()
        return [...guests.values()].map(look)
      },
      async inspect(name) {
        assertOpen()
        const guest = guests.get(name)
        return guest === undefined ? undefined : look(guest)
      },
      async start(definition) {
        assertOpen()
        const guest = await make(definition, assertOpen, { state: 'running', executionId: newUuid(random) })
        connect(guest)
        boot(guest)
        changed(definition.name)
        return observe(guest)
      },
      async receive(definition, reception) {
        assertOpen()
        const guest = await make(definition, assertOpen, { state: 'receiving', executionId: '' })
        migrations.await(guest, reception)
        changed(definition.name)
        return observe(guest)
      },
      async send(name, sending) {
        assertOpen()
        const guest = guests.get(name)
        if (guest === undefined || !isCurrent(guest) || guest.sending !== undefined) return
        const { transfer } = guest.record
        if (transfer?.role === 'send' && transfer.id === sending.id && transfer.attempt >= sending.attempt) return
        migrations.send(guest, sending)
      },
      async cancelSend(name) {
        assertOpen()
        const guest = guests.get(name)
        if (guest !== undefined) migrations.cancel(guest, 'cancelled')
      },
      async pressPowerButton(name) {
        assertOpen()
        const guest = guests.get(name)
        if (guest !== undefined && isCurrent(guest) && guest.isBooted && !guest.isHung) shutDown(guest)
      },
      async destroy(name) {
        assertOpen()
        const guest = guests.get(name)
        if (guest === undefined) return
        migrations.disconnect(guest)
        guests.delete(name)
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
        assertOpen()
        return guests.get(name)?.record.state === 'running'
          ? { diskReadBytes: 0, diskWrittenBytes: 0, diskReadOperations: 0, diskWriteOperations: 0 }
          : undefined
      },
      onChange(listener) {
        const stop = () => void listeners.delete(listener)
        listeners.add(listener)
        mine.add(stop)
        return stop
      },
      async close() {
        if (!isClosed) agents -= 1
        isClosed = true
        for (const stop of mine) stop()
      },
    }
  }

  return {
    attach,
    running: () =>
      [...guests.values()]
        .filter(({ record, isPaused }) => record.state === 'running' && !isPaused)
        .map(({ record }) => record),
    crashGuest: (name) => ended(name, 'gone'),
    powerOffGuest: (name) => ended(name, 'off'),
    hangGuest(name) {
      const guest = guests.get(name)
      if (guest !== undefined) guest.isHung = true
    },
    keepGuestBusy(name, neededDowntimeMilliseconds) {
      const guest = guests.get(name)
      if (guest !== undefined) guest.neededDowntimeMilliseconds = neededDowntimeMilliseconds
    },
    failNextStart: (reason) => void (startFailure = reason),
    reboot() {
      for (const guest of guests.values()) {
        migrations.disconnect(guest)
        // What was off or handed over is gone too: the process that held the fact is.
        update(guest, { state: 'gone' })
      }
    },
  }
}

/** States in which the guest's process has not ended by itself. */
const LIVE_STATES: readonly Guest['state'][] = ['running', 'receiving', 'handed_over']

const promptOf = ({ record }: SimulatedGuest): string => `root@${record.hostname}:~# `
