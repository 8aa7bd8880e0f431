/** Requests of customers for hosts that nobody shares. */
import { ServerCog } from 'lucide-react'
import type { StaffPrivateCloudRequest } from '../../../client/operator-schema.ts'
import { noun } from '../../nouns/noun.ts'
import { optionsOf } from '../../nouns/options.ts'
import { o } from '../texts/index.ts'

const ifOpen = ({ state }: StaffPrivateCloudRequest): string | undefined =>
  state === 'open' ? undefined : state === 'in_review' ? o().requests.inReview : o().requests.decided
const ifUndecided = ({ state }: StaffPrivateCloudRequest): string | undefined =>
  state === 'open' || state === 'in_review' ? undefined : o().requests.decided

export const privateCloudRequest = noun({
  name: 'private_cloud_request',
  area: 'accounts',
  icon: ServerCog,
  path: '/private-cloud',
  list: 'list_private_cloud_requests_as_staff',
  read: 'get_private_cloud_request_as_staff',
  member: 'request',
  titleOf: ({ requested_by_email: email }) => email,
  stateOf: ({ state }) => state,
  looks: { fulfilled: 'good', declined: 'off', withdrawn: 'off' },
  columns: ['account_id', 'vcpus', 'memory_gibibytes', 'disk_gigabytes', 'region', 'created_at'],
  facts: [
    'account_id',
    'vcpus',
    'memory_gibibytes',
    'disk_gigabytes',
    'region',
    'notes',
    'staff_reason',
    'created_at',
    'decided_at',
  ],
  actions: [
    { operation: 'review_private_cloud_request', why: ifOpen, isFirst: true },
    {
      operation: 'fulfil_private_cloud_request',
      why: ifUndecided,
      isFirst: true,
      confirm: {},
      form: [
        {
          name: 'node_ids',
          as: 'many',
          useOptions: optionsOf('node', (item) => item['server_count'] === 0 && item['dedicated_account_id'] === null),
          note: () => o().requests.emptyNodes,
        },
      ],
    },
    {
      operation: 'decline_private_cloud_request',
      why: ifUndecided,
      confirm: {},
      form: [{ name: 'staff_reason', as: 'long' }],
    },
  ],
})
