/** Values that an object uses without a claim: a PostgreSQL that was restored from yesterday has forgotten the claims.
 *  Nobody else gets such a value while it is used; all allocations check this. */
import { sql } from 'kysely'
import type { Use } from '../../domain/claim/use.ts'
import type { Holding } from '../account/index.ts'
import type { Queries } from '../kit/open.ts'
import { deleteWhere, selectWhere } from '../kit/where.ts'

/** Reserves the values that the holder uses. Values that others use already stay theirs. */
export async function keepInUse(
  db: Queries,
  { accountId, holder }: Holding,
  uses: readonly Use[],
  now: Date,
): Promise<void> {
  if (uses.length === 0) return
  await db
    .insertInto('host_use')
    .values(uses.map((use) => ({ ...use, account_id: accountId, holder, seen_at: now })))
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Whether something is reserved for the holder. */
export const usesSomething = async (db: Queries, { accountId, holder }: Holding): Promise<boolean> =>
  (await selectWhere(db, 'host_use', { account_id: accountId, holder }).select('value').limit(1).executeTakeFirst()) !==
  undefined

/** Idempotent. */
export async function forgetUse(db: Queries, { accountId, holder }: Holding): Promise<void> {
  await deleteWhere(db, 'host_use', { account_id: accountId, holder }).execute()
}

/** The values of the kind that are used within the scope. */
export const listInUse = async (db: Queries, kind: Use['kind'], scope: string): Promise<readonly string[]> =>
  (await selectWhere(db, 'host_use', { kind, scope }).select('value').execute()).map(({ value }) => value)

/** Whether another holder uses the value. */
export const isInUseByOthers = async (
  db: Queries,
  { accountId, holder }: Holding,
  { kind, scope, value }: Use,
): Promise<boolean> =>
  (await selectWhere(db, 'host_use', { kind, scope, value })
    .select('value')
    .where(sql<boolean>`(account_id, holder) <> (${accountId}::uuid, ${holder})`)
    .executeTakeFirst()) !== undefined
