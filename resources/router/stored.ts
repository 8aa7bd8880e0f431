/** Router: connects private networks of an account, as it is stored. */
import { z } from 'zod'
import { NETWORKS_OF_ROUTER_MAXIMUM, STATIC_ROUTES_MAXIMUM } from '../../domain/network/rules.ts'
import { fixed, resource } from '../kit/define.ts'
import {
  Conditions,
  ObservedGeneration,
  ReportedOperation,
  RequestedOrEditedOperation,
  StoredLabels,
  ZoneName,
} from '../kit/shapes.ts'

const CIDR_LENGTH_MAXIMUM = 49
const ADDRESS_LENGTH_MAXIMUM = 45
const ROUTE_COMMENT_LENGTH_MAXIMUM = 255
const Address = z.string().min(1).max(ADDRESS_LENGTH_MAXIMUM)

const NetworkIds = z
  .array(z.string().min(1).max(253))
  .max(NETWORKS_OF_ROUTER_MAXIMUM)
  .meta({ 'x-kubernetes-list-type': 'set' })
const StaticRoutes = z
  .array(
    z.strictObject({
      destination: z.string().min(1).max(CIDR_LENGTH_MAXIMUM).describe('Destination network.'),
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
      zone: ZoneName.describe('Zone of the router. Cannot be changed.'),
      name: z.string().min(1).max(100).describe('Display name, unique among the routers of the account in the zone.'),
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
      staticRoutes: StaticRoutes.default([]).describe('Additional routes.'),
      labels: StoredLabels.default({}).describe('Labels, as in the API.'),
      operation: RequestedOrEditedOperation,
    })
    .describe('The desired state of the router.'),
  status: z
    .strictObject({
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
      region: z.string().max(63).optional().describe('Region of the zone.'),
      publicIpv4: Address.optional().describe('Public source address of the hosts behind it.'),
      networks: z
        .array(
          z.strictObject({
            networkId: z.string().max(253).describe('Name of the Network.'),
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
          staticRoutes: StaticRoutes.describe('Applied value of the spec.'),
        })
        .optional()
        .describe('Target of the newest operation; a difference from the spec shows a direct edit.'),
      appliedSequence: z
        .int()
        .min(0)
        .optional()
        .describe('Change of the network database that the newest operation waits for on the hosts.'),
      operation: ReportedOperation,
    })
    .describe('Observed state of the router. Written by its controller.'),
  columns: [
    { name: 'Title', type: 'string', jsonPath: '.spec.name' },
    { name: 'NAT', type: 'boolean', jsonPath: '.spec.natEnabled' },
    { name: 'Address', type: 'string', jsonPath: '.status.publicIpv4' },
    { name: 'Zone', type: 'string', jsonPath: '.spec.zone' },
    { name: 'Healthy', type: 'boolean', jsonPath: '.status.isHealthy' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: ['.spec.zone'],
  rules: [fixed('zone')],
})
export type RouterSpec = z.infer<typeof Router.spec>
export type RouterStatus = z.infer<typeof Router.status>
