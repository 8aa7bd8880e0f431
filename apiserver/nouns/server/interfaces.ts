/** Interfaces of servers: reading them, attaching servers to private networks and detaching them. */
import { badField, conflict, notFound, quotaExceeded } from '../../../domain/problem.ts'
import { INTERFACES_PER_SERVER_MAXIMUM } from '../../../domain/network/interfaces.ts'
import { requireIdle } from '../../../domain/server/rules.ts'
import {
  attachNewInterface,
  type ClaimedInterface,
  findInterface,
  type InterfaceDemand,
  listFloatingTargets,
  listInterfacesOf,
  withdrawInterface,
  requireUntargeted,
} from '../../../db/network-interface/index.ts'
import { prefixOf } from '../../../domain/public-pool/rules.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { Network } from '../../../resources/network/index.ts'
import {
  attachServerNetwork,
  detachServerNetwork,
  type InterfaceView,
  listServerInterfaces,
  type NetworkInput,
} from '../../../resources/server/index.ts'
import { begin, operate } from '../../kit/change/operate.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'
import type { Parts } from '../../kit/parts.ts'
import { inWords, WORDS } from '../../kit/words.ts'
import type { ServerObject, Servers } from './objects.ts'

export const interfaceEndpoints = (parts: Parts, servers: Servers): readonly Endpoint[] => [
  customerEndpoint(listServerInterfaces, async ({ caller: { accountId }, params: { id: serverId } }) => {
    const [items = []] = await interfacesOf(parts, accountId, [await servers.read(accountId, serverId)])
    return { status: 200, body: { items, next_cursor: null } }
  }),
  customerEndpoint(attachServerNetwork, async (call) => {
    const {
      caller: { accountId },
      params: { id: serverId },
      body,
      now,
    } = call
    servers.requireOwn(await servers.read(accountId, serverId))
    const demand = await demandOf(parts, accountId, body)
    let claimed: ClaimedInterface | undefined
    const beginning = begin(parts, servers, call, {
      kind: 'server.attach_network',
      validate: requireIdle,
      changes: () => [{ field: 'network_id', before: null, after: body.network_id }],
      claim: async (tx) => {
        claimed = await attachNewInterface(tx, { accountId, serverId, ...demand }, { now, random: parts.random })
      },
      release: (tx, { stored }) =>
        withdrawInterface(
          tx,
          { accountId, serverId, networkId: demand.networkId },
          stored?.spec.networks?.some(({ networkId }) => networkId === demand.networkId) === true,
        ),
      spec: ({ target }) => ({ networks: [...(target.spec.networks ?? []), entryOf(body)] }),
    })
    const operation = await inWords(WORDS.rest, () => beginning)
    if (claimed === undefined) throw new Error('a server was put into no network')
    return { status: 202, body: { interface: privateView(serverId, claimed), operation } }
  }),
  customerEndpoint(detachServerNetwork, async (call) => {
    const {
      caller: { accountId },
      params: { id: serverId, interface_id: id },
    } = call
    const server = await servers.read(accountId, serverId)
    servers.requireOwn(server)
    if (id === publicIdOf(server))
      throw conflict('state_not_allowed', 'The public interface stays with its server.', {
        resource: { type: 'server', id: serverId },
      })
    const { networkId } = await findInterface(parts.db, { accountId, serverId }, id)
    return operate(parts, servers, call, {
      kind: 'server.detach_network',
      validate: requireIdle,
      changes: () => [{ field: 'network_id', before: networkId, after: null }],
      claim: (tx) => requireUntargeted(tx, { accountId, serverId, networkId }),
      spec: ({ target }) => ({
        networks: (target.spec.networks ?? []).filter((entry) => entry.networkId !== networkId),
      }),
    })
  }),
]

/** The interfaces of each server, the public one first. */
export async function interfacesOf(
  { db }: Pick<Parts, 'db'>,
  accountId: string,
  servers: readonly ServerObject[],
): Promise<readonly InterfaceView[][]> {
  const serverIds = servers.map(({ metadata: { name } }) => name)
  const interfaces = await listInterfacesOf(db, { accountId, serverIds })
  const targets = await listFloatingTargets(db, { accountId, serverIds })
  return servers.map((server) => {
    const { name } = server.metadata
    const own = targets.get(name)
    return [
      publicView(server, own?.get(undefined)),
      ...(interfaces.get(name) ?? []).map((each) => privateView(name, each, own?.get(each.networkId))),
    ]
  })
}

/** Of the public interface: there is one for each server. */
const publicIdOf = ({ metadata: { uid = '' } }: ServerObject): string => uid

function publicView(server: ServerObject, floatingIps: readonly string[] = []): InterfaceView {
  const { createdAt, name, status } = storedOf(server)
  const { macAddress, publicIpv4 = null, publicIpv6 = null } = status ?? {}
  return {
    id: publicIdOf(server),
    server_id: name,
    kind: 'public',
    network_id: null,
    mac_address: macAddress ?? server.spec.operation?.arguments?.['mac_address'] ?? '',
    ipv4_address: publicIpv4,
    ipv6_address: publicIpv6,
    ipv6_prefix: publicIpv6 === null ? null : prefixOf(publicIpv6),
    index: 0,
    floating_ip_ids: [...floatingIps],
    created_at: createdAt,
  }
}

const privateView = (
  serverId: string,
  { id, networkId, macAddress, ipv4Address, ipv6Address, ipv6Prefix, slot, createdAt }: ClaimedInterface,
  floatingIps: readonly string[] = [],
): InterfaceView => ({
  id,
  server_id: serverId,
  kind: 'private',
  network_id: networkId,
  mac_address: macAddress,
  ipv4_address: ipv4Address,
  ipv6_address: ipv6Address,
  ipv6_prefix: ipv6Prefix,
  index: slot,
  floating_ip_ids: [...floatingIps],
  created_at: createdAt,
})

/** In the form of the spec of a server. */
export const entryOf = ({ network_id, ipv4_address, ipv6_address }: NetworkInput) => ({
  networkId: network_id,
  ...(ipv4_address == null ? {} : { ipv4Address: ipv4_address }),
  ...(ipv6_address == null ? {} : { ipv6Address: ipv6_address }),
})

/** Throws 404 for a network that is not the account's. */
async function demandOf(
  { store }: Pick<Parts, 'store'>,
  accountId: string,
  input: NetworkInput,
): Promise<InterfaceDemand> {
  const network = await store.get(Network, { namespace: accountNamespace(accountId), name: input.network_id })
  if (network?.metadata.uid === undefined) throw notFound('network')
  return { ...entryOf(input), networkUid: network.metadata.uid }
}

/** The networks of a new server. Throws 404 for a network that is not the account's, 400 for one that is named twice,
 *  and 422 for too many. */
export async function chooseNetworks(
  parts: Pick<Parts, 'store'>,
  accountId: string,
  inputs: readonly NetworkInput[],
): Promise<readonly InterfaceDemand[]> {
  if (inputs.length >= INTERFACES_PER_SERVER_MAXIMUM)
    throw quotaExceeded({
      name: 'interfaces',
      limit: INTERFACES_PER_SERVER_MAXIMUM,
      used: 1,
      requested: inputs.length,
    })
  const twice = inputs.findIndex(
    ({ network_id }, index) => inputs.findIndex((other) => other.network_id === network_id) !== index,
  )
  if (twice !== -1) throw badField(`networks.${twice}.network_id`, 'is named before')
  return Promise.all(inputs.map((input) => demandOf(parts, accountId, input)))
}
