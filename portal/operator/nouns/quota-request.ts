/** Requests of customers for a higher quota. */
import { Gauge } from 'lucide-react'
import type { StaffQuotaRequest } from '../../../client/operator-schema.ts'
import { noun } from '../../nouns/noun.ts'
import { number } from '../../texts/format.ts'
import { o } from '../texts/index.ts'
import { quotaText } from '../../texts/service.ts'

const ifOpen = ({ state }: StaffQuotaRequest): string | undefined =>
  state === 'open' ? undefined : state === 'in_review' ? o().requests.inReview : o().requests.decided
const ifUndecided = ({ state }: StaffQuotaRequest): string | undefined =>
  state === 'open' || state === 'in_review' ? undefined : o().requests.decided

export const quotaRequest = noun({
  name: 'quota_request',
  area: 'accounts',
  icon: Gauge,
  path: '/quota-requests',
  list: 'list_quota_requests_as_staff',
  read: 'get_quota_request_as_staff',
  member: 'request',
  titleOf: ({ name, limit }) => `${quotaText(name)}: ${number(limit)}`,
  stateOf: ({ state }) => state,
  looks: { granted: 'good', declined: 'off', withdrawn: 'off' },
  columns: ['account_id', 'reason', 'requested_by_email', 'created_at'],
  facts: [
    'account_id',
    'limit',
    'reason',
    'requested_by_email',
    'granted_limit',
    'staff_reason',
    'created_at',
    'decided_at',
  ],
  actions: [
    { operation: 'review_quota_request', why: ifOpen, isFirst: true },
    {
      operation: 'grant_quota_request',
      why: ifUndecided,
      isFirst: true,
      confirm: {},
      form: [{ name: 'limit', note: () => o().requests.grantAsked }],
    },
    {
      operation: 'decline_quota_request',
      why: ifUndecided,
      confirm: {},
      form: [{ name: 'staff_reason', as: 'long' }],
    },
  ],
})
