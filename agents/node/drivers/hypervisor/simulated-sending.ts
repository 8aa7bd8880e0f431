/** The sending host of the migration of a simulated guest: copies its memory in passes, and hands it over at the
 *  cutover. */
import { numberBetween } from '../../../../kit/sys/random.ts'
import type { SendRequest, Transfer } from './hypervisor.ts'
import type { SimulatedGuest } from './simulated-guest.ts'
import { newTransfer, type SimulatedMigrationOptions } from './simulated-transfer.ts'

export interface SimulatedSending {
  begin(guest: SimulatedGuest, sending: SendRequest): void
  cancel(guest: SimulatedGuest, reason: string): void
  continueWithAgent(guest: SimulatedGuest): void
  disconnect(guest: SimulatedGuest): void
}

const PASS_MILLISECONDS = { least: 50, most: 600 }
const PASSES = { least: 1, most: 5 }
const CUTOVER_MILLISECONDS = { least: 5, most: 80 }
const MEMORY_BYTES = 128 * 1024 ** 2
const DIRTY_BYTES = { least: 100_000, most: 20_000_000 }

export function newSimulatedSending(options: SimulatedMigrationOptions): SimulatedSending {
  const { clock, random, guests, hasAgent } = options
  const attempts = newAttempts(options)
  const cutOver = newCutover(options, attempts)

  function pass(guest: SimulatedGuest, sending: SendRequest, last: number, sinceMilliseconds: number): void {
    clock.after(numberBetween(random, PASS_MILLISECONDS), () => {
      if (!attempts.isCurrent(guest, sending)) return
      if (attempts.receiverOf(sending) === undefined)
        return attempts.fail(guest, sending, 'the receiver cannot be reached')
      const { iteration, transferredBytes } = guest.record.transfer ?? newTransfer('send', sending, clock.now())
      const dirtyBytesPerSecond = Math.floor(numberBetween(random, DIRTY_BYTES))
      attempts.report(guest, {
        iteration: iteration + 1,
        transferredBytes: transferredBytes + (iteration === 0 ? MEMORY_BYTES : dirtyBytesPerSecond),
        totalBytes: MEMORY_BYTES,
        dirtyBytesPerSecond,
      })
      if (clock.monotonicMilliseconds() - sinceMilliseconds > sending.timeoutSeconds * 1000)
        return attempts.fail(guest, sending, 'not done in time')
      if (iteration + 1 < last || guest.neededDowntimeMilliseconds > sending.downtimeLimitMilliseconds)
        return pass(guest, sending, last, sinceMilliseconds)
      guest.isPaused = true
      guests.update(guest, {})
      if (hasAgent()) cutOver(guest, sending)
    })
  }

  return {
    begin(guest, sending) {
      guest.sending = sending
      guests.update(guest, { transfer: newTransfer('send', sending, clock.now()) })
      pass(guest, sending, Math.ceil(numberBetween(random, PASSES)), clock.monotonicMilliseconds())
    },
    cancel(guest, reason) {
      if (guest.sending !== undefined && !guest.isPaused) attempts.fail(guest, guest.sending, reason)
    },
    continueWithAgent(guest) {
      if (guest.isPaused && guest.sending !== undefined) cutOver(guest, guest.sending)
    },
    disconnect(guest) {
      if (guest.sending !== undefined) attempts.receiverOf(guest.sending)?.abort()
      guest.sending = undefined
    },
  }
}

type Attempts = ReturnType<typeof newAttempts>

/** Functions of an attempt for passes and the cutover: whether it is current, its receiver, its reports and its
 *  failure. */
function newAttempts({ clock, network, host, guests }: SimulatedMigrationOptions) {
  const receiverOf = ({ host: to, port, key }: SendRequest) => network.connect(host, to, port, key)
  const report = (guest: SimulatedGuest, change: Partial<Transfer>) => {
    const { transfer } = guest.record
    if (transfer !== undefined)
      guests.update(guest, { transfer: { ...transfer, ...change, reportedAt: clock.now().toISOString() } })
  }
  return {
    isCurrent: (guest: SimulatedGuest, sending: SendRequest) => guests.isHere(guest) && guest.sending === sending,
    receiverOf,
    report,
    fail(guest: SimulatedGuest, sending: SendRequest, detail: string): void {
      receiverOf(sending)?.abort()
      guest.sending = undefined
      guest.isPaused = false
      report(guest, { phase: 'failed', detail })
    },
  }
}

/** Hands over the paused guest. From then on it runs on the receiver, or nowhere. */
function newCutover(
  { clock, random, network, host, isSplitBrainAllowed, guests }: SimulatedMigrationOptions,
  { isCurrent, receiverOf, fail }: Attempts,
): (guest: SimulatedGuest, sending: SendRequest) => void {
  return (guest, sending) => {
    if (guest.isHandingOver) return
    guest.isHandingOver = true
    const downtimeMilliseconds = Math.ceil(numberBetween(random, CUTOVER_MILLISECONDS))
    clock.after(downtimeMilliseconds, () => {
      guest.isHandingOver = false
      if (!isCurrent(guest, sending)) return
      const receiver = receiverOf(sending)
      // When the line has just been cut, the sender cannot tell, and takes its data for written.
      if (receiver === undefined && !network.isCut(host) && !network.isCut(sending.host))
        return fail(guest, sending, 'the receiver has ended')
      const { executionId, isBooted, isHung, typed } = guest
      if (isSplitBrainAllowed) {
        receiver?.receive({ executionId, isBooted, isHung, typed })
        return fail(guest, sending, 'careless')
      }
      guest.sending = undefined
      const { transfer } = guest.record
      if (transfer !== undefined)
        guests.update(guest, {
          state: 'handed_over',
          transfer: { ...transfer, phase: 'completed', downtimeMilliseconds, reportedAt: clock.now().toISOString() },
        })
      receiver?.receive({ executionId, isBooted, isHung, typed })
    })
  }
}
