/** Audit sinks of accounts: their rows, how far each has come, and the batch that it sends. A batch is chosen before it
 *  is sent and stays the same until it has arrived: whoever sends it again sends the same entries under the same id. */
import { type Selectable, sql, type Transaction } from 'kysely'
import type { AuditEntry } from '../../domain/audit/chain.ts'
import { type Batch, BATCH_ENTRIES_MAXIMUM } from '../../domain/audit-sink/rules.ts'
import { isUuid } from '../../domain/uuid.ts'
import type { Sealing } from '../../kit/sys/sealing.ts'
import { exportAudit } from '../audit/index.ts'
import type { Queries } from '../kit/open.ts'
import { type ListPlace, newestFirst } from '../kit/page.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'
import type { Tables } from '../tables.ts'

type Stored = Omit<Selectable<Tables['audit_sink']>, 'account_id'>

export interface AuditSinkRow extends Stored {
  /** What has not arrived yet. */
  readonly pending_entries: number
  /** Time of the oldest entry of these; null when there is none. */
  readonly oldest_pending_at: Date | null
}

const sinks = (queries: Queries, accountId: string) =>
  selectWhere(queries, 'audit_sink', { account_id: accountId })
    .selectAll()
    .select([
      sql<number>`greatest(0, (select sequence from audit_head head where head.account_id = audit_sink.account_id)
        - sent_sequence)`.as('pending_entries'),
      sql<Date | null>`(select entry.at from audit_entry entry where entry.account_id = audit_sink.account_id
        and entry.sequence > sent_sequence order by entry.sequence limit 1)`.as('oldest_pending_at'),
    ])

const rowOf = <Row extends { readonly account_id: string }>({ account_id: _account, ...row }: Row) => row

/** Newest first, after the position. */
export async function listAuditSinkRows(
  queries: Queries,
  accountId: string,
  after: ListPlace | undefined,
  limit: number,
): Promise<AuditSinkRow[]> {
  return (await newestFirst(sinks(queries, accountId), after, limit).execute()).map(rowOf)
}

/** Undefined for unknown ids and those of another account. */
export async function findAuditSink(
  queries: Queries,
  accountId: string,
  id: string,
): Promise<AuditSinkRow | undefined> {
  if (!isUuid(id)) return undefined
  const row = await sinks(queries, accountId).where('id', '=', id).executeTakeFirst()
  return row && rowOf(row)
}

/** A sink of the account with that name, other than this one. */
export const findSinkNamed = (
  queries: Queries,
  accountId: string,
  { id, name }: Pick<AuditSinkRow, 'id' | 'name'>,
): Promise<Pick<AuditSinkRow, 'id'> | undefined> =>
  selectWhere(queries, 'audit_sink', { account_id: accountId, name })
    .select('id')
    .where('id', '<>', id)
    .executeTakeFirst()

/** The name must be free: the caller holds the quota's lock. */
export async function insertAuditSink(queries: Queries, accountId: string, sink: AuditSinkRow): Promise<void> {
  const { pending_entries: _pending, oldest_pending_at: _oldest, ...row } = sink
  await queries
    .insertInto('audit_sink')
    .values({ account_id: accountId, ...row })
    .execute()
}

/** What people set: where it sends is another matter than how far it has come. It is tried again at once, and its
 *  failures are counted from then on. */
export async function updateAuditSink(queries: Queries, accountId: string, row: AuditSinkRow): Promise<void> {
  const { id, name, url, bucket, prefix, region, access_key_id, sealed_access_key, sealed_secret } = row
  const { enabled, generation, next_attempt_at } = row
  const set = {
    name,
    url,
    bucket,
    prefix,
    region,
    access_key_id,
    sealed_access_key,
    sealed_secret,
    enabled,
    generation,
  }
  await updateWhere(queries, 'audit_sink', { account_id: accountId, id })
    .set({ ...set, next_attempt_at, failures: 0, failing_since: null, noticed_at: null })
    .execute()
}

/** Locks the account's sinks until the transaction ends. */
export async function lockAuditSinks(tx: Transaction<Tables>, accountId: string): Promise<void> {
  await selectWhere(tx, 'audit_sink', { account_id: accountId }).select('id').orderBy('id').forUpdate().execute()
}

/** The row that was deleted. */
export async function removeAuditSink(
  queries: Queries,
  accountId: string,
  id: string,
): Promise<AuditSinkRow | undefined> {
  if (!isUuid(id)) return undefined
  const row = await deleteWhere(queries, 'audit_sink', { account_id: accountId, id }).returningAll().executeTakeFirst()
  return row && { ...rowOf(row), pending_entries: 0, oldest_pending_at: null }
}

/** Text to which the secrets of a sink are bound. */
const ownerOf = (accountId: string, id: string, what: 'access key' | 'secret'): string =>
  `audit_sink/${accountId}/${id}/${what}`

export const sealOfSink = (
  sealing: Sealing,
  accountId: string,
  id: string,
  what: 'access key' | 'secret',
  text: string,
): string => sealing.seal(text, ownerOf(accountId, id, what))

/** The secret that signs the batches of the sink. Throws when its key is missing. */
export const signingSecretOf = (
  sealing: Sealing,
  accountId: string,
  { id, sealed_secret }: Pick<AuditSinkRow, 'id' | 'sealed_secret'>,
): string => sealing.open(sealed_secret, ownerOf(accountId, id, 'secret'))

export interface SinkSecrets {
  /** Signs batches. */
  readonly secret: string
  /** Of the bucket; null for a collector. */
  readonly accessKey: string | null
}

/** Undefined when this deployment cannot open them. */
export function openSecrets(
  sealing: Sealing,
  { account_id, id, sealed_secret, sealed_access_key }: ClaimedSink,
): SinkSecrets | undefined {
  try {
    const secret = signingSecretOf(sealing, account_id, { id, sealed_secret })
    const owner = ownerOf(account_id, id, 'access key')
    return { secret, accessKey: sealed_access_key === null ? null : sealing.open(sealed_access_key, owner) }
  } catch {
    return undefined // a key is missing, or the row was restored without it
  }
}

export type ClaimedSink = Selectable<Tables['audit_sink']> & { readonly batch: Batch; readonly leasedUntil: Date }

/** Leases sinks that have something to send, with their batches: at most `limit`, first those of accounts that have
 *  fewer in progress. Entries that were pruned before they
 *  were sent are counted and skipped. */
export async function claimSinks(
  queries: Queries,
  { now, leasedUntil, limit }: { readonly now: Date; readonly leasedUntil: Date; readonly limit: number },
): Promise<readonly ClaimedSink[]> {
  const { rows } = await sql<Selectable<Tables['audit_sink']>>`update audit_sink sink set
      leased_until = ${leasedUntil},
      skipped_entries = sink.skipped_entries + greatest(head.pruned_through_sequence - sink.sent_sequence, 0),
      sent_sequence = greatest(sink.sent_sequence, head.pruned_through_sequence),
      batch_through = case when sink.batch_through > head.pruned_through_sequence then sink.batch_through
        else least(head.sequence, greatest(sink.sent_sequence, head.pruned_through_sequence)
          + ${BATCH_ENTRIES_MAXIMUM}::int) end
    from audit_head head
    where head.account_id = sink.account_id and (sink.account_id, sink.id) in (
      select due.account_id, due.id from audit_sink due
      join audit_head on audit_head.account_id = due.account_id
      where due.enabled and due.next_attempt_at <= ${now}
        and audit_head.sequence > greatest(due.sent_sequence, audit_head.pruned_through_sequence)
        and (due.leased_until is null or due.leased_until <= ${now})
      order by (select count(*) from audit_sink busy
          where busy.account_id = due.account_id and busy.leased_until > ${now}), due.next_attempt_at
      limit ${limit} for update of due skip locked)
    returning sink.*`.execute(queries)
  return rows.map((row) => ({
    ...row,
    leasedUntil,
    batch: { firstSequence: row.sent_sequence + 1, lastSequence: row.batch_through ?? row.sent_sequence },
  }))
}

/** The entries of the batch, oldest first. Fewer only when the log was pruned in the meantime. */
export const readBatch = async (queries: Queries, { account_id, batch }: ClaimedSink): Promise<readonly AuditEntry[]> =>
  (
    await exportAudit(queries, account_id, {
      after: batch.firstSequence - 1,
      limit: batch.lastSequence - batch.firstSequence + 1,
    })
  ).filter(({ sequence }) => sequence <= batch.lastSequence)

export interface SinkAttempt {
  readonly now: Date
  /** Null when there was no answer. */
  readonly status: number | null
  /** Null when the batch has arrived. */
  readonly error: string | null
  /** When something is sent next. */
  readonly nextAttemptAt: Date
}

const ERROR_CHARACTERS_MAXIMUM = 500

/** Records what came of an attempt. Answers since when nothing arrives, null after a batch; undefined when the lease
 *  was lost: then nothing is recorded. */
export async function recordSinkAttempt(
  queries: Queries,
  { account_id, id, leasedUntil, batch }: ClaimedSink,
  { now, status, error, nextAttemptAt }: SinkAttempt,
): Promise<{ readonly failingSince: Date | null; readonly noticedAt: Date | null } | undefined> {
  const leased = updateWhere(queries, 'audit_sink', { account_id, id, leased_until: leasedUntil })
  const common = { leased_until: null, next_attempt_at: nextAttemptAt, response_status: status }
  const row = await (error === null
    ? leased.set({
        ...common,
        sent_sequence: batch.lastSequence,
        batch_through: null,
        failures: 0,
        failing_since: null,
        noticed_at: null,
        error: null,
        sent_at: now,
      })
    : leased.set((columns) => ({
        ...common,
        failures: columns('failures', '+', 1),
        failing_since: sql<Date>`coalesce(failing_since, ${now})`,
        error: error.slice(0, ERROR_CHARACTERS_MAXIMUM),
      }))
  )
    .returning(['failing_since as failingSince', 'noticed_at as noticedAt'])
    .executeTakeFirst()
  return row
}

/** Notes that the owners were informed of the failures. */
export async function noteNotice(
  queries: Queries,
  { account_id, id }: Pick<ClaimedSink, 'account_id' | 'id'>,
  now: Date,
): Promise<void> {
  await updateWhere(queries, 'audit_sink', { account_id, id }).set({ noticed_at: now }).execute()
}

export interface SinkCounts {
  /** Age of the oldest entry that a sink has not sent, of sinks that do not fail. */
  readonly lateSeconds: number
  readonly failing: number
}

/** Over all accounts, for metrics. */
export async function countSinks(queries: Queries, now: Date): Promise<SinkCounts> {
  const { rows } = await sql<{ oldest: Date | null; failing: number }>`select
    (select min(entry.at) from audit_sink sink
      join audit_head head on head.account_id = sink.account_id and head.sequence > sink.sent_sequence
      join audit_entry entry on entry.account_id = sink.account_id
        and entry.sequence = greatest(sink.sent_sequence, head.pruned_through_sequence) + 1
      where sink.enabled and sink.failures = 0) as oldest,
    (select count(*)::int from audit_sink where enabled and failures > 0) as failing`.execute(queries)
  const [{ oldest, failing } = { oldest: null, failing: 0 }] = rows
  return { lateSeconds: oldest === null ? 0 : Math.max(0, (now.getTime() - oldest.getTime()) / 1_000), failing }
}
