/** The backup's plan: pure, synchronous, total. `controllers/kit/operation/plan.ts` has what is the same for every noun
 *  with operations; here are the flows of a backup. A host does the work of each as a BackupJob that is named after the
 *  operation; the job's report decides how the operation ends. */
import { defined } from '../../../domain/defined.ts'
import { carriedBy } from '../../../resources/operation/index.ts'
import { isCancelled } from '../../../domain/operations.ts'
import { keyOf } from '../../../kit/kube/object.ts'
import type { OperationEvent } from '../../../kit/reconcile/action.ts'
import { Backup, type BackupStatus } from '../../../resources/backup/index.ts'
import { BackupJob, type BackupJobSpec, COMPLETE_BACKUPS_MAXIMUM } from '../../../resources/backup-job/index.ts'
import { AGENT_FINALIZER, nodeNamespace, nodeOf } from '../../../resources/instance/index.ts'
import { backupKeyKey } from '../../kit/backup-key.ts'
import type { PlainAction } from '../../kit/effects.ts'
import { firstDecision } from '../../kit/operation/decision.ts'
import { auditRequests } from '../../kit/operation/direct-edit.ts'
import { planOperations } from '../../kit/operation/plan.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import { detectPointEdit, isLeft, pointActions, isRemoved, standingOf } from '../../kit/point.ts'
import { failed, reconciling, removeFirst } from '../../kit/synced.ts'
import { isGranted, refusalOf } from '../../kit/refusal.ts'
import { type BackupAction, CLAIMED, KEY_SHARED, PLACES_OPENED } from './actions.ts'
import { isContentKept, keptEvents } from './before-restore.ts'
import { copied } from './copy.ts'
import type { Decision, OperationInput, ReconcileInput, Rule } from './decision.ts'
import type { BackupObject, JobObject, Observed } from './observed.ts'

export type { BackupObject, JobObject, Observed } from './observed.ts'

const EXPIRY_ACTOR = 'system:backup_expiry'
const VERIFIER_ACTOR = 'system:backup_verifier'
const RECHECK_SECONDS = 20
/** How long a backup that is applied before its storage waits for it. */
const STORAGE_WAIT_SECONDS = 600
const IDLE_SECONDS_MAXIMUM = 3_600
const DAY_MILLISECONDS = 86_400_000
/** Backups are verified at night: in these hours, UTC. */
const VERIFICATION_HOURS = { first: 1, last: 4 }
const VERIFICATION_DAYS = 7
const GIBIBYTE = 1_073_741_824
/** At most this many progress events. */
const PROGRESS_STEPS = 10

export const KINDS = { create: 'storage.backup', delete: 'backup.delete' } as const

export const plan = planOperations<BackupObject, Observed, ReconcileInput, Decision, BackupAction>({
  label: 'A backup',
  endedByDeletion: ({ kind }) => kind === KINDS.create || kind === 'backup.verify',
  flows: { [KINDS.create]: create, 'backup.restore': restore, 'backup.verify': verify, [KINDS.delete]: remove },
  inputOf: (backup, observed, now) => ({ backup, observed, now }),
  unchanged,
  always: ({ backup, observed }) => auditRequests(backup, observed.edits ?? []),
  guard: ({ backup }) => removeFirst(Backup, backup, isRemoved(backup, KINDS)),
  detectEdit(input) {
    const edit = detectPointEdit(input.backup, KINDS, input.observed.editor, () => detectDue(input))
    return edit?.kind === KINDS.create
      ? { ...edit, arguments: carriedBy(KINDS.create, input.backup.spec.storageId) }
      : edit
  },
  idle,
  overdue,
  toActions,
})

/** Due operations: the deletion of an expired backup, or a verification. */
function detectDue(input: ReconcileInput) {
  const { expiresAt } = input.backup.spec
  if (expiresAt !== undefined && Date.parse(expiresAt) <= input.now.getTime())
    return { kind: KINDS.delete, field: 'expiresAt', actor: EXPIRY_ACTOR } as const
  return isVerificationDue(input) ? ({ kind: 'backup.verify', field: '', actor: VERIFIER_ACTOR } as const) : undefined
}

/** Due are the first backup of a chain, once, and the newest backup of each storage when none was verified for a week.
 *  A backup that is known to be damaged is not read again; one that could not be read is tried again in the next
 *  night. */
export function isVerificationDue({ backup: { status }, observed: { siblings }, now }: ReconcileInput): boolean {
  const hour = now.getUTCHours()
  if (status?.state !== 'online' || hour < VERIFICATION_HOURS.first || hour > VERIFICATION_HOURS.last) return false
  if (status.verificationError !== undefined || triedAt(status) > now.getTime() - DAY_MILLISECONDS / 2) return false
  if (status.parent === undefined && status.verifiedAt === undefined) return true
  const isNewest = siblings.every((sibling) => completedAt(sibling) < Date.parse(status.completedAt ?? ''))
  const weekAgo = now.getTime() - VERIFICATION_DAYS * DAY_MILLISECONDS
  const isRecent = (verifiedAt: string | undefined) => verifiedAt !== undefined && Date.parse(verifiedAt) > weekAgo
  return isNewest && ![status, ...siblings.map((sibling) => sibling.status)].some((each) => isRecent(each?.verifiedAt))
}

/** When the last verification ended, if no other operation followed; otherwise the beginning of time. */
const triedAt = ({ operation }: BackupStatus): number =>
  operation?.kind === 'backup.verify' ? Date.parse(operation.finishedAt ?? '') : -Infinity
const completedAt = ({ status }: BackupObject): number => Date.parse(status?.completedAt ?? '')

function unchanged({ backup: { status } }: ReconcileInput): Decision {
  return standingOf(status)
}

/** Removes the jobs of operations that have ended. */
function idle(input: ReconcileInput): Decision {
  const { backup, observed, now } = input
  if (isLeft(backup, KINDS)) return { ...reconciling('Deleting'), actions: observed.jobs.map(removeJob), isGone: true }
  const expiresIn =
    backup.spec.expiresAt === undefined ? undefined : (Date.parse(backup.spec.expiresAt) - now.getTime()) / 1000
  return {
    ...unchanged(input),
    actions: observed.jobs.map(removeJob),
    waitFor: 'its time to expire, or to be verified',
    waitSeconds: Math.max(1, Math.min(expiresIn ?? IDLE_SECONDS_MAXIMUM, IDLE_SECONDS_MAXIMUM)),
  }
}

const removeJob = (job: JobObject): PlainAction => ({ do: 'remove', type: BackupJob, key: keyOf(job) })

/** Steps in order: claimed, placed, written, and copied where the storage requires it. A written backup is online. */
function create(input: OperationInput): Decision {
  const { spec, status } = input.backup
  if (status?.state === 'online') return copied(input)
  return firstDecision(
    input,
    spec.copyOf === undefined
      ? [claimed, storageComes, isInZone, othersEnded, working('write', 'written'), written]
      : [claimed, othersEnded, working('copy', 'written'), written],
  )
}

const claimed: Rule = (input) => {
  const { backup, observed } = input
  const { accountId, sizeGibibytes } = observed
  if (accountId === undefined) return failed('claimed', 'The namespace belongs to no account.')
  if (isGranted(backup, CLAIMED)) return undefined
  const refusal = refusalOf(backup, CLAIMED)
  if (refusal !== undefined) return failed('claimed', refusal.message)
  // Its size counts against a quota too.
  if (sizeGibibytes === undefined && backup.spec.copyOf === undefined) {
    const waiting = storageComes(input)
    if (waiting !== undefined) return waiting
  }
  return {
    ...reconciling('Claiming'),
    step: 'claimed',
    status: { state: 'creating' },
    actions: [
      {
        do: 'effect',
        name: 'claim',
        input: { accountId, backupId: backup.metadata.name, sizeGibibytes: sizeGibibytes ?? 0 },
      },
    ],
    waitSeconds: 0,
  }
}

const hasStorage: Rule = ({ backup, observed }) =>
  observed.hasStorage || observed.jobs.length > 0
    ? undefined
    : failed('placed', `There is no storage ${backup.spec.storageId}.`)

/** A storage in the same manifest may be created later. */
const storageComes: Rule = (input) => {
  const { backup, observed, now, operation } = input
  const waited = (now.getTime() - Date.parse(operation.requestedAt)) / 1000
  return observed.hasStorage || observed.jobs.length > 0 || waited >= STORAGE_WAIT_SECONDS
    ? hasStorage(input)
    : {
        ...reconciling('Waiting'),
        step: 'placed',
        waitFor: `storage ${backup.spec.storageId}`,
        waitSeconds: STORAGE_WAIT_SECONDS - waited,
      }
}

/** The backup does not wait for a storage to return from another zone. */
const isInZone: Rule = (input) => {
  const { backup, observed } = input
  return !observed.hasLeftZone || jobOf(input)?.status?.state === 'done'
    ? undefined
    : failed('placed', `Storage ${backup.spec.storageId} is no longer in zone ${observed.zone ?? ''}.`)
}

/** Waits for the end of jobs of earlier operations. */
const othersEnded: Rule = ({ operation, observed: { jobs } }) => {
  const others = jobs.filter(({ metadata }) => metadata.name !== operation.id)
  return others.length === 0
    ? undefined
    : {
        ...reconciling('Ending'),
        step: 'placed',
        actions: others.map(removeJob),
        waitFor: 'the work of an earlier operation to end',
      }
}

const isMaking = (work: BackupJobSpec['work']): boolean => work === 'write' || work === 'copy'

/** The job is on a host and has done its work; a job that failed, or whose host is lost, fails the operation. */
const working =
  (work: BackupJobSpec['work'], step: NonNullable<Decision['step']>): Rule =>
  (input) => {
    const { observed, operation } = input
    const needsDisk = work === 'write' || work === 'restore'
    const host = needsDisk ? observed.disk?.node : work === 'copy' ? observed.copyingHost : observed.host
    const job = observed.jobs.find(({ metadata }) => metadata.name === operation.id)
    if (job === undefined) return place(input, work, host)
    // The disk has moved to another host, so the work moves too.
    if (needsDisk && host !== undefined && nodeOf(job) !== host && job.status?.state !== 'done')
      return {
        ...reconciling('Moving'),
        step: 'placed',
        actions: [removeJob(job)],
        waitFor: 'the host to end the work',
      }
    const { status } = job
    if (status?.state === 'failed') return failed(step, status.detail ?? 'The host could not do it.')
    if (status?.state === 'done') return undefined
    return {
      ...reconciling('Working'),
      step,
      ...(isMaking(work) ? { status: { state: 'creating', place: placeIn(job) } } : {}),
      events: progressEvents(job),
      waitFor: status?.detail === undefined ? 'the host' : `the host: ${status.detail}`,
    }
  }

function place(input: OperationInput, work: BackupJobSpec['work'], host: string | undefined): Decision {
  const { backup, observed, operation } = input
  const { accountId } = observed
  const waiting: Decision = { ...reconciling('Placing'), step: 'placed', waitFor: 'a host with a place for backups' }
  if (accountId === undefined || host === undefined) return { ...waiting, waitSeconds: RECHECK_SECONDS }
  if (work === 'restore' && !observed.isDiskFree)
    return { ...waiting, waitFor: 'the server to be stopped', waitSeconds: RECHECK_SECONDS }
  const secret = backupKeyKey(accountId, host)
  const refusal = refusalOf(backup, KEY_SHARED)
  if (refusal !== undefined) return failed('placed', refusal.message)
  const place = placeFor(input, work, host)
  const spec = jobSpec(input, work, { secretName: secret.name, place })
  // The place is recorded before anything is written: however this ends, the backup is removed from there.
  const begun: Decision = { ...waiting, ...(isMaking(work) ? { status: { state: 'creating', place } } : {}) }
  const unopened = zonesOf(spec).filter((zone) => observed.isPlaceOpen?.(zone) === false)
  if (unopened.length > 0) return { ...begun, ...opening(input, accountId, unopened) }
  return {
    ...begun,
    actions: [
      {
        do: 'effect',
        name: 'shareKey',
        input: { accountId, secret, objectStorageZones: [...new Set(zonesOf(spec))] },
      },
      {
        do: 'ensure',
        type: BackupJob,
        draft: {
          metadata: { namespace: nodeNamespace(host), name: operation.id, finalizers: [AGENT_FINALIZER] },
          spec,
        },
      },
    ],
    waitFor: 'the host to begin',
  }
}

/** The first backup of an account in a zone needs an answer of the zone's store; the condition says what is awaited. */
function opening({ backup }: OperationInput, accountId: string, zones: readonly string[]): Partial<Decision> {
  const { status, message } = backup.status?.conditions?.find(({ type }) => type === PLACES_OPENED) ?? {}
  return {
    actions: [{ do: 'effect', name: 'openPlaces', input: { accountId, zones } }],
    ...(status === 'False' && message !== undefined ? { events: [{ kind: 'waiting', message }], message } : {}),
    waitFor: 'the object storage to answer',
    waitSeconds: RECHECK_SECONDS,
  }
}

type Place = NonNullable<BackupStatus['place']>

/** The place of a known backup; a backup from before places could be chosen is at the host's own. */
const placeOf = ({ status }: BackupObject): Place => status?.place ?? 'host'

const placeIn = (job: JobObject | undefined): Place =>
  job?.spec.objectStorageZone === undefined ? 'host' : 'object-storage'

/** The place where the backup was started, whatever has changed since. */
const placeFor = ({ backup, observed }: OperationInput, work: BackupJobSpec['work'], host: string): Place => {
  const isNew = isMaking(work) && backup.status?.place === undefined
  return isNew && observed.isObjectStorageUsed?.(host) === true ? 'object-storage' : placeOf(backup)
}

const zonesOf = ({ objectStorageZone, copyOf }: BackupJobSpec): readonly string[] =>
  [objectStorageZone, copyOf?.objectStorageZone].filter((zone) => zone !== undefined)

/** The places are independent: unchanged data is taken from a backup in the same place, and chunks are compared with
 *  the backups in the same place. */
function jobSpec(
  { backup, observed }: OperationInput,
  work: BackupJobSpec['work'],
  { secretName, place }: { readonly secretName: string; readonly place: Place },
): BackupJobSpec {
  const { accountId = '', disk, zone, original, siblings, complete } = observed
  const { name, uid = '', namespace = '' } = backup.metadata
  const { storageId, copyOf } = backup.spec
  const isHere = (other: BackupObject) => placeOf(other) === place
  const parent = siblings.find((each) => isHere(each) && each.status?.verificationError === undefined)?.metadata.name
  const originalZone = original !== undefined && placeOf(original) === 'object-storage' ? copyOf?.zone : undefined
  return {
    backup: { namespace, name, uid },
    work,
    accountId,
    secretName,
    storageId,
    ...(place === 'object-storage' ? { objectStorageZone: zone } : {}),
    ...(disk === undefined || (work !== 'write' && work !== 'restore') ? {} : { volume: disk.volume }),
    ...(isMaking(work) && parent !== undefined ? { parent } : {}),
    ...(work === 'copy' && copyOf !== undefined
      ? { copyOf: { ...copyOf, ...defined({ objectStorageZone: originalZone }) } }
      : {}),
    ...(work === 'remove' ? defined({ completeBackups: namesOfAll(complete.filter(isHere)) }) : {}),
  }
}

/** Undefined when they are more than a job can name: one that is not named would lose its chunks, so none is
 *  removed. */
const namesOfAll = (backups: readonly BackupObject[]): string[] | undefined =>
  backups.length > COMPLETE_BACKUPS_MAXIMUM ? undefined : backups.map(({ metadata }) => metadata.name)

/** Progress in bytes of the disk, one event for each tenth that is done. */
function progressEvents({ status }: JobObject): readonly OperationEvent[] {
  const { bytesDone = 0, bytesTotal = 0, bytesSent = 0 } = status ?? {}
  if (bytesTotal === 0) return []
  const tenths = Math.floor((bytesDone / bytesTotal) * PROGRESS_STEPS)
  return [
    {
      kind: 'progress',
      message: `${tenths * (100 / PROGRESS_STEPS)} % of ${bytesTotal} bytes.`,
      data: { bytes_done: bytesDone, bytes_total: bytesTotal, bytes_sent: bytesSent },
    },
  ]
}

const jobOf = ({ observed, operation }: OperationInput): JobObject | undefined =>
  observed.jobs.find(({ metadata }) => metadata.name === operation.id)

const written: Rule = (input) => {
  const job = jobOf(input)
  const { sizeBytes = 0, target, isSameHost, parent } = job?.status ?? {}
  const { copyZone, disk, original } = input.observed
  const { copyOf } = input.backup.spec
  return {
    health: 'ready',
    reason: 'Online',
    step: 'written',
    ...(copyZone === undefined ? { outcome: 'succeeded' } : { waitFor: 'its copy', waitSeconds: 0 }),
    status: {
      state: 'online',
      stateDetail: undefined,
      sizeGibibytes: Math.ceil(sizeBytes / GIBIBYTE),
      completedAt: input.now.toISOString(),
      place: placeIn(job),
      target,
      isSameHost,
      parent,
      origin: copyOf === undefined ? disk?.origin : original?.status?.origin,
    },
    events: [...(job === undefined ? [] : progressEvents(job)), ...(copyOf === undefined ? pointEvents(job) : [])],
  }
}

const pointEvents = (job: JobObject | undefined): readonly OperationEvent[] => {
  const { parent, fullBecause, isFrozen } = job?.status ?? {}
  return [
    isFrozen === true
      ? { kind: 'guest_frozen', message: 'The file systems of the guest were frozen at the point.' }
      : { kind: 'crash_consistent', message: 'The point is as a disk after a loss of power.' },
    fullBecause === undefined
      ? { kind: 'incremental', message: `Unchanged data was taken from backup ${parent ?? ''}.` }
      : { kind: 'full', message: `All of the disk was read: ${fullBecause}.` },
  ]
}

function restore(input: OperationInput): Decision {
  return endOfRestore(
    input,
    firstDecision(input, [
      hasStorage,
      isInZone,
      othersEnded,
      noted,
      isContentKept,
      working('restore', 'restored'),
      restored,
    ]),
  )
}

/** From then on the storage shows what happens to its content. */
const noted: Rule = ({ observed, operation }) =>
  observed.notedRestore === operation.id || observed.jobs.length > 0
    ? undefined
    : { ...reconciling('Waiting'), step: 'placed', waitFor: 'the storage to note the restore' }

const restored: Rule = (input) => ({
  ...unchanged(input),
  step: 'restored',
  outcome: 'succeeded',
  events: keptEvents(input),
})

/** At the end of a restore, records whether the disk was written to. */
function endOfRestore(input: OperationInput, decision: Decision): Decision {
  if (decision.outcome === undefined) return decision
  const job = jobOf(input)
  const isUntouched = job === undefined || (job.status?.state === 'failed' && job.status.isHalfWritten !== true)
  const outcome = decision.outcome === 'succeeded' ? 'succeeded' : isUntouched ? 'untouched' : 'failed'
  return { ...decision, status: { ...decision.status, lastRestore: { operationId: input.operation.id, outcome } } }
}

/** What was read until then proves nothing about the backup. */
const cancelled: Rule = (input) => {
  const { jobs } = input.observed
  if (!isCancelled(input.operation)) return undefined
  return jobs.length === 0
    ? { ...unchanged(input), step: 'verified', outcome: 'cancelled' }
    : { ...unchanged(input), step: 'verified', actions: jobs.map(removeJob), waitFor: 'the host to end the work' }
}

function verify(input: OperationInput): Decision {
  return firstDecision(input, [cancelled, othersEnded, working('verify', 'verified'), verified])
}

/** Damage that a verification finds does not fail the verification: the backup stays online and reports the damage. */
const verified: Rule = (input) => {
  const { damage } = jobOf(input)?.status ?? {}
  const { accountId } = input.observed
  return {
    ...unchanged(input),
    step: 'verified',
    outcome: 'succeeded',
    status:
      damage === undefined
        ? { verifiedAt: input.now.toISOString(), verificationError: undefined }
        : { verificationError: damage },
    events: damage === undefined ? [] : [{ kind: 'damaged', message: damage }],
    actions:
      damage === undefined || accountId === undefined
        ? []
        : [{ do: 'effect', name: 'reportDamage', input: { accountId, damage, operationId: input.operation.id } }],
  }
}

/** A backup that is being read stays until the reader has finished. */
const unread: Rule = ({ observed: { readers = [] } }) =>
  readers.length === 0
    ? undefined
    : { ...reconciling('Deleting'), step: 'removed', waitFor: `storage ${readers[0]}, which is being made from it` }

/** A backup that was never started holds nothing in a store. */
function remove(input: OperationInput): Decision {
  const { backup, observed } = input
  const { accountId } = observed
  const wasPlaced = backup.status?.state !== undefined && observed.zone !== undefined && accountId !== undefined
  const release: Rule = () => ({
    ...reconciling('Deleting'),
    step: 'released',
    outcome: 'succeeded',
    actions: [
      ...observed.jobs.map(removeJob),
      ...(accountId === undefined
        ? []
        : [{ do: 'effect', name: 'release', input: { accountId, backupId: backup.metadata.name } } as const]),
    ],
    isGone: true,
  })
  const decision = firstDecision(input, [
    unread,
    othersEnded,
    ...(wasPlaced ? [working('remove', 'removed')] : []),
    release,
  ])
  const { outcome, error } = decision
  // A host that could not remove it now may do so later: a deletion continues until it is done.
  const goesOn: Decision =
    outcome === 'failed'
      ? {
          ...reconciling('Deleting'),
          step: 'removed',
          actions: observed.jobs.map(removeJob),
          waitFor: `the host: ${error ?? ''}`,
          waitSeconds: RECHECK_SECONDS,
        }
      : decision
  return { ...goesOn, status: { state: 'deleting' } }
}

function overdue(input: OperationInput, decision: Decision, error: string): Decision {
  if (input.operation.kind === 'backup.delete') return decision
  const late = failed(decision.step, error)
  return input.operation.kind === 'backup.restore' ? endOfRestore(input, late) : late
}

function toActions(input: ReconcileInput, decision: Decision): readonly BackupAction[] {
  const { backup, observed } = input
  const isFailed = decision.outcome === 'failed'
  const isCreationFailed =
    isFailed && activeOperation(backup)?.kind === KINDS.create && backup.status?.state !== 'online'
  // A complete backup stays complete.
  const result = isFailed && !isCreationFailed ? { ...decision, ...unchanged(input) } : decision
  return pointActions(backup, result, { zone: observed.zone, region: observed.region }, isCreationFailed)
}
