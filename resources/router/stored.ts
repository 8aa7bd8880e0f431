/** Router: what joins private networks of an account, as it is stored. */
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
      nextHop: Address.describe('Who takes what is sent there: an address in one of the networks.'),
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
    'Joins private networks of an account in a zone: their hosts reach each other through it, and with NAT they ' +
    'reach the outside from its public address. A network has one router. It cannot go while it has networks.',
  spec: z
    .strictObject({
      zone: ZoneName.describe('Zone that it is in. Cannot be changed.'),
      name: z
        .string()
        .min(1)
        .max(100)
        .describe('Name for people, unique among the routers of the account in the zone.'),
      natEnabled: z
        .boolean()
        .default(false)
        .describe('Whether hosts of its networks reach the outside, from a public address that it is given for that.'),
      networkIds: NetworkIds.default([]).describe(
        'Names of its Networks, which are in its zone, at no other router, and do not overlap.',
      ),
      staticRoutes: StaticRoutes.default([]).describe('Where else it leads.'),
      labels: StoredLabels.default({}).describe('Labels of the API.'),
      operation: RequestedOrEditedOperation,
    })
    .describe('The desired state of the router.'),
  status: z
    .strictObject({
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
      region: z.string().max(63).optional().describe('Region of the zone.'),
      publicIpv4: Address.optional().describe('The address that others see of hosts behind it.'),
      networks: z
        .array(
          z.strictObject({
            networkId: z.string().max(253).describe('Name of the Network.'),
            ipv4Address: Address.describe('Its address there.'),
            ipv6Address: Address.describe('Its IPv6 address there.'),
          }),
        )
        .max(NETWORKS_OF_ROUTER_MAXIMUM)
        .optional()
        .describe('Networks that are at it.'),
      isHealthy: z.boolean().optional().describe('Whether it is healthy.'),
      healthDetail: z.string().max(1024).optional().describe('What it does not do, and why; for people.'),
      asked: z
        .strictObject({
          natEnabled: z.boolean().describe('As in the spec.'),
          networkIds: NetworkIds.describe('As in the spec.'),
          staticRoutes: StaticRoutes.describe('As in the spec.'),
        })
        .optional()
        .describe('What the newest operation was to bring about, by which a direct edit is known.'),
      appliedSequence: z
        .int()
        .min(0)
        .optional()
        .describe('The change of the network database after which the newest operation waits for the hosts.'),
      operation: ReportedOperation,
    })
    .describe('What the router is. Written by its controller.'),
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
