/** What a simulated cloud offers: zones with their nodes, a plan and a template. */
import { installCrds } from '../../kit/kube/crd.ts'
import { crds } from '../../controllers/kit/crds.ts'
import { Namespace } from '../../kit/kube/object.ts'
import type { Store } from '../../kit/kube/store.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { Plan, Region, Template, Zone } from '../../resources/catalog/index.ts'
import { Node } from '../../resources/node/index.ts'
import { bmcOf } from './nodes.ts'
import { TINY_LINUX, TINY_PLAN } from '../catalog.ts'

export const NODES = [
  { name: 'a1', zone: 'zone-a' },
  { name: 'a2', zone: 'zone-a' },
  { name: 'a3', zone: 'zone-a' },
  { name: 'b1', zone: 'zone-b' },
] as const
/** Few, so that a handful of servers fills a node. */
export const NODE_CORES = 3
/** Where managed machines need room as well. */
export const MACHINES_NODE_CORES = 16
export const ZONES = ['zone-a', 'zone-b'] as const
export const PLAN = 'tiny'
export const TEMPLATE = 'tiny-linux'
export const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBv7nS1hUS8W4v8Yw0OeTZcJ6pHJXnpmmGBR9XdKLMDu ada@example'

/** Shared storage of each zone, in worlds that have it. */
export const POOLS: Readonly<Record<string, string>> = { 'zone-a': 'pool-a', 'zone-b': 'pool-b' }

/** Makes the catalog, the nodes and the platform's own namespace. */
export async function createCatalog(admin: Store, clock: Clock, hasLosses: boolean): Promise<void> {
  await installCrds(admin, crds(), clock)
  await admin.create(Namespace, { metadata: { name: 'svccloud-system' }, spec: undefined })
  await admin.create(Region, { metadata: { name: 'region-1' }, spec: { displayName: 'Region 1', country: 'DE' } })
  for (const name of ZONES)
    await admin.create(Zone, {
      metadata: { name },
      spec: { displayName: name, region: 'region-1', isClosed: false, capabilities: [] },
    })
  await admin.create(Plan, {
    metadata: { name: PLAN },
    spec: { ...TINY_PLAN, memoryMebibytes: 256 },
  })
  await admin.create(Template, {
    metadata: { name: TEMPLATE },
    spec: TINY_LINUX,
  })
  for (const { name, zone } of NODES) {
    await admin.create(Node, {
      metadata: { name },
      spec: {
        zone,
        rack: 'rack-1',
        roles: ['compute'],
        isCordoned: false,
        cpuOvercommit: 1,
        reservedMemoryMebibytes: 0,
        ...(hasLosses ? { bmc: bmcOf(name) } : {}),
      },
    })
  }
}

export const zoneOf = (node: string): string => NODES.find(({ name }) => name === node)?.zone ?? ''
