/** Making, reading, changing and deleting private networks. */
import { isDeepStrictEqual } from 'node:util'
import type { Transaction } from 'kysely'
import type { AuditChange } from '../../domain/audit.ts'
import { requireDeletable, requireIdle } from '../../domain/idle-rules.ts'
import {
  claimNetwork,
  endNetwork,
  releaseNetwork,
  renameNetwork,
  withdrawNetworkEnd,
  withdrawNetworkName,
} from '../../db/network/index.ts'
import type { Tables } from '../../db/tables.ts'
import type { Answer, Call, Customer } from '../../kit/http/call.ts'
import { customerEndpoint, type Endpoint } from '../../kit/http/endpoint.ts'
import { replacing } from '../../kit/kube/merge-patch.ts'
import { finalizerOf } from '../../resources/define.ts'
import {
  createNetwork,
  deleteNetwork,
  getNetwork,
  listNetworks,
  Network,
  type NetworkSpec,
  type UpdateNetwork,
  updateNetwork,
} from '../../resources/network/index.ts'
import { isBeingDeleted } from '../../resources/operation/index.ts'
import { create } from '../change/create.ts'
import { begin, operate } from '../change/operate.ts'
import type { Parts } from '../parts.ts'
import { changeObject } from '../plain/change-object.ts'
import { etagOfObject, getObject, labelsOfQuery, listObjects } from '../plain/objects.ts'
import type { NetworkObject, Networks } from './networks.ts'
import { requirePrivateNetworks } from './rules.ts'

export type NetworkParts = Parts & { readonly networks: Networks }

export const networkEndpoints = (parts: NetworkParts): readonly Endpoint[] => [
  getObject(parts.networks, getNetwork),
  listObjects(parts, parts.networks, listNetworks, ({ zone, label }) => ({
    labels: labelsOfQuery(label),
    fields: { zone },
  })),
  customerEndpoint(createNetwork, (call) => createEndpoint(parts, call)),
  customerEndpoint(updateNetwork, (call) => update(parts, call)),
  customerEndpoint(deleteNetwork, (call) => remove(parts, call)),
]

async function createEndpoint(parts: NetworkParts, call: Call<typeof createNetwork, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    body: { zone, name, ipv4_cidr: ipv4Cidr, dns_servers, labels },
  } = call
  requirePrivateNetworks(parts, zone)
  return create(parts, parts.networks, call, {
    kind: 'network.sync',
    arguments: { action: 'create' },
    finalizer: finalizerOf(Network),
    detail: { zone, name },
    claim: (tx, networkId) => claimNetwork(tx, { accountId, networkId, zone, name, ipv4Cidr }, parts.random),
    release: (tx, networkId) => releaseNetwork(tx, { accountId, networkId }),
    specOf: (operation, claimed): NetworkSpec => ({
      zone,
      name,
      ipv4Cidr: claimed.ipv4Cidr,
      dnsServers: dns_servers,
      dhcpEnabled: true,
      labels,
      operation: { ...operation, arguments: { ...operation.arguments, ipv6_prefix: claimed.ipv6Prefix } },
    }),
  })
}

/** What hosts are told of starts an operation; the rest is there at once. */
async function update(parts: NetworkParts, call: Call<typeof updateNetwork, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    params: { id: networkId },
    body,
  } = call
  const { networks } = parts
  const { spec } = await networks.read(accountId, networkId)
  const { name } = body
  const id = { accountId, networkId }
  const isRenamed = name !== undefined && name !== spec.name
  const claim = isRenamed ? { claim: (tx: Transaction<Tables>) => renameNetwork(tx, id, name) } : {}
  const restore = (tx: Transaction<Tables>, stored: NetworkObject | undefined) =>
    withdrawNetworkName(tx, id, stored?.spec.name)
  if (!tellsHosts(spec, body)) {
    const written = await changeObject(parts, networks, call, {
      changes: (network) => changesOf(network.spec, body),
      patch: (network) => patchOf(network.spec, body),
      ...claim,
      ...(isRenamed ? { release: restore } : {}),
    })
    return { status: 200, body: { network: networks.viewOf(written) }, headers: { etag: etagOfObject(written) } }
  }
  const operation = await begin(parts, networks, call, {
    kind: 'network.sync',
    arguments: { action: 'update' },
    validate: (facts) => requireIdle('network', facts),
    changes: (network) => changesOf(network.spec, body),
    spec: ({ target }) => patchOf(target.spec, body),
    ...claim,
    ...(isRenamed ? { release: (tx, { stored }) => restore(tx, stored) } : {}),
  })
  const network = networks.find(accountId, networkId) ?? (await networks.read(accountId, networkId))
  return {
    status: 202,
    body: { network: networks.viewOf(network), operation },
    headers: { etag: etagOfObject(network) },
  }
}

const tellsHosts = (spec: NetworkSpec, { dns_servers, dhcp_enabled }: UpdateNetwork): boolean =>
  (dns_servers !== undefined && !isDeepStrictEqual(dns_servers, spec.dnsServers)) ||
  (dhcp_enabled !== undefined && dhcp_enabled !== spec.dhcpEnabled)

const patchOf = (spec: NetworkSpec, { name, labels, dns_servers, dhcp_enabled }: UpdateNetwork) => ({
  ...(name === undefined ? {} : { name }),
  ...(labels === undefined ? {} : { labels: replacing(spec.labels, labels) }),
  ...(dns_servers === undefined ? {} : { dnsServers: dns_servers }),
  ...(dhcp_enabled === undefined ? {} : { dhcpEnabled: dhcp_enabled }),
})

function changesOf(spec: NetworkSpec, body: UpdateNetwork): readonly AuditChange[] {
  const fields = [
    ['name', spec.name, body.name],
    ['labels', spec.labels, body.labels],
    ['dns_servers', spec.dnsServers, body.dns_servers],
    ['dhcp_enabled', spec.dhcpEnabled, body.dhcp_enabled],
  ] as const
  return fields.flatMap(([field, before, after]) =>
    after === undefined || isDeepStrictEqual(before, after) ? [] : [{ field, before, after }],
  )
}

function remove(parts: NetworkParts, call: Call<typeof deleteNetwork, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    params: { id: networkId },
  } = call
  return operate(parts, parts.networks, call, {
    kind: 'network.sync',
    arguments: { action: 'delete' },
    validate: (facts) => requireDeletable('network', facts),
    spec: {},
    claim: (tx) => endNetwork(tx, { accountId, networkId }),
    release: (tx, { stored }) =>
      withdrawNetworkEnd(tx, { accountId, networkId }, stored === undefined || isBeingDeleted(stored)),
  })
}
