/** Routers as the API shows them: public shape, bridge from the stored one, routes. */
import { z } from 'zod'
import { canonicalAddress, canonicalCidr, parseAddress, parseNetwork } from '../../domain/network/addresses.ts'
import {
  canonicalRoute,
  gatewayOf,
  NETWORKS_OF_ROUTER_MAXIMUM,
  STATIC_ROUTES_MAXIMUM,
} from '../../domain/network/rules.ts'
import { EXAMPLE } from '../kit/examples.ts'
import { rangesOf, type StoredNetwork } from '../network/index.ts'
import { activeOperationOf, OperationView, toOperationView } from '../operation/index.ts'
import { DateTime, Id, Labels, PageQuery, Printable, PrintableName, type Stored, ZoneName } from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'
import { viewOf } from '../kit/view.ts'
import type { RouterSpec, RouterStatus } from './stored.ts'

const COMMENT_LENGTH_MAXIMUM = 255

export const RouterView = z
  .strictObject({
    id: z.string(),
    zone: z.string(),
    name: z.string(),
    nat_enabled: z.boolean().describe('Whether servers of its networks reach the outside through it.'),
    public_ipv4: z.string().nullable().describe('What others see of servers that reach the outside through it.'),
    networks: z
      .array(z.strictObject({ network_id: z.string(), ipv4_address: z.string(), ipv6_address: z.string() }))
      .describe('The networks that it joins, with its addresses there.'),
    static_routes: z.array(z.strictObject({ destination: z.string(), next_hop: z.string(), comment: z.string() })),
    is_healthy: z.boolean(),
    health_detail: z.string().describe('What it does not do, and why; empty when it is healthy.'),
    labels: z.record(z.string(), z.string()),
    active_operation: OperationView.nullable(),
    created_at: DateTime,
  })
  .meta({ id: 'Router' })
export type RouterView = z.infer<typeof RouterView>
export type StoredRouter = Stored<RouterSpec, RouterStatus>

/** The networks of its spec by their ids, as far as they are known. */
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
    active_operation: operation === undefined ? null : toOperationView(operation, { type: 'router', id: name }),
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
    .describe("Who takes what is sent there: an address in one of the router's networks."),
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
      .describe('Whether servers of its networks reach the outside; it is given a public address for that.'),
    network_ids: z
      .array(Id)
      .max(NETWORKS_OF_ROUTER_MAXIMUM)
      .default([])
      .describe('Networks that it joins from the beginning: of its zone, at no other router, not overlapping.'),
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

const verbs = verbsOf({ path: '/v1/routers', area: 'Routers', noun: 'router', view: RouterView })

export const listRouters = verbs.list('list_routers', {
  summary: 'List routers',
  description: 'Newest first.',
  query: PageQuery.extend({ zone: ZoneName.optional() }),
})

export const createRouter = verbs.create('create_router', {
  summary: 'Make a router',
  description:
    'It joins private networks of a zone: servers of one reach those of another. With NAT they reach the outside ' +
    'from the public address of the router.',
  needs: 'standing',
  starts: ['router.sync'],
  body: CreateRouter,
  example: { zone: 'eu-1a', name: 'out', nat_enabled: true, network_ids: [EXAMPLE.id] },
  refuses: [400, 404, 409, 422, 503],
})

export const getRouter = verbs.read('get_router', { summary: 'Read a router' })

export const updateRouter = verbs.change('update_router', {
  summary: 'Change name, labels, NAT or static routes of a router',
  description:
    'labels and static_routes replace all of them. Name and labels change at once (200), the rest starts an ' +
    'operation (202). With If-Match the change is made only to that version.',
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
  description: 'The router has the first address of the network. A network is at one router.',
  audit: 'router.attach_network',
  starts: ['router.sync'],
  body: z.strictObject({ network_id: Id }),
  example: { network_id: EXAMPLE.id },
  answers: { 202: StartedEnvelope },
})

export const detachRouterNetwork = verbs.delete('detach_router_network', '/{id}/networks/{network_id}', {
  summary: 'Detach a private network from a router',
  description: 'Its servers reach each other as before. Static routes by way of the network lead nowhere then.',
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
