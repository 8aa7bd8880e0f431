/** Migration of simulated guests, in the same order as with QEMU. The memory is copied in passes while the guest runs;
 *  then the guest is paused until an agent orders the hand-over; then the sender has written everything, and the
 *  receiver has it a moment later, or never when the network is cut just then. */
import type { Clock } from '../../../../kit/sys/clock.ts'
import type { Random } from '../../../../kit/sys/random.ts'
import type { ReceiveRequest, SendRequest, Transfer } from './hypervisor.ts'
import type { SimulatedGuest } from './simulated-guest.ts'
import type { GuestTransport, SimulatedMemory } from './simulated-network.ts'

export interface SimulatedMigrationOptions {
  readonly clock: Clock
  readonly random: Random
  readonly network: GuestTransport
  /** The host's name in the network. */
  readonly host: string
  /** See `SimulatedHostOptions.isCareless`. */
  readonly isSplitBrainAllowed: boolean
  /** An agent is attached, and can order what takes one. */
  readonly hasAgent: () => boolean
  /** Changes what is known of the guest and tells everybody. */
  readonly update: (guest: SimulatedGuest, change: Partial<SimulatedGuest['record']>) => void
  /** The guest continues here with the memory. */
  readonly arrive: (guest: SimulatedGuest, memory: SimulatedMemory) => void
  /** The guest is still the one of its name. */
  readonly isHere: (guest: SimulatedGuest) => boolean
}

export interface SimulatedMigrations {
  await(guest: SimulatedGuest, reception: ReceiveRequest): void
  send(guest: SimulatedGuest, sending: SendRequest): void
  cancel(guest: SimulatedGuest, reason: string): void
  /** An agent attached to the guest: steps that waited for one continue. */
  continueWithAgent(guest: SimulatedGuest): void
  /** The guest's process has ended: so have its connections. */
  disconnect(guest: SimulatedGuest): void
}

const PASS_MILLISECONDS = { least: 50, most: 600 }
const PASSES = { least: 1, most: 5 }
const HAND_OVER_MILLISECONDS = { least: 5, most: 80 }
const ARRIVAL_MILLISECONDS = { least: 1, most: 60 }
const MEMORY_BYTES = 128 * 1024 ** 2
const DIRTY_BYTES = { least: 100_000, most: 20_000_000 }

export function newSimulatedMigrations({
  clock,
  random,
  network,
  host,
  isSplitBrainAllowed,
  hasAgent,
  update,
  arrive,
  isHere,
}: SimulatedMigrationOptions): SimulatedMigrations {
  const between = ({ least, most }: { least: number; most: number }) => least + (most - least) * random.fraction()

  const progress = (guest: SimulatedGuest, change: Partial<Transfer>) => {
    const { transfer } = guest.record
    if (transfer !== undefined)
      update(guest, { transfer: { ...transfer, ...change, reportedAt: clock.now().toISOString() } })
  }
  const begin = (role: Transfer['role'], { id, attempt }: ReceiveRequest, where: Partial<Transfer> = {}): Transfer => ({
    id,
    attempt,
    role,
    phase: 'transferring',
    ...where,
    iteration: 0,
    transferredBytes: 0,
    totalBytes: 0,
    dirtyBytesPerSecond: 0,
    downtimeMilliseconds: 0,
    detail: '',
    reportedAt: clock.now().toISOString(),
  })
  const isSending = (guest: SimulatedGuest, sending: SendRequest) => isHere(guest) && guest.sending === sending
  const receiverOf = ({ host: to, port, key }: SendRequest) => network.connect(host, to, port, key)

  function fail(guest: SimulatedGuest, sending: SendRequest, detail: string): void {
    receiverOf(sending)?.abort()
    guest.sending = undefined
    guest.isPaused = false
    progress(guest, { phase: 'failed', detail })
  }

  function pass(guest: SimulatedGuest, sending: SendRequest, last: number, sinceMilliseconds: number): void {
    clock.after(between(PASS_MILLISECONDS), () => {
      if (!isSending(guest, sending)) return
      if (receiverOf(sending) === undefined) return fail(guest, sending, 'the receiver cannot be reached')
      const { iteration, transferredBytes } = guest.record.transfer ?? begin('send', sending)
      const dirtyBytesPerSecond = Math.floor(between(DIRTY_BYTES))
      progress(guest, {
        iteration: iteration + 1,
        transferredBytes: transferredBytes + (iteration === 0 ? MEMORY_BYTES : dirtyBytesPerSecond),
        totalBytes: MEMORY_BYTES,
        dirtyBytesPerSecond,
      })
      if (clock.monotonicMilliseconds() - sinceMilliseconds > sending.timeoutSeconds * 1000)
        return fail(guest, sending, 'not done in time')
      if (iteration + 1 < last || guest.neededDowntimeMilliseconds > sending.downtimeLimitMilliseconds)
        return pass(guest, sending, last, sinceMilliseconds)
      guest.isPaused = true
      update(guest, {})
      if (hasAgent()) handOver(guest, sending)
    })
  }

  function handOver(guest: SimulatedGuest, sending: SendRequest): void {
    if (guest.isHandingOver) return
    guest.isHandingOver = true
    const downtimeMilliseconds = Math.ceil(between(HAND_OVER_MILLISECONDS))
    clock.after(downtimeMilliseconds, () => {
      guest.isHandingOver = false
      if (!isSending(guest, sending)) return
      const receiver = receiverOf(sending)
      // What is written into a line that has just been cut is written, as far as the sender can tell.
      if (receiver === undefined && !network.isCut(host) && !network.isCut(sending.host))
        return fail(guest, sending, 'the receiver is gone')
      const { executionId, isBooted, isHung, typed } = guest
      if (isSplitBrainAllowed) {
        receiver?.receive({ executionId, isBooted, isHung, typed })
        return fail(guest, sending, 'careless')
      }
      guest.sending = undefined
      const { transfer } = guest.record
      if (transfer !== undefined)
        update(guest, {
          state: 'handed_over',
          transfer: { ...transfer, phase: 'completed', downtimeMilliseconds, reportedAt: clock.now().toISOString() },
        })
      receiver?.receive({ executionId, isBooted, isHung, typed })
    })
  }

  function goOn(guest: SimulatedGuest): void {
    const memory = guest.arrived
    if (memory === undefined || guest.record.state !== 'receiving' || !isHere(guest)) return
    guest.arrived = undefined
    arrive(guest, memory)
  }

  return {
    await(guest, reception) {
      const listening = network.listen(host, {
        key: reception.key,
        receive(memory) {
          listening.close()
          guest.arrived = memory
          // With copied disks the agent ends the copy first.
          clock.after(
            between(ARRIVAL_MILLISECONDS),
            () => (reception.mirroredDisks.length === 0 || hasAgent()) && goOn(guest),
          )
        },
        abort() {
          listening.close()
          const { transfer } = guest.record
          if (isHere(guest) && transfer !== undefined)
            update(guest, { state: 'gone', transfer: { ...transfer, phase: 'failed', detail: 'the connection broke' } })
        },
      })
      const { port } = listening
      guest.listening = listening
      guest.record = {
        ...guest.record,
        transfer: begin('receive', reception, {
          host,
          port,
          ...(reception.mirroredDisks.length === 0 ? {} : { diskPort: port }),
        }),
      }
    },
    send(guest, sending) {
      guest.sending = sending
      update(guest, { transfer: begin('send', sending) })
      pass(guest, sending, Math.ceil(between(PASSES)), clock.monotonicMilliseconds())
    },
    cancel(guest, reason) {
      if (guest.sending !== undefined && !guest.isPaused) fail(guest, guest.sending, reason)
    },
    continueWithAgent(guest) {
      if (guest.isPaused && guest.sending !== undefined) handOver(guest, guest.sending)
      goOn(guest)
    },
    disconnect(guest) {
      guest.listening?.close()
      if (guest.sending !== undefined) receiverOf(guest.sending)?.abort()
      guest.sending = undefined
      guest.arrived = undefined
    },
  }
}
