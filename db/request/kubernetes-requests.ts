/** Who asked the Kubernetes API for a change. Admission sees the user, the object never does: what admission let pass
 *  is written
 *  here, and the controller that finds the change names its actor by it. A request that was let pass and then lost to
 *  another
 *  one leaves a row that nothing asks for. */
import type { AuditChange } from '../../domain/audit.ts'
import type { Queries } from '../open.ts'

export interface KubernetesRequest {
  /** Of the object. */
  readonly uid: string
  /** The generation that the change gives the object. */
  readonly generation: number
  /** An audit action; that of an operation is its kind. */
  readonly action: string
  readonly username: string
  readonly requestedAt: Date
  readonly changes: readonly AuditChange[]
}

/** Changes that start no operation. */
export const EDIT_ACTIONS = ['server.update', 'server.ha_policy', 'server.migration_policy'] as const
export type EditAction = (typeof EDIT_ACTIONS)[number]
/** Whether it starts no operation. */
export const isEdit = ({ action }: KubernetesRequest): boolean => (EDIT_ACTIONS as readonly string[]).includes(action)

/** A change waits for its controller this long at most. */
const KEPT_MILLISECONDS = 7 * 86_400_000

/** Writes the request down; what is older than a week goes. The last to ask for the very change is the one that stays.
 */
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
  const rows = await db
    .selectFrom('kubernetes_request')
    .selectAll()
    .where('uid', '=', uid)
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
