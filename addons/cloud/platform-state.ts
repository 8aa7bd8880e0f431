/** The cluster's objects in the platform: its network, the servers of its pools, and its load balancers. */
import { type Client, pages, type Schemas, unwrap } from '../../client/index.ts'
import { CLUSTER_LABEL, orNothing } from '../platform.ts'
import type { PoolServer } from './nodes.ts'
import type { Balancer } from './plan.ts'
import { UID_LABEL } from './wanted.ts'

export interface PlatformState {
  readonly isLeaving: boolean
  readonly zone: string
  readonly networkId: string
  readonly servers: readonly PoolServer[]
  /** By service; load balancers without a service label are not included. */
  readonly balancers: ReadonlyMap<string, readonly Summary[]>
}
type Summary = Schemas['LoadBalancerSummary']

const PAGE_ITEMS = 100

export interface PlatformReader {
  read(): Promise<PlatformState>
  /** Undefined when it was deleted. */
  balancer(id: string): Promise<Balancer | undefined>
}

export function openPlatformReader(client: Client, clusterId: string): PlatformReader {
  /** A server keeps its address in the network as long as it exists. */
  let addresses = new Map<string, string>()

  async function addressOf(serverId: string, networkId: string): Promise<string | undefined> {
    const known = addresses.get(serverId)
    if (known !== undefined) return known
    const reading = client.GET('/v1/servers/{id}/interfaces', { params: { path: { id: serverId } } })
    const { items = [] } = (await orNothing(unwrap(reading))) ?? {}
    return items.find(({ network_id }) => network_id === networkId)?.ipv4_address ?? undefined
  }

  async function serversOf({ network_id, node_pools = [] }: Schemas['KubernetesCluster']): Promise<PoolServer[]> {
    const servers: PoolServer[] = []
    for (const { hostname, server_id: serverId, zone } of node_pools.flatMap(({ nodes }) => nodes)) {
      const address = await addressOf(serverId, network_id)
      if (address !== undefined) servers.push({ hostname, serverId, zone, address })
    }
    addresses = new Map(servers.map(({ serverId, address }) => [serverId, address]))
    return servers
  }

  async function balancers(): Promise<PlatformState['balancers']> {
    const label = [`${CLUSTER_LABEL}=${clusterId}`]
    const read = (query: object) =>
      client.GET('/v1/load-balancers', { params: { query: { ...query, label, limit: PAGE_ITEMS } } })
    const found = new Map<string, Summary[]>()
    for await (const balancer of pages(read)) {
      const uid = balancer.labels[UID_LABEL]
      if (uid !== undefined) found.set(uid, [...(found.get(uid) ?? []), balancer])
    }
    return found
  }

  return {
    async read() {
      const reading = client.GET('/v1/kubernetes-clusters/{id}', { params: { path: { id: clusterId } } })
      const { kubernetes_cluster: cluster } = await unwrap(reading)
      const { state, zone, network_id: networkId } = cluster
      const isLeaving = state === 'deleting'
      return { isLeaving, zone, networkId, servers: await serversOf(cluster), balancers: await balancers() }
    },
    async balancer(id) {
      const reading = client.GET('/v1/load-balancers/{id}', { params: { path: { id } } })
      return (await orNothing(unwrap(reading)))?.load_balancer
    },
  }
}
