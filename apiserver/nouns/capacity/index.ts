/** The free capacity of the zones. */
import { largestNodes, summariseCapacity } from '../../../domain/zone/capacity.ts'
import { listAllCandidates } from '../../../db/placement/index.ts'
import { type Endpoint, operatorEndpoint } from '../../../kit/http/endpoint.ts'
import { getCapacity } from '../../../resources/operator/index.ts'
import { Node } from '../../../resources/node/index.ts'
import { Plan } from '../../../resources/catalog/index.ts'
import { listEvacuees } from '../node/index.ts'
import { completeList } from '../../kit/list/page.ts'
import type { Parts } from '../../kit/parts.ts'
import { noun } from '../../kit/noun.ts'

function capacityEndpoints(parts: Parts): readonly Endpoint[] {
  const { db, caches } = parts
  const [nodes, plans] = [caches.of(Node), caches.of(Plan)]
  return [
    operatorEndpoint(getCapacity, async ({ query }) => {
      const candidates = (await listAllCandidates(db)).filter(
        ({ zone }) => query.zone === undefined || zone === query.zone,
      )
      const guests = new Map(
        await Promise.all(
          largestNodes(candidates).map(async (node) => [node, await listEvacuees(parts, node)] as const),
        ),
      )
      const offered = plans
        .list()
        .map(({ metadata: { name }, spec: { cores, memoryMebibytes, storageGibibytes, cpuPool } }) => ({
          name,
          cores,
          memoryMebibytes,
          storageGibibytes,
          cpuPool,
        }))
      const cpusOf = (zone: string, cpuPool: string | null) =>
        candidates
          .filter((candidate) => candidate.zone === zone && candidate.cpuPool === cpuPool)
          .reduce((sum, { node }) => sum + (nodes.get({ name: node })?.status?.logicalCpus ?? 0), 0)
      const items = summariseCapacity(candidates, offered, (node) => guests.get(node) ?? []).map((capacity) => ({
        zone: capacity.zone,
        cpu_pool: capacity.cpuPool,
        node_count: capacity.nodeCount,
        logical_cpus: cpusOf(capacity.zone, capacity.cpuPool),
        vcpus: capacity.vcpus,
        vcpus_used: capacity.vcpusUsed,
        memory_mebibytes: capacity.memoryMebibytes,
        memory_used_mebibytes: capacity.memoryUsedMebibytes,
        largest_placeable_plan: capacity.largestPlaceablePlan,
        has_ha_headroom: capacity.hasHaHeadroom,
      }))
      return completeList(items)
    }),
  ]
}

export const capacity = noun<Parts>({ name: 'capacity', endpoints: capacityEndpoints })
