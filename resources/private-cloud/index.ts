/** Private hosts of an account: its capacity, its requests and the decisions of staff. Customers see only capacity,
 *  never a host. Stored in PostgreSQL; the dedication of a node is in its object. */
import { z } from 'zod'
import { PRIVATE_CLOUD_STATES } from '../../domain/private-cloud/rules.ts'
import { EXAMPLE } from '../kit/examples.ts'
import { Cursor, DateTime, Id, pageOf, PageQuery, Uuid } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'
import { ObjectName, REASON_LENGTH_MAXIMUM } from '../kit/fields.ts'

const REQUESTS_MAXIMUM = 100
const REQUESTS_DEFAULT = 20
const NODES_MAXIMUM = 100

const Count = z.int().min(0)
const Amounts = z
  .strictObject({
    vcpus: Count,
    memory_gibibytes: Count,
    disk_gigabytes: Count,
  })
  .meta({ id: 'PrivateCloudAmounts' })

const CAPACITY = {
  host_count: Count.describe('Number of hosts that only this account uses.'),
  logical_cpus: Count,
  vcpus: Count.describe('Total number of vCPUs for servers on these hosts.'),
  vcpus_used: Count,
  memory_mebibytes: Count.describe('Memory for servers; each host reserves some for itself.'),
  memory_used_mebibytes: Count,
  disk_gigabytes: Count,
  local_storage_used_gibibytes: Count,
  server_count: Count,
}
const Capacity = z.strictObject(CAPACITY).meta({ id: 'PrivateCloudCapacity' })
const ZoneCapacity = z
  .strictObject({
    zone: z.string(),
    zone_display_name: z.string().describe('Display name of the zone.'),
    region: z.string(),
    region_display_name: z.string().describe('Display name of the region.'),
    ...CAPACITY,
  })
  .meta({ id: 'PrivateCloudZone' })
const PrivateCloudServer = z
  .strictObject({
    id: Id,
    hostname: z.string(),
    title: z.string(),
    zone: z.string(),
    plan: z.string(),
    cores: z.int(),
    memory_mebibytes: z.int(),
    state: z.string(),
  })
  .meta({ id: 'PrivateCloudServer' })

const REQUEST = {
  id: Uuid,
  state: z
    .enum(PRIVATE_CLOUD_STATES)
    .describe('open waits for staff, in_review is being worked on; the other states are final.'),
  vcpus: Count,
  memory_gibibytes: Count,
  disk_gigabytes: Count,
  region: z.string().nullable().describe('Requested region; null for any.'),
  notes: z.string(),
  staff_reason: z.string().nullable().describe('Reason for declining; null otherwise.'),
  requested_by_email: z.string(),
  created_at: DateTime,
  updated_at: DateTime,
  decided_at: DateTime.nullable().describe('Time when it was fulfilled, declined or withdrawn.'),
}
const PrivateCloudRequest = z.strictObject(REQUEST).meta({ id: 'PrivateCloudRequest' })
const StaffPrivateCloudRequest = z
  .strictObject({ ...REQUEST, account_id: Uuid })
  .meta({ id: 'StaffPrivateCloudRequest' })
const RequestEnvelope = z.strictObject({ request: PrivateCloudRequest })
const StaffRequestEnvelope = z.strictObject({ request: StaffPrivateCloudRequest })

const Overview = z
  .strictObject({
    has_private_hosts: z.boolean(),
    minimums: Amounts,
    maximums: Amounts,
    totals: Capacity,
    zones: z.array(ZoneCapacity).describe('Zones with private hosts of the account.'),
    servers: z.array(PrivateCloudServer).describe('Servers on these hosts, newest first; at most 500.'),
    servers_truncated: z.boolean().describe('Whether there are more servers on these hosts.'),
    open_request: PrivateCloudRequest.nullable(),
    recent_requests: z.array(PrivateCloudRequest).describe('The latest five requests.'),
  })
  .meta({ id: 'PrivateCloudOverview' })

const IdParams = z.strictObject({ id: ObjectName })

const verbs = routesUnder({ path: '/v1/private-cloud' })

export const getPrivateCloud = verbs.get('get_private_cloud', '', {
  summary: 'Get the private hosts of the account',
  description:
    "Servers of the account are placed on them first, while they have room. Nobody else's servers are placed there.",
  answers: { 200: Overview },
})
export const listPrivateCloudRequests = verbs.get('list_private_cloud_requests', '/requests', {
  summary: 'List requests for private hosts',
  description: 'Newest first.',
  query: z.strictObject({
    cursor: Cursor.optional(),
    limit: z.coerce
      .number()
      .int()
      .min(1)
      .transform((limit) => Math.min(limit, REQUESTS_MAXIMUM))
      .default(REQUESTS_DEFAULT),
  }),
  answers: { 200: pageOf(PrivateCloudRequest) },
})
export const createPrivateCloudRequest = verbs.post('create_private_cloud_request', '/requests', {
  summary: 'Request private hosts',
  description:
    'Staff decide on the request. Until then nothing is created or billed. An account can have one open request ' +
    'at a time, and make 20 an hour. Staff get a mail about the first of an hour.',
  permission: 'billing.manage',
  needs: 'verified',
  audit: 'private_cloud_request.create',
  rates: [{ name: 'private_cloud_request', by: 'account', perHour: 20 }],
  body: z.strictObject({
    vcpus: z.int().describe('At least.'),
    memory_gibibytes: z.int().describe('At least.'),
    disk_gigabytes: z.int().describe('Minimum, in units of 10^9 bytes and before any replication.'),
    region: ObjectName.nullish().describe('Requested region; any when omitted.'),
    notes: z.string().nullish().describe('Notes for staff.'),
  }),
  example: { vcpus: 64, memory_gibibytes: 256, disk_gigabytes: 4_000, region: 'eu-1', notes: 'By next month.' },
  answers: { 201: RequestEnvelope },
  refuses: [400, 409, 422],
})
export const cancelPrivateCloudRequest = verbs.delete('cancel_private_cloud_request', '/requests/{id}', {
  summary: 'Withdraw a request for private hosts',
  permission: 'billing.manage',
  audit: 'private_cloud_request.withdraw',
  isDestructive: false,
  params: IdParams,
  answers: { 200: RequestEnvelope },
})

const staff = routesUnder({
  path: '/v1/admin/private-cloud-requests',
  staff: { reads: 'any', changes: 'operations' },
})

export const listPrivateCloudRequestsAsStaff = staff.get('list_private_cloud_requests_as_staff', '', {
  summary: 'List requests for private hosts',
  description: 'Newest first.',
  query: PageQuery.extend({
    state: z.enum(PRIVATE_CLOUD_STATES).optional(),
    region: ObjectName.optional().describe('Returns only requests for this region.'),
  }),
  answers: { 200: pageOf(StaffPrivateCloudRequest) },
})
export const getPrivateCloudRequestAsStaff = staff.get('get_private_cloud_request_as_staff', '/{id}', {
  summary: 'Get a request for private hosts',
  params: IdParams,
  answers: { 200: StaffRequestEnvelope },
})
export const reviewPrivateCloudRequest = staff.post('review_private_cloud_request', '/{id}/review', {
  summary: 'Start the review of a request for private hosts',
  audit: 'private_cloud_request.review',
  params: IdParams,
  answers: { 200: StaffRequestEnvelope },
})
export const fulfilPrivateCloudRequest = staff.post('fulfil_private_cloud_request', '/{id}/fulfil', {
  summary: 'Dedicate nodes to the requesting account',
  description:
    'The nodes must be empty, undedicated, in the requested region, and together as large as the request. From ' +
    'then on, only servers of the account are placed on them.',
  audit: 'private_cloud_request.fulfil',
  params: IdParams,
  body: z.strictObject({
    node_ids: z.array(z.string().min(1).max(253)).min(1).max(NODES_MAXIMUM).describe('Empty nodes.'),
  }),
  example: { node_ids: [EXAMPLE.id] },
  answers: { 200: StaffRequestEnvelope },
})
export const declinePrivateCloudRequest = staff.post('decline_private_cloud_request', '/{id}/decline', {
  summary: 'Decline a request for private hosts',
  audit: 'private_cloud_request.decline',
  params: IdParams,
  body: z.strictObject({
    staff_reason: z.string().trim().min(1).max(REASON_LENGTH_MAXIMUM).describe('Reason shown to the account.'),
  }),
  example: { staff_reason: 'There is no room in this region before next year.' },
  answers: { 200: StaffRequestEnvelope },
})

export const PRIVATE_CLOUD_ROUTES = [
  getPrivateCloud,
  listPrivateCloudRequests,
  createPrivateCloudRequest,
  cancelPrivateCloudRequest,
  listPrivateCloudRequestsAsStaff,
  getPrivateCloudRequestAsStaff,
  reviewPrivateCloudRequest,
  fulfilPrivateCloudRequest,
  declinePrivateCloudRequest,
] as const
