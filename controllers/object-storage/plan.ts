/** The plan of object storage: pure, synchronous, total. */
import type { ObjectStorageRow, TenantFacts } from '../../db/object-storage/index.ts'
import type { KubernetesRequest } from '../../db/request/index.ts'
import type { TenantState } from '../../kit/object-storage/control.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import type { ObjectStorageSpec, ObjectStorageStatus } from '../../resources/object-storage/index.ts'
import type { AuditEffects } from '../audit.ts'
import type { ActionWith } from '../effects.ts'
import { healthConditions } from '../health.ts'
import { auditRequests } from '../operation/direct-edit.ts'

export interface Observed {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
  readonly isZone: boolean
  readonly row: ObjectStorageRow | undefined
  /** Why the zone keeps no objects. */
  readonly obstacle?: string
  /** Where clients of the zone connect. */
  readonly endpoint?: string
  /** As the store has it. */
  readonly tenant: TenantState | undefined
  /** What it should be, once there is a row. */
  readonly wanted?: (TenantFacts & Pick<TenantState, 'secretFingerprint'>) | undefined
  /** What people asked the Kubernetes API for since the last reconcile. */
  readonly requests: readonly KubernetesRequest[]
}

/** The effects by name, each with its input. */
export interface ObjectStorageEffects extends AuditEffects {
  /** Makes the row. */
  readonly open: { readonly accountId: string; readonly id: string; readonly zone: string }
  /** Tells the store what the row says. */
  readonly bringUp: { readonly row: ObjectStorageRow }
  readonly record: { readonly row: ObjectStorageRow; readonly tenant: TenantState }
  /** Takes tenant and row away, if it has no buckets. */
  readonly remove: { readonly row: ObjectStorageRow }
}
type ObjectStorageAction = ActionWith<ObjectStorageEffects>
type ObjectStorageObject = KubeObject<ObjectStorageSpec, ObjectStorageStatus>

/** Nobody wakes us when objects are stored, an account is suspended, or a quota is another one. */
const LOOK_SECONDS = 15

export const plan = (object: ObjectStorageObject, observed: Observed): readonly ObjectStorageAction[] => [
  ...auditRequests(object, observed.requests),
  ...decide(object, observed),
]

/** Guards in order: deleting, no account, no zone, no row, nothing that serves it, told something else, done. */
function decide(object: ObjectStorageObject, observed: Observed): readonly ObjectStorageAction[] {
  const { accountId, isZone, row, obstacle, endpoint, tenant, wanted } = observed
  const { metadata, spec } = object
  if (metadata.deletionTimestamp !== undefined) return leave(observed)
  if (accountId === undefined) return stalled('NoAccount', 'The namespace belongs to no account.')
  if (!isZone) return stalled('NoZone', `There is no zone ${spec.zone}.`)
  if (row === undefined && obstacle === undefined) return [...claim(object, accountId)]
  if (row === undefined || obstacle !== undefined)
    return stalled('NotOffered', `The zone has no object storage: ${obstacle}.`)
  if (tenant === undefined || wanted === undefined || !isSame(tenant, wanted))
    return [
      { do: 'effect', name: 'bringUp', input: { row } },
      { do: 'wait', seconds: 0, for: 'the store to know it' },
    ]
  return [
    ...(isRecorded(row, tenant) ? [] : [{ do: 'effect', name: 'record', input: { row, tenant } } as const]),
    {
      do: 'status',
      status: {
        endpoint,
        accessKeyId: row.accessKeyId,
        bucketPrefix: row.backend === 'rgw' ? undefined : row.bucketPrefix,
        backend: row.backend,
        quotaBytes: tenant.quotaBytes,
        usedBytes: tenant.usedBytes,
        objectCount: tenant.objectCount,
        usageMeasuredAt: tenant.measuredAt,
      },
      conditions: [
        ...healthConditions('ready', tenant.isSuspended ? 'Suspended' : 'Served', ''),
        { type: 'Claimed', status: 'True', reason: 'Claimed', message: '' },
      ],
    },
    { do: 'wait', seconds: LOOK_SECONDS, for: 'a change' },
  ]
}

const stalled = (reason: string, message: string): readonly ObjectStorageAction[] => [
  { do: 'status', status: {}, conditions: healthConditions('stalled', reason, message) },
  { do: 'wait', seconds: LOOK_SECONDS, for: 'a change' },
]

function* claim({ metadata, spec, status }: ObjectStorageObject, accountId: string): Generator<ObjectStorageAction> {
  const refusal = status?.conditions?.find(({ type, status: is }) => type === 'Claimed' && is === 'False')
  yield { do: 'effect', name: 'open', input: { accountId, id: metadata.name, zone: spec.zone } }
  if (refusal !== undefined)
    yield { do: 'status', status: {}, conditions: healthConditions('stalled', refusal.reason, refusal.message) }
  yield { do: 'wait', seconds: refusal === undefined ? 0 : LOOK_SECONDS, for: 'the claim' }
}

/** What has buckets stays, and so does what nobody can look into. */
function leave({ row, tenant, obstacle }: Observed): readonly ObjectStorageAction[] {
  if (row === undefined) return [{ do: 'finalized' }]
  const waiting = (reason: string, message: string): readonly ObjectStorageAction[] => [
    { do: 'status', status: {}, conditions: healthConditions('reconciling', reason, message) },
    { do: 'wait', seconds: LOOK_SECONDS, for: 'it to be empty' },
  ]
  if (obstacle !== undefined) return waiting('NotOffered', `Nothing can tell whether it is empty: ${obstacle}.`)
  if (tenant !== undefined && tenant.bucketCount > 0) return waiting('InUse', 'It goes when its buckets are gone.')
  return [
    { do: 'effect', name: 'remove', input: { row } },
    { do: 'wait', seconds: 0, for: 'the next look' },
  ]
}

const isSame = (tenant: TenantState, wanted: NonNullable<Observed['wanted']>): boolean =>
  tenant.accessKeyId === wanted.accessKeyId &&
  (tenant.bucketPrefix ?? wanted.bucketPrefix) === wanted.bucketPrefix &&
  tenant.quotaBytes === wanted.quotaBytes &&
  tenant.isSuspended === wanted.isSuspended &&
  tenant.isFrozen === wanted.isFrozen &&
  tenant.secretFingerprint === wanted.secretFingerprint

const isRecorded = (row: ObjectStorageRow, tenant: TenantState): boolean =>
  row.usedBytes === tenant.usedBytes &&
  row.objectCount === tenant.objectCount &&
  row.usageMeasuredAt?.getTime() === Date.parse(tenant.measuredAt)
