/** A host with simulated guests: no kernel, no disk, a minimal shell on the console. For hosts without QEMU, for scale
 *  tests, and for the simulation. The host outlives the agents that attach to it, and decides which guests run. The
 *  same clock and randomness give the same history. */
import type { Clock } from '../../../../kit/sys/clock.ts'
import type { Random } from '../../../../kit/sys/random.ts'
import type { Guest, Hypervisor } from './hypervisor.ts'
import { newSimulatedGuest, type SimulatedGuest, type SimulatedGuestRecord } from './simulated-guest.ts'
import { newSimulatedGuests } from './simulated-guests.ts'
import { newSimulatedHypervisor } from './simulated-hypervisor.ts'
import { newSimulatedMigrations } from './simulated-migration.ts'
import { type GuestTransport, newSimulatedNetwork } from './simulated-network.ts'
import { newSimulatedSystem } from './simulated-system.ts'

export interface SimulatedHostOptions {
  readonly clock: Clock
  readonly random: Random
  /** Guests that were there before, as `onChange` last reported them. */
  readonly guests?: readonly SimulatedGuestRecord[]
  /** Called synchronously with all guests whenever one has changed. */
  readonly onChange?: (guests: readonly SimulatedGuestRecord[]) => void
  /** The network for moves of guests, and the host's name in it; none by default. */
  readonly network?: GuestTransport
  readonly name?: string
  /** Guests continue on both hosts of a move, which must never happen. Proves that the checks detect it. */
  readonly isSplitBrainAllowed?: boolean
}

export interface SimulatedHost {
  /** A connection to the host, for one agent. Once closed it does nothing, like an agent that was killed. */
  attach(): Hypervisor
  /** Every guest that runs at this instant, with the disks that it writes to. A guest that is being handed over is
   *  paused and not included. */
  running(): readonly SimulatedGuestRecord[]
  /** The guest's process dies. */
  crashGuest(name: string): void
  /** The guest powers itself off. */
  powerOffGuest(name: string): void
  /** A write of the guest finds no space: it is paused until it is resumed after `freeDisk`. */
  fillDisk(name: string): void
  freeDisk(name: string): void
  /** The guest ignores its power button from now on. */
  hangGuest(name: string): void
  /** The guest changes its memory so fast that its hand-over needs this much downtime. */
  keepGuestBusy(name: string, neededDowntimeMilliseconds: number): void
  /** Makes the next start or reception fail with this reason; undefined withdraws that. */
  failNextStart(reason: string | undefined): void
  /** Ends every process of the host. */
  reboot(): void
}

/** The record of a guest after the simulating process has ended: nothing in progress continues. */
const interrupted = (record: SimulatedGuestRecord): SimulatedGuestRecord => ({
  ...record,
  state: record.state === 'receiving' ? 'gone' : record.state,
  ...(record.transfer?.phase === 'transferring'
    ? { transfer: { ...record.transfer, phase: 'failed' as const, detail: 'interrupted' } }
    : {}),
})

/** States in which the guest's process has not ended by itself. */
const LIVE_STATES: readonly Guest['state'][] = ['running', 'receiving', 'handed_over']

export function newSimulatedHost({
  clock,
  random,
  guests: before = [],
  onChange = () => {},
  network = newSimulatedNetwork(),
  name: host = 'simulated',
  isSplitBrainAllowed = false,
}: SimulatedHostOptions): SimulatedHost {
  const guests = newSimulatedGuests(
    before.map((record) => newSimulatedGuest(interrupted(record), true)),
    onChange,
  )
  let startFailure: string | undefined
  let agents = 0

  function end(guest: SimulatedGuest, state: 'off' | 'gone'): void {
    if (!guests.isHere(guest) || !LIVE_STATES.includes(guest.record.state)) return
    if (state === 'off' && (!guests.isRunning(guest) || guest.isPaused)) return
    if (state === 'off') migrations.cancel(guest, 'the guest powered itself off')
    migrations.disconnect(guest)
    guests.update(guest, { state })
  }
  const system = newSimulatedSystem({ clock, random, guests, powerOff: (guest) => end(guest, 'off') })
  const parts = { clock, random, guests, system }
  const hasAgent = () => agents > 0
  const migrations = newSimulatedMigrations({ ...parts, network, host, isSplitBrainAllowed, hasAgent })

  const withGuest = (name: string, work: (guest: SimulatedGuest) => void) => {
    const guest = guests.get(name)
    if (guest !== undefined) work(guest)
  }
  for (const guest of guests.all()) if (guest.record.state === 'running') system.connect(guest)

  return {
    attach() {
      agents += 1
      return newSimulatedHypervisor({
        ...parts,
        migrations,
        takeStartFailure() {
          const failure = startFailure
          startFailure = undefined
          return failure
        },
        onClosed: () => void (agents -= 1),
      })
    },
    running: () =>
      guests
        .all()
        .filter(({ record, isPaused }) => record.state === 'running' && !isPaused)
        .map(({ record }) => record),
    crashGuest: (name) => withGuest(name, (guest) => end(guest, 'gone')),
    powerOffGuest: (name) => withGuest(name, (guest) => end(guest, 'off')),
    fillDisk: (name) =>
      withGuest(name, (guest) => {
        Object.assign(guest, { isDiskFull: true, hasRoom: false })
        guests.report(name)
      }),
    freeDisk: (name) => withGuest(name, (guest) => void (guest.hasRoom = true)),
    hangGuest: (name) => withGuest(name, (guest) => void (guest.isHung = true)),
    keepGuestBusy: (name, neededDowntimeMilliseconds) =>
      withGuest(name, (guest) => void Object.assign(guest, { neededDowntimeMilliseconds })),
    failNextStart: (reason) => void (startFailure = reason),
    reboot() {
      for (const guest of guests.all()) {
        migrations.disconnect(guest)
        // Guests that were off or handed over are lost too, because the process that held the state has ended.
        guests.update(guest, { state: 'gone' })
      }
    },
  }
}
