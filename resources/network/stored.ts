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
    'A private network of an account in a zone: servers that are in it reach each other and nobody else does, by ' +
    'IPv4 and by IPv6. A Router joins it with others and leads outside. It cannot go while something is in it.',
  spec: z
    .strictObject({
      zone: ZoneName.describe('Zone that it is in. Cannot be changed.'),
      name: z
        .string()
        .min(1)
        .max(100)
        .describe('Name for people, unique among the networks of the account in the zone.'),
      ipv4Cidr: z
        .string()
        .min(1)
        .max(CIDR_LENGTH_MAXIMUM)
        .optional()
        .describe(
          'Its IPv4 range, of 16 to 28 bits in 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 or 100.64.0.0/10; a free ' +
            '/24 when absent. Cannot be changed.',
        ),
      dnsServers: DnsServers.default([]).describe('Addresses of the servers that its hosts ask for names.'),
      dhcpEnabled: z.boolean().default(true).describe('Whether its hosts get their addresses by DHCP.'),
      labels: StoredLabels.default({}).describe('Labels of the API.'),
      operation: RequestedOrEditedOperation,
    })
    .describe('The desired state of the network.'),
  status: z
    .strictObject({
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
      region: z.string().max(63).optional().describe('Region of the zone.'),
      ipv4Cidr: z.string().max(CIDR_LENGTH_MAXIMUM).optional().describe('The IPv4 range that it has.'),
      ipv6Prefix: z.string().max(CIDR_LENGTH_MAXIMUM).optional().describe('The /64 that it has, of nobody else.'),
      asked: z
        .strictObject({
          dnsServers: DnsServers.describe('As in the spec.'),
          dhcpEnabled: z.boolean().describe('As in the spec.'),
        })
        .optional()
        .describe('What the newest operation was to bring about, by which a direct edit is known.'),
      appliedSequence: z
        .int()
        .min(0)
        .optional()
        .describe('The change of the network database after which the newest operation waits for its hosts.'),
      operation: ReportedOperation,
    })
    .describe('What the network is. Written by its controller.'),
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
