/** Hosts for one account alone: what an account has of them and asks for, and what staff decide. Customers see capacity
 *  only, never a host. Stored in PostgreSQL; that a node is dedicated is in its object. */
import { z } from 'zod'
import { PRIVATE_CLOUD_STATES } from '../../domain/private-cloud/rules.ts'
import { EXAMPLE } from '../kit/examples.ts'
import { Cursor, DateTime, Id, pageOf, PageQuery, Uuid } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'

const REQUESTS_MAXIMUM = 100
const REQUESTS_DEFAULT = 20
const REASON_LENGTH_MAXIMUM = 1_000
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
  host_count: Count.describe('Hosts that only the account uses.'),
  logical_cpus: Count,
  vcpus: Count.describe('How many vCPUs servers on them can have together.'),
  vcpus_used: Count,
  memory_mebibytes: Count.describe('What servers can have of it; each host keeps some for itself.'),
  memory_used_mebibytes: Count,
  disk_gigabytes: Count,
  local_storage_used_gibibytes: Count,
  server_count: Count,
}
const Capacity = z.strictObject(CAPACITY).meta({ id: 'PrivateCloudCapacity' })
const ZoneCapacity = z
  .strictObject({
    zone: z.string(),
    zone_display_name: z.string().describe('Name of the zone for people.'),
    region: z.string(),
    region_display_name: z.string().describe('Name of the region for people.'),
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
    .describe('open waits for staff, in_review is being worked on; the others are final.'),
  vcpus: Count,
  memory_gibibytes: Count,
  disk_gigabytes: Count,
  region: z.string().nullable().describe('Where; null for anywhere.'),
  notes: z.string(),
  staff_reason: z.string().nullable().describe('Why it was declined; null otherwise.'),
  requested_by_email: z.string(),
  created_at: DateTime,
  updated_at: DateTime,
  decided_at: DateTime.nullable().describe('When it was fulfilled, declined or withdrawn.'),
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
    zones: z.array(ZoneCapacity).describe('Where the account has private hosts.'),
    servers: z.array(PrivateCloudServer).describe('Servers on these hosts, newest first, 500 of them at most.'),
    servers_truncated: z.boolean().describe('There are more servers on them.'),
    open_request: PrivateCloudRequest.nullable(),
    recent_requests: z.array(PrivateCloudRequest).describe('The newest five.'),
  })
  .meta({ id: 'PrivateCloudOverview' })

const IdParams = z.strictObject({ id: z.string().max(253) })

const verbs = routesUnder({ path: '/v1/private-cloud', area: 'Private cloud' })

export const getPrivateCloud = verbs.get('get_private_cloud', '', {
  summary: 'Get the private hosts of the account',
  description: 'Servers are placed on them before any others while they have room; nobody else is placed there.',
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
  description: 'Staff decide; until then nothing is made and nothing costs. One request at a time.',
  permission: 'billing.manage',
  needs: 'verified',
  audit: 'private_cloud_request.create',
  body: z.strictObject({
    vcpus: z.int().describe('At least.'),
    memory_gibibytes: z.int().describe('At least.'),
    disk_gigabytes: z.int().describe('At least, of 10^9 bytes and before any replication.'),
    region: z.string().max(253).nullish().describe('Where; anywhere without it.'),
    notes: z.string().nullish().describe('What staff should know.'),
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
  area: 'Accounts, private cloud decisions, support sessions',
  staff: { reads: 'any', changes: 'operations' },
})

export const listPrivateCloudRequestsAsStaff = staff.get('list_private_cloud_requests_as_staff', '', {
  summary: 'List requests for private hosts',
  description: 'Newest first.',
  query: PageQuery.extend({
    state: z.enum(PRIVATE_CLOUD_STATES).optional(),
    region: z.string().max(253).optional().describe('Only those that ask for this region.'),
  }),
  answers: { 200: pageOf(StaffPrivateCloudRequest) },
})
export const getPrivateCloudRequestAsStaff = staff.get('get_private_cloud_request_as_staff', '/{id}', {
  summary: 'Read a request for private hosts',
  params: IdParams,
  answers: { 200: StaffRequestEnvelope },
})
export const reviewPrivateCloudRequest = staff.post('review_private_cloud_request', '/{id}/review', {
  summary: 'Begin to work on a request for private hosts',
  audit: 'private_cloud_request.review',
  params: IdParams,
  answers: { 200: StaffRequestEnvelope },
})
export const fulfilPrivateCloudRequest = staff.post('fulfil_private_cloud_request', '/{id}/fulfil', {
  summary: 'Give nodes to the account that asked for them',
  description:
    'The nodes must be empty, of no account, in the region that was asked for, and together as large as the request. ' +
    'Nobody else is placed there from then on.',
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
    staff_reason: z.string().trim().min(1).max(REASON_LENGTH_MAXIMUM).describe('The account reads it.'),
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
