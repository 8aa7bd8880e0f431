/** Operations that have ended, kept long after their Kubernetes objects are deleted. A row never changes. */
import { type Expression, expressionBuilder, type SqlBool } from 'kysely'
import { MACHINE_ID_PATTERN, SEEN_MACHINE_ID_PATTERNS } from '../../domain/managed-machine/rules.ts'
import type { FinishedOperation } from '../../domain/operations.ts'
import type { Queries } from '../kit/open.ts'
import { type ListPlace, newestFirst } from '../kit/page.ts'
import { selectWhere } from '../kit/where.ts'
import type { Tables } from '../tables.ts'

/** Records the operation. The first record of an id stays. In the same statement, it is noted for the webhooks of the
 *  account, if it has any. */
export async function recordOperation(
  db: Queries,
  accountId: string | null,
  operation: FinishedOperation,
): Promise<void> {
  await db
    .with('recorded', (query) =>
      query
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
        .returning(['id', 'account_id']),
    )
    .insertInto('webhook_ended_operation')
    .columns(['account_id', 'operation_id'])
    .expression((query) =>
      query
        .selectFrom('recorded')
        .innerJoin('webhook_account', 'webhook_account.account_id', 'recorded.account_id')
        .select(['webhook_account.account_id', 'recorded.id']),
    )
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

/** Only operations that match every member that is given. An index finds each. */
export interface OperationFilter {
  readonly ids?: readonly string[] | undefined
  readonly target?: FinishedOperation['target'] | undefined
  readonly from?: Date | undefined
  readonly before?: Date | undefined
}

interface OperationPage extends OperationFilter {
  /** Only operations after it, newest first. */
  readonly after: ListPlace | undefined
  readonly limit: number
}

/** The condition for rows; the same as `isListed` of an operation. */
const matching = ({ ids, target, from, before }: OperationFilter): Expression<SqlBool> => {
  const { and, eb } = expressionBuilder<Tables, 'operation_history'>()
  return and([
    ...(ids === undefined ? [] : [eb('id', 'in', ids)]),
    ...(target === undefined ? [] : [eb('target_type', '=', target.type), eb('target_id', '=', target.id)]),
    ...(from === undefined ? [] : [eb('created_at', '>=', from)]),
    ...(before === undefined ? [] : [eb('created_at', '<', before)]),
  ])
}

/** Of one account, newest first, without those of managed machines that customers do not see. */
export async function listOperationRows(
  db: Queries,
  accountId: string,
  { after, limit, ...filter }: OperationPage,
): Promise<FinishedOperation[]> {
  if (filter.ids?.length === 0) return []
  const query = selectWhere(db, 'operation_history', { account_id: accountId })
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
    .where(matching(filter))
  const rows = await newestFirst(query, after, limit).execute()
  return rows.map((row) => row.body as FinishedOperation) // written by recordOperation only
}

/** Of any account, or of the platform. */
export async function findOperationOfAny(db: Queries, id: string): Promise<FinishedOperation | undefined> {
  const row = await selectWhere(db, 'operation_history', { id }).select('body').executeTakeFirst()
  return row?.body as FinishedOperation | undefined // written by recordOperation only
}

/** Of all accounts and the platform, newest first. */
export async function listOperationRowsOfAll(
  db: Queries,
  { after, limit, ...filter }: OperationPage,
): Promise<FinishedOperation[]> {
  const query = db.selectFrom('operation_history').select('body').where(matching(filter))
  const rows = await newestFirst(query, after, limit).execute()
  return rows.map((row) => row.body as FinishedOperation) // written by recordOperation only
}
