/** Requests of an account for larger quotas, and the decisions of staff. Stored in PostgreSQL. */
import { z } from 'zod'
import { DEFAULT_QUOTAS } from '../../domain/account/quota.ts'
import { LIMIT_MAXIMUM, QUOTA_REQUEST_STATES, REASON_LENGTH_MAXIMUM } from '../../domain/quota-request/rules.ts'
import { DateTime, pageOf, PageQuery, Uuid } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'

const Reason = z.string().trim().min(1).max(REASON_LENGTH_MAXIMUM)
const Limit = z.int().min(1).max(LIMIT_MAXIMUM)

const REQUEST = {
  id: Uuid,
  state: z
    .enum(QUOTA_REQUEST_STATES)
    .describe('open waits for staff, in_review is being worked on; the other states are final.'),
  name: z.string().describe('Name of the quota.'),
  limit: z.int().describe('Requested limit.'),
  reason: z.string().describe('Reason of the account.'),
  granted_limit: z.int().nullable().describe('Limit that staff have set; null unless it was granted.'),
  staff_reason: z.string().nullable().describe('Reason for declining; null otherwise.'),
  requested_by_email: z.string(),
  created_at: DateTime,
  updated_at: DateTime,
  decided_at: DateTime.nullable().describe('Time when it was granted, declined or withdrawn.'),
}
export const QuotaRequest = z.strictObject(REQUEST).meta({ id: 'QuotaRequest' })
export const StaffQuotaRequest = z.strictObject({ ...REQUEST, account_id: Uuid }).meta({ id: 'StaffQuotaRequest' })
const RequestEnvelope = z.strictObject({ request: QuotaRequest })
const StaffRequestEnvelope = z.strictObject({ request: StaffQuotaRequest })
const IdParams = z.strictObject({ id: z.string().max(253) })

const verbs = routesUnder({ path: '/v1/account/quota-requests' })

export const listQuotaRequests = verbs.get('list_quota_requests', '', {
  summary: 'List requests for larger quotas',
  description: 'Newest first.',
  query: PageQuery,
  answers: { 200: pageOf(QuotaRequest) },
})
export const createQuotaRequest = verbs.post('create_quota_request', '', {
  summary: 'Request a larger quota',
  description:
    'Staff decide on the request, and mail the person who made it. An account can have one undecided request for a ' +
    'quota, and five altogether, and make 20 an hour. Staff get a mail about the first of an hour.',
  needs: 'verified',
  audit: 'quota_request.create',
  rates: [{ name: 'quota_request', by: 'account', perHour: 20 }],
  body: z.strictObject({
    // The names of the table are the keys of this object.
    name: z.enum(Object.keys(DEFAULT_QUOTAS) as [keyof typeof DEFAULT_QUOTAS]).describe('Name of the quota.'),
    limit: Limit.describe('Requested limit; larger than the present one.'),
    reason: Reason.describe('What it is needed for.'),
  }),
  example: { name: 'servers', limit: 100, reason: 'We move our shop here next month.' },
  answers: { 201: RequestEnvelope },
  refuses: [400, 409, 422],
})
export const withdrawQuotaRequest = verbs.delete('withdraw_quota_request', '/{id}', {
  summary: 'Withdraw a request for a larger quota',
  audit: 'quota_request.withdraw',
  isDestructive: false,
  params: IdParams,
  answers: { 200: RequestEnvelope },
})

const staff = routesUnder({
  path: '/v1/admin/quota-requests',
  staff: { reads: 'any', changes: 'operations' },
})

export const listQuotaRequestsAsStaff = staff.get('list_quota_requests_as_staff', '', {
  summary: 'List requests for larger quotas',
  description: 'Newest first.',
  query: PageQuery.extend({ state: z.enum(QUOTA_REQUEST_STATES).optional() }),
  answers: { 200: pageOf(StaffQuotaRequest) },
})
export const getQuotaRequestAsStaff = staff.get('get_quota_request_as_staff', '/{id}', {
  summary: 'Get a request for a larger quota',
  params: IdParams,
  answers: { 200: StaffRequestEnvelope },
})
export const reviewQuotaRequest = staff.post('review_quota_request', '/{id}/review', {
  summary: 'Start the review of a request for a larger quota',
  audit: 'quota_request.review',
  params: IdParams,
  answers: { 200: StaffRequestEnvelope },
})
export const grantQuotaRequest = staff.post('grant_quota_request', '/{id}/grant', {
  summary: 'Set the quota that was requested',
  audit: 'quota_request.grant',
  params: IdParams,
  body: z.strictObject({
    limit: Limit.optional().describe('Limit to set, larger than the present one; the requested one when absent.'),
  }),
  example: { limit: 50 },
  answers: { 200: StaffRequestEnvelope },
  refuses: [400, 404, 409, 422],
})
export const declineQuotaRequest = staff.post('decline_quota_request', '/{id}/decline', {
  summary: 'Decline a request for a larger quota',
  audit: 'quota_request.decline',
  params: IdParams,
  body: z.strictObject({ staff_reason: Reason.describe('Reason shown to the account.') }),
  example: { staff_reason: 'Please verify your payment method first.' },
  answers: { 200: StaffRequestEnvelope },
})

export const QUOTA_REQUEST_ROUTES = [
  listQuotaRequests,
  createQuotaRequest,
  withdrawQuotaRequest,
  listQuotaRequestsAsStaff,
  getQuotaRequestAsStaff,
  reviewQuotaRequest,
  grantQuotaRequest,
  declineQuotaRequest,
] as const
