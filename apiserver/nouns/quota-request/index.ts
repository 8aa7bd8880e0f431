/** Requests for larger quotas, and the decisions of staff. A decision, the new limit and the mail are one
 *  transaction. */
import type { z } from 'zod'
import type { Transaction } from 'kysely'
import { findQuota, setQuotaLimit } from '../../../db/account/index.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import {
  insertQuotaRequest,
  listQuotaRequests,
  lockQuotaRequest,
  type QuotaRequestRow,
  type QuotaRequestStep,
  readQuotaRequest,
  takeQuotaRequestOn,
} from '../../../db/quota-request/index.ts'
import type { Tables } from '../../../db/tables.ts'
import { type Mail, mail } from '../../../domain/mail/mails.ts'
import { requireLarger } from '../../../domain/quota-request/rules.ts'
import type { Answer, Call, Customer, Operator } from '../../../kit/http/call.ts'
import { customerEndpoint, type Endpoint, operatorEndpoint } from '../../../kit/http/endpoint.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import * as routes from '../../../resources/quota-request/index.ts'
import { auditEntryOf } from '../../kit/change/audit.ts'
import { type OperatorAct, auditStaff } from '../../kit/change/staff-audit.ts'
import { pageOfRows } from '../../kit/list/page.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { mailAll, mailStaff } from '../../kit/request-mails.ts'

const quotaRequestEndpoints = (parts: Parts): readonly Endpoint[] => [
  customerEndpoint(routes.listQuotaRequests, (call) =>
    pageOfRows(
      parts,
      call,
      async (after, count) =>
        (await listQuotaRequests(parts.db, { accountId: call.caller.accountId }, after, count)).map(placed),
      (rows) => rows.map(({ row }) => requestView(row)),
    ),
  ),
  customerEndpoint(routes.createQuotaRequest, (call) => create(parts, call)),
  customerEndpoint(routes.withdrawQuotaRequest, (call) => withdraw(parts, call)),
  operatorEndpoint(routes.listQuotaRequestsAsStaff, (call) =>
    pageOfRows(
      parts,
      call,
      async (after, count) =>
        (await listQuotaRequests(parts.db, { state: call.query.state }, after, count)).map(placed),
      (rows) => rows.map(({ row }) => staffRequestView(row)),
    ),
  ),
  operatorEndpoint(routes.getQuotaRequestAsStaff, async ({ params }) => ({
    status: 200,
    body: { request: staffRequestView(await readQuotaRequest(parts.db, params.id)) },
  })),
  operatorEndpoint(routes.reviewQuotaRequest, (call) =>
    decide(parts, call, 'quota_request.review', async () => ({ step: { state: 'in_review' } })),
  ),
  operatorEndpoint(routes.grantQuotaRequest, (call) => grant(parts, call)),
  operatorEndpoint(routes.declineQuotaRequest, (call) => {
    const { staff_reason: staffReason } = call.body
    return decide(parts, call, 'quota_request.decline', async ({ name }) => ({
      step: { state: 'declined', staffReason },
      mail: mail('quota_declined', { quota: name, reason: staffReason }),
    }))
  }),
]

const placed = (row: QuotaRequestRow) => ({ row, id: row.id, createdAt: row.created_at })

const requestView = (row: QuotaRequestRow): z.infer<typeof routes.QuotaRequest> => ({
  id: row.id,
  state: row.state,
  name: row.name,
  limit: row.limit,
  reason: row.reason,
  granted_limit: row.granted_limit,
  staff_reason: row.staff_reason,
  requested_by_email: row.requested_by_email,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  decided_at: row.decided_at?.toISOString() ?? null,
})
const staffRequestView = (row: QuotaRequestRow): z.infer<typeof routes.StaffQuotaRequest> => ({
  ...requestView(row),
  account_id: row.account_id,
})

/** Mails the staff who decide. */
async function create(parts: Parts, call: Call<typeof routes.createQuotaRequest, Customer>): Promise<Answer> {
  const {
    body: { name, limit, reason },
    caller: { accountId, email: requestedByEmail },
    now,
  } = call
  const id = newUuid(parts.random)
  return await parts.db.transaction().execute(async (tx) => {
    requireLarger(limit, (await findQuota(tx, accountId, name)).limit)
    const row = await insertQuotaRequest(tx, { id, accountId, name, limit, reason, requestedByEmail, now })
    await mailStaff(tx, parts, accountId, mail('quota_request', { request: id }))
    const detail = { name, limit: String(limit) }
    await appendAudit(tx, auditEntryOf(call, { resourceId: id, detail }), parts)
    return { status: 201, body: { request: requestView(row) } }
  })
}

const withdraw = (parts: Parts, call: Call<typeof routes.withdrawQuotaRequest, Customer>): Promise<Answer> =>
  parts.db.transaction().execute(async (tx) => {
    const before = await lockQuotaRequest(tx, call.params.id, call.caller.accountId)
    const row = await takeQuotaRequestOn(tx, before, { state: 'withdrawn', now: call.now })
    await appendAudit(tx, auditEntryOf(call, { resourceId: row.id }), parts)
    return { status: 200, body: { request: requestView(row) } }
  })

type Decision = OperatorAct & Pick<Call, 'now'> & { readonly params: { readonly id: string } }
interface Outcome {
  readonly step: Omit<QuotaRequestStep, 'now'>
  /** To the person who asked. */
  readonly mail?: Mail
  /** The limit before and after. */
  readonly changed?: readonly [before: number, after: number]
}

const decide = (
  parts: Parts,
  call: Decision,
  action: string,
  work: (before: QuotaRequestRow, tx: Transaction<Tables>) => Promise<Outcome>,
): Promise<Answer> =>
  parts.db.transaction().execute(async (tx) => {
    const before = await lockQuotaRequest(tx, call.params.id)
    const { step, mail: answer, changed } = await work(before, tx)
    const row = await takeQuotaRequestOn(tx, before, { ...step, now: call.now })
    if (answer !== undefined) await mailAll(tx, parts, [row.requested_by_email], answer)
    const changes = changed === undefined ? [] : [{ field: 'limit', before: changed[0], after: changed[1] }]
    await auditStaff(tx, parts, call, { action, resourceId: row.id, detail: { name: row.name }, changes }, [
      row.account_id,
    ])
    return { status: 200, body: { request: staffRequestView(row) } }
  })

const grant = (parts: Parts, call: Call<typeof routes.grantQuotaRequest, Operator>): Promise<Answer> =>
  decide(parts, call, 'quota_request.grant', async ({ account_id: accountId, name, limit: wanted }, tx) => {
    const limit = call.body.limit ?? wanted
    const before = await setQuotaLimit(tx, { accountId, name, limit })
    requireLarger(limit, before.limit)
    return {
      step: { state: 'granted', grantedLimit: limit },
      mail: mail('quota_granted', { quota: name, limit }),
      changed: [before.limit, limit],
    }
  })

export const quotaRequest = noun<Parts>({ name: 'quota_request', endpoints: quotaRequestEndpoints })
