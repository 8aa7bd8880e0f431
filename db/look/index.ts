/** The look: values that objects use without a claim in PostgreSQL are recorded before anything unique is allocated. A
 *  PostgreSQL that was restored has forgotten claims, and nothing tells it so; but it was started, or its rows were
 *  rewritten. Therefore each start needs a new look, whatever its reason. */
import { sql, type Transaction } from 'kysely'
import type { GuestOnNode } from '../../domain/node/placement.ts'
import { Unavailable } from '../../domain/problem.ts'
import type { HeldUse } from '../../domain/claim/use.ts'
import type { Database, Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { countForgottenRoom } from './room.ts'
import { selectWhere } from '../kit/where.ts'

export { findForgottenRoom, writeForgottenRoom } from './room.ts'

/** The running database: a different value after each start, and after each copy or new creation. */
const DATABASE = sql<string>`(select pg_postmaster_start_time()::text || ' ' || oid::text from pg_database
  where datname = current_database())`
/** The id of the writing transaction. The row stores it; after loading a dump, the stored id differs from the row's
 *  actual one. */
const WRITER = sql<string>`pg_current_xact_id()::xid::text`

/** Whether the values in use were recorded since PostgreSQL was started. */
export const wasLookedAt = async (db: Queries): Promise<boolean> =>
  (await selectWhere(db, 'look', { database: DATABASE, writer: sql<string>`xmin::text` })
    .select('database')
    .executeTakeFirst()) !== undefined

const sure = new WeakSet<Transaction<Tables>>()

/** Called before anything unique is allocated. Throws Unavailable until there was a look. */
export async function requireLook(tx: Transaction<Tables>): Promise<void> {
  if (sure.has(tx)) return
  if (!(await wasLookedAt(tx))) throw new Unavailable('what is in use, which is not known yet')
  sure.add(tx)
}

/** Maximum of rows in one statement. */
const BATCH = 1_000

/** Only both fields together are unique: objects of different accounts may have the same name. */
type Holder = Pick<HeldUse, 'accountId' | 'holder'>

/** Reserves what is used without a claim, including the room of guests, and records that this was done. Returns the
 *  holder of each such value. */
export async function noteLook(
  db: Database,
  uses: readonly HeldUse[],
  now: Date,
  guests: readonly GuestOnNode[] = [],
): Promise<readonly Holder[]> {
  return await db.transaction().execute(async (tx) => {
    const found: Holder[] = []
    for (let index = 0; index < uses.length; index += BATCH)
      found.push(...(await keepUnclaimed(tx, uses.slice(index, index + BATCH), now)))
    await countForgottenRoom(tx, guests)
    await sql`insert into look (id, database, writer, at) values (true, ${DATABASE}, ${WRITER}, ${now}::timestamptz)
      on conflict (id) do update set database = excluded.database, writer = excluded.writer, at = excluded.at`.execute(
      tx,
    )
    return found
  })
}

async function keepUnclaimed(tx: Transaction<Tables>, uses: readonly HeldUse[], now: Date): Promise<readonly Holder[]> {
  // What an earlier object of the name used and nobody has released is of this one now.
  await sql`update host_use set uid = used.uid
    from unnest(
      ${uses.map(({ accountId }) => accountId)}::uuid[], ${uses.map(({ holder }) => holder)}::text[],
      ${uses.map(({ uid }) => uid)}::text[]
    ) as used (account_id, holder, uid)
    where (host_use.account_id, host_use.holder) = (used.account_id, used.holder)
      and host_use.uid <> used.uid`.execute(tx)
  const { rows } = await sql<Holder>`
    insert into host_use (kind, scope, value, account_id, holder, uid, seen_at)
    select kind, scope, value, account_id, holder, uid, ${now}::timestamptz
    from unnest(
      ${uses.map(({ kind }) => kind)}::text[], ${uses.map(({ scope }) => scope)}::text[],
      ${uses.map(({ value }) => value)}::text[], ${uses.map(({ accountId }) => accountId)}::uuid[],
      ${uses.map(({ holder }) => holder)}::text[], ${uses.map(({ uid }) => uid)}::text[]
    ) as used (kind, scope, value, account_id, holder, uid)
    where not exists (
      select from address_claim claim
      where claim.kind = used.kind and claim.scope = used.scope and claim.value = used.value
    ) and not exists (
      select from public_address claim
      where used.kind = 'address' and claim.address = used.value and claim.holder is not null
    ) and not exists (
      select from network_interface claim
      where used.kind = 'network' and claim.network_id = used.scope
        and (claim.ipv4_address = used.value or claim.ipv6_address = used.value)
    ) and not exists (
      select from shared_address claim
      where used.kind = 'network' and claim.network_id = used.scope
        and (claim.ipv4_address = used.value or claim.ipv6_address = used.value)
    )
    on conflict do nothing returning account_id as "accountId", holder`.execute(tx)
  return rows
}
