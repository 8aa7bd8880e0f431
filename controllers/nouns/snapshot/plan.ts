/** The snapshot's plan: pure, synchronous, total. `controllers/kit/operation/plan.ts` has what is the same for every
 *  noun with operations; here are the flows of a snapshot. The storage controller orders the desired snapshots from the
 *  host (`controllers/nouns/storage/snapshots.ts`); the host's report about the disk decides here. */
import type { KindOf } from '../../../domain/operations.ts'
import type { VolumeStatus } from '../../../resources/instance/index.ts'
import { diskGibibytesOf } from '../../../resources/storage/index.ts'
import { isForSafety, Snapshot, type SnapshotStatus } from '../../../resources/snapshot/index.ts'
import { firstDecision } from '../../kit/operation/decision.ts'
import { type During, planOperations } from '../../kit/operation/plan.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import { detectPointEdit, isLeft, pointActions, isRemoved, standingOf } from '../../kit/point.ts'
import { failed, type SyncDecision, reconciling, removeFirst } from '../../kit/synced.ts'
import { isGranted, refusalOf } from '../../kit/refusal.ts'
import { CLAIMED, holderOf, type SnapshotAction } from './actions.ts'
import type { Observed, SnapshotObject } from './observed.ts'

interface ReconcileInput {
  readonly snapshot: SnapshotObject
  readonly observed: Observed
  readonly now: Date
}
type OperationInput = During<ReconcileInput>

type Decision = SyncDecision<SnapshotStatus, SnapshotAction, KindOf<'snapshot'>>
type Rule = (input: OperationInput) => Decision | undefined

const EXPIRY_ACTOR = 'system:snapshot_expiry'
/** The clock may be set meanwhile. */
const EXPIRY_LOOK_SECONDS_MAXIMUM = 3_600
const RECHECK_SECONDS = 5
/** Refusals that end by themselves: the operation waits. */
const PASSING_REFUSALS: readonly string[] = ['StateNotAllowed', 'OperationInProgress']

export const KINDS = { create: 'snapshot.create', delete: 'snapshot.delete' } as const

export const plan = planOperations<SnapshotObject, Observed, ReconcileInput, Decision, SnapshotAction>({
  label: 'A snapshot',
  endedByDeletion: 'all',
  flows: { [KINDS.create]: create, [KINDS.delete]: remove },
  inputOf: (snapshot, observed, now) => ({ snapshot, observed, now }),
  unchanged,
  guard: ({ snapshot }) => removeFirst(Snapshot, snapshot, isRemoved(snapshot, KINDS)),
  detectEdit: (input) => detectPointEdit(input.snapshot, KINDS, input.observed.editor, () => detectDue(input)),
  idle,
  overdue,
  toActions: ({ snapshot, observed: { storage, region } }, decision) =>
    pointActions(snapshot, decision, { zone: storage?.spec.zone, region }, decision.outcome === 'failed'),
})

/** The snapshot has expired, or it was taken before a restore and its storage is being deleted or no longer exists. */
function detectDue({ snapshot: { spec }, observed: { storage, isServerLeaving }, now }: ReconcileInput) {
  const isExpired = spec.expiresAt !== undefined && Date.parse(spec.expiresAt) <= now.getTime()
  const isLeftBehind = storage === undefined || storage.metadata.deletionTimestamp !== undefined || isServerLeaving
  return isExpired || (isForSafety(spec) && isLeftBehind === true)
    ? ({ kind: KINDS.delete, field: 'expiresAt', actor: EXPIRY_ACTOR } as const)
    : undefined
}

function unchanged({ snapshot: { status } }: ReconcileInput): Decision {
  return standingOf(status)
}

function idle(input: ReconcileInput): Decision {
  if (isLeft(input.snapshot, KINDS)) return { ...reconciling('Deleting'), isGone: true }
  const vanished = vanishedOrBack(input)
  if (vanished !== undefined) return { ...vanished, ...untilExpiry(input) }
  const decision = { ...measured(input, unchanged(input)), ...untilExpiry(input) }
  return input.observed.holdsForNothing === true ? { ...decision, actions: heldNoLonger(input) } : decision
}

const LOST = 'The snapshot was taken, and is no longer in the disk.'

/** A snapshot that was online and is no longer in the disk is in error, and online again when its disk returns. It
 *  keeps holding its storage. */
function vanishedOrBack(input: ReconcileInput): Decision | undefined {
  const { status } = input.snapshot
  const isGone = takenOf(input) === undefined && isLost(input)
  if (status?.state === 'online' && isGone)
    return { health: 'stalled', reason: 'Error', message: LOST, status: { state: 'error', stateDetail: LOST } }
  const hasVanished = status?.state === 'error' && status.sizeGibibytes !== undefined && status.stateDetail === LOST
  if (!hasVanished) return undefined
  return takenOf(input) === undefined
    ? unchanged(input)
    : { health: 'ready', reason: 'Online', status: { state: 'online', stateDetail: undefined } }
}

/** The size that the host reports; while the host is silent, the last one. */
function measured(input: ReconcileInput, decision: Decision): Decision {
  const usedBytes = takenOf(input)?.usedBytes
  if (usedBytes === undefined || input.snapshot.status?.state !== 'online') return decision
  return { ...decision, status: { ...decision.status, usedBytes } }
}

function untilExpiry({ snapshot: { spec }, now }: ReconcileInput): Pick<Decision, 'waitFor' | 'waitSeconds'> {
  if (spec.expiresAt === undefined) return {}
  const seconds = (Date.parse(spec.expiresAt) - now.getTime()) / 1000
  return { waitFor: 'its time to expire', waitSeconds: Math.max(1, Math.min(seconds, EXPIRY_LOOK_SECONDS_MAXIMUM)) }
}

/** A snapshot that could not be taken holds no disk. It is in error by then, and stays so. */
const heldNoLonger = ({ snapshot, observed: { accountId = '' } }: ReconcileInput): readonly SnapshotAction[] => [
  { do: 'effect', name: 'releaseHold', input: { accountId, holder: holderOf(snapshot) } },
]

function create(input: OperationInput): Decision {
  return firstDecision(input, [hasAccount, hasStorage, claimed, isTaken])
}

const hasAccount: Rule = ({ observed }) =>
  observed.accountId === undefined ? failed('claimed', 'The namespace belongs to no account.') : undefined

/** The storage in the same manifest may be created later. */
const hasStorage: Rule = ({ snapshot, observed: { storage, isServerLeaving } }) => {
  if (storage?.metadata.deletionTimestamp !== undefined || isServerLeaving === true)
    return failed('claimed', 'The storage is being deleted.')
  if (storage?.spec.tier === 'local-nvme') return failed('claimed', 'Storages of tier local-nvme have no snapshots.')
  const state = storage?.status?.state
  // A restore starts to write once the content of the disk is kept.
  const isWhole = state === 'online' || (state === 'restoring' && isForSafety(snapshot.spec))
  return isWhole && storage !== undefined && activeOperation(storage)?.kind !== 'storage.move'
    ? undefined
    : {
        ...reconciling('Waiting'),
        step: 'claimed',
        waitFor: `storage ${snapshot.spec.storageId} to be online, and where it stays`,
        waitSeconds: RECHECK_SECONDS,
      }
}

const claimed: Rule = ({ snapshot, observed: { accountId = '', storage } }) => {
  if (isGranted(snapshot, CLAIMED)) return undefined
  if (storage === undefined) return undefined
  const refusal = refusalOf(snapshot, CLAIMED)
  if (refusal !== undefined && !PASSING_REFUSALS.includes(refusal.reason)) return failed('claimed', refusal.message)
  return {
    ...reconciling('Claiming'),
    step: 'claimed',
    actions: [
      {
        do: 'effect',
        name: isForSafety(snapshot.spec) ? 'holdForSafety' : 'claim',
        input: {
          accountId,
          snapshotId: snapshot.metadata.name,
          storageId: storage.metadata.name,
          bootServerId: storage.spec.isBoot ? storage.spec.serverId : undefined,
          isShared: storage.status?.pool !== undefined,
          sizeGibibytes: diskGibibytesOf(storage),
        },
      },
    ],
    waitFor: 'the storage to stay where it is',
    waitSeconds: refusal === undefined ? 0 : RECHECK_SECONDS,
  }
}

type SnapshotReport = NonNullable<VolumeStatus['snapshots']>[number]

/** From the report of a host. */
const takenOf = ({ snapshot, observed }: ReconcileInput): SnapshotReport | undefined =>
  observed.volumes.flatMap(({ status }) => status?.snapshots ?? []).find(({ name }) => name === snapshot.metadata.uid)

/** The host changes no disk while a backup reads it. */
const waitingForHost = (
  { observed: { runningBackup } }: ReconcileInput,
  step: 'taken' | 'removed',
): Pick<Decision, 'message' | 'events' | 'waitFor'> => {
  if (runningBackup === undefined) return { waitFor: `the host: the snapshot is to be ${step}` }
  const message = `Backup ${runningBackup} of the storage is being made: the snapshot is ${step} after that.`
  return { message, events: [{ kind: 'waiting', message }], waitFor: `backup ${runningBackup} of the storage` }
}

/** It was in the disk before, and the host does not take it again: the disk has changed since. */
const isLost = ({ snapshot, observed }: ReconcileInput): boolean =>
  observed.volumes.some(({ status }) => status?.lostSnapshots?.includes(snapshot.metadata.uid ?? '') === true)

const isTaken: Rule = (input) => {
  const point = takenOf(input)
  if (point === undefined && isLost(input)) return failed('taken', LOST)
  if (point === undefined)
    return {
      ...reconciling('Taking'),
      step: 'taken',
      ...waitingForHost(input, 'taken'),
      waitSeconds: RECHECK_SECONDS,
    }
  return {
    health: 'ready',
    reason: 'Online',
    step: 'taken',
    outcome: 'succeeded',
    status: {
      state: 'online',
      stateDetail: undefined,
      sizeGibibytes: point.sizeGibibytes,
      isFrozen: point.isFrozen,
    },
    events: [
      point.isFrozen
        ? { kind: 'guest_frozen', message: 'The file systems of the guest were frozen at the point.' }
        : { kind: 'crash_consistent', message: 'The point is as a disk after a loss of power.' },
    ],
  }
}

function remove(input: OperationInput): Decision {
  return { ...firstDecision(input, [unread, removed, release]), status: { state: 'deleting' } }
}

/** Storages that are being created from it read it. */
const unread: Rule = ({ observed }) =>
  observed.isCloned
    ? {
        ...reconciling('Deleting'),
        step: 'removed',
        waitFor: 'the storages that are made from it',
        waitSeconds: RECHECK_SECONDS,
      }
    : undefined

/** A host that was ordered to take it may still do so, until it was ordered to remove it. */
const removed: Rule = (input) => {
  const { snapshot, observed } = input
  const { storage, volumes } = observed
  const { uid } = snapshot.metadata
  const isOver = volumes.every(
    ({ metadata, spec, status }) =>
      spec.snapshots?.some(({ name, shall }) => name === uid && shall === 'be') !== true &&
      status?.snapshots?.some(({ name }) => name === uid) !== true &&
      (metadata.deletionTimestamp !== undefined ||
        spec.snapshots?.some(({ name }) => name === uid) !== true ||
        (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0)),
  )
  const wasAsked =
    storage === undefined ||
    volumes.length === 0 ||
    volumes.some(({ spec }) => spec.snapshots?.some(({ name, shall }) => name === uid && shall === 'go') === true)
  return isOver && wasAsked
    ? undefined
    : {
        ...reconciling('Deleting'),
        step: 'removed',
        ...waitingForHost(input, 'removed'),
        waitSeconds: RECHECK_SECONDS,
      }
}

const release: Rule = ({ snapshot, observed: { accountId } }) => ({
  ...reconciling('Deleting'),
  step: 'released',
  outcome: 'succeeded',
  actions:
    accountId === undefined
      ? []
      : [{ do: 'effect', name: 'release', input: { accountId, snapshotId: snapshot.metadata.name } }],
  isGone: true,
})

function overdue(input: OperationInput, decision: Decision, error: string): Decision {
  return input.operation.kind === 'snapshot.delete' ? decision : failed(decision.step, error)
}
