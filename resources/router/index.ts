/** Router: connects private networks of an account. Stored shape, public shape, conversion and routes. */
import { z } from 'zod'
import {
  NETWORKS_OF_ROUTER_MAXIMUM,
  STATIC_ROUTES_MAXIMUM,
  canonicalRoute,
  gatewayOf,
} from '../../domain/network/rules.ts'
import { resource } from '../kit/define.ts'
import {
  DateTime,
  Id,
  Labels,
  PageQuery,
  Printable,
  PrintableName,
  ReportedOperation,
  RequestedOrEditedOperation,
  type Stored,
  StoredLabels,
  ZoneName,
} from '../kit/shapes.ts'
import { canonicalAddress, canonicalCidr, parseAddress, parseNetwork } from '../../domain/network/addresses.ts'
import { EXAMPLE } from '../kit/examples.ts'
import { type StoredNetwork, rangesOf } from '../network/index.ts'
import { OperationView, activeOperationOf, namedTarget, toOperationView } from '../operation/index.ts'
import { verbsOf } from '../kit/verbs.ts'
import { managed } from '../kit/managed.ts'
import { viewOf } from '../kit/view.ts'
import { AddressText, AppliedSequence, CidrText, ObjectName, OBSERVED, StoredDisplayName } from '../kit/fields.ts'
import { AGE, READY, TITLE, ZONE } from '../kit/columns.ts'
import type { Use } from '../../domain/claim/use.ts'
import { use } from '../kit/uses.ts'

const ROUTE_COMMENT_LENGTH_MAXIMUM = 255
const Address = AddressText.min(1)

const NetworkIds = z
  .array(z.string().min(1).max(253))
  .max(NETWORKS_OF_ROUTER_MAXIMUM)
  .meta({ 'x-kubernetes-list-type': 'set' })
const StoredStaticRoutes = z
  .array(
    z.strictObject({
      destination: CidrText.min(1).describe('Destination network.'),
      nextHop: Address.describe('Address in one of the networks that receives the traffic.'),
      comment: z.string().max(ROUTE_COMMENT_LENGTH_MAXIMUM).default('').describe('For people.'),
    }),
  )
  .max(STATIC_ROUTES_MAXIMUM)

export const Router = resource({
  kind: 'Router',
  plural: 'routers',
  shortNames: ['rtr'],
  scope: 'Namespaced',
  customers: 'write',
  description:
    'Connects private networks of an account in a zone: their hosts reach each other through it. With NAT they ' +
    'reach external networks from its public address. A network has one router. It cannot be deleted while it has ' +
    'networks.',
  spec: z
    .strictObject({
      zone: ZoneName.describe('Zone of the router.'),
      name: StoredDisplayName.describe('Display name, unique among the routers of the account in the zone.'),
      natEnabled: z
        .boolean()
        .default(false)
        .describe(
          'Whether hosts of its networks can reach external networks, from a public address that the router ' +
            'gets for this.',
        ),
      networkIds: NetworkIds.default([]).describe(
        'Names of its Networks: in its zone, attached to no other router, not overlapping.',
      ),
      staticRoutes: StoredStaticRoutes.default([]).describe('Additional routes.'),
      labels: StoredLabels.default({}).describe('Labels, as in the API.'),
      operation: RequestedOrEditedOperation,
    })
    .describe('The desired state of the router.'),
  status: z
    .strictObject({
      ...OBSERVED,
      region: z.string().max(63).optional().describe('Region of the zone.'),
      publicIpv4: Address.optional().describe('Public source address of the hosts behind it.'),
      networks: z
        .array(
          z.strictObject({
            networkId: ObjectName.describe('Name of the Network.'),
            ipv4Address: Address.describe('Address of the router in the network.'),
            ipv6Address: Address.describe('IPv6 address of the router in the network.'),
          }),
        )
        .max(NETWORKS_OF_ROUTER_MAXIMUM)
        .optional()
        .describe('Attached networks.'),
      isHealthy: z.boolean().optional().describe('Whether it is healthy.'),
      healthDetail: z.string().max(1024).optional().describe('Human-readable description of the problem.'),
      asked: z
        .strictObject({
          natEnabled: z.boolean().describe('Applied value of the spec.'),
          networkIds: NetworkIds.describe('Applied value of the spec.'),
          staticRoutes: StoredStaticRoutes.describe('Applied value of the spec.'),
        })
        .optional()
        .describe('Target of the newest operation; a difference from the spec shows a direct edit.'),
      appliedSequence: AppliedSequence,
      operation: ReportedOperation,
    })
    .describe('Observed state of the router. Written by its controller.'),
  columns: [
    TITLE,
    { name: 'NAT', type: 'boolean', jsonPath: '.spec.natEnabled' },
    { name: 'Address', type: 'string', jsonPath: '.status.publicIpv4' },
    ZONE,
    { name: 'Healthy', type: 'boolean', jsonPath: '.status.isHealthy' },
    READY,
    AGE,
  ],
  selectableFields: ['.spec.zone'],
  fixed: ['zone'],
})
export type RouterSpec = z.infer<typeof Router.spec>
export type RouterStatus = z.infer<typeof Router.status>

const COMMENT_LENGTH_MAXIMUM = 255

export const RouterView = z
  .strictObject({
    id: z.string(),
    zone: z.string(),
    name: z.string(),
    nat_enabled: z.boolean().describe('Whether servers of its networks can reach external networks through it.'),
    public_ipv4: z.string().nullable().describe('Source address of servers that use it to reach external networks.'),
    networks: z
      .array(z.strictObject({ network_id: z.string(), ipv4_address: z.string(), ipv6_address: z.string() }))
      .describe("Attached networks, with the router's addresses in them."),
    static_routes: z.array(z.strictObject({ destination: z.string(), next_hop: z.string(), comment: z.string() })),
    is_healthy: z.boolean(),
    health_detail: z.string().describe('Description of the problem; empty when it is healthy.'),
    labels: z.record(z.string(), z.string()),
    active_operation: OperationView.nullable(),
    created_at: DateTime,
  })
  .meta({ id: 'Router' })
export type RouterView = z.infer<typeof RouterView>
export type StoredRouter = Stored<RouterSpec, RouterStatus>

/** The unique values of a router: its public address. */
export const usesOfRouter = ({ status }: Pick<StoredRouter, 'status'>): readonly Use[] =>
  use('address', '', status?.publicIpv4)

/** The networks of its spec by id, as far as they are known. */
export type RouterSurroundings = Readonly<Record<string, Pick<StoredNetwork, 'spec' | 'status'> | undefined>>

export function toRouterView(router: StoredRouter, networks: RouterSurroundings): RouterView {
  const { name, spec, status, createdAt } = router
  const operation = activeOperationOf(router)
  const { public_ipv4: claimed } = spec.operation?.arguments ?? {}
  return viewOf(RouterView, spec, {
    id: name,
    public_ipv4: spec.natEnabled ? (status?.publicIpv4 ?? claimed ?? null) : null,
    networks: spec.networkIds.flatMap((networkId) => {
      const network = networks[networkId]
      const { ipv4Cidr, ipv6Prefix } = network === undefined ? { ipv4Cidr: '', ipv6Prefix: '' } : rangesOf(network)
      return ipv4Cidr === '' || ipv6Prefix === ''
        ? []
        : [{ network_id: networkId, ipv4_address: gatewayOf(ipv4Cidr), ipv6_address: gatewayOf(ipv6Prefix) }]
    }),
    static_routes: spec.staticRoutes
      .map(canonicalRoute)
      .map(({ destination, nextHop, comment }) => ({ destination, next_hop: nextHop, comment })),
    is_healthy: status?.isHealthy ?? false,
    health_detail: status === undefined ? 'It is being made.' : (status.healthDetail ?? ''),
    active_operation: operation === undefined ? null : toOperationView(operation, namedTarget('router', router)),
    created_at: createdAt,
  })
}

const Route = z.strictObject({
  destination: z
    .string()
    .refine((text) => parseNetwork(text) !== undefined, 'must be a network whose address has no bits beyond its prefix')
    .transform(canonicalCidr)
    .describe('Destination network, IPv4 or IPv6.'),
  next_hop: z
    .string()
    .refine((text) => parseAddress(text) !== undefined, 'must be an address')
    .transform(canonicalAddress)
    .describe("Address in one of the router's networks that receives the traffic."),
  comment: Printable.max(COMMENT_LENGTH_MAXIMUM).default(''),
})
const StaticRoutes = z.array(Route).max(STATIC_ROUTES_MAXIMUM)
export type StaticRoutes = z.infer<typeof StaticRoutes>

const RouterEnvelope = z.strictObject({ router: RouterView })
const StartedEnvelope = RouterEnvelope.extend({ operation: OperationView })

export const CreateRouter = z
  .strictObject({
    zone: ZoneName,
    name: PrintableName.describe('Unique among the routers of the account in the zone.'),
    nat_enabled: z
      .boolean()
      .default(false)
      .describe(
        'Whether servers of its networks can reach external networks. The router gets a public address for this.',
      ),
    network_ids: z
      .array(Id)
      .max(NETWORKS_OF_ROUTER_MAXIMUM)
      .default([])
      .describe('Networks to attach at creation: in its zone, attached to no other router, not overlapping.'),
    static_routes: StaticRoutes.default([]),
    labels: Labels.default({}),
  })
  .meta({ id: 'CreateRouter' })
export type CreateRouter = z.infer<typeof CreateRouter>

export const UpdateRouter = z
  .strictObject({
    name: PrintableName.optional(),
    labels: Labels.optional(),
    nat_enabled: z.boolean().optional(),
    static_routes: StaticRoutes.optional(),
  })
  .meta({ id: 'UpdateRouter' })
export type UpdateRouter = z.infer<typeof UpdateRouter>

const verbs = verbsOf({ path: '/v1/routers', noun: 'router', view: RouterView })

export const listRouters = verbs.list('list_routers', {
  summary: 'List routers',
  description: 'Newest first.',
  query: PageQuery.extend({ zone: ZoneName.optional() }),
})

export const createRouter = verbs.create('create_router', {
  summary: 'Create a router',
  description:
    'A router connects private networks of a zone, so their servers reach each other. With NAT, servers reach ' +
    'external networks from the public address of the router.',
  needs: 'standing',
  starts: ['router.sync'],
  body: CreateRouter,
  example: { zone: 'eu-1a', name: 'out', nat_enabled: true, network_ids: [EXAMPLE.id] },
  refuses: [400, 404, 409, 422, 503],
})

export const getRouter = verbs.read('get_router', { summary: 'Get a router' })

export const updateRouter = verbs.change('update_router', {
  summary: 'Update name, labels, NAT or static routes of a router',
  description:
    'labels and static_routes replace the current values. Name and labels change immediately (200); other changes ' +
    'start an operation (202). With If-Match only that version is changed.',
  requiresStanding: true,
  starts: ['router.sync'],
  body: UpdateRouter,
  example: { static_routes: [{ destination: '10.9.0.0/16', next_hop: '10.1.0.9', comment: 'office' }] },
  refuses: [400, 404, 409, 503],
})

export const deleteRouter = verbs.remove('delete_router', {
  summary: 'Delete a router without networks',
  starts: ['router.sync'],
})

export const attachRouterNetwork = verbs.post('attach_router_network', '/{id}/networks', {
  summary: 'Attach a private network to a router',
  description: 'The router gets the first address of the network. A network can have one router.',
  audit: 'router.attach_network',
  starts: ['router.sync'],
  body: z.strictObject({ network_id: Id }),
  example: { network_id: EXAMPLE.id },
  answers: { 202: StartedEnvelope },
})

export const detachRouterNetwork = verbs.delete('detach_router_network', '/{id}/networks/{network_id}', {
  summary: 'Detach a private network from a router',
  description: 'Its servers still reach each other. Static routes through the network stop working.',
  audit: 'router.detach_network',
  starts: ['router.sync'],
  params: z.strictObject({ id: Id, network_id: Id }),
})

export const ROUTER_ROUTES = [
  listRouters,
  createRouter,
  getRouter,
  updateRouter,
  deleteRouter,
  attachRouterNetwork,
  detachRouterNetwork,
] as const

export const managedRouter = managed({
  noun: 'router',
  view: RouterView,
  routes: { list: listRouters, create: createRouter, read: getRouter, remove: deleteRouter },
  names: ['name'],
  uniqueIn: 'zone',
  changes: [
    { by: updateRouter, sets: ['name', 'labels', 'nat_enabled', 'static_routes'], moves: ['public_ipv4'] },
    {
      each: 'network_ids',
      key: 'network_id',
      add: attachRouterNetwork,
      remove: detachRouterNetwork,
      moves: ['networks'],
    },
  ],
  removeNeeds: { network_ids: [] },
  fields: {
    network_ids: { at: 'networks.network_id', isSet: true, refers: 'network' },
    static_routes: { of: { destination: { same: 'cidr' }, next_hop: { same: 'address' } } },
  },
  facts: ['id', 'public_ipv4', 'networks', 'created_at'],
  moments: ['is_healthy', 'health_detail', 'active_operation'],
})
