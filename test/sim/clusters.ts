/** Clusters of Kubernetes that people make, scale, upgrade and delete while everything is shaken, in separate worlds:
 *  their pods come and go, and pools follow them. */
import { KUBERNETES_NODE_TEMPLATE, machineOwnerOf } from '../../domain/managed-machine/rules.ts'
import { keyOf } from '../../kit/kube/object.ts'
import { Plan, Template } from '../../resources/catalog/index.ts'
import { accountNamespace } from '../../resources/index.ts'
import { KubernetesCluster } from '../../resources/kubernetes-cluster/index.ts'
import { Network } from '../../resources/network/index.ts'
import { NodePool } from '../../resources/node-pool/index.ts'
import { Server } from '../../resources/server/index.ts'
import { TINY_LINUX, TINY_PLAN } from '../catalog.ts'
import { ZONES } from './catalog.ts'
import type { PoolObject } from './cluster-nodes.ts'
import type { Account, Send } from './requests.ts'
import type { World } from './world.ts'

interface Actors {
  readonly world: World
  readonly send: Send
  readonly isOver: () => boolean
}

const CLUSTERS_MAXIMUM = 2
const POOLS_MAXIMUM = 2
const NODES_MOST = 3
const PLAN_NAME = 'worker'
const TICK_MILLISECONDS = { least: 700, most: 1_300 }
const PODS_MOST = 6

export function runClusters(world: World, accounts: readonly Account[], send: Send, isOver: () => boolean): void {
  const { scheduler, admin, clusters } = world
  if (clusters === undefined) throw new Error('this world has no clusters')
  const spec = { ...TINY_LINUX, image: { built: KUBERNETES_NODE_TEMPLATE } as const }
  void admin.create(Template, { metadata: { name: KUBERNETES_NODE_TEMPLATE }, spec }).catch(() => {})
  const plan = { ...TINY_PLAN, memoryMebibytes: 2_048, storageGibibytes: 10 }
  void admin.create(Plan, { metadata: { name: PLAN_NAME }, spec: plan }).catch(() => {})
  const actors = { world, send, isOver }
  for (const account of accounts) void runOwner(actors, account)
  void runPods(actors)
  const seen = new Set<string>()
  // Kubelets go on when people have stopped.
  void scheduler.repeat(
    TICK_MILLISECONDS,
    () => false,
    async () => {
      clusters.nodes.tick(world.hosts)
      for (const violation of await boundsBroken(world, seen)) clusters.nodes.violations.add(violation)
    },
  )
  void scheduler.repeat({ least: 20_000, most: 90_000 }, isOver, async () => {
    clusters.cut(1_000 + scheduler.random.fraction() * 30_000)
  })
}

/** What autoscaling asks for is within the bounds that people gave. */
async function boundsBroken({ admin, scheduler }: World, seen: Set<string>): Promise<readonly string[]> {
  return (await admin.list(NodePool)).items.flatMap(({ metadata, spec: { count, autoscaling, operation } }) => {
    const action = operation?.arguments?.['action'] ?? ''
    const isScaled = ['grow', 'shrink'].includes(action)
    if (isScaled && !seen.has(operation?.id ?? '')) scheduler.note(`pool scales by itself: ${action}`)
    seen.add(operation?.id ?? '')
    return isScaled && autoscaling !== undefined && (count < autoscaling.min || count > autoscaling.max)
      ? [`pool ${metadata.name} was brought to ${count}, outside ${autoscaling.min} to ${autoscaling.max}`]
      : []
  })
}

const runOwner = (actors: Actors, account: Account): Promise<void> => {
  const { world, send, isOver } = actors
  const { scheduler, admin } = world
  const { random } = scheduler
  const namespace = accountNamespace(account.id)
  return scheduler.repeat({ least: 2_000, most: 40_000 }, isOver, async () => {
    const { items: clusters } = await admin.list(KubernetesCluster, { namespace })
    const { items: pools } = await admin.list(NodePool, { namespace })
    const cluster = scheduler.pick(clusters)
    const dice = random.fraction()
    if (cluster === undefined || (dice < 0.06 && clusters.length < CLUSTERS_MAXIMUM)) return makeOne(actors, account)
    const path = `/v1/kubernetes-clusters/${cluster.metadata.name}`
    const own = pools.filter(({ spec }) => spec.clusterId === cluster.metadata.name)
    const pool = scheduler.pick(own)
    if (pool === undefined || (dice < 0.2 && own.length < POOLS_MAXIMUM)) {
      await send(account, 'POST', `${path}/node-pools`, newPool(world, `pool-${Math.floor(random.fraction() * 3)}`))
    } else if (dice < 0.62) await changePool(actors, account, pool)
    else if (dice < 0.74) await send(account, 'POST', `${path}/upgrade`, { version: '1.36' })
    else if (dice < 0.8) await send(account, 'POST', `${path}/snapshots`, {})
    else if (dice < 0.86) await send(account, 'DELETE', `${path}/node-pools/${pool.metadata.name}`)
    else if (dice < 0.88) await send(account, 'DELETE', path)
    else if (dice < 0.9) await admin.delete(NodePool, keyOf(pool)).catch(() => {})
    else if (dice < 0.91) await admin.delete(KubernetesCluster, keyOf(cluster)).catch(() => {})
    else await touchNode(actors, account)
  })
}

/** What people do with the server of a node themselves. */
async function touchNode({ world: { scheduler, admin }, send }: Actors, account: Account): Promise<void> {
  const node = scheduler.pick(await nodesOf(admin, account.id))
  if (node === undefined) return
  const path = `/v1/servers/${node.metadata.name}`
  const verb = scheduler.pick(['stop', 'start', 'restart', ''])
  await (verb === '' ? send(account, 'DELETE', path) : send(account, 'POST', `${path}/${verb}`, {}))
}

const nodesOf = async (admin: World['admin'], accountId: string) =>
  (await admin.list(Server, { namespace: accountNamespace(accountId) })).items.filter(
    ({ spec }) => machineOwnerOf(spec.managedBy)?.type === 'node_pool',
  )

/** People start the nodes that they have stopped: a pool waits for these, as long as it takes. */
export async function startNodes({ admin }: World, accounts: readonly Account[]): Promise<void> {
  for (const { id } of accounts)
    for (const node of await nodesOf(admin, id))
      if (node.spec.desiredPower === 'stopped')
        await admin.patch(Server, keyOf(node), { spec: { desiredPower: 'running' } }).catch(() => {})
}

function newPool({ scheduler: { random } }: World, name: string): object {
  const count = Math.floor(random.fraction() * 3)
  const autoscaling = random.fraction() < 0.6 ? { min: Math.min(count, 1), max: Math.max(count, 1) + 1 } : null
  return { name, plan: PLAN_NAME, count, autoscaling, max_unavailable: random.fraction() < 0.7 ? 1 : 2 }
}

async function changePool({ world, send }: Actors, account: Account, { metadata, spec }: PoolObject): Promise<void> {
  const { scheduler } = world
  const { random } = scheduler
  const count = Math.floor(random.fraction() * (NODES_MOST + 1))
  const [min, more] = [Math.floor(random.fraction() * 2), 1 + Math.floor(random.fraction() * 2)]
  const body = scheduler.pick<object>([
    { count },
    { autoscaling: { min, max: min + more } },
    { autoscaling: null, count },
    { labels: { tier: String(count) } },
    { version: '1.36' },
  ])
  await send(account, 'PATCH', `/v1/kubernetes-clusters/${spec.clusterId}/node-pools/${metadata.name}`, body)
}

async function makeOne({ world, send }: Actors, account: Account): Promise<void> {
  const { scheduler, admin } = world
  const zone = scheduler.pick(ZONES)
  const { items } = await admin.list(Network, { namespace: accountNamespace(account.id) })
  const network = items.find(({ spec }) => spec.zone === zone)
  if (network === undefined) {
    await send(account, 'POST', '/v1/networks', { zone, name: 'net' })
    return
  }
  const name = `cluster-${Math.floor(scheduler.random.fraction() * 5)}`
  await send(account, 'POST', '/v1/kubernetes-clusters', {
    zone,
    name,
    network_id: network.metadata.name,
    version: scheduler.pick(['1.35', '1.35', '1.36']),
    node_pools: scheduler.random.fraction() < 0.7 ? [newPool(world, 'first')] : [],
  })
}

/** They come and go, and some will not go for a while. */
const runPods = ({ world: { scheduler, clusters }, isOver }: Actors): Promise<void> =>
  scheduler.repeat({ least: 5_000, most: 60_000 }, isOver, async () => {
    const { random } = scheduler
    for (const id of clusters?.planes.keys() ?? []) {
      const place = clusters?.nodes.placeOf(id)
      if (place === undefined || random.fraction() < 0.5) continue
      const count = random.fraction() < 0.4 ? 0 : Math.floor(random.fraction() * PODS_MOST)
      const stays = random.fraction() < 0.15 ? 1_200_000 * random.fraction() : 0
      place.pods = [
        ...place.pods.slice(0, count),
        ...Array.from({ length: Math.max(0, count - place.pods.length) }, (_, index) => ({
          name: `p${scheduler.nowMilliseconds}-${index}`,
          cpu: 200 + Math.floor(random.fraction() * 500),
          node: '',
          staysUntil: scheduler.nowMilliseconds + stays,
        })),
      ]
    }
  })

/** No pod is left, so that pools that scale come to their least. */
export function emptyClusters({ clusters }: World): void {
  for (const id of clusters?.planes.keys() ?? []) (clusters?.nodes.placeOf(id) ?? { pods: [] }).pods = []
}
