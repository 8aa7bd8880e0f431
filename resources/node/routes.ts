/** Nodes as operators see them: public shape, bridge from the stored one, routes. Served on the operator listener only.
 */
import { z } from 'zod'
import { NODE_STATES, type NodeFacts } from '../../domain/node/rules.ts'
import { activeOperationOf, OperationView, toOperationView } from '../operation/index.ts'
import { isFenceCapable, type NodeSpec, type NodeStatus } from './stored.ts'
import { DateTime, Id, Labels, PageQuery, Printable, type Stored, ZoneName } from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'
import { viewOf } from '../kit/view.ts'

const ROLES = ['compute', 'storage', 'network'] as const
/** So that the name of its namespace, `node-<hostname>`, is still a label. */
export const HOSTNAME_LENGTH_MAXIMUM = 58
const DEADLINE_MINUTES_MAXIMUM = 10_080
const NOTIFY_HOURS_MAXIMUM = 720

export const NodeView = z
  .strictObject({
    id: z.string(),
    hostname: z.string(),
    zone: z.string(),
    rack: z.string(),
    state: z.enum(NODE_STATES),
    state_detail: z.string(),
    roles: z.array(z.enum(ROLES)),
    cpu_pool: z.string().nullable(),
    dedicated_account_id: z.string().nullable(),
    logical_cpus: z.int(),
    memory_mebibytes: z.int(),
    vcpus_used: z.int(),
    memory_used_mebibytes: z.int(),
    server_count: z.int(),
    agent_version: z.string(),
    desired_agent_version: z.string(),
    last_seen_at: DateTime.nullable(),
    bmc_configured: z.boolean(),
    fence_capable: z.boolean(),
    active_operation: OperationView.nullable(),
    created_at: DateTime,
  })
  .meta({ id: 'Node' })
export type NodeView = z.infer<typeof NodeView>
export type StoredNode = Stored<NodeSpec, NodeStatus>

/** What the view takes from elsewhere. */
export interface NodeSurroundings {
  readonly used: { readonly cores: number; readonly memoryMebibytes: number }
  readonly serverCount: number
  /** When its agent was heard last, RFC 3339, by the node's own clock. */
  readonly lastSeenAt: string | undefined
}

export function toNodeView(node: StoredNode, { used, serverCount, lastSeenAt }: NodeSurroundings): NodeView {
  const { name, spec, status } = node
  const operation = activeOperationOf(node)
  return viewOf(NodeView, spec, {
    id: name,
    hostname: name,
    state: stateOf(node),
    state_detail: status?.stateDetail ?? '',
    roles: [...spec.roles],
    logical_cpus: status?.logicalCpus ?? 0,
    memory_mebibytes: status?.memoryMebibytes ?? 0,
    vcpus_used: used.cores,
    memory_used_mebibytes: used.memoryMebibytes,
    server_count: serverCount,
    agent_version: status?.agentVersion ?? '',
    desired_agent_version: spec.desiredAgentVersion ?? status?.agentVersion ?? '',
    last_seen_at: instantOf(status?.lastSeenAt ?? lastSeenAt),
    bmc_configured: spec.bmc !== undefined,
    fence_capable: isFenceCapable(spec),
    active_operation: operation === undefined ? null : toOperationView(operation, { type: 'node', id: name }),
    created_at: node.createdAt,
  })
}

const stateOf = ({ isDeleting, status }: StoredNode): NodeView['state'] =>
  isDeleting ? 'retired' : (status?.state ?? 'provisioning')

/** Leases write microseconds; the contract's instants have milliseconds. */
const instantOf = (text: string | undefined): string | null =>
  text === undefined || Number.isNaN(Date.parse(text)) ? null : new Date(text).toISOString()

export const nodeFactsOf = (node: StoredNode, serverCount: number): NodeFacts => ({
  id: node.name,
  zone: node.spec.zone,
  state: node.status?.state ?? 'provisioning',
  isCordoned: node.spec.isCordoned,
  isInMaintenance: node.spec.isInMaintenance === true,
  isDeleting: node.isDeleting,
  activeOperationId: activeOperationOf(node)?.id,
  agentVersion: node.status?.agentVersion ?? '',
  serverCount,
})

const Reason = Printable.trim().min(1).max(1_000)
const Rack = z
  .string()
  .min(1)
  .max(63)
  .regex(
    /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
    'must be lower-case letters, digits and dashes, starting and ending with a letter or digit',
  )
const CpuPool = Rack.nullable()
const AccountId = z.uuid().nullable()

const verbs = verbsOf({
  path: '/v1/operator/nodes',
  area: 'Nodes',
  noun: 'node',
  view: NodeView,
  staff: { reads: 'any', changes: 'operations' },
  access: { resource: 'nodes', scope: 'cluster' },
})

export const listNodes = verbs.list('list_nodes', {
  summary: 'List nodes',
  description: 'Newest first.',
  query: PageQuery.extend({
    zone: ZoneName.optional(),
    rack: Rack.optional(),
    state: z.enum(NODE_STATES).optional(),
    cpu_pool: Rack.optional(),
  }),
})
export const getNode = verbs.read('get_node', { summary: 'Read a node' })

export const ProvisionNode = z.strictObject({
  hostname: z
    .string()
    .min(1)
    .max(HOSTNAME_LENGTH_MAXIMUM)
    .regex(
      /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
      'must be lower-case letters, digits and dashes, starting and ending with a letter or digit',
    )
    .describe('Its id from now on.'),
  zone: ZoneName,
  rack: Rack.describe('What fails together within the zone.'),
  management_address: z.string().min(1).max(253).describe('Where operators reach the host.'),
  bmc: z
    .strictObject({
      address: z.string().min(1).max(253),
      protocol: z.enum(['redfish', 'ipmi']),
      secret_ref: Id.describe(
        'Secret of the namespace svccloud-system whose keys username and password are the credentials.',
      ),
    })
    .optional()
    .describe('The board management controller, by which the host can be powered off.'),
  cpu_pool: CpuPool.optional().describe('Pool of like processors; plans may ask for one.'),
  dedicated_account_id: AccountId.optional().describe('Only servers of this account are placed on it.'),
  roles: z
    .array(z.enum(ROLES))
    .min(1)
    .max(ROLES.length)
    .refine((roles) => new Set(roles).size === roles.length, 'names a role twice'),
})
export const provisionNode = verbs.create('provision_node', {
  summary: 'Let a node join',
  description:
    'Makes its record, its namespace and the access of its agent. The operation ends when the agent has ' +
    'reported; start the agent under the name of the node meanwhile.',
  audit: 'node.provision',
  starts: ['node.provision'],
  body: ProvisionNode,
  example: {
    hostname: 'host-7',
    zone: 'eu-1a',
    rack: 'rack-2',
    management_address: '192.0.2.17',
    bmc: { address: 'https://192.0.2.117', protocol: 'redfish', secret_ref: 'host-7-bmc' },
    roles: ['compute'],
  },
  refuses: [400, 409, 503],
})
export const updateNode = verbs.change('update_node', {
  summary: 'Change a node',
  body: z.strictObject({
    rack: Rack.optional(),
    cpu_pool: CpuPool.optional(),
    dedicated_account_id: AccountId.optional().describe('Only while nobody is on the node.'),
    labels: Labels.optional().describe('Replaces all labels.'),
    overcommit: z.int().min(1).max(64).optional().describe('Virtual cores sold per logical CPU.'),
  }),
  example: { rack: 'rack-3', overcommit: 4, labels: { rack_unit: '17' } },
})
export const cordonNode = verbs.post('cordon_node', '/{id}/cordon', {
  summary: 'Keep a node from new servers',
  starts: ['node.cordon'],
  body: z.strictObject({ reason: Reason }),
  example: { reason: 'A fan is loud.' },
})
export const uncordonNode = verbs.post('uncordon_node', '/{id}/uncordon', {
  summary: 'Let a node take servers again',
  description: 'Also ends maintenance.',
  starts: ['node.uncordon'],
})

const DrainOptions = {
  mode: z
    .enum(['live_only', 'live_then_cold'])
    .default('live_only')
    .describe('live_then_cold stops and starts a server that cannot be moved while it runs.'),
  max_parallel: z.int().min(1).max(32).default(2).describe('Servers that leave at the same time.'),
  deadline_minutes: z
    .int()
    .min(1)
    .max(DEADLINE_MINUTES_MAXIMUM)
    .optional()
    .describe('By default a day, counted from the announced hour.'),
  notify_hours: z
    .int()
    .min(0)
    .max(NOTIFY_HOURS_MAXIMUM)
    .default(0)
    .describe('The first server leaves so many hours from now; until then its owner sees `maintenance` on it.'),
}
export const drainNode = verbs.post('drain_node', '/{id}/drain', {
  summary: 'Empty a node',
  description:
    'Cordons it and moves its servers away, one `server.migrate` or `server.move` for each. Refused with ' +
    '`no_capacity` and `blocking_servers` when the zone has no room for all of them.',
  starts: ['node.drain'],
  body: z.strictObject(DrainOptions),
  example: { mode: 'live_only', max_parallel: 2, deadline_minutes: 240, notify_hours: 0 },
  refuses: [400, 404, 409, 503],
})
export const startNodeMaintenance = verbs.post('start_node_maintenance', '/{id}/maintenance', {
  summary: 'Empty a node for work on it',
  description: 'As draining, with a reason that the owners of its servers read. Uncordon the node to end it.',
  starts: ['node.maintenance'],
  body: z.strictObject({
    reason: Reason,
    ...DrainOptions,
    storage_flags: z
      .boolean()
      .default(false)
      .describe('Keeps replicated storage from rebuilding meanwhile; refused where there is none.'),
  }),
  example: { reason: 'New memory.', mode: 'live_then_cold', notify_hours: 24 },
  refuses: [400, 404, 409, 503],
})
export const upgradeNodeAgent = verbs.post('upgrade_node_agent', '/{id}/agent-upgrade', {
  summary: 'Bring the agent of a node to another version',
  description:
    'Keeps new servers away and waits until the agent reports the version: whoever runs the agents replaces it ' +
    'meanwhile, guests go on. The first node of a zone tries a version for the others.',
  starts: ['node.agent_upgrade'],
  body: z.strictObject({
    version: z
      .string()
      .min(1)
      .max(63)
      .regex(/^[0-9A-Za-z][0-9A-Za-z.+_-]*$/, 'is not a version'),
  }),
  example: { version: '1.4.0' },
})
export const removeNode = verbs.remove('remove_node', {
  summary: 'Remove a node',
  description: 'Only when it is cordoned and empty. Its agent no longer has access.',
  audit: 'node.remove',
})

export const NODE_ROUTES = [
  listNodes,
  getNode,
  provisionNode,
  updateNode,
  cordonNode,
  uncordonNode,
  drainNode,
  startNodeMaintenance,
  upgradeNodeAgent,
  removeNode,
] as const
