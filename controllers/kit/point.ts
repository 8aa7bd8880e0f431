/** What the plans of backups and snapshots share. Each is a point of a storage: it is created once, is online or in
 *  error from then on, and is removed when nothing of it is left. The noun defines how it is created and removed. */
import type { KubeObject, ResourceType } from '../../kit/kube/object.ts'
import type { OperationKind } from '../../domain/operations.ts'
import type { KubernetesRequest } from '../../db/request/index.ts'
import type { Operable } from '../../resources/operation/index.ts'
import type { PlainAction } from './effects.ts'
import { truncated } from './operation/decision.ts'
import { type DirectEdit, findEditor, requesterOf } from './operation/direct-edit.ts'
import { activeOperation } from './operation/stanza.ts'
import type { Parts } from './parts.ts'
import { editsOf, newRequests, reconciling, syncActions, type SyncDecision } from './synced.ts'

interface PointStatus {
  readonly observedGeneration?: number | undefined
  readonly state?: 'creating' | 'online' | 'deleting' | 'error' | undefined
  readonly stateDetail?: string | undefined
}
type Point = KubeObject & Operable & { readonly status?: PointStatus | undefined }

/** The health that the status shows already. */
export function standingOf(
  status: PointStatus | undefined,
): Pick<SyncDecision<never, never>, 'health' | 'reason' | 'message'> {
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

/** Its newest operation is its deletion. */
export const isRemoved = ({ spec }: Operable, kinds: PointKinds): boolean => spec.operation?.kind === kinds.delete

/** Its deletion succeeded, but the controller that recorded that stopped before it removed the finalizer. */
export const isLeft = (point: Point, kinds: PointKinds): boolean =>
  point.metadata.deletionTimestamp !== undefined && isRemoved(point, kinds)

/** Its creation or deletion with kubectl, in the editor's name. When nothing else is under way, `detectDue` answers
 *  what the platform itself requires. */
export function detectPointEdit(
  point: Point,
  kinds: PointKinds,
  actor: string,
  detectDue: () => Edit | undefined = () => undefined,
): Edit | undefined {
  if (point.metadata.deletionTimestamp !== undefined)
    return isRemoved(point, kinds) ? undefined : { kind: kinds.delete, field: '', actor }
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
export const pointActions = <Status extends PointStatus, Action>(
  point: Point,
  decision: SyncDecision<Status, Action>,
  place: { readonly zone: string | undefined; readonly region: string | undefined },
  isCreationFailed: boolean,
): readonly (Action | PlainAction)[] =>
  syncActions<PointStatus, Action>(point, {
    ...decision,
    status: {
      ...(point.status?.state === undefined ? { state: 'creating' } : {}),
      ...(place.zone === undefined ? {} : place),
      ...decision.status,
      ...(isCreationFailed ? { state: 'error', stateDetail: truncated(decision.error ?? '') } : {}),
    },
  })
