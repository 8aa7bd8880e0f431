/** Totals of an account's dedicated hosts: no host is named. */
import { gigabytesOf } from '../../../domain/private-cloud/rules.ts'
import { type DedicatedNode, listDedicatedNodes } from '../../../db/private-cloud/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { Plan, Region, Zone } from '../../../resources/catalog/index.ts'
import { Node } from '../../../resources/node/index.ts'
import { Server, type ServerSpec, type ServerStatus } from '../../../resources/server/index.ts'
import type { Parts } from '../../kit/parts.ts'

const SERVERS_MAXIMUM = 500

/** Returns the totals, the zones and the servers of an account. */
export function openCapacity({ caches, db }: Pick<Parts, 'caches' | 'db'>) {
  const [nodes, zones, regions, plans, servers] = [
    caches.of(Node),
    caches.of(Zone),
    caches.of(Region),
    caches.of(Plan),
    caches.of(Server),
  ]

  const sumOf = (own: readonly DedicatedNode[]) => {
    const sum = (of: (node: DedicatedNode) => number) => own.reduce((total, node) => total + of(node), 0)
    return {
      host_count: own.length,
      logical_cpus: sum(({ node }) => nodes.get({ name: node })?.status?.logicalCpus ?? 0),
      vcpus: sum(({ cores }) => cores),
      vcpus_used: sum(({ coresUsed }) => coresUsed),
      memory_mebibytes: sum(({ memoryMebibytes }) => memoryMebibytes),
      memory_used_mebibytes: sum(({ memoryMebibytesUsed }) => memoryMebibytesUsed),
      disk_gigabytes: gigabytesOf(sum(({ storageGibibytes }) => storageGibibytes)),
      local_storage_used_gibibytes: sum(({ storageGibibytesUsed }) => storageGibibytesUsed),
      server_count: sum(({ serverIds }) => serverIds.length),
    }
  }

  const zoneView = (zone: string, own: readonly DedicatedNode[]) => {
    const known = zones.get({ name: zone })?.spec
    const region = known?.region ?? ''
    return {
      zone,
      zone_display_name: known?.displayName ?? zone,
      region,
      region_display_name: regions.get({ name: region })?.spec.displayName ?? region,
      ...sumOf(own),
    }
  }

  const serverView = ({ metadata: { name }, spec, status }: KubeObject<ServerSpec, ServerStatus>) => {
    const plan = plans.get({ name: spec.plan })?.spec
    return {
      id: name,
      hostname: spec.hostname,
      title: spec.title,
      zone: spec.zone,
      plan: spec.plan,
      cores: status?.cores ?? plan?.cores ?? 0,
      memory_mebibytes: status?.memoryMebibytes ?? plan?.memoryMebibytes ?? 0,
      state: status?.state ?? 'creating',
    }
  }

  return async (accountId: string) => {
    const own = await listDedicatedNodes(db, accountId)
    const ids = new Set(own.flatMap(({ serverIds }) => serverIds))
    const found = servers
      .inNamespace(accountNamespace(accountId))
      .filter(({ metadata }) => ids.has(metadata.name))
      .sort((one, other) => compare(madeAt(other), madeAt(one)))
    return {
      has_private_hosts: own.length > 0,
      totals: sumOf(own),
      zones: [...Map.groupBy(own, ({ zone }) => zone)].map(([zone, inZone]) => zoneView(zone, inZone)),
      servers: found.slice(0, SERVERS_MAXIMUM).map(serverView),
      servers_truncated: found.length > SERVERS_MAXIMUM,
    }
  }
}

const madeAt = ({ metadata: { creationTimestamp = '', name } }: KubeObject): string => `${creationTimestamp}/${name}`
const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)
