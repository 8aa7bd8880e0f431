/** Interfaces of servers: the private networks in a Server, the interfaces as the API shows them, and their routes. */
import { z } from 'zod'
import { canonicalAddress, parseAddress } from '../../domain/network/addresses.ts'
import { INTERFACES_PER_SERVER_MAXIMUM } from '../../domain/network/interfaces.ts'
import { OperationView } from '../operation/index.ts'
import { ById, completeListOf, DateTime, Id } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'
import { AddressText, ObjectName } from '../kit/fields.ts'

export const StoredNetworks = z
  .array(
    z.strictObject({
      networkId: z.string().min(1).max(253).describe('Name of the Network.'),
      ipv4Address: AddressText.min(1)
        .optional()
        .describe('IPv4 address of the server in the network; a free one when absent. Cannot be changed.'),
      ipv6Address: AddressText.min(1)
        .optional()
        .describe('IPv6 address of the server in the network; a free one when absent. Cannot be changed.'),
    }),
  )
  .max(INTERFACES_PER_SERVER_MAXIMUM - 1)
  .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['networkId'] })
  .describe(
    'Private networks of the server, in its zone. Adding one starts an operation server.attach_network, ' +
      'removing one server.detach_network; both work while the guest runs.',
  )

/** The private interfaces of a server, in its status. */
export const InterfacesStatus = z
  .array(
    z.strictObject({
      id: z.string().max(63).describe('Id of the interface in the API.'),
      networkId: ObjectName.describe('Name of its Network.'),
      macAddress: z.string().max(17).describe('Its hardware address.'),
      ipv4Address: AddressText.describe('Its IPv4 address.'),
      ipv6Address: AddressText.describe('Its IPv6 address.'),
    }),
  )
  .max(INTERFACES_PER_SERVER_MAXIMUM - 1)

export const InterfaceView = z
  .strictObject({
    id: z.string(),
    server_id: z.string(),
    kind: z.enum(['public', 'private']),
    network_id: z.string().nullable().describe('Private network of the interface; null for the public one.'),
    mac_address: z.string(),
    ipv4_address: z.string().nullable().describe('Its IPv4 address; null when there is none.'),
    ipv6_address: z.string().nullable().describe('Its IPv6 address; null when there is none.'),
    ipv6_prefix: z.string().nullable().describe('The /64 of its IPv6 address.'),
    index: z.int().describe('0 for the public one; the others keep their number while they exist.'),
    floating_ip_ids: z.array(z.string()).describe('Assigned floating IPs.'),
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
    ipv4_address: Address('ipv4').describe('Free IPv4 address of the network; any when omitted.'),
    ipv6_address: Address('ipv6').describe('Free IPv6 address of the network; any when omitted.'),
  })
  .meta({ id: 'AttachNetwork' })
export type NetworkInput = z.infer<typeof NetworkInput>

export const NetworksInput = z
  .array(NetworkInput)
  .max(100)
  .describe(`Private networks to attach the server to, at most ${INTERFACES_PER_SERVER_MAXIMUM - 1}.`)

const interfaces = routesUnder({ path: '/v1/servers' })

export const listServerInterfaces = interfaces.get('list_server_interfaces', '/{id}/interfaces', {
  summary: 'List the network interfaces of a server',
  description: 'All interfaces, the public one first.',
  clusterScopes: ['load_balancers'],
  answers: { 200: completeListOf(InterfaceView) },
})

export const attachServerNetwork = interfaces.post('attach_server_network', '/{id}/interfaces', {
  summary: 'Attach a server to a private network',
  description:
    'Works while the guest runs: it gets a network interface, and an address by DHCP when it requests one. Other ' +
    `servers in the network can resolve its hostname. A server has at most ${INTERFACES_PER_SERVER_MAXIMUM} ` +
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
  summary: 'Detach a server from a private network',
  description:
    'Works while the guest runs. Its addresses are free again when the host reports that the guest has released them.',
  starts: ['server.detach_network'],
  params: ById.extend({ interface_id: Id.describe('A private interface of the server.') }),
})
