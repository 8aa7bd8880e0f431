/** Who asked the Kubernetes API for a change. Admission sees the user, the object does not record it. Admission writes
 *  its requests here, and the controller that finds the change takes its actor from here. A request that was admitted
 *  and then lost to another one leaves a row that nobody reads. */
import type { AuditChange } from '../../domain/audit/entry.ts'
import { isOperationKind } from '../../domain/operations.ts'
import type { Queries } from '../kit/open.ts'
import { selectWhere } from '../kit/where.ts'

export interface KubernetesRequest {
  /** Of the object. */
  readonly uid: string
  /** The generation of the object after the change. */
  readonly generation: number
  /** An audit action; that of an operation is its kind. */
  readonly action: string
  readonly username: string
  readonly requestedAt: Date
  readonly changes: readonly AuditChange[]
}

/** Whether the change starts no operation: the actions of the others are kinds of operations. */
export const isEdit = ({ action }: Pick<KubernetesRequest, 'action'>): boolean => !isOperationKind(action)

/** A change waits for its controller this long at most. */
const KEPT_MILLISECONDS = 7 * 86_400_000

/** Records the request and deletes what is older than a week. Of several for the same change the last one stays. */
export async function recordKubernetesRequest(db: Queries, request: KubernetesRequest): Promise<void> {
  const row = {
    username: request.username,
    requested_at: request.requestedAt,
    changes: JSON.stringify(request.changes),
  }
  await db
    .insertInto('kubernetes_request')
    .values({ uid: request.uid, generation: request.generation, action: request.action, ...row })
    .onConflict((conflict) => conflict.columns(['uid', 'action', 'generation']).doUpdateSet(row))
    .execute()
  await db
    .deleteFrom('kubernetes_request')
    .where('requested_at', '<', new Date(request.requestedAt.getTime() - KEPT_MILLISECONDS))
    .execute()
}

/** The requests that made the generations after the first and up to the last, newest first. */
export async function listKubernetesRequests(
  db: Queries,
  uid: string,
  generations: { readonly after: number; readonly upTo: number },
): Promise<readonly KubernetesRequest[]> {
  const rows = await selectWhere(db, 'kubernetes_request', { uid })
    .selectAll()
    .where('generation', '>', generations.after)
    .where('generation', '<=', generations.upTo)
    .orderBy('generation', 'desc')
    .orderBy('requested_at', 'desc')
    .execute()
  return rows.map(({ uid: of, generation, action, username, requested_at, changes }) => ({
    uid: of,
    generation,
    action,
    username,
    requestedAt: requested_at,
    changes,
  }))
}
