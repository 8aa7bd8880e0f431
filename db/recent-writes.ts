/** What was written to Kubernetes for an account lately. Each replica of the API server answers lists from a cache of its own, which
 *  follows the others' writes with a delay: by these rows it knows what it has to catch up with first. */
import type { Transaction } from 'kysely'
import type { Queries } from './open.ts'
import type { Tables } from './tables.ts'

export interface RecentWrite {
  readonly accountId: string
  readonly resource: { readonly type: string; readonly id: string }
  /** As Kubernetes answered the write: a decimal number that grows. */
  readonly resourceVersion: string
}

/** No cache is further behind for long: a watch that is later than this is broken, and the replica not ready. */
const RECENT_MILLISECONDS = 60_000

/** Notes the write; older notes of the account go. A later write of the same resource takes the place of the earlier. */
export async function recordWrite(tx: Transaction<Tables>, { accountId, resource: { type, id }, resourceVersion }: RecentWrite, now: Date): Promise<void> {
  await tx.deleteFrom('recent_write').where('account_id', '=', accountId).where('written_at', '<', since(now)).execute()
  const row = { resource_version: Number(resourceVersion), written_at: now }
  await tx.insertInto('recent_write').values({ account_id: accountId, resource_type: type, resource_id: id, ...row })
    .onConflict((conflict) => conflict.columns(['account_id', 'resource_type', 'resource_id']).doUpdateSet(row)
      .where((where) => where('recent_write.resource_version', '<', row.resource_version))).execute()
}

/** In any order, each object once with the newest version that was written. */
export async function listRecentWrites(db: Queries, accountId: string, type: string, now: Date): Promise<readonly RecentWrite[]> {
  const rows = await db.selectFrom('recent_write').select(['resource_id', 'resource_version']).where('account_id', '=', accountId).where('resource_type', '=', type)
    .where('written_at', '>=', since(now)).execute()
  return rows.map((row) => ({ accountId, resource: { type, id: row.resource_id }, resourceVersion: String(row.resource_version) }))
}

const since = (now: Date): Date => new Date(now.getTime() - RECENT_MILLISECONDS)
