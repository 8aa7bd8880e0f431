/** Requests for larger quotas. Ids that are not UUIDs are unknown. */
import type { Selectable, Transaction } from 'kysely'
import { conflict, notFound } from '../../domain/problem.ts'
import {
  type QuotaRequestState,
  requireStep,
  UNDECIDED_MAXIMUM,
  UNDECIDED_STATES,
} from '../../domain/quota-request/rules.ts'
import type { QuotaName } from '../../domain/account/quota.ts'
import { isUuid } from '../../domain/uuid.ts'
import type { Queries } from '../kit/open.ts'
import { type ListPlace, newestFirst } from '../kit/page.ts'
import { selectWhere, updateWhere } from '../kit/where.ts'
import type { Tables } from '../tables.ts'

export type QuotaRequestRow = Selectable<Tables['quota_request']>

/** Newest first, after the given position; of all accounts unless one is named. */
export async function listQuotaRequests(
  queries: Queries,
  { accountId, state }: { readonly accountId?: string; readonly state?: QuotaRequestState | undefined },
  after: ListPlace | undefined,
  limit: number,
): Promise<QuotaRequestRow[]> {
  let query = queries.selectFrom('quota_request').selectAll()
  if (accountId !== undefined) query = query.where('account_id', '=', accountId)
  if (state !== undefined) query = query.where('state', '=', state)
  return newestFirst(query, after, limit).execute()
}

/** Throws 404 for one that does not exist. */
export async function readQuotaRequest(queries: Queries, id: string): Promise<QuotaRequestRow> {
  const row = isUuid(id)
    ? await selectWhere(queries, 'quota_request', { id }).selectAll().executeTakeFirst()
    : undefined
  if (row === undefined) throw notFound('quota request')
  return row
}

export interface NewQuotaRequest {
  readonly id: string
  readonly accountId: string
  readonly name: QuotaName
  readonly limit: number
  readonly reason: string
  readonly requestedByEmail: string
  readonly now: Date
}

/** Throws 409 while another request for the quota is undecided, and when the account has too many of them. Requests of
 *  an account are made one after the other. */
export async function insertQuotaRequest(tx: Transaction<Tables>, request: NewQuotaRequest): Promise<QuotaRequestRow> {
  await selectWhere(tx, 'account', { id: request.accountId }).select('id').forNoKeyUpdate().execute()
  const undecided = await selectWhere(tx, 'quota_request', { account_id: request.accountId })
    .select('name')
    .where('state', 'in', UNDECIDED_STATES)
    .execute()
  if (undecided.some(({ name }) => name === request.name))
    throw conflict('state_not_allowed', 'Another request for this quota is open. Withdraw it, or wait for the answer.')
  if (undecided.length >= UNDECIDED_MAXIMUM)
    throw conflict(
      'state_not_allowed',
      `The account has ${UNDECIDED_MAXIMUM} open requests for quotas. Withdraw one, or wait for an answer.`,
    )
  return tx
    .insertInto('quota_request')
    .values({
      id: request.id,
      account_id: request.accountId,
      state: 'open',
      name: request.name,
      limit: request.limit,
      reason: request.reason,
      requested_by_email: request.requestedByEmail,
      created_at: request.now,
      updated_at: request.now,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** The request, locked until the transaction ends. Throws 404 for one that does not exist or is another account's. */
export async function lockQuotaRequest(
  tx: Transaction<Tables>,
  id: string,
  accountId?: string,
): Promise<QuotaRequestRow> {
  const row = isUuid(id)
    ? await selectWhere(tx, 'quota_request', { id }).selectAll().forUpdate().executeTakeFirst()
    : undefined
  if (row === undefined || (accountId !== undefined && row.account_id !== accountId)) throw notFound('quota request')
  return row
}

export interface QuotaRequestStep {
  readonly state: Exclude<QuotaRequestState, 'open'>
  /** Of one that is granted. */
  readonly grantedLimit?: number
  /** Of one that is declined. */
  readonly staffReason?: string
  readonly now: Date
}

/** Changes the state of a locked request. Throws 409 when its state does not allow it. */
export async function takeQuotaRequestOn(
  tx: Transaction<Tables>,
  before: QuotaRequestRow,
  { state, grantedLimit, staffReason, now }: QuotaRequestStep,
): Promise<QuotaRequestRow> {
  requireStep(before.state, state)
  return updateWhere(tx, 'quota_request', { id: before.id })
    .set({
      state,
      granted_limit: grantedLimit ?? null,
      staff_reason: staffReason ?? null,
      updated_at: now,
      decided_at: state === 'in_review' ? null : now,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
}
