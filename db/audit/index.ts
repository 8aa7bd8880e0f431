/** The audit log of every account: appending, reading, verifying, pruning. The chain's rules are in
 *  `domain/audit/chain.ts`.
 *  Invariant: the head row always names the newest entry; both change in one transaction. */
import { type RawBuilder, sql, type Transaction } from 'kysely'
import {
  type AuditEntry,
  type ChainBreak,
  type ChainHead,
  checkLink,
  entryOfRow,
  GENESIS_HASH,
  seal,
  type StoredEntry,
} from '../../domain/audit/chain.ts'
import type { UnsealedAuditEntry } from '../../domain/audit/entry.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { newUuid, type Random } from '../../kit/sys/random.ts'
import type { Database, Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'

const WALK_ENTRIES = 1000

/** The chain of staff and operators is stored like an account's, under an id that no account has. */
export const STAFF_CHAIN = '00000000-0000-0000-0000-000000000000'

export interface Sealing {
  readonly clock: Clock
  readonly random: Random
}

/** Appends the entry to its account's hash chain. Always the last statement of the transaction whose change it records:
 *  the head row stays locked until commit. Entries for several accounts are appended in the order of their account ids.
 *  The same action of the same request is written once, however often it is retried. */
export const appendAudit = (tx: Transaction<Tables>, entry: UnsealedAuditEntry, by: Sealing): Promise<void> =>
  appendAudits(tx, [entry], by)

/** As `appendAudit`, for entries of one account in their order. Several are refused when one of them was written
 *  before. */
export async function appendAudits(
  tx: Transaction<Tables>,
  entries: readonly UnsealedAuditEntry[],
  by: Sealing,
): Promise<void> {
  const [first] = entries
  if (first === undefined) return
  const { account_id } = first
  const before = await lockHead(tx, account_id)
  let head: ChainHead = { sequence: before.sequence, entryHash: before.entry_hash }
  const rows = entries.map((unsealed) => {
    const {
      entry: { id, sequence, at, action, request_id, previous_hash, entry_hash },
      body,
    } = seal(head, unsealed, { id: newUuid(by.random), at: by.clock.now() })
    head = { sequence, entryHash: entry_hash }
    return { account_id, sequence, id, at: new Date(at), action, request_id, body, previous_hash, entry_hash }
  })
  // The head is updated with the entries in one statement, which locks its row against other changes of the account.
  const moved = await tx
    .with('added', (query) =>
      query
        .insertInto('audit_entry')
        .values(rows)
        .onConflict((conflict) =>
          conflict.columns(['account_id', 'request_id', 'action']).where('request_id', '<>', sql.lit('')).doNothing(),
        ) // a parameter would hide the index's predicate from a prepared statement
        .returning('sequence'),
    )
    .updateTable('audit_head')
    .set({ sequence: head.sequence, entry_hash: head.entryHash })
    .where('account_id', '=', account_id)
    .where(({ selectFrom }) => selectFrom('added').select((added) => added.fn.countAll().as('count')), '=', rows.length)
    .executeTakeFirst()
  if (moved.numUpdatedRows === 0n && rows.length > 1) throw new Error('an entry among several was written before')
}

/** Whether the entry was appended before. */
export async function hasAudit(
  queries: Queries,
  { account_id, request_id, action }: UnsealedAuditEntry,
): Promise<boolean> {
  const found = await selectWhere(queries, 'audit_entry', { account_id, request_id, action })
    .select('id')
    .executeTakeFirst()
  return found !== undefined
}

async function lockHead(tx: Transaction<Tables>, accountId: string) {
  const find = () => selectWhere(tx, 'audit_head', { account_id: accountId }).selectAll().forUpdate()
  const head = await find().executeTakeFirst()
  if (head !== undefined) return head
  await openChain(tx, accountId)
  return await find().executeTakeFirstOrThrow()
}

/** Starts the account's chain; does nothing when it has one. */
export async function openChain(tx: Transaction<Tables>, accountId: string): Promise<void> {
  await tx
    .insertInto('audit_head')
    .values({
      account_id: accountId,
      entry_hash: GENESIS_HASH,
      pruned_through_hash: GENESIS_HASH,
      verified_through_hash: GENESIS_HASH,
      break_sequence: null,
      break_id: null,
      break_reason: null,
    })
    .onConflict((conflict) => conflict.column('account_id').doNothing())
    .execute()
}

export interface AuditPage {
  readonly actions?: readonly string[] | undefined
  readonly from?: Date | undefined
  readonly to?: Date | undefined
  /** Only entries below this sequence. */
  readonly before?: number | undefined
  readonly limit: number
}

/** Replicas stamp entries by their own clocks, which differ by less. */
const CLOCKS_MILLISECONDS = 3_600_000
const earlier = (time: Date, milliseconds: number): Date => new Date(time.getTime() - milliseconds)

/** Newest first. However long the chain is, it reads about as many entries as it returns, and what was written within
 *  an hour of `from` and `to`: actions and times are found by indexes. */
export async function listAudit(
  queries: Queries,
  accountId: string,
  { actions, from, to, before, limit }: AuditPage,
): Promise<AuditEntry[]> {
  const conditions = [sql`account_id = ${accountId}`]
  if (before !== undefined) conditions.push(sql`sequence < ${before}`)
  // Times increase along a chain, but for the difference of the clocks: a time is a place in it.
  const place = (condition: RawBuilder<unknown>, order: RawBuilder<unknown>) =>
    sql`(select sequence from audit_entry where account_id = ${accountId} and ${condition}
      order by at ${order} limit 1)`
  if (from !== undefined) {
    const first = place(sql`at < ${earlier(from, CLOCKS_MILLISECONDS)}`, sql`desc`)
    conditions.push(sql`at >= ${from}`, sql`sequence > coalesce(${first}, 0)`)
  }
  if (to !== undefined) {
    const last = place(sql`at >= ${earlier(to, -CLOCKS_MILLISECONDS)}`, sql`asc`)
    conditions.push(sql`at < ${to}`, sql`sequence < coalesce(${last}, ${Number.MAX_SAFE_INTEGER})`)
  }
  if (actions !== undefined) conditions.push(sql`action = asked.action`)
  const newest = sql<StoredEntry>`select sequence, body, entry_hash from audit_entry
    where ${sql.join(conditions, sql` and `)} order by sequence desc limit ${limit}`
  const page =
    actions === undefined
      ? newest
      : sql<StoredEntry>`select entry.* from unnest(${[...new Set(actions)]}::text[]) as asked (action)
          cross join lateral (${newest}) as entry order by sequence desc limit ${limit}`
  return (await page.execute(queries)).rows.map(entryOfRow)
}

/** Oldest first, above the sequence `after`. */
export async function exportAudit(
  queries: Queries,
  accountId: string,
  page: { readonly after: number; readonly limit: number },
): Promise<AuditEntry[]> {
  const rows = await selectWhere(queries, 'audit_entry', { account_id: accountId })
    .select(['body', 'entry_hash'])
    .where('sequence', '>', page.after)
    .orderBy('sequence')
    .limit(page.limit)
    .execute()
  return rows.map(entryOfRow)
}

/** The sequence of the newest entry of each of these accounts that has any. */
export async function auditSequences(
  queries: Queries,
  accountIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const rows = await queries
    .selectFrom('audit_head')
    .select(['account_id', 'sequence'])
    .where('account_id', 'in', accountIds)
    .execute()
  return new Map(rows.map((row) => [row.account_id, row.sequence]))
}

export interface AuditIntegrity {
  readonly status: 'verified' | 'unverified' | 'broken'
  readonly headSequence: number
  readonly verifiedThroughSequence: number
  readonly verifiedAt: Date | null
  readonly prunedThroughSequence: number
  readonly break: ChainBreak | null
}

/** Result of the last verification, and the length of the log since. */
export async function readIntegrity(queries: Queries, accountId: string): Promise<AuditIntegrity> {
  const head = await selectWhere(queries, 'audit_head', { account_id: accountId }).selectAll().executeTakeFirst()
  if (head === undefined)
    return {
      status: 'verified',
      headSequence: 0,
      verifiedThroughSequence: 0,
      verifiedAt: null,
      prunedThroughSequence: 0,
      break: null,
    }
  const found =
    head.break_sequence === null
      ? null
      : { sequence: head.break_sequence, id: head.break_id, reason: head.break_reason ?? '' }
  return {
    status: found !== null ? 'broken' : head.sequence > head.verified_through_sequence ? 'unverified' : 'verified',
    headSequence: head.sequence,
    verifiedThroughSequence: head.verified_through_sequence,
    verifiedAt: head.verified_at,
    prunedThroughSequence: head.pruned_through_sequence,
    break: found,
  }
}

/** Over all accounts: entries that no verification has reached yet, and accounts whose chain is broken; for metrics. */
export async function countUnverified(
  queries: Queries,
): Promise<{ readonly entries: number; readonly brokenAccounts: number }> {
  const counted = await queries
    .selectFrom('audit_head')
    .select([
      sql<string>`coalesce(sum(sequence - verified_through_sequence), 0)`.as('entries'),
      sql<string>`count(break_sequence)`.as('broken'),
    ])
    .executeTakeFirstOrThrow()
  return { entries: Number(counted.entries), brokenAccounts: Number(counted.broken) }
}

const BROKEN_CHAINS_MAXIMUM = 100

/** Chains that did not verify, the first hundred; null for that of staff. `countUnverified` has their number. */
export async function listBrokenChains(
  queries: Queries,
): Promise<readonly { readonly accountId: string | null; readonly reason: string }[]> {
  const rows = await queries
    .selectFrom('audit_head')
    .select(['account_id', 'break_reason'])
    .where('break_sequence', 'is not', null)
    .orderBy('account_id')
    .limit(BROKEN_CHAINS_MAXIMUM)
    .execute()
  return rows.map(({ account_id: accountId, break_reason: reason }) => ({
    accountId: accountId === STAFF_CHAIN ? null : accountId,
    reason: reason ?? '',
  }))
}

/** A statement from elsewhere about the chain: that its newest entry was this one, at that time. */
export interface WitnessedHead extends ChainHead {
  readonly at: Date
}

/** The newest entry of every chain that has one. */
export async function listHeads(queries: Queries): Promise<readonly (ChainHead & { readonly chain: string })[]> {
  const rows = await queries
    .selectFrom('audit_head')
    .select(['account_id as chain', 'sequence', 'entry_hash as entryHash'])
    .where('sequence', '>', 0)
    .execute()
  return rows
}

/** Whether the chain still has the entry, or has pruned it as intended. */
export async function hasEntry(queries: Queries, chain: string, { sequence, entryHash }: ChainHead): Promise<boolean> {
  const head = await selectWhere(queries, 'audit_head', { account_id: chain }).selectAll().executeTakeFirst()
  if (head === undefined) return false
  const pruned = head.pruned_through_sequence
  if (sequence <= pruned) return sequence < pruned || entryHash === head.pruned_through_hash
  const entry = await selectWhere(queries, 'audit_entry', { account_id: chain, sequence })
    .select('entry_hash')
    .executeTakeFirst()
  return entry?.entry_hash === entryHash
}

/** Walks all entries of the account's chain that are retained, and records the result. A break, once found, stays
 *  recorded. `witnessed` was read before. */
export async function verifyAudit(
  db: Database,
  accountId: string,
  clock: Clock,
  witnessed?: WitnessedHead,
): Promise<AuditIntegrity> {
  // A chain that is known from elsewhere, and of which nothing is left, is broken too.
  if (witnessed !== undefined) await db.transaction().execute((tx) => openChain(tx, accountId))
  const walked = await db
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute((tx) => walk(tx, accountId, witnessed))
  if (walked !== undefined) {
    await updateWhere(db, 'audit_head', { account_id: accountId })
      .set({
        verified_at: clock.now(),
        ...(walked.break === undefined
          ? { verified_through_sequence: walked.through.sequence, verified_through_hash: walked.through.entryHash }
          : { break_sequence: walked.break.sequence, break_id: walked.break.id, break_reason: walked.break.reason }),
      })
      .where('break_sequence', 'is', null)
      .execute()
  }
  return await readIntegrity(db, accountId)
}

/** One consistent read of the chain, from the first retained entry to its head. */
async function walk(
  tx: Transaction<Tables>,
  accountId: string,
  witnessed: WitnessedHead | undefined,
): Promise<{ through: ChainHead; break?: ChainBreak } | undefined> {
  const head = await selectWhere(tx, 'audit_head', { account_id: accountId }).selectAll().executeTakeFirst()
  if (head === undefined) return undefined
  let through: ChainHead = { sequence: head.pruned_through_sequence, entryHash: head.pruned_through_hash }
  const breakAt = (sequence: number, id: string | null, reason: string) => ({
    through,
    break: { sequence, id, reason },
  })
  const isAnother = (sequence: number, hash: string) => sequence === witnessed?.sequence && hash !== witnessed.entryHash
  if (isAnother(through.sequence, through.entryHash)) return breakAt(through.sequence, null, rewritten(witnessed))
  for (;;) {
    const rows: StoredEntry[] = await selectWhere(tx, 'audit_entry', { account_id: accountId })
      .select(['sequence', 'id', 'at', 'action', 'request_id', 'body', 'previous_hash', 'entry_hash'])
      .where('sequence', '>', through.sequence)
      .orderBy('sequence')
      .limit(WALK_ENTRIES)
      .execute()
    for (const row of rows) {
      const found = checkLink(through, row)
      if (found !== undefined) return { through, break: found }
      through = { sequence: row.sequence, entryHash: row.entry_hash }
      // An entry that was verified before and now has another hash that is consistent in itself was rewritten together
      // with its successors.
      if (row.sequence === head.verified_through_sequence && row.entry_hash !== head.verified_through_hash) {
        return breakAt(row.sequence, row.id, 'the entry is not the one that was verified before')
      }
      if (isAnother(row.sequence, row.entry_hash)) return breakAt(row.sequence, row.id, rewritten(witnessed))
    }
    if (rows.length < WALK_ENTRIES) break
  }
  if (through.sequence < Math.max(head.sequence, head.verified_through_sequence))
    return breakAt(through.sequence + 1, null, `entry ${through.sequence + 1} is missing at the end of the chain`)
  if (through.sequence > head.sequence || through.entryHash !== head.entry_hash)
    return breakAt(through.sequence, null, 'the head is not the newest entry')
  if (witnessed !== undefined && witnessed.sequence > through.sequence)
    return breakAt(
      through.sequence + 1,
      null,
      `entry ${through.sequence + 1} is missing: the checkpoint of ${witnessed.at.toISOString()} has it`,
    )
  return { through }
}

const rewritten = (witnessed: WitnessedHead | undefined): string =>
  `the entry is not the one of the checkpoint of ${witnessed?.at.toISOString()}: the log was written anew up to it`

/** Accounts whose chain no verification has looked at since `before`, oldest first. Broken chains are skipped. */
export async function accountsToVerify(queries: Queries, before: Date, limit: number): Promise<string[]> {
  const rows = await queries
    .selectFrom('audit_head')
    .select('account_id')
    .where('break_sequence', 'is', null)
    .where((where) => where.or([where('verified_at', 'is', null), where('verified_at', '<', before)]))
    .orderBy(sql`verified_at nulls first`)
    .limit(limit)
    .execute()
  return rows.map((row) => row.account_id)
}

/** Removes the entries older than `before` from the start of the chain, never beyond what was verified; the head stores
 *  the hash that the first kept entry names as its predecessor, from which the rest verifies. Returns how many were
 *  removed. */
export async function pruneAudit(db: Database, accountId: string, before: Date): Promise<number> {
  return await db.transaction().execute(async (tx) => {
    const head = await lockHead(tx, accountId)
    if (head.break_sequence !== null) return 0
    const firstKept = await selectWhere(tx, 'audit_entry', { account_id: accountId })
      .select((select) => select.fn.min('sequence').as('sequence'))
      .where('at', '>=', before)
      .executeTakeFirst()
    const through = Math.min(
      head.verified_through_sequence,
      firstKept?.sequence == null ? head.sequence : firstKept.sequence - 1,
    )
    if (through <= head.pruned_through_sequence) return 0
    const last = await selectWhere(tx, 'audit_entry', { account_id: accountId, sequence: through })
      .select('entry_hash')
      .executeTakeFirstOrThrow()
    await updateWhere(tx, 'audit_head', { account_id: accountId })
      .set({ pruned_through_sequence: through, pruned_through_hash: last.entry_hash })
      .execute()
    const removed = await deleteWhere(tx, 'audit_entry', { account_id: accountId })
      .where('sequence', '<=', through)
      .executeTakeFirst()
    return Number(removed.numDeletedRows)
  })
}

/** Accounts whose oldest entry is older than `before`. */
export async function accountsToPrune(queries: Queries, before: Date, limit: number): Promise<string[]> {
  const rows = await queries
    .selectFrom('audit_head as head')
    .innerJoin('audit_entry as entry', (join) =>
      join
        .onRef('entry.account_id', '=', 'head.account_id')
        .on(sql<boolean>`entry.sequence = head.pruned_through_sequence + 1`),
    )
    .select('head.account_id')
    .where('entry.at', '<', before)
    .where('head.break_sequence', 'is', null)
    .whereRef('head.verified_through_sequence', '>', 'head.pruned_through_sequence')
    .limit(limit)
    .execute()
  return rows.map((row) => row.account_id)
}
