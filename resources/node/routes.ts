/** Public shape and routes of nodes for operators, and the conversion from the stored shape. Served on the operator
 *  listener only. */
import { z } from 'zod'
import { NODE_STATES, type NodeFacts } from '../../domain/node/rules.ts'
import { activeOperationOf, OperationView, namedTarget, toOperationView } from '../operation/index.ts'
import { isFenceCapable, type NodeSpec, type NodeStatus } from './stored.ts'
import { DateTime, Id, Labels, PageQuery, type Stored, ZoneName } from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'
import { viewOf } from '../kit/view.ts'
import { Reason } from '../kit/fields.ts'

const ROLES = ['compute', 'storage', 'network'] as const
/** The name of its namespace, `node-<hostname>`, must still be a label. */
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

/** Facts of other objects that the view needs. */
export interface NodeSurroundings {
  readonly used: { readonly cores: number; readonly memoryMebibytes: number }
  readonly serverCount: number
  /** Time of the last heartbeat of its agent, RFC 3339, by the node's clock. */
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
    active_operation: operation === undefined ? null : toOperationView(operation, namedTarget('node', node)),
    created_at: node.createdAt,
  })
}

const stateOf = ({ isDeleting, status }: StoredNode): NodeView['state'] =>
  isDeleting ? 'retired' : (status?.state ?? 'provisioning')

/** Leases have microseconds; times in the contract have milliseconds. */
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
export const getNode = verbs.read('get_node', { summary: 'Get a node' })

export const ProvisionNode = z.strictObject({
  hostname: z
    .string()
    .min(1)
    .max(HOSTNAME_LENGTH_MAXIMUM)
    .regex(
      /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
      'must be lower-case letters, digits and dashes, starting and ending with a letter or digit',
    )
    .describe('Id of the node from now on.'),
  zone: ZoneName,
  rack: Rack.describe('Failure domain within the zone.'),
  management_address: z.string().min(1).max(253).describe('Address of the host for operators.'),
  bmc: z
    .strictObject({
      address: z.string().min(1).max(253),
      protocol: z.enum(['redfish', 'ipmi']),
      secret_ref: Id.describe(
        'Secret in the namespace svccloud-system whose keys username and password are the credentials.',
      ),
    })
    .optional()
    .describe('Board management controller that can power off the host.'),
  cpu_pool: CpuPool.optional().describe('Pool of nodes with similar processors; plans may require one.'),
  dedicated_account_id: AccountId.optional().describe('Account whose servers alone are placed on it.'),
  roles: z
    .array(z.enum(ROLES))
    .min(1)
    .max(ROLES.length)
    .refine((roles) => new Set(roles).size === roles.length, 'names a role twice'),
})
export const provisionNode = verbs.create('provision_node', {
  summary: 'Add a node',
  description:
    'Creates its record, its namespace and the access of its agent. Start the agent with the name of the node; ' +
    'the operation ends when the agent has reported.',
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
  summary: 'Update a node',
  body: z.strictObject({
    rack: Rack.optional(),
    cpu_pool: CpuPool.optional(),
    dedicated_account_id: AccountId.optional().describe('Accepted only while the node has no servers.'),
    labels: Labels.optional().describe('Replaces all labels.'),
    overcommit: z.int().min(1).max(64).optional().describe('Virtual cores sold per logical CPU.'),
  }),
  example: { rack: 'rack-3', overcommit: 4, labels: { rack_unit: '17' } },
})
export const cordonNode = verbs.post('cordon_node', '/{id}/cordon', {
  summary: 'Cordon a node',
  starts: ['node.cordon'],
  body: z.strictObject({ reason: Reason }),
  example: { reason: 'A fan is loud.' },
})
export const uncordonNode = verbs.post('uncordon_node', '/{id}/uncordon', {
  summary: 'Uncordon a node',
  description: 'Also ends maintenance.',
  starts: ['node.uncordon'],
})

const DrainOptions = {
  mode: z
    .enum(['live_only', 'live_then_cold'])
    .default('live_only')
    .describe('live_then_cold stops and restarts a server that cannot be moved while it runs.'),
  max_parallel: z.int().min(1).max(32).default(2).describe('Maximum number of servers that leave at the same time.'),
  deadline_minutes: z
    .int()
    .min(1)
    .max(DEADLINE_MINUTES_MAXIMUM)
    .optional()
    .describe('Defaults to one day, counted from the announced hour.'),
  notify_hours: z
    .int()
    .min(0)
    .max(NOTIFY_HOURS_MAXIMUM)
    .default(0)
    .describe('Hours until the first server leaves; until then its owner sees `maintenance` on it.'),
}
export const drainNode = verbs.post('drain_node', '/{id}/drain', {
  summary: 'Drain a node',
  description:
    'Cordons it and moves its servers away, with one `server.migrate` or `server.move` each. Refused with ' +
    '`no_capacity` and `blocking_servers` when the zone has no room for all of them.',
  starts: ['node.drain'],
  body: z.strictObject(DrainOptions),
  example: { mode: 'live_only', max_parallel: 2, deadline_minutes: 240, notify_hours: 0 },
  refuses: [400, 404, 409, 503],
})
export const startNodeMaintenance = verbs.post('start_node_maintenance', '/{id}/maintenance', {
  summary: 'Drain a node for maintenance',
  description:
    'Like draining, with a reason that owners of its servers can read. Uncordon the node to end the maintenance.',
  starts: ['node.maintenance'],
  body: z.strictObject({
    reason: Reason,
    ...DrainOptions,
    storage_flags: z
      .boolean()
      .default(false)
      .describe('Prevents replicated storage from rebuilding meanwhile; refused when there is none.'),
  }),
  example: { reason: 'New memory.', mode: 'live_then_cold', notify_hours: 24 },
  refuses: [400, 404, 409, 503],
})
export const upgradeNodeAgent = verbs.post('upgrade_node_agent', '/{id}/agent-upgrade', {
  summary: 'Change the agent version of a node',
  description:
    'The node accepts no new servers until the agent reports the version. The operator of the agents replaces it ' +
    'meanwhile; guests keep running. The first node of a zone tests a version for the others.',
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
  description: 'The node must be cordoned and empty. Its agent loses its access.',
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
