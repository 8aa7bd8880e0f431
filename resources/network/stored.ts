/** Network: a private network of an account, as it is stored. */
import { z } from 'zod'
import { DNS_SERVERS_MAXIMUM } from '../../domain/network/rules.ts'
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
const DnsServers = z.array(z.string().min(1).max(ADDRESS_LENGTH_MAXIMUM)).max(DNS_SERVERS_MAXIMUM)

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
      zone: ZoneName.describe('Zone of the network. Cannot be changed.'),
      name: z.string().min(1).max(100).describe('Display name, unique among the networks of the account in the zone.'),
      ipv4Cidr: z
        .string()
        .min(1)
        .max(CIDR_LENGTH_MAXIMUM)
        .optional()
        .describe(
          'IPv4 range of 16 to 28 bits in 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 or 100.64.0.0/10; a free ' +
            '/24 when absent. Cannot be changed.',
        ),
      dnsServers: DnsServers.default([]).describe('Addresses of the DNS servers for its hosts.'),
      dhcpEnabled: z.boolean().default(true).describe('Whether its hosts get their addresses by DHCP.'),
      labels: StoredLabels.default({}).describe('Labels, as in the API.'),
      operation: RequestedOrEditedOperation,
    })
    .describe('The desired state of the network.'),
  status: z
    .strictObject({
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
      region: z.string().max(63).optional().describe('Region of the zone.'),
      ipv4Cidr: z.string().max(CIDR_LENGTH_MAXIMUM).optional().describe('IPv4 range of the network.'),
      ipv6Prefix: z.string().max(CIDR_LENGTH_MAXIMUM).optional().describe('/64 that belongs only to this network.'),
      asked: z
        .strictObject({
          dnsServers: DnsServers.describe('Applied value of the spec.'),
          dhcpEnabled: z.boolean().describe('Applied value of the spec.'),
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
    .describe('Observed state of the network. Written by its controller.'),
  columns: [
    { name: 'Title', type: 'string', jsonPath: '.spec.name' },
    { name: 'IPv4', type: 'string', jsonPath: '.status.ipv4Cidr' },
    { name: 'IPv6', type: 'string', jsonPath: '.status.ipv6Prefix' },
    { name: 'Zone', type: 'string', jsonPath: '.spec.zone' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: ['.spec.zone'],
  rules: ['zone', 'ipv4Cidr'].map(fixed),
})
export type NetworkSpec = z.infer<typeof Network.spec>
export type NetworkStatus = z.infer<typeof Network.status>
