/** Network: a private network of an account. Stored shape, public shape, conversion and routes. */
import { z } from 'zod'
import { DNS_SERVERS_MAXIMUM, gatewayOf, rangeFault } from '../../domain/network/rules.ts'
import { resource } from '../kit/define.ts'
import {
  DateTime,
  LabelFilters,
  Labels,
  PageQuery,
  PrintableName,
  ReportedOperation,
  RequestedOrEditedOperation,
  type Stored,
  StoredLabels,
  ZoneName,
} from '../kit/shapes.ts'
import { canonicalAddress, parseAddress } from '../../domain/network/addresses.ts'
import { OperationView, activeOperationOf, namedTarget, toOperationView } from '../operation/index.ts'
import { verbsOf } from '../kit/verbs.ts'
import { viewOf } from '../kit/view.ts'
import { AddressText, AppliedSequence, CidrText, OBSERVED, StoredDisplayName } from '../kit/fields.ts'
import { AGE, READY, TITLE, ZONE } from '../kit/columns.ts'
import { managed } from '../kit/managed.ts'

const StoredDnsServers = z.array(AddressText.min(1)).max(DNS_SERVERS_MAXIMUM)

export const Network = resource({
  kind: 'Network',
  plural: 'networks',
  shortNames: ['net'],
  scope: 'Namespaced',
  customers: 'write',
  description:
    'A private network of an account in a zone. Servers in it reach each other over IPv4 and IPv6; nobody else ' +
    'can reach them through it. A Router connects it to other networks and to the outside. It cannot be deleted ' +
    'while something is in it.',
  spec: z
    .strictObject({
      zone: ZoneName.describe('Zone of the network.'),
      name: StoredDisplayName.describe('Display name, unique among the networks of the account in the zone.'),
      ipv4Cidr: CidrText.min(1)
        .optional()
        .describe(
          'IPv4 range of 16 to 28 bits in 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 or 100.64.0.0/10; a free ' +
            '/24 when absent.',
        ),
      dnsServers: StoredDnsServers.default([]).describe('Addresses of the DNS servers for its hosts.'),
      dhcpEnabled: z.boolean().default(true).describe('Whether its hosts get their addresses by DHCP.'),
      labels: StoredLabels.default({}).describe('Labels, as in the API.'),
      operation: RequestedOrEditedOperation,
    })
    .describe('The desired state of the network.'),
  status: z
    .strictObject({
      ...OBSERVED,
      region: z.string().max(63).optional().describe('Region of the zone.'),
      ipv4Cidr: CidrText.optional().describe('IPv4 range of the network.'),
      ipv6Prefix: CidrText.optional().describe('/64 that belongs only to this network.'),
      asked: z
        .strictObject({
          dnsServers: StoredDnsServers.describe('Applied value of the spec.'),
          dhcpEnabled: z.boolean().describe('Applied value of the spec.'),
        })
        .optional()
        .describe('Target of the newest operation; a difference from the spec shows a direct edit.'),
      appliedSequence: AppliedSequence,
      operation: ReportedOperation,
    })
    .describe('Observed state of the network. Written by its controller.'),
  columns: [
    TITLE,
    { name: 'IPv4', type: 'string', jsonPath: '.status.ipv4Cidr' },
    { name: 'IPv6', type: 'string', jsonPath: '.status.ipv6Prefix' },
    ZONE,
    READY,
    AGE,
  ],
  selectableFields: ['.spec.zone'],
  fixed: ['zone', 'ipv4Cidr'],
})
export type NetworkSpec = z.infer<typeof Network.spec>
export type NetworkStatus = z.infer<typeof Network.status>

export const NetworkView = z
  .strictObject({
    id: z.string(),
    zone: z.string(),
    region: z.string(),
    name: z.string(),
    ipv4_cidr: z.string().describe('The IPv4 range of the network.'),
    ipv6_prefix: z.string().describe('Additional /64 that belongs only to this network.'),
    gateway_ipv4: z.string().nullable().describe("Address of the network's router; null while it has none."),
    dhcp_enabled: z.boolean().describe('Whether servers get their addresses by DHCP.'),
    dns_servers: z.array(z.string()).describe('DNS servers for servers of the network.'),
    router_id: z.string().nullable().describe('Router that the network is attached to; null when there is none.'),
    edge_id: z.string().nullable().describe('Edge of the network; null when there is none.'),
    server_count: z.int().describe('Number of servers in the network.'),
    labels: z.record(z.string(), z.string()),
    active_operation: OperationView.nullable(),
    created_at: DateTime,
  })
  .meta({ id: 'Network' })
export type NetworkView = z.infer<typeof NetworkView>
export type StoredNetwork = Stored<NetworkSpec, NetworkStatus>

/** Facts of other objects that the view needs. */
export interface NetworkSurroundings {
  readonly region: string | undefined
  readonly routerId: string | undefined
  readonly edgeId: string | undefined
  readonly serverCount: number
}

/** The ranges of the network after they are claimed; empty strings before. */
export function rangesOf({ spec, status }: Pick<StoredNetwork, 'spec' | 'status'>): {
  readonly ipv4Cidr: string
  readonly ipv6Prefix: string
} {
  const { ipv6_prefix: claimed = '' } = spec.operation?.arguments ?? {}
  return { ipv4Cidr: status?.ipv4Cidr ?? spec.ipv4Cidr ?? '', ipv6Prefix: status?.ipv6Prefix ?? claimed }
}

export function toNetworkView(network: StoredNetwork, surroundings: NetworkSurroundings): NetworkView {
  const { name, spec, status, createdAt } = network
  const { ipv4Cidr, ipv6Prefix } = rangesOf(network)
  const operation = activeOperationOf(network)
  const { region, routerId = null, edgeId = null, serverCount } = surroundings
  return viewOf(NetworkView, spec, {
    id: name,
    region: region ?? status?.region ?? '',
    ipv4_cidr: ipv4Cidr,
    ipv6_prefix: ipv6Prefix,
    gateway_ipv4: routerId === null || ipv4Cidr === '' ? null : gatewayOf(ipv4Cidr),
    dns_servers: spec.dnsServers.map(canonicalAddress),
    router_id: routerId,
    edge_id: edgeId,
    server_count: serverCount,
    active_operation: operation === undefined ? null : toOperationView(operation, namedTarget('network', network)),
    created_at: createdAt,
  })
}

/** A range that a customer chooses. */
export const Ipv4Range = z.string().superRefine((cidr, context) => {
  const fault = rangeFault(cidr)
  if (fault !== undefined) context.addIssue({ code: 'custom', message: fault })
})
export const DnsServers = z
  .array(
    z
      .string()
      .refine((text) => parseAddress(text) !== undefined, 'must be an address')
      .transform(canonicalAddress),
  )
  .max(DNS_SERVERS_MAXIMUM)
  .describe(`Addresses of at most ${DNS_SERVERS_MAXIMUM} DNS servers for servers of the network.`)

export const CreateNetwork = z
  .strictObject({
    zone: ZoneName,
    name: PrintableName.describe('Unique among the networks of the account in the zone.'),
    ipv4_cidr: Ipv4Range.optional().describe(
      '16 to 28 bits in 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 or 100.64.0.0/10. Defaults to a free /24.',
    ),
    dns_servers: DnsServers.default([]),
    labels: Labels.default({}),
  })
  .meta({ id: 'CreateNetwork' })
export type CreateNetwork = z.infer<typeof CreateNetwork>

export const UpdateNetwork = z
  .strictObject({
    name: PrintableName.optional(),
    labels: Labels.optional(),
    dns_servers: DnsServers.optional(),
    dhcp_enabled: z.boolean().optional(),
  })
  .meta({ id: 'UpdateNetwork' })
export type UpdateNetwork = z.infer<typeof UpdateNetwork>

const verbs = verbsOf({ path: '/v1/networks', noun: 'network', view: NetworkView })

export const listNetworks = verbs.list('list_networks', {
  summary: 'List private networks',
  description: 'Newest first. A network must have every given label.',
  query: PageQuery.extend({ zone: ZoneName.optional(), label: LabelFilters }),
})

export const createNetwork = verbs.create('create_network', {
  summary: 'Create a private network',
  description:
    'Servers in the network reach each other over IPv4 and IPv6; nobody else can reach them through it. Networks ' +
    'of other accounts may have the same range. A router connects it to other networks and to the outside.',
  needs: 'verified',
  starts: ['network.sync'],
  body: CreateNetwork,
  example: { zone: 'eu-1a', name: 'back', ipv4_cidr: '10.1.0.0/24' },
  refuses: [400, 409, 422, 503],
})

export const getNetwork = verbs.read('get_network', { summary: 'Get a private network' })

export const updateNetwork = verbs.change('update_network', {
  summary: 'Update name, labels, DNS servers or DHCP of a private network',
  description:
    'labels replaces all labels. Name and labels change immediately (200); changes that hosts must apply start an ' +
    'operation (202). Servers apply them when they renew their addresses. With If-Match only that version is ' +
    'changed.',
  starts: ['network.sync'],
  body: UpdateNetwork,
  example: { dns_servers: ['10.1.0.53'] },
})

export const deleteNetwork = verbs.remove('delete_network', {
  summary: 'Delete a private network',
  description: 'The network must be empty: no servers, no router, and nothing that the platform runs in it.',
  starts: ['network.sync'],
})

export const NETWORK_ROUTES = [listNetworks, createNetwork, getNetwork, updateNetwork, deleteNetwork] as const

export const managedNetwork = managed({
  noun: 'network',
  view: NetworkView,
  routes: { list: listNetworks, create: createNetwork, read: getNetwork, remove: deleteNetwork },
  names: ['name'],
  uniqueIn: 'zone',
  changes: [{ by: updateNetwork, sets: ['name', 'labels', 'dns_servers', 'dhcp_enabled'] }],
  fields: {
    ipv4_cidr: { same: 'cidr' },
    dns_servers: { same: 'address' },
    dhcp_enabled: { default: true },
  },
  facts: ['id', 'region', 'ipv6_prefix', 'created_at'],
  moments: ['gateway_ipv4', 'router_id', 'edge_id', 'server_count', 'active_operation'],
})
