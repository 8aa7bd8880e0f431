/** What an object uses and has no claims for: a PostgreSQL of yesterday has forgotten them. It is given to nobody else
 *  while that lasts; whoever allocates asks here. */
import { sql } from 'kysely'
import type { Use } from '../../domain/claim/use.ts'
import type { Holding } from '../account/index.ts'
import type { Queries } from '../kit/open.ts'
import { deleteWhere, selectWhere } from '../kit/where.ts'

/** Keeps what the holder uses from others. What others use already stays theirs. */
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

/** Whether something is kept for the holder. */
export const usesSomething = async (db: Queries, { accountId, holder }: Holding): Promise<boolean> =>
  (await selectWhere(db, 'host_use', { account_id: accountId, holder }).select('value').limit(1).executeTakeFirst()) !==
  undefined

/** Idempotent. */
export async function forgetUse(db: Queries, { accountId, holder }: Holding): Promise<void> {
  await deleteWhere(db, 'host_use', { account_id: accountId, holder }).execute()
}

/** Those of the kind that somebody uses within the scope. */
export const listInUse = async (db: Queries, kind: Use['kind'], scope: string): Promise<readonly string[]> =>
  (await selectWhere(db, 'host_use', { kind, scope }).select('value').execute()).map(({ value }) => value)

/** Whether another one than the holder uses the value. */
export const isInUseByOthers = async (
  db: Queries,
  { accountId, holder }: Holding,
  { kind, scope, value }: Use,
): Promise<boolean> =>
  (await selectWhere(db, 'host_use', { kind, scope, value })
    .select('value')
    .where(sql<boolean>`(account_id, holder) <> (${accountId}::uuid, ${holder})`)
    .executeTakeFirst()) !== undefined
