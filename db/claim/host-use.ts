/** Values that an object uses without a claim: a PostgreSQL that was restored from yesterday has forgotten the claims.
 *  Nobody else gets such a value while it is used; all allocations check this. */
import { sql } from 'kysely'
import type { Use } from '../../domain/claim/use.ts'
import type { Holding } from '../account/index.ts'
import type { Queries } from '../kit/open.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'

/** The holder, as the object with this uid. */
export interface User extends Holding {
  readonly uid: string
}

/** Reserves the values that the holder uses. Values that others use already stay theirs; those of an earlier object of
 *  the holder's name are from now on of this one. */
export async function keepInUse(
  db: Queries,
  { accountId, holder, uid }: User,
  uses: readonly Use[],
  now: Date,
): Promise<void> {
  if (uses.length === 0) return
  await updateWhere(db, 'host_use', { account_id: accountId, holder }).set({ uid }).execute()
  await db
    .insertInto('host_use')
    .values(uses.map((use) => ({ ...use, account_id: accountId, holder, uid, seen_at: now })))
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Whether something is reserved for the holder. */
export const usesSomething = async (db: Queries, { accountId, holder }: Holding): Promise<boolean> =>
  (await selectWhere(db, 'host_use', { account_id: accountId, holder }).select('value').limit(1).executeTakeFirst()) !==
  undefined

/** Users whose deletion was ordered, carried out or not, with the zones of the values that are kept for them; without
 *  zones when none of the values says one. */
export async function listDeletedUsers(
  db: Queries,
): Promise<readonly (User & { readonly zones: readonly string[] })[]> {
  const { rows } = await sql<User & { readonly zones: readonly string[] }>`
    select used.account_id as "accountId", used.holder, used.uid,
      array_remove(array_agg(distinct case used.kind
        when 'hostname' then split_part(used.scope, '/', 2)
        when 'address' then public_pool.zone
        when 'network' then network.zone end), null) as zones
    from host_use as used
    left join public_pool on case when used.kind = 'address' then used.value::inet <<= public_pool.cidr end
    left join network on used.kind = 'network'
      and network.account_id = used.account_id and network.id::text = used.scope
    where used.uid <> '' and exists (select from removal where removal.uid = used.uid)
    group by used.account_id, used.holder, used.uid`.execute(db)
  return rows
}

/** Releases what was reserved for the object, and not for another one of its name. Idempotent. */
export async function forgetUseOf(db: Queries, { accountId, holder, uid }: User): Promise<void> {
  await deleteWhere(db, 'host_use', { account_id: accountId, holder, uid }).execute()
}

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
