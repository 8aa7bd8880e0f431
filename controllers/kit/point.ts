/** What the plans of backups and snapshots share. Each is a point of a storage: it is created once, is online or in
 *  error from then on, and is removed when nothing of it is left. The noun defines how it is created and removed. */
import { type KubeObject, keyOf, type ResourceType } from '../../kit/kube/object.ts'
import type { OperationKind, OperationStep } from '../../domain/operations.ts'
import type { KubernetesRequest } from '../../db/request/index.ts'
import type { Operable } from '../../resources/operation/index.ts'
import type { PlainAction } from './effects.ts'
import { type Health, healthConditions } from './health.ts'
import { operationActions, type OperationDecision, truncated, waitActions } from './operation/decision.ts'
import { type DirectEdit, findEditor, requesterOf } from './operation/direct-edit.ts'
import { activeOperation } from './operation/stanza.ts'
import type { Parts } from './parts.ts'
import { editsOf, newRequests } from './synced.ts'

interface PointStatus {
  readonly observedGeneration?: number | undefined
  readonly state?: 'creating' | 'online' | 'deleting' | 'error' | undefined
  readonly stateDetail?: string | undefined
}
type Point = KubeObject & Operable & { readonly status?: PointStatus | undefined }

export interface PointDecision<Status, Action, Kind extends OperationKind> extends OperationDecision<Action, Kind> {
  readonly status?: { readonly [Field in keyof Status]?: Status[Field] | undefined }
  readonly health: Health
  readonly reason: string
  readonly message?: string
  /** Nothing of the point is left anywhere. */
  readonly isGone?: boolean
}
type Standing = Pick<PointDecision<never, never, never>, 'health' | 'reason' | 'message'>

export const reconciling = (reason: string): Pick<Standing, 'health' | 'reason'> => ({ health: 'reconciling', reason })

/** Ends the operation with the error. */
export const failed = <Step extends OperationStep | undefined>(step: Step, error: string) =>
  ({ health: 'stalled', reason: 'Error', message: error, step, outcome: 'failed', error }) as const

/** The health that the status shows already. */
export function standingOf(status: PointStatus | undefined): Standing {
  if (status?.state === 'online') return { health: 'ready', reason: 'Online' }
  return status?.state === 'error'
    ? { health: 'stalled', reason: 'Error', message: status.stateDetail ?? '' }
    : reconciling('Waiting')
}

interface PointKinds {
  readonly create: OperationKind
  readonly delete: OperationKind
}
type Edit = DirectEdit & { readonly actor: string }

/** A point that is deleted through the API is deleted in Kubernetes first. */
export const removeFirst = <Spec, Status>(
  type: ResourceType<Spec, Status>,
  point: KubeObject<Spec, Status> & Operable,
  kinds: PointKinds,
): readonly PlainAction[] | undefined =>
  isBeingDeleted(point, kinds) && point.metadata.deletionTimestamp === undefined
    ? [{ do: 'remove', type, key: keyOf(point) }]
    : undefined

const isBeingDeleted = ({ spec }: Operable, kinds: PointKinds): boolean => spec.operation?.kind === kinds.delete

/** Its deletion succeeded, but the controller that recorded that stopped before it removed the finalizer. */
export const isLeft = (point: Point, kinds: PointKinds): boolean =>
  point.metadata.deletionTimestamp !== undefined && isBeingDeleted(point, kinds)

/** Its creation or deletion with kubectl, in the editor's name. When nothing else is under way, `detectDue` answers
 *  what the platform itself requires. */
export function detectPointEdit(
  point: Point,
  kinds: PointKinds,
  actor: string,
  detectDue: () => Edit | undefined = () => undefined,
): Edit | undefined {
  if (point.metadata.deletionTimestamp !== undefined)
    return isBeingDeleted(point, kinds) ? undefined : { kind: kinds.delete, field: '', actor }
  if (activeOperation(point) !== undefined) return undefined
  return point.spec.operation === undefined && point.status?.state === undefined
    ? { kind: kinds.create, field: 'storageId', actor }
    : detectDue()
}

/** Who asked for the creation or the deletion of the point with kubectl, and its edits that start no operation. Throws
 *  Unavailable. */
export async function readPointEdits<Spec, Status>(
  { db, store }: Pick<Parts, 'db' | 'store'>,
  type: ResourceType<Spec, Status>,
  point: KubeObject<Spec, Status> & Point,
  kinds: PointKinds,
): Promise<{ readonly edits: readonly KubernetesRequest[]; readonly editor: string }> {
  const requests = await newRequests(db, point)
  const isNew = point.spec.operation === undefined
  const kind = point.metadata.deletionTimestamp === undefined ? kinds.create : kinds.delete
  return {
    edits: editsOf(requests),
    editor: requesterOf(requests, kind) ?? (isNew ? await findEditor(store, type, point, 'storageId') : UNKNOWN_EDITOR),
  }
}
const UNKNOWN_EDITOR = 'user:kubernetes'

/** Carries the decision out. A point whose creation failed is in error. */
export function pointActions<Status extends PointStatus, Action>(
  point: Point,
  decision: PointDecision<Status, Action, OperationKind>,
  place: { readonly zone: string | undefined; readonly region: string | undefined },
  isCreationFailed: boolean,
): readonly (Action | PlainAction)[] {
  const { status, health, reason, message = '', isGone = false } = decision
  return [
    ...(decision.actions ?? []),
    ...operationActions(point, decision),
    {
      do: 'status',
      status: {
        ...(point.status?.state === undefined ? { state: 'creating' } : {}),
        ...(place.zone === undefined ? {} : place),
        ...status,
        ...(isCreationFailed ? { state: 'error', stateDetail: truncated(decision.error ?? '') } : {}),
      },
      conditions: healthConditions(health, reason, truncated(message)),
    },
    ...(isGone ? [{ do: 'finalized' } as const] : []),
    ...waitActions(decision),
  ]
}
