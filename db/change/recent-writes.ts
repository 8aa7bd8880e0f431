/** Recent writes to Kubernetes, by account. Each replica of the API server lists from its own cache, which sees the
 *  writes of other replicas with a delay: these rows name the writes that it must read before it answers. */
import type { Transaction } from 'kysely'
import type { Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere } from '../kit/where.ts'

export interface RecentWrite {
  readonly accountId: string
  readonly resource: { readonly type: string; readonly id: string }
  /** The version that Kubernetes returned for the write: a decimal number that grows. */
  readonly resourceVersion: string
}

/** The maximum delay of a cache: a watch with a longer delay is broken, and its replica not ready. */
const RECENT_MILLISECONDS = 60_000

/** Records the writes of one account and deletes its older rows. A later write of the same resource replaces the
 *  earlier one. */
export async function recordWrites(tx: Transaction<Tables>, writes: readonly RecentWrite[], now: Date): Promise<void> {
  const inOrder = writes.toSorted((a, b) => Number(a.resourceVersion) - Number(b.resourceVersion))
  // a statement may touch a row once
  const newest = new Map(inOrder.map((write) => [`${write.resource.type}/${write.resource.id}`, write]))
  // In the order of their keys, as in every transaction.
  const rows = [...newest]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(
      ([
        ,
        {
          accountId,
          resource: { type, id },
          resourceVersion,
        },
      ]) => ({
        account_id: accountId,
        resource_type: type,
        resource_id: id,
        resource_version: Number(resourceVersion),
        written_at: now,
      }),
    )
  const [first] = rows
  if (first === undefined) return
  await deleteWhere(tx, 'recent_write', { account_id: first.account_id }).where('written_at', '<', since(now)).execute()
  await tx
    .insertInto('recent_write')
    .values(rows)
    .onConflict((conflict) =>
      conflict
        .columns(['account_id', 'resource_type', 'resource_id'])
        .doUpdateSet(({ ref }) => ({
          resource_version: ref('excluded.resource_version'),
          written_at: ref('excluded.written_at'),
        }))
        .whereRef('recent_write.resource_version', '<', 'excluded.resource_version'),
    )
    .execute()
}

/** In any order, each object once with the newest version that was written. */
export async function listRecentWrites(
  db: Queries,
  accountId: string,
  type: string,
  now: Date,
): Promise<readonly RecentWrite[]> {
  const rows = await selectWhere(db, 'recent_write', { account_id: accountId, resource_type: type })
    .select(['resource_id', 'resource_version'])
    .where('written_at', '>=', since(now))
    .execute()
  return rows.map((row) => ({
    accountId,
    resource: { type, id: row.resource_id },
    resourceVersion: String(row.resource_version),
  }))
}

const since = (now: Date): Date => new Date(now.getTime() - RECENT_MILLISECONDS)
