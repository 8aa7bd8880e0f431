/** Public shape and routes of network edges, and the conversion from the stored shape. */
import { z } from 'zod'
import { SSH_KEYS_PER_SERVER_MAXIMUM } from '../../domain/ssh-key/rules.ts'
import { canonicalAddress, parseAddress } from '../../domain/network/addresses.ts'
import { BASTION_USER, memberId } from '../../domain/edge/document.ts'
import {
  canonicalRoles,
  EDGE_MEMBERS_MAXIMUM,
  EDGE_PLACEMENTS,
  EDGE_ROLES,
  EDGE_STATES,
  type EdgeRole,
  hasPair,
  productionObstacle,
} from '../../domain/edge/rules.ts'
import { EXAMPLE } from '../kit/examples.ts'
import { activeOperationOf, OperationView, namedTarget, toOperationView } from '../operation/index.ts'
import { DateTime, Id, pageOf, PrintableName, type Stored } from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'
import { viewOf } from '../kit/view.ts'
import { edgeConfiguration, type EdgeSpec, type EdgeStatus } from './stored.ts'
import { Port } from '../kit/fields.ts'

const MachineView = z.strictObject({
  id: z.string(),
  name: z.string(),
  roles: z.array(z.enum(EDGE_ROLES)),
  state: z.string(),
  is_healthy: z.boolean(),
  health_detail: z.string(),
  public_ipv4: z.string().nullable(),
  public_ipv6: z.string().nullable(),
  public_ipv6_prefix: z.string().nullable(),
  private_ipv4: z.string().nullable(),
  private_ipv6: z.string().nullable(),
})

const MemberView = z.strictObject({
  id: z.string(),
  name: z.string(),
  frontend_port: z.int(),
  address: z.string(),
  port: z.int(),
  weight: z.int(),
  enabled: z.boolean(),
})

/** Shape in lists: without machines and members. */
export const EdgeItem = z
  .strictObject({
    id: z.string(),
    zone: z.string(),
    name: z.string(),
    network_id: z.string(),
    roles: z.array(z.enum(EDGE_ROLES)),
    placement: z.enum(EDGE_PLACEMENTS),
    plan: z.string(),
    state: z.enum(EDGE_STATES),
    production_recommended: z.boolean(),
    production_recommendation_reason: z.string().nullable(),
    public_ipv4: z
      .string()
      .nullable()
      .describe('Address to allow-list, point DNS at and SSH to; null until there is one.'),
    bastion_jump_host: z.string().nullable().describe('Value for the SSH jump option; null without the bastion role.'),
    bastion_host_keys: z
      .array(z.string())
      .describe('Host keys of the bastion for known_hosts. They stay the same when its machine is replaced.'),
    dns64_address: z
      .string()
      .nullable()
      .describe('DNS64 resolver for servers of the network; null without the nat_gateway role.'),
    load_balancer_id: z
      .string()
      .nullable()
      .describe('Load balancer that has the role under separate placement; null when a machine of the edge has it.'),
    ssh_key_count: z.int(),
    configuration_generation: z.int().describe('Increases with every change that its machines must apply.'),
    active_operation: OperationView.nullable(),
    created_at: DateTime,
  })
  .meta({ id: 'EdgeItem' })
export const EdgeView = EdgeItem.extend({
  machines: z.array(MachineView).describe('Servers of the edge.'),
  members: z.array(MemberView).describe('Targets of its load balancer.'),
}).meta({ id: 'Edge' })
export type EdgeItem = z.infer<typeof EdgeItem>
export type EdgeView = z.infer<typeof EdgeView>
export type StoredEdge = Stored<EdgeSpec, EdgeStatus>

type StoredMachine = NonNullable<EdgeStatus['machines']>[number]

/** The first of these with an address provides the public address of the edge. */
const ENTRANCES = ['load_balancer', 'bastion', 'nat_gateway'] as const
const machineWith = (machines: readonly StoredMachine[], role: EdgeRole): StoredMachine | undefined =>
  machines.find(({ roles }) => roles.includes(role))

export function toEdgeItem(edge: StoredEdge): EdgeItem {
  const { name: id, spec, status, createdAt } = edge
  const operation = activeOperationOf(edge)
  const machines = status?.machines ?? []
  const roles = canonicalRoles(spec.roles)
  const bastion = roles.includes('bastion') ? machineWith(machines, 'bastion')?.publicIpv4 : undefined
  const obstacle = productionObstacle(spec.placement)
  const balancer = hasPair(roles, spec.placement) ? status?.balancer : undefined
  const entrance = [balancer, ...ENTRANCES.map((role) => machineWith(machines, role))].find(
    (one) => one?.publicIpv4 !== undefined,
  )?.publicIpv4
  return viewOf(EdgeItem, spec, {
    id,
    roles,
    state: edge.isDeleting || spec.operation?.kind === 'edge.delete' ? 'deleting' : (status?.state ?? 'creating'),
    production_recommended: obstacle === undefined,
    production_recommendation_reason: obstacle ?? null,
    public_ipv4: entrance ?? null,
    bastion_jump_host: bastion === undefined ? null : `${BASTION_USER}@${bastion}`,
    bastion_host_keys: roles.includes('bastion') && status?.hostKey !== undefined ? [status.hostKey] : [],
    dns64_address: roles.includes('nat_gateway') ? (status?.leadsOut?.ipv6 ?? null) : null,
    load_balancer_id: balancer?.id ?? null,
    ssh_key_count: spec.sshKeys.length,
    configuration_generation: edgeConfiguration(edge).generation,
    active_operation: operation === undefined ? null : toOperationView(operation, namedTarget('edge', edge)),
    created_at: createdAt,
  })
}

export const toEdgeView = (edge: StoredEdge): EdgeView => ({
  ...toEdgeItem(edge),
  machines: (edge.status?.machines ?? []).map((machine) => ({
    id: machine.id,
    name: machine.name,
    roles: canonicalRoles(machine.roles),
    state: machine.state,
    is_healthy: machine.isHealthy,
    health_detail: machine.healthDetail,
    public_ipv4: machine.publicIpv4 ?? null,
    public_ipv6: machine.publicIpv6 ?? null,
    public_ipv6_prefix: machine.publicIpv6Prefix ?? null,
    private_ipv4: machine.privateIpv4 ?? null,
    private_ipv6: machine.privateIpv6 ?? null,
  })),
  members: edge.spec.members.map(({ frontendPort, ...member }) => ({
    id: memberId(edge.name, member.name),
    ...member,
    address: canonicalAddress(member.address),
    frontend_port: frontendPort,
  })),
})

export const EdgeMemberInput = z
  .strictObject({
    name: z
      .string()
      .regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, 'must be letters, digits and dashes, at most 63')
      .describe('Unique among the members.'),
    frontend_port: Port.describe('External port, on IPv4 and IPv6.'),
    address: z
      .string()
      .refine((text) => parseAddress(text) !== undefined, 'must be an address')
      .transform(canonicalAddress)
      .describe('An IPv4 host of the network, or an IPv6 address.'),
    port: Port.describe('Port on which the member listens.'),
    weight: z.int().min(0).max(255).default(100).describe('Relative share among members with the same frontend port.'),
    enabled: z.boolean().default(true).describe('Whether it receives new connections.'),
  })
  .meta({ id: 'EdgeMemberInput' })
export type EdgeMemberInput = z.infer<typeof EdgeMemberInput>

const Roles = z.array(z.enum(EDGE_ROLES)).min(1).max(EDGE_ROLES.length).transform(canonicalRoles)
const KeyIds = z.array(z.string().min(1).max(253)).max(SSH_KEYS_PER_SERVER_MAXIMUM)
const Members = z.array(EdgeMemberInput).max(EDGE_MEMBERS_MAXIMUM)
const PlanName = z.string().min(1).max(63)

export const CreateEdge = z
  .strictObject({
    network_id: Id,
    name: PrintableName.optional().describe('Defaults to the name of the network with the suffix -edge.'),
    roles: Roles.describe('Roles of the edge.'),
    placement: z
      .enum(EDGE_PLACEMENTS)
      .optional()
      .describe(
        'separate: one machine per role; combined: one machine for all. Defaults to separate when the zone offers it.',
      ),
    plan: PlanName.optional().describe('Plan of its machines. Defaults to the cheapest suitable plan.'),
    ssh_key_ids: KeyIds.optional().describe(
      'Keys that may sign in to its bastion. Defaults to all keys of the account.',
    ),
    members: Members.default([]).describe('Targets of its load balancer.'),
  })
  .meta({ id: 'CreateEdge' })
export type CreateEdge = z.infer<typeof CreateEdge>

export const UpdateEdge = z
  .strictObject({
    name: PrintableName.optional(),
    roles: Roles.optional(),
    plan: PlanName.optional(),
    ssh_key_ids: KeyIds.optional().describe('Keys that may sign in to its bastion; they replace the current ones.'),
    members: Members.optional(),
  })
  .meta({ id: 'UpdateEdge' })
export type UpdateEdge = z.infer<typeof UpdateEdge>

const verbs = verbsOf({ path: '/v1/edges', noun: 'edge', view: EdgeView })

export const listEdges = verbs.list('list_edges', {
  summary: 'List network edges',
  description: 'Newest first, without machines and members.',
  answers: { 200: pageOf(EdgeItem) },
})

export const createEdge = verbs.create('create_edge', {
  summary: 'Create a network edge',
  description:
    'Connects a private network whose servers have no public IPv4: bastion and load_balancer accept connections ' +
    'from the IPv4 Internet, nat_gateway lets servers reach it. Separate machines are recommended for production; ' +
    'a combined machine has all roles. Each machine costs its plan and a public IPv4 address.',
  needs: 'standing',
  starts: ['edge.sync'],
  body: CreateEdge,
  example: { network_id: EXAMPLE.id, roles: ['bastion', 'nat_gateway'] },
  refuses: [400, 404, 409, 422, 503],
})

export const getEdge = verbs.read('get_edge', { summary: 'Get a network edge with its machines and members' })

export const updateEdge = verbs.change('update_edge', {
  summary: 'Update name, roles, plan, keys or members of a network edge',
  description:
    'roles, ssh_key_ids and members replace the current lists. The name changes immediately (200); other changes ' +
    'start an operation (202). Machines are replaced one at a time. With If-Match only that version is changed.',
  requiresStanding: true,
  starts: ['edge.sync'],
  body: UpdateEdge,
  example: { members: [{ name: 'web-1', frontend_port: 80, address: '10.1.0.10', port: 8080 }] },
  refuses: [400, 404, 409, 422, 503],
})

export const deleteEdge = verbs.remove('delete_edge', {
  summary: 'Delete a network edge with its machines',
  description: 'Releases its public addresses. An edge that is still being created can be deleted too.',
  starts: ['edge.delete'],
})

export const EDGE_ROUTES = [listEdges, createEdge, getEdge, updateEdge, deleteEdge] as const
