/** Changes that were accepted here and are about to be written to Kubernetes. An intent goes in the transaction that
 *  writes its
 *  audit entry; whoever deletes the row writes the entry, so that there is always exactly one. */
import type { Transaction } from 'kysely'
import type { UnsealedAuditEntry } from '../../domain/audit.ts'
import type { Queries } from '../open.ts'
import type { Tables } from '../tables.ts'

export interface ChangeIntent {
  readonly operationId: string
  readonly accountId: string
  readonly resource: { readonly type: string; readonly id: string }
  readonly createdAt: Date
  /** The entry of the success; its outcome is changed when the write did not happen. */
  readonly audit: UnsealedAuditEntry
}

/** In the transaction that makes the claims of the change. */
export const recordIntent = (tx: Transaction<Tables>, intent: ChangeIntent): Promise<void> =>
  recordIntents(tx, [intent])

export async function recordIntents(tx: Transaction<Tables>, intents: readonly ChangeIntent[]): Promise<void> {
  await tx
    .insertInto('change_intent')
    .values(
      intents.map(({ operationId, accountId, resource, createdAt, audit }) => ({
        operation_id: operationId,
        account_id: accountId,
        resource_type: resource.type,
        resource_id: resource.id,
        created_at: createdAt,
        audit: JSON.stringify(audit),
      })),
    )
    .execute()
}

/** Whether it is unresolved. */
export const hasIntent = async (db: Queries, operationId: string): Promise<boolean> =>
  (await db
    .selectFrom('change_intent')
    .select('operation_id')
    .where('operation_id', '=', operationId)
    .executeTakeFirst()) !== undefined

/** Removes the intent. False when it was resolved elsewhere: then nothing more may be done for it. */
export const closeIntent = async (tx: Transaction<Tables>, operationId: string): Promise<boolean> =>
  (await closeIntents(tx, [operationId])).has(operationId)

/** Removes the intents. Answers those that were not resolved elsewhere: only for these may anything be done. */
export async function closeIntents(
  tx: Transaction<Tables>,
  operationIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const settled = await tx
    .deleteFrom('change_intent')
    .where('operation_id', 'in', operationIds)
    .returning('operation_id')
    .execute()
  return new Set(settled.map((row) => row.operation_id))
}

/** Removes the intent and answers the entry of its success; undefined when it was resolved elsewhere. */
export async function takeIntent(
  tx: Transaction<Tables>,
  operationId: string,
): Promise<UnsealedAuditEntry | undefined> {
  const taken = await tx
    .deleteFrom('change_intent')
    .where('operation_id', '=', operationId)
    .returning('audit')
    .executeTakeFirst()
  return taken?.audit as UnsealedAuditEntry | undefined // written by recordIntent only
}

/** Intents made before the given time, oldest first. */
export async function listIntents(db: Queries, createdBefore: Date, limit: number): Promise<readonly ChangeIntent[]> {
  const rows = await db
    .selectFrom('change_intent')
    .selectAll()
    .where('created_at', '<', createdBefore)
    .orderBy('created_at')
    .limit(limit)
    .execute()
  return rows.map((row) => ({
    operationId: row.operation_id,
    accountId: row.account_id,
    resource: { type: row.resource_type, id: row.resource_id },
    createdAt: row.created_at,
    audit: row.audit as UnsealedAuditEntry, // written by recordIntent only
  }))
}
