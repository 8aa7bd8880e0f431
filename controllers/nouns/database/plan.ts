/** The database's plan: pure, synchronous, total. Its name and password are claimed in PostgreSQL; its machine and its
 *  storage are derived from its spec. */
import { archiveRoomText } from '../../../domain/database/archive-room.ts'
import { defined } from '../../../domain/defined.ts'
import { meteredAfter } from '../../../domain/billing/metered-bytes.ts'
import {
  archiveStateOf,
  type DatabaseBackups,
  type DatabaseOrigin,
  KEEP_BACKUPS_DAYS,
} from '../../../domain/database/rules.ts'
import { deadlineOf, type KindOf } from '../../../domain/operations.ts'
import { keyOf } from '../../../kit/kube/object.ts'
import { Database, type DatabaseSpec, type DatabaseStatus } from '../../../resources/database/index.ts'
import type { ArchiveReport } from '../../../resources/managed-machine/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import { planMachines } from '../managed-machine/index.ts'
import { claiming, type MadeInput, networkAwaited, planMade } from '../../kit/made-plan.ts'
import { firstDecision, truncated } from '../../kit/operation/decision.ts'
import type { During } from '../../kit/operation/plan.ts'
import { refusalOf } from '../../kit/refusal.ts'
import {
  databaseDemand,
  hostOf,
  isAttached,
  isToRestore,
  databaseMachine,
  needsCertificate,
  databaseOwner,
  storageActions,
} from './machine.ts'
import { isBeingUpgraded, upgradeDue, upgradeStatus } from './upgrade.ts'
import { CLAIMED, type DatabaseEffect, type DatabaseObject, type Observed } from './observed.ts'
import { failed, type SyncDecision } from '../../kit/synced.ts'
import { hasAccount } from '../../kit/synced-plan.ts'

type ReconcileInput = MadeInput<DatabaseObject, Observed>
type OperationInput = During<ReconcileInput>
type Decision = SyncDecision<DatabaseStatus, DatabaseEffect, KindOf<'database'>>
type Rule = (input: OperationInput) => Decision | undefined

/** Reports wake it; this interval is for what nobody reports: a certificate that gets old. */
const LOOK_SECONDS = 60

/** The operations that create and delete it. */
export const LIFE = {
  creates: ({ spec }: DatabaseObject) =>
    spec.restoredFrom === undefined ? ('database.create' as const) : ('database.restore' as const),
  deletes: 'database.delete',
} as const

export const plan = planMade<DatabaseObject, DatabaseSpec, DatabaseStatus, Observed, DatabaseEffect>({
  label: 'A database',
  type: Database,
  ...LIFE,
  flows: { 'database.create': make, 'database.restore': make },
  idle,
  remove,
})

function make(input: OperationInput): Decision {
  return firstDecision(input, [hasAccount, hasNetwork, claimed, restoreIsBegun, machineRuns, isArchived, done])
}

const hasNetwork: Rule = ({ root, observed: { claim, networks } }) =>
  claim !== undefined || networks !== undefined ? undefined : networkAwaited(root.spec.networkId)

const claimed: Rule = ({ root: database, observed: { accountId = '', claim } }) => {
  if (claim !== undefined) return undefined
  const refusal = refusalOf(database, CLAIMED)
  if (refusal !== undefined) return failed('claimed', refusal.message)
  const { zone, name, networkId, restoredFrom } = database.spec
  const from = restoredFrom === undefined ? {} : { originId: restoredFrom.databaseId }
  const input = { accountId, databaseId: database.metadata.name, zone, name, networkId, ...from }
  return claiming({ do: 'effect', name: 'claim', input })
}

/** Machines may copy data for half a day, as long as they report it. A machine that fails is replaced. One that was
 *  created after the deadline of a creation and still fails will not succeed. */
const restoreIsBegun: Rule = ({ root, operation, observed: { machines } }) => {
  const { createdAt = '', report, detail } = databaseMachine(machines) ?? {}
  const isLate = createdAt >= deadlineOf('database.create', new Date(operation.requestedAt)).toISOString()
  return isToRestore(root) && isLate && report?.postgresql?.state === 'failed'
    ? failed('restored', truncated(`Its machine was made anew, and fails all the same: ${detail}`))
    : undefined
}

const machineRuns: Rule = (input) => {
  const { actions, isSettled, waitFor, waitSeconds, status } = maintained(input)
  if (isSettled) return undefined
  const { machines, storage } = input.observed
  const machine = databaseMachine(machines)
  const last = isToRestore(input.root) && machine?.report?.postgresql?.state !== 'running' ? 'restored' : 'applied'
  const step = machine?.state !== 'started' ? 'machine' : isAttached(storage, machine) ? last : 'storage'
  return { health: 'reconciling', reason: 'Making', step, actions, status, waitFor, waitSeconds }
}

/** The first base backup, where there is an archive: without it nothing could be restored. */
const isArchived: Rule = (input) => {
  const { archive, machines } = input.observed
  const report = databaseMachine(machines)?.report?.postgresql?.archive
  if (archive === undefined || report?.backups.some(({ isRestorable }) => isRestorable) === true) return undefined
  const { actions, status } = maintained(input)
  const waitFor = `its first backup${report === undefined || report.failure === '' ? '' : `: ${report.failure}`}`
  return {
    health: 'reconciling',
    reason: 'Archiving',
    step: 'archived',
    actions,
    status,
    waitFor,
    waitSeconds: LOOK_SECONDS,
  }
}

const done: Rule = (input) => ({
  health: 'ready',
  reason: 'Running',
  step: 'applied',
  outcome: 'succeeded',
  status: { ...maintained(input).status, isMade: true },
})

interface Upkeep {
  readonly actions: readonly DatabaseEffect[]
  readonly isSettled: boolean
  readonly waitFor: string
  readonly waitSeconds: number
  readonly status: NonNullable<Decision['status']>
}

const STALE =
  'The owner no longer gets in with the credentials: its password or its rights were changed by SQL. ' +
  'Rotate the credentials to have some that work.'

/** The desired machine and storage, and the status that they report. */
function maintained({ root: database, observed, now }: ReconcileInput): Upkeep {
  const { accountId, claim, machines, lost: missing, storage, archive, archiveObstacle } = observed
  if (accountId === undefined || claim === undefined)
    return { actions: [], isSettled: false, waitFor: 'the database', waitSeconds: LOOK_SECONDS, status: {} }
  const demand = databaseDemand(database, observed)
  const planned = planMachines({
    owner: databaseOwner(database, accountId),
    demands: [demand],
    machines,
    lost: missing,
    now,
  })
  const machine = databaseMachine(machines)
  const host = hostOf(machine, database.spec)
  const id = { accountId, databaseId: database.metadata.name }
  const { zone, storageGibibytes } = database.spec
  const isUncertified = host !== undefined && needsCertificate(claim, host, now)
  const isApplied =
    demand.configuration !== undefined &&
    machine?.running?.generation === demand.configuration.generation &&
    machine.running.fingerprint === demand.configuration.fingerprint
  const report = machine?.report?.postgresql
  const backups = report?.archive && backupsOf(report.archive)
  const isStale = isApplied && report?.ownerSignsIn === false
  const waitFor = isBeingUpgraded(machine)
    ? `its machine to run from the image ${machine?.diskExchange?.imageVersion}: ${planned.waitFor}`
    : machine?.state === 'started' && !isAttached(storage, machine)
      ? observed.missingStorage === undefined
        ? 'its storage to be attached'
        : STORAGE_MISSING
      : planned.waitFor
  return {
    actions: [
      ...planned.actions,
      ...storageActions(database, observed),
      ...(host === undefined || !isUncertified
        ? []
        : [{ do: 'effect', name: 'certify', input: { ...id, host } } as const]),
      ...(archive?.isOpen === false || archive?.isBounded === false
        ? [{ do: 'effect', name: 'archive', input: { ...id, zone, storageGibibytes } } as const]
        : []),
    ],
    isSettled: planned.isSettled,
    waitFor,
    // Rows of PostgreSQL wake no reconciler.
    waitSeconds: isUncertified || archive?.isOpen === false ? 0 : LOOK_SECONDS,
    status: {
      isHealthy: planned.isSettled && !isStale,
      hasStaleCredentials: isStale,
      healthDetail: truncated(
        planned.isSettled
          ? [isStale ? STALE : '', archiveRoomText(archive?.usedBytes ?? 0, storageGibibytes)]
              .filter((text) => text !== '')
              .join(' ')
          : `Waiting for ${waitFor}`,
      ),
      ...defined({ archiveBytes: archive?.usedBytes }),
      ...(archive?.measurement === undefined
        ? {}
        : { archiveMetered: meteredAfter(database.status?.archiveMetered, archive.measurement) }),
      ...defined({ host }),
      isConfigurationApplied: isApplied,
      ...(isApplied && report !== undefined ? { passwordGeneration: report.passwordGeneration } : {}),
      ...defined({ backups }),
      archiveState: archiveStateOf(backups ?? database.status?.backups, archiveObstacle),
      archiveObstacle: truncated(archiveObstacle),
      ...upgradeStatus(database, machine),
      certificateExpiresAt: claim.certificate?.expiresAt.toISOString(),
    },
  }
}

/** The backups that its machine reports, in the form of the status. */
const backupsOf = ({
  earliestAt,
  latestAt,
  shortenedAt,
  pause,
  ...report
}: ArchiveReport): NonNullable<DatabaseStatus['backups']> => ({
  ...report,
  earliestAt: earliestAt ?? undefined,
  latestAt: latestAt ?? undefined,
  shortenedAt: shortenedAt ?? undefined,
  pause: pause && { ...pause, from: pause.from ?? undefined },
})

/** Its machine follows its spec. A database whose creation failed is left as it is, and so is one whose data is
 *  lost. */
function idle(input: ReconcileInput): Decision {
  const { root: database, observed } = input
  const { spec, status, metadata } = database
  if (status?.isMade !== true || observed.claim === undefined)
    return { health: 'stalled', reason: 'Error', message: status?.operation?.error ?? 'It was not made.' }
  if (status.isLost === true || observed.storage?.status?.state === 'error') return lost
  if (observed.missingStorage !== undefined) return observed.missingStorage === 'removed' ? lost : storageMissing
  const { actions, isSettled, waitFor, waitSeconds, status: reported } = maintained(input)
  const isStale = isSettled && reported.hasStaleCredentials === true
  const upgrade = isSettled ? upgradeDue(database, observed, input.now) : undefined
  const id = { accountId: observed.accountId ?? '', databaseId: metadata.name }
  const isRenamed = observed.claim.name !== spec.name && refusalOf(database, CLAIMED) === undefined
  return {
    health: 'ready',
    reason: isStale ? 'StaleCredentials' : isSettled ? 'Running' : 'Maintaining',
    message: isStale ? STALE : waitFor,
    actions: [
      ...(isRenamed ? [{ do: 'effect', name: 'rename', input: { ...id, name: spec.name } } as const] : []),
      ...actions,
      ...observed.spareDisks.map((key) => ({ do: 'remove', type: Storage, key }) as const),
      ...(upgrade === undefined ? [] : [{ do: 'effect', name: 'upgrade', input: upgrade } as const]),
    ],
    status: reported,
    waitFor: 'a change',
    waitSeconds,
  }
}

const LOST = 'The storage with its data is lost.'
const lost: Decision = {
  health: 'stalled',
  reason: 'Lost',
  message: LOST,
  status: { isLost: true, isHealthy: false, healthDetail: LOST },
}

const STORAGE_MISSING =
  'its storage to be there: it is missing, and nobody deleted it. It is not made again, which would lose the data'
const storageMissing: Decision = {
  health: 'stalled',
  reason: 'StorageMissing',
  message: `Waiting for ${STORAGE_MISSING}`,
  status: { isHealthy: false, healthDetail: `Waiting for ${STORAGE_MISSING}` },
  waitFor: STORAGE_MISSING,
  waitSeconds: LOOK_SECONDS,
}

/** Its machine is deleted first, then its storage; then its claims are released. */
function remove({ root: database, observed, now }: ReconcileInput): Decision {
  const { accountId, machines, storage } = observed
  const going = { health: 'reconciling', reason: 'Deleting', waitSeconds: LOOK_SECONDS } as const
  if (accountId !== undefined && machines.length > 0) {
    const planned = planMachines({ owner: databaseOwner(database, accountId), demands: [], machines, lost: [], now })
    return { ...going, step: 'machine', actions: planned.actions, waitFor: planned.waitFor }
  }
  if (storage !== undefined) {
    const isGoing = storage.metadata.deletionTimestamp !== undefined
    const actions: readonly DatabaseEffect[] = isGoing ? [] : [{ do: 'remove', type: Storage, key: keyOf(storage) }]
    return { ...going, step: 'storage', actions, waitFor: 'its storage to go' }
  }
  const id = { accountId: accountId ?? '', databaseId: database.metadata.name }
  const release = { do: 'effect', name: 'release', input: { ...id, ...leftOf(database) } } as const
  return {
    health: 'reconciling',
    reason: 'Deleting',
    step: 'released',
    outcome: 'succeeded',
    actions: accountId === undefined ? [] : [release],
    isGone: true,
  }
}

const NOTHING: DatabaseBackups = {
  isOpen: false,
  failure: '',
  observedAt: '',
  gaps: [],
  backups: [],
}

/** What can be restored after the deletion, and for how long: no time at all where there is nothing. */
function leftOf({ spec, status }: DatabaseObject): { readonly origin: DatabaseOrigin; readonly keptDays: number } {
  const { name, networkId, plan, storageGibibytes, databaseName, ownerName, operation } = spec
  const backups = status?.backups ?? NOTHING
  const keepDays = operation?.kind === LIFE.deletes ? operation.arguments?.['keepBackupsDays'] : undefined
  return {
    origin: { name, networkId, plan, storageGibibytes, databaseName, ownerName, backups },
    keptDays: backups.latestAt === undefined ? 0 : Number(keepDays ?? KEEP_BACKUPS_DAYS.default),
  }
}
