/** Decides what to do for one Instance. Pure. Spec, ledger and guest determine everything. These always hold: an
 *  incarnation is started at most once. A guest is never started before the previous one has ended. A spec older than
 *  the last one that was acted on changes nothing. An Instance is reported as removed when nothing of its guest is left
 *  on the host. A guest that is to be received is never booted. A guest that was handed over never continues. */
import { defined } from '../../../domain/defined.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { Action } from '../../../kit/reconcile/action.ts'
import type { InstanceSpec, InstanceStatus } from '../../../resources/instance/index.ts'
import {
  type Guest,
  hasGuestEnded,
  type HypervisorKind,
  portNameOf,
  type Transfer,
} from '../drivers/hypervisor/hypervisor.ts'
import type { ImageState } from '../images/template-store.ts'
import type { LedgerEntry } from '../ledger.ts'
import { NAME_FREE, nameTaken } from '../name-taken.ts'

export type InstanceObject = KubeObject<InstanceSpec, InstanceStatus>

export interface ObservedInstance {
  readonly guest: Guest | undefined
  readonly entry: LedgerEntry | undefined
  /** Names of the volumes that the guest has open. */
  readonly guestVolumes?: readonly string[]
  /** Those of `guestVolumes` that the guest does not have. */
  readonly unheldVolumes?: readonly string[]
  /** Names of disks that are not on the host yet. */
  readonly missingVolumes: readonly string[]
  /** One of `missingVolumes` that will never be on the host. */
  readonly lostVolume?: string | undefined
  /** A disk of shared storage that another host has, and that host. Checked before a start. */
  readonly heldElsewhere?: { readonly volume: string; readonly node: string } | undefined
  /** Whether the disks of a guest that a full one has paused can grow again. */
  readonly hasRoom?: boolean | undefined
  /** RFC 3339: when the guest of this object was removed from the host because the object was deleted. */
  readonly removedAt?: string | undefined
  /** The status reports that the guest of another object had the name. */
  readonly hadNameTaken?: boolean
  readonly image: ImageState
  readonly hypervisor: HypervisorKind
  /** Public host keys that the guest has printed since its start. */
  readonly hostKeys?: readonly string[] | undefined
}

export type ReceiveOrder = NonNullable<InstanceSpec['receive']>
export type SendOrder = NonNullable<InstanceSpec['send']>
export type GuestEndReason = NonNullable<LedgerEntry['ended']>['reason']

/** The effects that a plan may ask for, with their input. */
export interface InstanceEffects {
  readonly accept: { readonly generation: number; readonly incarnation: number }
  readonly prepare: Record<string, never>
  readonly start: { readonly incarnation: number }
  /** Plugs in a disk of the spec that the guest does not have. */
  readonly plug: { readonly volume: string }
  /** Unplugs a disk that is not in the spec. */
  readonly unplug: { readonly volume: string; readonly isForced: boolean }
  /** Plugs in an interface of the spec that the guest does not have. */
  readonly plugInterface: { readonly portName: string }
  /** Unplugs an interface that is not in the spec. */
  readonly unplugInterface: { readonly portName: string }
  /** Lets the guest that a full disk has paused go on, in its turn. */
  readonly resume: Record<string, never>
  /** The guest has released the volume. */
  readonly forgetVolume: { readonly volume: string }
  readonly requestStop: { readonly id: string }
  readonly giveUpStop: { readonly id: string }
  readonly noteStopped: { readonly id: string }
  readonly end: { readonly reason: GuestEndReason; readonly stopId?: string }
  /** Waits for the guest, as in spec.receive. */
  readonly receive: { readonly attempt: number }
  /** Sends it, as in spec.send. */
  readonly send: { readonly attempt: number }
  readonly cancelSend: Record<string, never>
  /** The attempt has ended; its result outlives the guest. */
  readonly noteTransfer: { readonly transfer: Transfer }
  /** The attempt has ended without the guest: removes the waiting receiver. */
  readonly endReception: { readonly transfer: Transfer }
  readonly discard: Record<string, never>
  readonly forget: Record<string, never>
}

const effect = <Name extends keyof InstanceEffects>(name: Name, input: InstanceEffects[Name]): Action => ({
  do: 'effect',
  name,
  input,
})
const wait = (seconds: number, what: string): Action => ({ do: 'wait', seconds, for: what })
/** The effect changed the observed state. */
const requeue: Action = { do: 'wait', seconds: 0, for: 'the next look' }

/** Interval between presses of the power button while a guest does not stop: a guest that is still booting misses the
 *  first one. */
export const POWER_BUTTON_SECONDS = 5
const STALE_SECONDS = 60
/** Time for a guest to shut down when its instance does not specify how to stop it. */
const STOP_SECONDS_DEFAULT = 60
const MISSING_SECONDS = 30
const HELD_ELSEWHERE_SECONDS = 5
/** Interval between looks at the free space for a guest that waits for it. */
const ROOM_SECONDS = 5
/** Interval between reports of a transfer's progress. */
const PROGRESS_SECONDS = 1

/** Guards in order: deleted, guest of another object, removed before, outdated spec, guest of an older incarnation, new
 *  spec, waiting for a guest, ended transfer, handed over, running, ended, to be started, at rest. */
export function planInstance(instance: InstanceObject, observed: ObservedInstance, now: Date): Action[] {
  const { uid = '', generation = 0, deletionTimestamp } = instance.metadata
  const { spec } = instance
  const entry = entryFor(uid, observed)
  const isTaken = observed.guest !== undefined && observed.guest.uid !== uid && !hasGuestEnded(observed.guest)
  if (deletionTimestamp !== undefined) return planRemoval(instance, entry, isTaken)
  if (isTaken) return [planTaken(instance, entry)]
  const isOver = observed.guest === undefined || hasGuestEnded(observed.guest)
  if (observed.removedAt !== undefined && isOver) return [planRemoved(instance, observed.removedAt)]
  if (generation < entry.generation) return [wait(STALE_SECONDS, 'a spec as new as the one that was acted on')]
  if (observed.guest !== undefined && observed.guest.uid === uid && observed.guest.incarnation < entry.incarnation)
    return [effect('discard', {}), requeue]
  const isReceiving = observed.guest?.transfer?.role === 'receive' && observed.guest.transfer.phase !== 'completed'
  const incarnation = Math.max(entry.incarnation, isReceiving ? 0 : (observed.guest?.incarnation ?? 0))
  if (observed.entry?.uid !== uid || generation > entry.generation || incarnation > entry.incarnation)
    return [effect('accept', { generation, incarnation }), requeue]

  if (isReceiving) return planReceiving(spec, observed, entry)
  const lasting = unrecordedEnd(observed.guest, entry)
  if (lasting !== undefined) return [effect('noteTransfer', { transfer: lasting }), requeue]

  const isEndWanted = spec.power === 'stopped' || spec.incarnation > incarnation
  const isHandedOver = isCompleted(entry.transfer, 'send') && entry.ended === undefined
  if (isHandedOver)
    return isEndWanted
      ? [effect('end', { reason: 'requested', ...defined({ stopId: spec.stop?.id }) }), requeue]
      : [statusOf('handed_over', observed, entry)]
  if (observed.guest?.state === 'running')
    return isEndWanted ? planStop(spec, observed, entry, now) : planRunning(instance, observed, entry, now)
  // It has left, and an agent that has just started does not have QEMU's confirmation yet. Its end here must not count
  // as a crash.
  if (observed.guest?.state === 'handed_over' && observed.guest.transfer?.phase === 'transferring')
    return [wait(PROGRESS_SECONDS, 'the end of the sending to be known')]
  if (observed.guest?.state === 'off' && observed.guest.transfer?.phase === 'transferring')
    return [effect('cancelSend', {}), wait(PROGRESS_SECONDS, 'the sending to end')]
  if (observed.guest !== undefined || (incarnation > 0 && entry.ended === undefined))
    return [planEnded(spec, observed.guest, entry, isEndWanted), requeue]
  // A host that was reported to send the guest had it. If it has forgotten the guest, it must not boot it again.
  if (incarnation === 0 && spec.send !== undefined && spec.incarnation > 0)
    return [effect('accept', { generation, incarnation: spec.incarnation }), requeue]
  if (spec.power === 'running' && spec.incarnation > incarnation)
    return spec.receive === undefined
      ? planStart(instance, observed, entry, now)
      : planReception(instance, spec.receive, observed, entry, now)
  if (spec.power === 'stopped' && spec.stop !== undefined && entry.stop?.id !== spec.stop.id)
    return [effect('noteStopped', { id: spec.stop.id }), requeue]
  return [
    entry.ended?.detail === undefined
      ? statusOf('stopped', observed, entry)
      : statusOf('error', observed, entry, entry.ended.detail),
  ]
}

/** The report is final: the object is deleted when the platform has read it. */
function planRemoval({ status }: InstanceObject, { incarnation }: LedgerEntry, isTaken: boolean): Action[] {
  if (status?.isRemoved === true) return []
  const removed = {
    state: status?.state ?? 'stopped',
    incarnation: status?.incarnation ?? incarnation,
    isRemoved: true,
  }
  return [...(isTaken ? [] : [effect('forget', {})]), { do: 'status', status: removed }]
}

/** The host's record of the object. Incarnations of an earlier object of the name count too: their guest has ended, and
 *  none of them is started a second time. */
function entryFor(uid: string, { entry }: ObservedInstance): LedgerEntry {
  if (entry === undefined || entry.uid === uid) return entry ?? { uid, generation: 0, incarnation: 0 }
  return { uid, generation: 0, incarnation: entry.incarnation, ended: entry.ended ?? UNKNOWN_END }
}
/** Replaced by the ledger's record when it accepts the object. */
const UNKNOWN_END: LedgerEntry['ended'] = { at: '', reason: 'crashed' }

/** The guest of another object of the name runs here. It continues, and nothing is done for this object. */
function planTaken({ status }: InstanceObject, { incarnation }: LedgerEntry): Action {
  const message =
    'A guest of another object of this name runs on the host. It goes on, and nothing of this one is done.'
  return {
    do: 'status',
    status: { state: 'error', detail: message, incarnation: status?.incarnation ?? incarnation },
    conditions: [nameTaken(message)],
  }
}

/** Kubernetes was restored to an older state and still has this object. A guest that was removed is not started again.
 */
const planRemoved = ({ status }: InstanceObject, at: string): Action => ({
  do: 'status',
  status: {
    state: 'error',
    detail: `The guest was removed from this host at ${at}, as was asked. It is not started again.`,
    incarnation: status?.incarnation ?? 0,
  },
})

const isCompleted = (transfer: Transfer | undefined, role: Transfer['role']): boolean =>
  transfer?.role === role && transfer.phase === 'completed'
const isOf = (
  transfer: Transfer | undefined,
  role: Transfer['role'],
  { id, attempt }: { readonly id: string; readonly attempt: number },
): transfer is Transfer => transfer?.role === role && transfer.id === id && transfer.attempt >= attempt

/** The end of an attempt that the ledger does not have yet. A guest that ended while it was sent may have arrived, as
 *  far as this host can know. It counts as handed over, and the receiver decides. */
function unrecordedEnd(guest: Guest | undefined, entry: LedgerEntry): Transfer | undefined {
  const transfer = guest?.transfer
  if (transfer === undefined) return undefined
  const isLost = transfer.phase === 'transferring' && guest?.state === 'gone'
  if (transfer.phase === 'transferring' && !isLost) return undefined
  const end: Transfer = isLost
    ? { ...transfer, phase: 'completed', detail: 'the guest ended while it was sent' }
    : transfer
  return isOf(entry.transfer, end.role, end) && entry.transfer.attempt === end.attempt ? undefined : end
}

/** Nothing of the guest runs here yet. */
function planReceiving({ power, receive }: InstanceSpec, observed: ObservedInstance, entry: LedgerEntry): Action[] {
  const transfer = observed.guest?.transfer
  if (transfer === undefined) return []
  const isWanted = power === 'running' && receive?.id === transfer.id && receive.attempt === transfer.attempt
  if (observed.guest?.state === 'receiving' && isWanted) return [statusOf('receiving', observed, entry)]
  const detail = isWanted ? transfer.detail || 'the receiver has ended' : 'no longer wanted'
  return [effect('endReception', { transfer: { ...transfer, phase: 'failed', detail } }), requeue]
}

/** Prepares for the guest, unless this attempt has ended. */
function planReception(
  { spec, status }: InstanceObject,
  order: ReceiveOrder,
  observed: ObservedInstance,
  entry: LedgerEntry,
  now: Date,
): Action[] {
  if (isOf(entry.transfer, 'receive', order)) return [statusOf('stopped', observed, entry)]
  const obstacle = obstacleTo(spec, observed)
  if (obstacle === undefined) return [effect('receive', { attempt: order.attempt }), requeue]
  return [
    statusOf(
      'waiting',
      { ...observed, transfer: pendingTransfer(order, 'receive', 'preparing', obstacle.detail, status, now) },
      entry,
      obstacle.detail,
    ),
    ...obstacle.remedy,
  ]
}

/** The report of a transfer that this host has not started. Keeps the time of its first report. */
function pendingTransfer(
  { id, attempt }: ReceiveOrder | SendOrder,
  role: Transfer['role'],
  phase: Transfer['phase'],
  detail: string,
  status: InstanceStatus | undefined,
  now: Date,
): Transfer {
  const reported = status?.transfer
  const reportedAt =
    reported?.phase === phase && isOf(reported, role, { id, attempt }) ? reported.reportedAt : now.toISOString()
  return {
    id,
    attempt,
    role,
    phase,
    detail,
    reportedAt,
    iteration: 0,
    transferredBytes: 0,
    totalBytes: 0,
    dirtyBytesPerSecond: 0,
    downtimeMilliseconds: 0,
  }
}

const heldVolumes = ({ guestVolumes = [], unheldVolumes = [] }: ObservedInstance): readonly string[] =>
  guestVolumes.filter((volume) => !unheldVolumes.includes(volume))

/** Interval between requests to release a disk: a guest that is still booting misses the first one. */
const UNPLUG_SECONDS = 2

/** Makes the disks of a running guest match the spec, before anything else happens to it; undefined when they match.
 *  The boot disk always stays. */
function planDisks(spec: InstanceSpec, observed: ObservedInstance, entry: LedgerEntry): Action[] | undefined {
  const { guest, guestVolumes = [], missingVolumes } = observed
  const held = heldVolumes(observed)
  if (guest?.isResponsive !== true) return undefined
  const [boot = spec.disks[0]?.volume, ...others] = entry.volumes ?? []
  const isWanted = (volume: string) => spec.disks.some((disk) => disk.volume === volume)
  const surplus = guestVolumes.find((volume) => volume !== boot && !isWanted(volume))
  if (surplus !== undefined) {
    const isForced = spec.forcedVolumes?.includes(surplus) === true
    return [
      effect('unplug', { volume: surplus, isForced }),
      statusOf('running', observed, entry),
      isForced ? requeue : wait(UNPLUG_SECONDS, 'the guest to release a disk'),
    ]
  }
  const released = others.find((volume) => !guestVolumes.includes(volume) && !isWanted(volume))
  if (released !== undefined) return [effect('forgetVolume', { volume: released }), requeue]
  const lacking = spec.disks.filter(({ volume, slot }) => slot !== undefined && !held.includes(volume))
  const there = lacking.filter(({ volume }) => !missingVolumes.includes(volume))
  const ready = there.find(({ slot = 0 }) => guest.cutOffSlots?.includes(slot) !== true)
  if (ready !== undefined) return [effect('plug', { volume: ready.volume }), requeue]
  if (there.length > 0)
    return [
      ...there.map(({ volume }) => effect('plug', { volume })),
      statusOf('running', observed, entry),
      wait(UNPLUG_SECONDS, 'the guest to release the disk that was there before'),
    ]
  return lacking.length === 0
    ? undefined
    : [statusOf('running', observed, entry), wait(MISSING_SECONDS, 'the volumes of the guest')]
}

/** Makes the interfaces of a running guest match the spec, like its disks; interfaces without a slot stay. */
function planInterfaces(
  { metadata: { name }, spec }: InstanceObject,
  observed: ObservedInstance,
  entry: LedgerEntry,
): Action[] | undefined {
  const { guest } = observed
  if (guest?.isResponsive !== true) return undefined
  const portOf = (each: InstanceSpec['interfaces'][number]) => portNameOf(name, each)
  const surplus = guest.interfaces.find(
    (port) => port !== name && !spec.interfaces.some((each) => portOf(each) === port),
  )
  if (surplus !== undefined)
    return [
      effect('unplugInterface', { portName: surplus }),
      statusOf('running', observed, entry),
      wait(UNPLUG_SECONDS, 'the guest to release an interface'),
    ]
  const held = guest.interfaces.filter((port) => guest.leavingInterfaces?.includes(port) !== true)
  const lacking = spec.interfaces.find((each) => each.slot !== undefined && !held.includes(portOf(each)))
  return lacking && [effect('plugInterface', { portName: portOf(lacking) }), requeue]
}

function planRunning(instance: InstanceObject, observed: ObservedInstance, entry: LedgerEntry, now: Date): Action[] {
  const { spec, status } = instance
  const { send: order } = spec
  const current = observed.guest?.transfer
  if (current?.phase === 'transferring') {
    const isWanted =
      order !== undefined && !order.isCancelled && current.id === order.id && current.attempt === order.attempt
    const reported = recentReport(status, current, now)
    return [
      ...(isWanted ? [] : [effect('cancelSend', {})]),
      statusOf('running', reported === undefined ? observed : { ...observed, transfer: reported.transfer }, entry),
      wait(reported?.againSeconds ?? PROGRESS_SECONDS, 'progress'),
    ]
  }
  if (observed.guest?.isDiskFull === true)
    return [
      ...(observed.hasRoom === true ? [effect('resume', {})] : []),
      statusOf('running', observed, entry),
      wait(ROOM_SECONDS, 'room for the disks of the guest'),
    ]
  const devices = planDisks(spec, observed, entry) ?? planInterfaces(instance, observed, entry)
  if (devices !== undefined) return devices
  if (order === undefined || isOf(entry.transfer, 'send', order)) return [statusOf('running', observed, entry)]
  if (observed.guest?.isResponsive !== true)
    return [statusOf('running', observed, entry), wait(PROGRESS_SECONDS, 'the guest to answer')]
  if (order.isCancelled)
    return [
      statusOf(
        'running',
        { ...observed, transfer: pendingTransfer(order, 'send', 'failed', 'cancelled before it began', status, now) },
        entry,
      ),
    ]
  // The receiver lacks the device of the disk, and QEMU would refuse everything that was sent. An attempt that was
  // refused stays refused: the controllers start another one.
  if ((observed.guest.cutOffSlots ?? []).length > 0 || isRefused(status?.transfer, order))
    return [
      statusOf(
        'running',
        { ...observed, transfer: pendingTransfer(order, 'send', 'failed', CUT_OFF_DETAIL, status, now) },
        entry,
      ),
    ]
  return [effect('send', { attempt: order.attempt }), requeue]
}

/** Why a guest is not sent. */
export const CUT_OFF_DETAIL =
  'The guest has not released a disk that was detached by force. Restart the server, or migrate it when it has.'
const isRefused = (reported: Transfer | undefined, order: SendOrder): boolean =>
  isOf(reported, 'send', order) && reported.phase === 'failed' && reported.detail === CUT_OFF_DETAIL

/** The report of this attempt if it is younger than PROGRESS_SECONDS, and the time until the next one. A status write
 *  wakes the reconciler itself, so immediate reports would never end. */
function recentReport(
  status: InstanceStatus | undefined,
  { id, attempt, role, phase }: Transfer,
  now: Date,
): { readonly transfer: Transfer; readonly againSeconds: number } | undefined {
  const transfer = status?.transfer
  if (transfer?.role !== role || transfer.id !== id || transfer.attempt !== attempt || transfer.phase !== phase)
    return undefined
  const againSeconds = PROGRESS_SECONDS - (now.getTime() - Date.parse(transfer.reportedAt)) / 1_000
  return againSeconds > 0 && againSeconds <= PROGRESS_SECONDS ? { transfer, againSeconds } : undefined
}

function planStop(spec: InstanceSpec, observed: ObservedInstance, entry: LedgerEntry, now: Date): Action[] {
  const stop = spec.stop ?? {
    id: `incarnation-${entry.incarnation}`,
    type: 'soft',
    timeoutSeconds: STOP_SECONDS_DEFAULT,
    timeoutAction: 'hard',
  }
  const request = entry.stop?.id === stop.id ? entry.stop : undefined
  if (request?.outcome === 'timed_out') return [statusOf('running', observed, entry, 'the guest did not stop in time')]
  if (stop.type === 'hard') return [effect('end', { reason: 'requested', stopId: stop.id }), requeue]
  if (request === undefined) return [effect('requestStop', { id: stop.id }), requeue]
  const remainingSeconds = stop.timeoutSeconds - (now.getTime() - Date.parse(request.since)) / 1000
  if (remainingSeconds > 0)
    return [
      effect('requestStop', { id: stop.id }),
      statusOf('stopping', observed, entry),
      wait(Math.min(POWER_BUTTON_SECONDS, remainingSeconds), 'the guest to stop'),
    ]
  return stop.timeoutAction === 'hard'
    ? [effect('end', { reason: 'requested', stopId: stop.id }), requeue]
    : [effect('giveUpStop', { id: stop.id }), requeue]
}

/** The guest has ended, or it was started and never observed. */
function planEnded(spec: InstanceSpec, guest: Guest | undefined, entry: LedgerEntry, isEndWanted: boolean): Action {
  const isRequested = isEndWanted && entry.stop?.outcome !== 'timed_out'
  const reason = isRequested ? 'requested' : guest?.state === 'off' ? 'guest_shutdown' : 'crashed'
  return effect('end', { reason, ...(isRequested && spec.stop !== undefined ? { stopId: spec.stop.id } : {}) })
}

/** A guest that waits longer gets a status with the reason. */
const STATUS_DELAY_SECONDS = 10

function planStart(
  { metadata, spec, status }: InstanceObject,
  observed: ObservedInstance,
  entry: LedgerEntry,
  now: Date,
): Action[] {
  const obstacle = obstacleTo(spec, observed)
  if (obstacle === undefined) return [effect('start', { incarnation: spec.incarnation }), requeue]
  const seconds = (now.getTime() - Date.parse(metadata.creationTimestamp ?? '')) / 1_000
  // A new server's instance is created together with its disk, which usually exists before anybody could read the
  // status.
  if (status === undefined && obstacle.state === 'waiting' && seconds >= 0 && seconds < STATUS_DELAY_SECONDS)
    return [...obstacle.remedy, wait(STATUS_DELAY_SECONDS - seconds, obstacle.detail)]
  return [statusOf(obstacle.state, observed, entry, obstacle.detail), ...obstacle.remedy]
}

interface Obstacle {
  readonly state: 'waiting' | 'error'
  readonly detail: string
  readonly remedy: readonly Action[]
}

/** The first requirement of a guest that the host does not fulfil yet. */
function obstacleTo(
  { template }: InstanceSpec,
  { missingVolumes, lostVolume, heldElsewhere, image }: ObservedInstance,
): Obstacle | undefined {
  if (lostVolume !== undefined)
    return {
      state: 'error',
      detail: `volume ${lostVolume} is lost`,
      remedy: [wait(MISSING_SECONDS, 'volumes')],
    }
  if (missingVolumes.length > 0)
    return {
      state: 'waiting',
      detail: `waiting for volume ${missingVolumes[0]}`,
      remedy: [wait(MISSING_SECONDS, 'volumes')],
    }
  if (heldElsewhere !== undefined)
    return {
      state: 'waiting',
      detail: `waiting for host ${heldElsewhere.node} to release volume ${heldElsewhere.volume}`,
      remedy: [wait(HELD_ELSEWHERE_SECONDS, 'another host')],
    }
  const prepare = [effect('prepare', {}), wait(MISSING_SECONDS, 'the template')]
  if (image.is === 'unavailable') return { state: 'error', detail: image.reason, remedy: prepare }
  return image.is === 'absent'
    ? { state: 'waiting', detail: `template ${template} is being prepared`, remedy: prepare }
    : undefined
}

function statusOf(
  state: InstanceStatus['state'],
  observed: ObservedInstance & { readonly transfer?: Transfer },
  entry: LedgerEntry,
  detail?: string,
): Action {
  const current = observed.guest?.transfer
  const isOngoing = current?.phase === 'transferring' && !isOf(entry.transfer, current.role, current)
  const status: { [Field in keyof Required<InstanceStatus>]?: InstanceStatus[Field] | undefined } = {
    state,
    detail: detail?.slice(0, DETAIL_CHARACTERS_MAXIMUM),
    incarnation: entry.incarnation,
    startedAt: entry.startedAt,
    endedAt: observed.guest === undefined ? entry.ended?.at : undefined,
    endReason: observed.guest === undefined ? entry.ended?.reason : undefined,
    transfer: observed.transfer ?? (isOngoing ? current : entry.transfer),
    stop: entry.stop?.outcome === undefined ? undefined : { id: entry.stop.id, outcome: entry.stop.outcome },
    isDiskFull: observed.guest?.isDiskFull,
    volumes: observed.guest === undefined ? undefined : [...(observed.guestVolumes ?? [])],
    unheldVolumes: observed.unheldVolumes?.length ? [...observed.unheldVolumes] : undefined,
    interfaces: observed.guest === undefined ? undefined : [...observed.guest.interfaces],
    hypervisor: observed.guest === undefined ? undefined : observed.hypervisor,
    forwards: observed.guest === undefined ? undefined : [...observed.guest.forwards],
    sshHostKeys: observed.guest === undefined || observed.hostKeys === undefined ? undefined : [...observed.hostKeys],
  }
  const wasTaken = observed.hadNameTaken === true
  return { do: 'status', status, ...(wasTaken ? { conditions: [NAME_FREE] } : {}) }
}

/** As in the schema of the status. */
export const DETAIL_CHARACTERS_MAXIMUM = 1024
