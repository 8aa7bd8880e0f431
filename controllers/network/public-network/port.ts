/** The controller of servers' ports in the public network of their zone: each port is written by itself, as its server
 *  has claimed it. Its root is the Server, whose status it does not write: the addresses of a server are reported
 *  whether or not its port is written yet. A guest's host and addresses are taken from rows of the database, *never*
 *  from an Instance: a compromised host could not change its guests' network even if it could write Instances. */
import { formatNetwork, parseAddress } from '../../../domain/network/addresses.ts'
import { wasRemovalOrdered } from '../../../db/removal/index.ts'
import { findServerClaims, openClaimsReading, type ServerClaims } from '../../../db/server/index.ts'
import { watch } from '../../../kit/reconcile/reconciler.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { accountOfNamespace } from '../../../resources/index.ts'
import { Instance, type InstanceSpec } from '../../../resources/instance/index.ts'
import { Node } from '../../../resources/node/index.ts'
import { Server, type ServerSpec, type ServerStatus } from '../../../resources/server/index.ts'
import { isUuid } from '../../../domain/uuid.ts'
import { controller } from '../../kit/controller.ts'
import { currentClaims } from '../../kit/current-claims.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { ActionWith } from '../../kit/effects.ts'
import { publicPortOwner } from '../ovn/difference.ts'
import type { Ovn } from '../ovn/ovn.ts'
import type { Parts } from '../../kit/parts.ts'
import { publicInterface } from '../../nouns/server/index.ts'
import { factsDigest } from '../../kit/synced.ts'
import { freeLinkLocal, isLinkLocal } from './link-local.ts'
import { LINK_LOCAL, portRows, type PublicPort } from './topology.ts'

interface ZonePort {
  readonly zone: string
  readonly port: PublicPort
}

export interface Observed {
  /** Undefined for a server without claimed room. */
  readonly wanted: ZonePort | undefined
  /** The deletion of a server without claims was ordered. Without an order PostgreSQL has lost the claims: the guest
   *  may still run, and its port stays. */
  readonly isRemovalOrdered?: boolean
  /** What this process last applied; undefined before, and after it was removed. */
  readonly applied: { readonly zone: string; readonly digest: string } | undefined
}

interface PortEffects {
  readonly connect: ZonePort
  readonly disconnect: { readonly zone: string }
}

/** The port of a server that moves to another zone moves there. */
export const plan = (
  _server: KubeObject<ServerSpec, ServerStatus>,
  { wanted, applied, isRemovalOrdered = false }: Observed,
): readonly ActionWith<PortEffects>[] => [
  ...(applied === undefined || applied.zone === wanted?.zone || (wanted === undefined && !isRemovalOrdered)
    ? []
    : [{ do: 'effect', name: 'disconnect', input: { zone: applied.zone } } as const]),
  ...(wanted === undefined || applied?.digest === factsDigest(wanted)
    ? []
    : [{ do: 'effect', name: 'connect', input: wanted } as const]),
]

export const publicPortController = controller<PortEffects>()({
  name: 'public-port',
  resource: Server,
  sharding: 'by-zone',
  plan,
  reads: [Instance, Node],
  writes: [],
  /** Undefined without OVN: guests are in no network of the zone then. */
  open({ db, ovn, caches, store }: Parts) {
    if (ovn === undefined) return undefined
    const claimsOf = openClaimsReading(db)
    const applied = new Map<string, NonNullable<Observed['applied']>>()
    const linkLocals = openLinkLocals(ovn)
    return {
      // Every change of claims is followed by a change of the server or of its Instances.
      watches: [
        watch(Instance, ({ spec: { server } }) => [{ namespace: server.namespace, name: server.name }]),
        watch(Node, () => []),
      ],
      async observe(server) {
        const { namespace = '', name, uid = '' } = server.metadata
        const { sharedAddresses = [] } = server.spec
        const accountId = accountOfNamespace(namespace)
        const held =
          accountId === undefined || !isUuid(accountId)
            ? undefined
            : await orUnavailable(claimsOf({ accountId, serverId: name }))
        const claims = await currentClaims({ caches, store }, server, held)
        const shared = sharedAddresses.flatMap((each) => (each.networkId === undefined ? [each.address] : []))
        return {
          wanted: claims && portOfClaims(uid, claims, shared),
          applied: applied.get(uid),
          isRemovalOrdered: claims === undefined && (await orUnavailable(wasRemovalOrdered(db, uid))),
        }
      },
      effects: {
        async connect({ zone, port }, { metadata: { namespace = '', name, uid = '' } }) {
          const digest = factsDigest({ zone, port })
          const owner = publicPortOwner(port.name)
          await ovn.apply({ zone, owner, rows: portRows(zone, await linkLocals.complete(zone, port)) })
          applied.set(port.name, { zone, digest })
          // An address that was released meanwhile may belong to another server by now; an order came before that
          // release. Claims that are missing without an order are lost, and the guest may still run.
          const accountId = accountOfNamespace(namespace) ?? ''
          if ((await orUnavailable(findServerClaims(db, { accountId, serverId: name }))) !== undefined) return undefined
          if (!(await orUnavailable(wasRemovalOrdered(db, uid)))) return undefined
          await ovn.apply({ zone, owner, rows: [] })
          applied.delete(port.name)
          return undefined
        },
        async disconnect({ zone }, { metadata: { uid = '' } }) {
          await ovn.apply({ zone, owner: publicPortOwner(uid), rows: [] })
          applied.delete(uid)
          return undefined
        },
      },
    }
  },
})

/** The name is the uid of the server, as for its Instance. A guest that migrates within the zone has two nodes: its
 *  source comes first, its target second. */
function portOfClaims(uid: string, claims: ServerClaims, shared: readonly string[]): ZonePort {
  const { zone, node } = claims.placement
  const target = claims.target?.zone === zone ? [claims.target.node] : []
  const port = portOf(uid, publicInterface(claims), [node, ...target])
  return { zone, port: shared.length === 0 ? port : { ...port, shared: shared.toSorted() } }
}

export const portOf = (
  name: string,
  { macAddress, ipv4, routedPrefixes = [] }: InstanceSpec['interfaces'][number],
  nodes: readonly string[],
): PublicPort => ({
  name,
  macAddress,
  ipv6Prefixes: routedPrefixes,
  ...(ipv4 === undefined ? {} : { ipv4: { ...ipv4, cidr: cidrOf(ipv4.address, ipv4.prefix) } }),
  nodes,
})

const IPV4_BITS = 32n

function cidrOf(address: string, prefix: number): string {
  const hosts = IPV4_BITS - BigInt(prefix)
  return formatNetwork({ family: 'ipv4', first: ((parseAddress(address)?.value ?? 0n) >> hosts) << hosts, prefix })
}

/** Assigns ports without a public IPv4 address one for the metadata service: the one that they have in the database,
 *  else a free one. */
export function openLinkLocals(ovn: Ovn) {
  /** Addresses that are being written to the database, by zone and address: the port of each. */
  const grants = new Map<string, string>()
  async function addressOf(zone: string, { name, macAddress }: PublicPort): Promise<string | undefined> {
    const own = (await ovn.addressesOf({ zone, owner: publicPortOwner(name) })).get(name)
    if (own !== undefined && isLinkLocal(own)) return own
    const held = await ovn.addressesIn(zone)
    const address = freeLinkLocal(
      macAddress,
      (ipv4) => held.has(ipv4) || (grants.get(`${zone} ${ipv4}`) ?? name) !== name,
    )
    if (address !== undefined) grants.set(`${zone} ${address}`, name)
    return address
  }
  return {
    async complete(zone: string, port: PublicPort): Promise<PublicPort> {
      if (port.ipv4 !== undefined) return port
      const address = await addressOf(zone, port)
      return address === undefined ? port : { ...port, ipv4: { address, ...LINK_LOCAL } }
    },
  }
}
