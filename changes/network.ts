/** The changes of a private network. */
import { defined } from '../domain/defined.ts'
import { requireDeletable, requireIdle } from '../domain/idle-rules.ts'
import {
  claimNetwork,
  endNetwork,
  releaseNetwork,
  renameNetwork,
  withdrawNetworkEnd,
  withdrawNetworkName,
} from '../db/network/index.ts'
import { Zone } from '../resources/catalog/index.ts'
import * as routes from '../resources/network/index.ts'
import { DnsServers, Ipv4Range, Network, type NetworkSpec } from '../resources/network/index.ts'
import { idleFactsOf, isBeingDeleted } from '../resources/operation/index.ts'
import { Labels, PrintableName } from '../resources/kit/shapes.ts'
import { changesOf, fromBody, type Patch, type Target } from './kit/define.ts'
import { requireReadable } from './kit/readable.ts'
import { requirePrivateNetworks } from './kit/zone.ts'

const networkOf = ({ accountId, id }: Target) => ({ accountId, networkId: id })

export const networkChanges = changesOf(Network, {
  name: 'network',
  title: 'network',
  finalizedWhen: 'nothing of the network is left',
  factsOf: idleFactsOf,
  reads: [Zone],
  readable({ name, labels, ipv4Cidr, dnsServers }) {
    requireReadable('name', PrintableName, name)
    requireReadable('labels', Labels, labels)
    if (ipv4Cidr !== undefined) requireReadable('ipv4Cidr', Ipv4Range, ipv4Cidr)
    requireReadable('dnsServers', DnsServers, dnsServers)
  },
  create: {
    name: 'create',
    operation: 'network.sync',
    needs: 'verified',
    allow: ({ spec }, world) => requirePrivateNetworks(world, spec.zone),
    async claim(tx, { spec: { zone, name, ipv4Cidr }, ...target }, { random }) {
      const claimed = await claimNetwork(tx, { ...networkOf(target), zone, name, ipv4Cidr }, random)
      return { spec: { ipv4Cidr: claimed.ipv4Cidr }, arguments: { ipv6_prefix: claimed.ipv6Prefix } }
    },
    release: (tx, target) => releaseNetwork(tx, networkOf(target)),
    detail: ({ zone, name }) => ({ zone, name }),
    by: fromBody(
      routes.createNetwork,
      ({ zone, name, ipv4_cidr, dns_servers, labels }): NetworkSpec => ({
        zone,
        name,
        ...defined({ ipv4Cidr: ipv4_cidr }),
        dnsServers: dns_servers,
        dhcpEnabled: true,
        labels,
      }),
    ),
  },
  changes: {
    /** A name that another network has is refused, and the network keeps working under its previous one. */
    rename: {
      sets: ['name'],
      action: 'update',
      claim: (tx, { spec, ...target }) => renameNetwork(tx, networkOf(target), spec.name),
      release: (tx, target, stored) => withdrawNetworkName(tx, networkOf(target), stored?.spec.name),
      by: fromBody(routes.updateNetwork, ({ name }, spec: NetworkSpec) => ({ name: name ?? spec.name })),
    },
    label: {
      sets: ['labels'],
      action: 'update',
      by: fromBody(routes.updateNetwork, ({ labels }, spec: NetworkSpec) => ({ labels: labels ?? spec.labels })),
    },
    /** Its hosts must be configured. */
    configure: {
      sets: ['dnsServers', 'dhcpEnabled'],
      action: 'update',
      operation: 'network.sync',
      allow: ({ facts }) => requireIdle('network', facts),
      by: fromBody(
        routes.updateNetwork,
        ({ dns_servers, dhcp_enabled }, spec: NetworkSpec): Patch<NetworkSpec> => ({
          dnsServers: dns_servers ?? spec.dnsServers,
          dhcpEnabled: dhcp_enabled ?? spec.dhcpEnabled,
        }),
      ),
    },
  },
  remove: {
    name: 'delete',
    operation: 'network.sync',
    condition: 'Ended',
    allow: ({ facts }) => requireDeletable('network', facts),
    claim: (tx, target) => endNetwork(tx, networkOf(target)),
    release: (tx, target, stored) =>
      withdrawNetworkEnd(tx, networkOf(target), stored === undefined || isBeingDeleted(stored)),
    by: { route: routes.deleteNetwork },
  },
})
