/** Drives one attempt to move a guest until it ends: queries QEMU, takes the next step, repeats. All its state is in
 *  QEMU and the guest's record, so that the next agent can continue where this one was killed. */
import type { Clock } from '../../../../kit/sys/clock.ts'
import type { Logger } from '../../../../kit/sys/log.ts'
import { Outages } from '../../../../kit/sys/outages.ts'
import type { Transfer } from './hypervisor.ts'
import {
  endCopies,
  finishCopies,
  resumeReceived,
  handOver,
  observeSend,
  queryStatus,
  type MigrationInfo,
  type Move,
  nextSendStep,
  sendMemory,
  transferOf,
} from './qemu-migration.ts'
import type { Qmp, QmpEvent } from './qmp.ts'

export interface MigrationDriverOptions {
  readonly qmp: Qmp
  readonly move: Move
  /** Why the attempt must be cancelled immediately. */
  readonly reason?: string | undefined
  readonly clock: Clock
  readonly log: Logger
  /** Records the progress; rejects when this agent is no longer responsible for the guest. */
  readonly persist: (move: Move) => Promise<void>
  /** Reports progress and the end. At a receiver, the end comes with the state of QEMU's `query-status`. */
  readonly report: (transfer: Transfer, status?: string) => void
  readonly isGuestOff: () => boolean
  /** The agent is no longer attached to the guest. */
  readonly isDetached: () => boolean
}

export interface MigrationDriver {
  /** Handles an event of QEMU. */
  wake(event: QmpEvent): void
  /** Cancels the send while that is possible. */
  cancel(): void
}

const LOOK_MILLISECONDS = 250
const COPY_END_MILLISECONDS = 20

/** Runs until the attempt has ended or the guest is no longer attached. */
export function startMigrationDriver(options: MigrationDriverOptions): MigrationDriver {
  const { clock, log, isDetached, move } = options
  const outages = new Outages({ log, clock }, 'move does not go on')
  let alarm = new AbortController()
  let { reason } = options
  let latestStatus: string | undefined
  const pause = async () => {
    await clock.sleep(LOOK_MILLISECONDS, alarm.signal)
    alarm = new AbortController()
  }
  const takeStatus = () => {
    const status = latestStatus
    latestStatus = undefined
    return status
  }
  const advance = move.role === 'send' ? sender(options, () => reason, takeStatus) : receiver(options)

  async function run(): Promise<void> {
    while (!isDetached()) {
      try {
        const state = await advance()
        outages.over()
        if (state === 'ended') return
        if (state === 'waiting') await pause()
      } catch (error) {
        if (isDetached()) return
        outages.failed(error, { id: move.id })
        await pause()
      }
    }
  }
  void run()
  return {
    wake({ name, data }) {
      if (name === 'MIGRATION' && typeof data['status'] === 'string') latestStatus = data['status']
      alarm.abort()
    },
    cancel() {
      reason ??= 'cancelled'
      alarm.abort()
    },
  }
}

type Advance = () => Promise<'ended' | 'waiting' | 'moving'>

function sender(
  { qmp, move: begun, clock, persist, report, isGuestOff }: MigrationDriverOptions,
  cancelReason: () => string | undefined,
  takeStatus: () => string | undefined,
): Advance {
  let move = begun
  let allowedMilliseconds: number | undefined
  let refusal: string | undefined
  /** QEMU stays in its state for a moment after the order, and refuses a second one. */
  let isHandedOver = false
  /** QEMU drops the figures when the attempt has failed, so the last ones are kept. */
  let figures: Pick<MigrationInfo, 'ram'> = {}
  const deadline = Date.parse(move.beganAt) + (move.orders?.timeoutSeconds ?? 0) * 1000
  const reason = () =>
    refusal ??
    (isGuestOff() ? 'the guest powered itself off' : cancelReason()) ??
    (clock.now().getTime() > deadline ? 'not done in time' : undefined)

  return async () => {
    // From here on the guest is paused, so QEMU is not queried a second time.
    if (takeStatus() === 'pre-switchover' && move.mirroredDisks.length === 0 && !isHandedOver) {
      await handOver(qmp, move)
      isHandedOver = true
      return 'waiting'
    }
    const observed = await observeSend(qmp, move)
    const { ram } = observed.migration
    if (ram !== undefined) figures = { ram }
    const step = nextSendStep(move, observed, reason())
    if (step.do !== 'end') report(transferOf(move, clock.now(), observed.migration))
    switch (step.do) {
      case 'wait':
        return 'waiting'
      case 'sendMemory':
        move = { ...move, isStarted: true }
        await persist(move)
        await sendMemory(qmp, move).catch((error: Error) => void (refusal = error.message))
        return 'moving'
      case 'allowDowntime':
        if (step.milliseconds !== allowedMilliseconds)
          await qmp.execute('migrate-set-parameters', { 'downtime-limit': step.milliseconds })
        allowedMilliseconds = step.milliseconds
        return 'waiting'
      case 'cancel':
        await qmp.execute('migrate_cancel')
        return 'waiting'
      case 'finishCopies':
        await finishCopies(qmp, observed.copies)
        return 'waiting'
      case 'handOver':
        if (!isHandedOver) await handOver(qmp, move)
        isHandedOver = true
        return 'waiting'
      case 'end':
        await endCopies(qmp, () => clock.sleep(COPY_END_MILLISECONDS))
        return end({ move, persist, report, clock }, { ...figures, ...observed.migration }, step)
    }
  }
}

function receiver({ qmp, move, clock, persist, report }: MigrationDriverOptions): Advance {
  return async () => {
    const status = await queryStatus(qmp)
    if (status === 'inmigrate') return 'waiting'
    if (HELD_STATES.includes(status)) {
      if (move.mirroredDisks.length === 0) return 'waiting' // the guest starts by itself, at once
      await resumeReceived(qmp)
      return 'moving'
    }
    return end({ move, persist, report, clock }, {}, { phase: 'completed', detail: '' }, status)
  }
}

/** Everything has arrived and the guest is paused. */
const HELD_STATES = ['paused', 'prelaunch']

async function end(
  { move, persist, report, clock }: Pick<MigrationDriverOptions, 'move' | 'persist' | 'report' | 'clock'>,
  migration: MigrationInfo,
  { phase, detail }: { readonly phase: 'completed' | 'failed'; readonly detail: string },
  status?: string,
): Promise<'ended'> {
  const transfer = { ...transferOf(move, clock.now(), migration), phase, detail }
  await persist({ ...move, end: transfer })
  report(transfer, status)
  return 'ended'
}
