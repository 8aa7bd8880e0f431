/** Interfaces of servers: what a Server says of its private networks, the interfaces as the API shows them, and their
 *  routes. */
import { z } from 'zod'
import { canonicalAddress, parseAddress } from '../../domain/network/addresses.ts'
import { INTERFACES_PER_SERVER_MAXIMUM } from '../../domain/network/interfaces.ts'
import { OperationView } from '../operation/index.ts'
import { ById, completeListOf, DateTime, Id } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'

const ADDRESS_LENGTH_MAXIMUM = 45

export const StoredNetworks = z
  .array(
    z.strictObject({
      networkId: z.string().min(1).max(253).describe('Name of the Network.'),
      ipv4Address: z
        .string()
        .min(1)
        .max(ADDRESS_LENGTH_MAXIMUM)
        .optional()
        .describe('IPv4 address that the server has there; a free one when absent. Cannot be changed.'),
      ipv6Address: z
        .string()
        .min(1)
        .max(ADDRESS_LENGTH_MAXIMUM)
        .optional()
        .describe('IPv6 address that the server has there; a free one when absent. Cannot be changed.'),
    }),
  )
  .max(INTERFACES_PER_SERVER_MAXIMUM - 1)
  .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['networkId'] })
  .describe(
    'Private networks that the server is in, of its zone. An added one is an operation server.attach_network, a ' +
      'removed one server.detach_network; both also while the guest runs.',
  )

/** The private interfaces of a server, in its status. */
export const InterfacesStatus = z
  .array(
    z.strictObject({
      id: z.string().max(63).describe('Id of the interface in the API.'),
      networkId: z.string().max(253).describe('Name of its Network.'),
      macAddress: z.string().max(17).describe('Its hardware address.'),
      ipv4Address: z.string().max(ADDRESS_LENGTH_MAXIMUM).describe('Its IPv4 address.'),
      ipv6Address: z.string().max(ADDRESS_LENGTH_MAXIMUM).describe('Its IPv6 address.'),
    }),
  )
  .max(INTERFACES_PER_SERVER_MAXIMUM - 1)

export const InterfaceView = z
  .strictObject({
    id: z.string(),
    server_id: z.string(),
    kind: z.enum(['public', 'private']),
    network_id: z.string().nullable().describe('Private network that it is in; null for the public one.'),
    mac_address: z.string(),
    ipv4_address: z.string().nullable().describe('Its IPv4 address; null without one.'),
    ipv6_address: z.string().nullable().describe('Its IPv6 address; null without one.'),
    ipv6_prefix: z.string().nullable().describe('The /64 of its IPv6 address.'),
    index: z.int().describe('0 for the public one; the others keep theirs while they are there.'),
    floating_ip_ids: z.array(z.string()).describe('Floating IPs that are assigned to it.'),
    created_at: DateTime,
  })
  .meta({ id: 'Interface' })
export type InterfaceView = z.infer<typeof InterfaceView>

const Address = (family: 'ipv4' | 'ipv6') =>
  z
    .string()
    .refine(
      (text) => parseAddress(text)?.family === family,
      `must be an ${family === 'ipv4' ? 'IPv4' : 'IPv6'} address`,
    )
    .transform(canonicalAddress)
    .nullish()

export const NetworkInput = z
  .strictObject({
    network_id: Id.describe('Private network of the account, in the zone of the server.'),
    ipv4_address: Address('ipv4').describe('An IPv4 address of the network that is free; any when left out.'),
    ipv6_address: Address('ipv6').describe('An address of the network that is free; any when left out.'),
  })
  .meta({ id: 'AttachNetwork' })
export type NetworkInput = z.infer<typeof NetworkInput>

export const NetworksInput = z
  .array(NetworkInput)
  .max(100)
  .describe(`Private networks that the server is put into, at most ${INTERFACES_PER_SERVER_MAXIMUM - 1}.`)

const interfaces = routesUnder({ path: '/v1/servers', area: 'Server interfaces' })

export const listServerInterfaces = interfaces.get('list_server_interfaces', '/{id}/interfaces', {
  summary: 'List the network interfaces of a server',
  description: 'All of them, the public one first.',
  clusterScopes: ['load_balancers'],
  answers: { 200: completeListOf(InterfaceView) },
})

export const attachServerNetwork = interfaces.post('attach_server_network', '/{id}/interfaces', {
  summary: 'Put a server into a private network',
  description:
    'Also while the guest runs: it gets a network interface, and its address by DHCP as soon as it asks. Other ' +
    `servers of the network find it by its hostname. A server has at most ${INTERFACES_PER_SERVER_MAXIMUM} ` +
    'interfaces; the public one counts.',
  starts: ['server.attach_network'],
  body: NetworkInput,
  example: { network_id: '01a1ff50-8add-720c-b721-970d86569b22', ipv4_address: '10.1.0.10' },
  answers: {
    202: z.strictObject({ interface: InterfaceView, operation: OperationView }),
  },
  refuses: [400, 404, 409, 422, 503],
})

export const detachServerNetwork = interfaces.delete('detach_server_network', '/{id}/interfaces/{interface_id}', {
  summary: 'Take a server out of a private network',
  description:
    'Also while the guest runs. Its addresses are free again when the host reports that the guest has released them.',
  starts: ['server.detach_network'],
  params: ById.extend({ interface_id: Id.describe('A private interface of the server.') }),
})
