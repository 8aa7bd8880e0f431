/** Changes that were accepted here and are about to be written to Kubernetes. An intent is deleted in the transaction
 *  that writes its audit entry: the process that deletes the row writes the entry, so that there is always exactly
 *  one. */
import { sql, type Transaction } from 'kysely'
import type { UnsealedAuditEntry } from '../../domain/audit/entry.ts'
import type { Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere } from '../kit/where.ts'

export interface ChangeIntent {
  readonly operationId: string
  readonly accountId: string
  readonly resource: { readonly type: string; readonly id: string }
  readonly createdAt: Date
  /** The audit entry for success; its outcome is replaced when the write did not happen. */
  readonly audit: UnsealedAuditEntry
}

/** Must be called in the transaction that makes the claims of the change. */
export const recordIntent = (tx: Transaction<Tables>, intent: ChangeIntent): Promise<void> =>
  recordIntents(tx, [intent])

const rowOf = ({ operationId, accountId, resource, createdAt, audit }: ChangeIntent) => ({
  operation_id: operationId,
  account_id: accountId,
  resource_type: resource.type,
  resource_id: resource.id,
  created_at: createdAt,
  audit: JSON.stringify(audit),
})

export async function recordIntents(tx: Transaction<Tables>, intents: readonly ChangeIntent[]): Promise<void> {
  await tx.insertInto('change_intent').values(intents.map(rowOf)).execute()
}

/** Records it unless it is recorded. Waits for a transaction that is recording it now; false when that one was
 *  committed. */
export async function ensureIntent(tx: Transaction<Tables>, intent: ChangeIntent): Promise<boolean> {
  const noted = await tx
    .insertInto('change_intent')
    .values(rowOf(intent))
    .onConflict((conflict) => conflict.column('operation_id').doNothing())
    .returning('operation_id')
    .executeTakeFirst()
  return noted !== undefined
}

/** Whether it is unresolved. */
export const hasIntent = async (db: Queries, operationId: string): Promise<boolean> =>
  (await selectWhere(db, 'change_intent', { operation_id: operationId }).select('operation_id').executeTakeFirst()) !==
  undefined

/** The resources that a change is under way for, of any type. */
export async function listBeingChanged(
  db: Queries,
  resources: readonly { readonly accountId: string; readonly name: string }[],
): Promise<ReadonlySet<string>> {
  const rows = await sql<{ account_id: string; resource_id: string }>`
    select distinct account_id, resource_id from change_intent join unnest(
      ${resources.map(({ accountId }) => accountId)}::uuid[], ${resources.map(({ name }) => name)}::text[]
    ) as asked (account, name) on account_id = account and resource_id = name`.execute(db)
  return new Set(rows.rows.map((row) => `${row.account_id}/${row.resource_id}`))
}

/** Whether another change also holds what a change has claimed and did not write: a change of the same kind that is
 *  under way, which releases it itself if it must, or one that was written, as `isDesired` says. The caller has closed
 *  its own intent and holds the lock of what is claimed. */
export async function isHeldByOthers(
  tx: Transaction<Tables>,
  { accountId, resource, action }: Pick<ChangeIntent, 'accountId' | 'resource'> & { readonly action: string },
  isDesired: boolean,
): Promise<boolean> {
  const other = await selectWhere(tx, 'change_intent', {
    account_id: accountId,
    resource_type: resource.type,
    resource_id: resource.id,
  })
    .select('operation_id')
    .where(sql`audit ->> 'action'`, '=', action)
    .executeTakeFirst()
  return other !== undefined || isDesired
}

/** Deletes the intent. Returns false when it was resolved elsewhere; the caller must then do nothing for it. */
export const closeIntent = async (tx: Transaction<Tables>, operationId: string): Promise<boolean> =>
  (await closeIntents(tx, [operationId])).has(operationId)

/** Deletes the intents. Returns those that were not resolved elsewhere; the caller acts for these only. */
export async function closeIntents(
  tx: Transaction<Tables>,
  operationIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const closed = await tx
    .deleteFrom('change_intent')
    .where('operation_id', 'in', operationIds)
    .returning('operation_id')
    .execute()
  return new Set(closed.map((row) => row.operation_id))
}

/** Deletes the intent and returns its audit entry for success; undefined when it was resolved elsewhere. */
export async function takeIntent(
  tx: Transaction<Tables>,
  operationId: string,
): Promise<UnsealedAuditEntry | undefined> {
  const intent = await deleteWhere(tx, 'change_intent', { operation_id: operationId })
    .returning('audit')
    .executeTakeFirst()
  return intent?.audit as UnsealedAuditEntry | undefined // written by recordIntent only
}

/** The position of an intent in the order of `listIntents`. */
export type IntentPosition = Pick<ChangeIntent, 'createdAt' | 'operationId'>

/** Intents created before the given time, oldest first; those that come after `after` when it is given. */
export async function listIntents(
  db: Queries,
  createdBefore: Date,
  { limit, after }: { readonly limit: number; readonly after?: IntentPosition | undefined },
): Promise<readonly ChangeIntent[]> {
  const old = db.selectFrom('change_intent').selectAll().where('created_at', '<', createdBefore)
  const listed =
    after === undefined
      ? old
      : old.where((row) =>
          row(row.refTuple('created_at', 'operation_id'), '>', row.tuple(after.createdAt, after.operationId)),
        )
  const rows = await listed.orderBy('created_at').orderBy('operation_id').limit(limit).execute()
  return rows.map((row) => ({
    operationId: row.operation_id,
    accountId: row.account_id,
    resource: { type: row.resource_type, id: row.resource_id },
    createdAt: row.created_at,
    audit: row.audit as UnsealedAuditEntry, // written by recordIntent only
  }))
}
