/** A connection of one agent to a simulated host. */
import { defined } from '../../../../domain/defined.ts'
import { Unavailable } from '../../../../domain/problem.ts'
import type { Clock } from '../../../../kit/sys/clock.ts'
import { numberBetween, newUuid, type Random } from '../../../../kit/sys/random.ts'
import {
  type Guest,
  type GuestDefinition,
  GuestExists,
  GuestStartFailed,
  type Hypervisor,
  portNameOf,
} from './hypervisor.ts'
import { GuestAgentFailed } from '../../guest-agent/channel.ts'
import { answerAsMachine } from './simulated-machine.ts'
import { newSimulatedGuest, type SimulatedGuest, type SimulatedGuestRecord } from './simulated-guest.ts'
import type { SimulatedGuests } from './simulated-guests.ts'
import type { SimulatedMigrations } from './simulated-migration.ts'
import type { SimulatedSystem } from './simulated-system.ts'

export interface SimulatedHypervisorOptions {
  readonly clock: Clock
  readonly random: Random
  readonly guests: SimulatedGuests
  readonly system: SimulatedSystem
  readonly migrations: SimulatedMigrations
  /** Returns why the next start fails, once; undefined when it does not fail. */
  readonly takeStartFailure: () => string | undefined
  readonly onClosed: () => void
}

/** Time until the guest notices that a disk or an interface was plugged or unplugged. */
const PLUG_MILLISECONDS = { least: 5, most: 80 }
const ANSWER_MILLISECONDS = { least: 20, most: 400 }
const START_MILLISECONDS = { least: 20, most: 120 }

const guestOf = ({ record, isDiskFull }: SimulatedGuest): Guest => ({
  name: record.name,
  uid: record.uid,
  incarnation: record.incarnation,
  startedAt: record.startedAt,
  state: record.state,
  isResponsive: record.state !== 'gone',
  ...(isDiskFull && record.state === 'running' ? { isDiskFull } : {}),
  forwards: [],
  disks: record.state === 'gone' ? [] : record.disks,
  interfaces: record.state === 'gone' ? [] : (record.interfaces ?? []),
  ...((record.cutOffSlots ?? []).length === 0 ? {} : { cutOffSlots: record.cutOffSlots ?? [] }),
  ...((record.leavingInterfaces ?? []).length === 0 ? {} : { leavingInterfaces: record.leavingInterfaces ?? [] }),
  ...defined({ transfer: record.transfer }),
})

/** The agent's end of the connection. Once closed it does nothing, like an agent that was killed. */
export function newSimulatedHypervisor(options: SimulatedHypervisorOptions): Hypervisor {
  const { clock, random, guests, migrations, onClosed } = options
  const stops = new Set<() => void>()
  let isClosed = false
  const assertOpen = () => {
    if (isClosed) throw new Error('the agent of this connection has ended')
  }
  const observe = (guest: SimulatedGuest): Guest => {
    migrations.continueWithAgent(guest)
    return guestOf(guest)
  }
  return {
    kind: 'simulated',
    async list() {
      assertOpen()
      return guests.all().map(observe)
    },
    async inspect(name) {
      assertOpen()
      const guest = guests.get(name)
      return guest === undefined ? undefined : observe(guest)
    },
    ...lifeOf(options, assertOpen),
    ...transfersOf(options, assertOpen),
    ...disksOf(options, assertOpen),
    ...interfacesOf(options, assertOpen),
    console: guests.line,
    async counters(name) {
      assertOpen()
      return guests.get(name)?.record.state === 'running'
        ? { diskReadBytes: 0, diskWrittenBytes: 0, diskReadOperations: 0, diskWriteOperations: 0 }
        : undefined
    },
    async askMachine(name, request) {
      assertOpen()
      await clock.sleep(numberBetween(random, ANSWER_MILLISECONDS))
      assertOpen()
      const guest = guests.get(name)
      if (guest === undefined || !guests.isRunning(guest) || !guest.isBooted || guest.isHung)
        throw new GuestAgentFailed('the guest agent does not answer')
      const now = clock.now().toISOString()
      return answerAsMachine(guest, { request, now, take: (configuration) => guests.update(guest, { configuration }) })
    },
    monitorOf: () => undefined,
    onChange(listener) {
      const stop = guests.listen(listener)
      stops.add(stop)
      return stop
    },
    async close() {
      if (!isClosed) onClosed()
      isClosed = true
      for (const stop of stops) stop()
    },
  }
}

type Life = Pick<Hypervisor, 'start' | 'resume' | 'pressPowerButton' | 'destroy' | 'forget'>

function lifeOf(options: SimulatedHypervisorOptions, assertOpen: () => void): Life {
  const { random, guests, system, migrations } = options
  async function destroy(name: string): Promise<void> {
    assertOpen()
    const guest = guests.get(name)
    if (guest === undefined) return
    migrations.disconnect(guest)
    guests.remove(name)
  }
  return {
    async start(definition) {
      assertOpen()
      const guest = await addGuest(options, definition, assertOpen, {
        state: 'running',
        executionId: newUuid(random),
      })
      system.connect(guest)
      system.boot(guest)
      guests.report(definition.name)
      return guestOf(guest)
    },
    async resume(name) {
      assertOpen()
      const guest = guests.get(name)
      if (guest === undefined || !guests.isRunning(guest) || !guest.isDiskFull || !guest.hasRoom) return
      guest.isDiskFull = false
      guests.report(name)
    },
    async pressPowerButton(name) {
      assertOpen()
      const guest = guests.get(name)
      if (guest !== undefined && guests.isRunning(guest) && guest.isBooted && !guest.isHung) system.shutDown(guest)
    },
    destroy,
    async forget(name) {
      await destroy(name)
      guests.removeLine(name)
    },
  }
}

type Disks = Pick<Hypervisor, 'plugDisk' | 'unplugDisk' | 'growDisk' | 'changeSnapshots'>

function disksOf({ clock, random, guests }: SimulatedHypervisorOptions, assertOpen: () => void): Disks {
  const release = (guest: SimulatedGuest, path: string, more: Partial<SimulatedGuestRecord> = {}) => {
    if (guests.isHere(guest))
      guests.update(guest, { ...more, disks: guest.record.disks.filter((disk) => disk !== path) })
  }
  /** Asks the guest to release the device of a disk that was taken by force. */
  const askForSlot = (guest: SimulatedGuest, slot: number) => {
    if (!guest.isBooted || guest.isHung) return
    clock.after(numberBetween(random, PLUG_MILLISECONDS), () => {
      const { cutOffSlots = [] } = guest.record
      if (guests.isHere(guest)) guests.update(guest, { cutOffSlots: cutOffSlots.filter((each) => each !== slot) })
    })
  }
  const isCutOff = ({ record }: SimulatedGuest, slot: number) => record.cutOffSlots?.includes(slot) === true
  const isIn = (name: string, path: string): boolean => {
    assertOpen()
    const guest = guests.get(name)
    return guest !== undefined && guests.isRunning(guest) && guest.record.disks.includes(path)
  }
  return {
    async plugDisk(name, { path, slot = 0 }) {
      assertOpen()
      const guest = guests.get(name)
      if (guest === undefined || !guests.isRunning(guest)) throw new Unavailable(`guest ${name}`)
      if (guest.record.disks.includes(path)) return true
      if (isCutOff(guest, slot)) {
        askForSlot(guest, slot)
        return false
      }
      await clock.sleep(numberBetween(random, PLUG_MILLISECONDS))
      assertOpen()
      if (!guests.isRunning(guest)) throw new Unavailable(`guest ${name}`)
      const { disks, slots } = guest.record
      guests.update(guest, { disks: [...disks, path], slots: { ...slots, [path]: slot } })
      return true
    },
    async unplugDisk(name, path, isForced) {
      assertOpen()
      const guest = guests.get(name)
      if (guest === undefined || !guest.record.disks.includes(path)) return
      const slot = guest.record.slots?.[path]
      if (isForced) {
        const cutOffSlots = [...(guest.record.cutOffSlots ?? []), ...(slot === undefined ? [] : [slot])]
        release(guest, path, { cutOffSlots })
        if (slot !== undefined) askForSlot(guest, slot)
      } else if (guest.isBooted && !guest.isHung)
        clock.after(numberBetween(random, PLUG_MILLISECONDS), () => release(guest, path))
    },
    growDisk: async (name, path) => isIn(name, path),
    changeSnapshots: async (name, path) => isIn(name, path),
  }
}

type Interfaces = Pick<Hypervisor, 'plugInterface' | 'unplugInterface'>

function interfacesOf({ clock, random, guests }: SimulatedHypervisorOptions, assertOpen: () => void): Interfaces {
  return {
    async plugInterface(name, added) {
      assertOpen()
      const portName = portNameOf(name, added)
      const runs = () => {
        assertOpen()
        const guest = guests.get(name)
        if (guest === undefined || !guests.isRunning(guest)) throw new Unavailable(`guest ${name}`)
        return guest
      }
      const { record } = runs()
      const isLeaving = record.leavingInterfaces?.includes(portName) === true
      if (record.interfaces?.includes(portName) === true && !isLeaving) return
      await clock.sleep(numberBetween(random, PLUG_MILLISECONDS))
      const guest = runs()
      guests.update(guest, {
        interfaces: [...new Set([...(guest.record.interfaces ?? []), portName])],
        leavingInterfaces: (guest.record.leavingInterfaces ?? []).filter((known) => known !== portName),
      })
    },
    async unplugInterface(name, portName) {
      assertOpen()
      const guest = guests.get(name)
      if (guest?.record.interfaces?.includes(portName) !== true || portName === name) return
      const { leavingInterfaces = [] } = guest.record
      // An update wakes the caller, so asking again must not update.
      if (!leavingInterfaces.includes(portName))
        guests.update(guest, { leavingInterfaces: [...leavingInterfaces, portName] })
      if (!guest.isBooted || guest.isHung) return
      clock.after(numberBetween(random, PLUG_MILLISECONDS), () => {
        if (!guests.isHere(guest)) return
        guests.update(guest, {
          interfaces: guest.record.interfaces?.filter((known) => known !== portName),
          leavingInterfaces: guest.record.leavingInterfaces?.filter((known) => known !== portName),
        })
      })
    },
  }
}

type Transfers = Pick<Hypervisor, 'receive' | 'send' | 'cancelSend'>

function transfersOf(options: SimulatedHypervisorOptions, assertOpen: () => void): Transfers {
  const { guests, migrations } = options
  return {
    async receive(definition, reception) {
      assertOpen()
      const guest = await addGuest(options, definition, assertOpen, { state: 'receiving', executionId: '' })
      migrations.receive(guest, reception)
      guests.report(definition.name)
      return guestOf(guest)
    },
    async send(name, sending) {
      assertOpen()
      const guest = guests.get(name)
      if (guest === undefined || !guests.isRunning(guest) || guest.sending !== undefined) return
      const { transfer } = guest.record
      if (transfer?.role === 'send' && transfer.id === sending.id && transfer.attempt >= sending.attempt) return
      migrations.send(guest, sending)
    },
    async cancelSend(name) {
      assertOpen()
      const guest = guests.get(name)
      if (guest !== undefined) migrations.cancel(guest, 'cancelled')
    },
  }
}

/** Creates the guest of the definition, if the host allows it. */
async function addGuest(
  { clock, random, guests, takeStartFailure }: SimulatedHypervisorOptions,
  { name, uid, incarnation, hostname, disks, interfaces }: GuestDefinition,
  assertOpen: () => void,
  rest: Pick<SimulatedGuestRecord, 'state' | 'executionId'>,
): Promise<SimulatedGuest> {
  if (guests.get(name) !== undefined) throw new GuestExists(name)
  await clock.sleep(numberBetween(random, START_MILLISECONDS))
  assertOpen()
  if (guests.get(name) !== undefined) throw new GuestExists(name)
  const failure = takeStartFailure()
  if (failure !== undefined) throw new GuestStartFailed(failure)
  const guest = newSimulatedGuest({
    name,
    uid,
    incarnation,
    hostname,
    startedAt: clock.now().toISOString(),
    disks: disks.map(({ path }) => path),
    interfaces: interfaces.map((each) => portNameOf(name, each)),
    ...rest,
  })
  guests.add(guest)
  return guest
}
