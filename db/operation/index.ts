/** Operations that have ended, kept long after their Kubernetes objects are deleted. A row never changes. */
import { MACHINE_ID_PATTERN, SEEN_MACHINE_ID_PATTERNS } from '../../domain/managed-machine/rules.ts'
import type { FinishedOperation } from '../../domain/operations.ts'
import type { Queries } from '../kit/open.ts'
import { type ListPlace, newestFirst } from '../kit/page.ts'
import { selectWhere } from '../kit/where.ts'

/** Records the operation. The first record of an id stays. */
export async function recordOperation(
  db: Queries,
  accountId: string | null,
  operation: FinishedOperation,
): Promise<void> {
  await db
    .insertInto('operation_history')
    .values({
      id: operation.id,
      account_id: accountId,
      kind: operation.kind,
      status: operation.status,
      target_type: operation.target.type,
      target_id: operation.target.id,
      created_at: new Date(operation.createdAt),
      finished_at: new Date(operation.finishedAt),
      body: JSON.stringify(operation),
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Undefined for unknown ids and those of another account. */
export async function findOperation(
  db: Queries,
  accountId: string | null,
  id: string,
): Promise<FinishedOperation | undefined> {
  const row = await selectWhere(db, 'operation_history', { id })
    .select('body')
    .where('account_id', accountId === null ? 'is' : '=', accountId)
    .executeTakeFirst()
  return row?.body as FinishedOperation | undefined // written by recordOperation only
}

export interface OperationFilter {
  /** Only operations after it, newest first. */
  readonly after: ListPlace | undefined
  readonly ids: readonly string[] | undefined
  readonly status: string | undefined
  readonly target: FinishedOperation['target'] | undefined
  readonly limit: number
}

/** Of one account, newest first, without those of managed machines that customers do not see. */
export async function listOperationRows(
  db: Queries,
  accountId: string,
  { after, ids, status, target, limit }: OperationFilter,
): Promise<FinishedOperation[]> {
  if (ids?.length === 0) return []
  let query = selectWhere(db, 'operation_history', { account_id: accountId })
    .select('body')
    .where((row) =>
      row.or([
        row('target_id', 'not like', MACHINE_ID_PATTERN),
        row.and([
          row('target_type', '=', 'server'),
          row.or(SEEN_MACHINE_ID_PATTERNS.map((pattern) => row('target_id', 'like', pattern))),
        ]),
      ]),
    )
  if (ids !== undefined) query = query.where('id', 'in', ids)
  if (status !== undefined) query = query.where('status', '=', status)
  if (target !== undefined) query = query.where('target_type', '=', target.type).where('target_id', '=', target.id)
  const rows = await newestFirst(query, after, limit).execute()
  return rows.map((row) => row.body as FinishedOperation) // written by recordOperation only
}

/** Of any account, or of the platform. */
export async function findOperationOfAny(db: Queries, id: string): Promise<FinishedOperation | undefined> {
  const row = await selectWhere(db, 'operation_history', { id }).select('body').executeTakeFirst()
  return row?.body as FinishedOperation | undefined // written by recordOperation only
}

export interface OperatorFilter {
  /** Only operations after it, newest first. */
  readonly after: ListPlace | undefined
  readonly kind: string | undefined
  readonly status: string | undefined
  readonly target: FinishedOperation['target'] | undefined
  readonly createdBefore: Date | undefined
  readonly limit: number
}

/** Of all accounts and the platform, newest first. */
export async function listOperationRowsOfAll(
  db: Queries,
  { after, kind, status, target, createdBefore, limit }: OperatorFilter,
): Promise<FinishedOperation[]> {
  let query = db.selectFrom('operation_history').select('body')
  if (kind !== undefined) query = query.where('kind', '=', kind)
  if (status !== undefined) query = query.where('status', '=', status)
  if (target !== undefined) query = query.where('target_type', '=', target.type).where('target_id', '=', target.id)
  if (createdBefore !== undefined) query = query.where('created_at', '<', createdBefore)
  const rows = await newestFirst(query, after, limit).execute()
  return rows.map((row) => row.body as FinishedOperation) // written by recordOperation only
}
