/** Idempotency-Keys of accounts and operators with the answers to their requests. A row without a status belongs to a
 *  request in progress. */
import type { Database } from '../kit/open.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'

/** Whose key it is. */
export type KeyHolder = { readonly accountId: string } | { readonly operator: string }

export interface KeyOf {
  readonly holder: KeyHolder
  readonly key: string
}

export type KeyedAnswer =
  | { readonly is: 'new' }
  | { readonly is: 'open'; readonly hash: string }
  | { readonly is: 'answered'; readonly hash: string; readonly status: number; readonly body: string }

const KEPT_MILLISECONDS = 24 * 3_600_000

const columnsOf = ({ holder, key }: KeyOf) =>
  'accountId' in holder ? { account_id: holder.accountId, key } : { operator: holder.operator, key }

/** Takes the key for the request with this hash; returns the holder when it is taken. */
export async function takeIdempotencyKey(db: Database, keyOf: KeyOf, hash: string, now: Date): Promise<KeyedAnswer> {
  const columns = columnsOf(keyOf)
  const row = { ...columns, request_hash: hash, created_at: now, status: null, body: null }
  const oldest = new Date(now.getTime() - KEPT_MILLISECONDS)
  // One statement, so that of two concurrent requests one is first. An expired key counts as new.
  const newKey = await db
    .insertInto('idempotency_key')
    .values(row)
    .onConflict((on) =>
      on
        .columns('operator' in columns ? ['operator', 'key'] : ['account_id', 'key'])
        .doUpdateSet(row)
        .where('idempotency_key.created_at', '<', oldest),
    )
    .returning('key')
    .executeTakeFirst()
  if (newKey !== undefined) return { is: 'new' }
  const found = await selectWhere(db, 'idempotency_key', columns)
    .select(['request_hash', 'status', 'body'])
    .executeTakeFirst()
  if (found === undefined) return takeIdempotencyKey(db, keyOf, hash, now) // released in between
  const { request_hash, status, body } = found
  return status === null || body === null
    ? { is: 'open', hash: request_hash }
    : { is: 'answered', hash: request_hash, status, body }
}

/** Stores the answer, which is returned when the key is sent again. */
export async function answerIdempotencyKey(
  db: Database,
  key: KeyOf,
  { status, body }: { readonly status: number; readonly body: string },
): Promise<void> {
  await updateWhere(db, 'idempotency_key', columnsOf(key)).set({ status, body }).execute()
}

/** Releases the key of a request that failed; an answered one stays. */
export async function releaseIdempotencyKey(db: Database, key: KeyOf): Promise<void> {
  await deleteWhere(db, 'idempotency_key', columnsOf(key)).where('status', 'is', null).execute()
}

/** Keys older than a day. */
export async function forgetIdempotencyKeys(db: Database, now: Date): Promise<void> {
  await db
    .deleteFrom('idempotency_key')
    .where('created_at', '<', new Date(now.getTime() - KEPT_MILLISECONDS))
    .execute()
}
