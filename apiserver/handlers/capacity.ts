/** What the zones have room for. */
import { summariseCapacity } from '../../domain/capacity.ts'
import { listAllTenants } from '../../db/nodes.ts'
import { listAllCandidates } from '../../db/placement.ts'
import { type Endpoint, operatorEndpoint } from '../../kit/http/endpoint.ts'
import { accountNamespace } from '../../resources/index.ts'
import { getCapacity } from '../../resources/operator-routes.ts'
import { Node, Plan } from '../../resources/platform.ts'
import { Server } from '../../resources/server.ts'
import type { Parts } from '../parts.ts'

export function capacityEndpoints({ db, caches }: Parts): readonly Endpoint[] {
  const [nodes, plans, servers] = [caches.of(Node), caches.of(Plan), caches.of(Server)]
  return [
    operatorEndpoint(getCapacity, async ({ query }) => {
      const candidates = (await listAllCandidates(db)).filter(({ zone }) => query.zone === undefined || zone === query.zone)
      const tenants = Map.groupBy(await listAllTenants(db), ({ node }) => node)
      const cpuPoolOf = (accountId: string, serverId: string) => plans.get({ name: servers.get({ namespace: accountNamespace(accountId), name: serverId })?.spec.plan ?? '' })?.spec.cpuPool
      const guestsOf = (node: string) => (tenants.get(node) ?? []).map(({ accountId, serverId, cores, memoryMebibytes, storageGibibytes }) =>
        ({ accountId, serverId, room: { cores, memoryMebibytes, storageGibibytes }, cpuPool: cpuPoolOf(accountId, serverId) }))
      const offered = plans.list().map(({ metadata: { name }, spec: { cores, memoryMebibytes, storageGibibytes, cpuPool } }) => ({ name, cores, memoryMebibytes, storageGibibytes, cpuPool }))
      const cpusOf = (zone: string, cpuPool: string | null) =>
        nodes.list().filter(({ spec }) => spec.zone === zone && (spec.cpuPool ?? null) === cpuPool).reduce((sum, { status }) => sum + (status?.logicalCpus ?? 0), 0)
      const items = summariseCapacity(candidates, offered, guestsOf).map((capacity) => ({
        zone: capacity.zone, cpu_pool: capacity.cpuPool, node_count: capacity.nodeCount, logical_cpus: cpusOf(capacity.zone, capacity.cpuPool), vcpus: capacity.vcpus, vcpus_used: capacity.vcpusUsed,
        memory_mebibytes: capacity.memoryMebibytes, memory_used_mebibytes: capacity.memoryUsedMebibytes, largest_placeable_plan: capacity.largestPlaceablePlan, has_ha_headroom: capacity.hasHaHeadroom,
      }))
      return { status: 200, body: { items, next_cursor: null } }
    }),
  ]
}
