/** What must hold of clusters once everything is quiet, and that nothing is left of deleted ones. */
import { findCluster } from '../../db/kubernetes-cluster/index.ts'
import type { Database } from '../../db/kit/open.ts'
import { nodeNameOf } from '../../domain/node-pool/rules.ts'
import { wantedNumbers } from '../../controllers/nouns/node-pool/nodes.ts'
import { accountNamespace } from '../../resources/index.ts'
import { KubernetesCluster } from '../../resources/kubernetes-cluster/index.ts'
import { NodePool } from '../../resources/node-pool/index.ts'
import { activeOperationOf } from '../../resources/operation/index.ts'
import type { ClusterHosts } from './cluster-hosts.ts'
import { type PoolObject, namedOf } from './cluster-nodes.ts'
import { type Account, ask } from './requests.ts'
import type { World } from './world.ts'

/** Nothing of them is under way, pools that scale have come to their least, and the nodes that pools are to have report
 *  that they are ready: a guest that was restarted does so later. */
export async function areClustersQuiet({ admin, clusters }: Pick<World, 'admin' | 'clusters'>): Promise<boolean> {
  if (clusters === undefined) return true
  const pools = (await admin.list(NodePool)).items
  const all = [...(await admin.list(KubernetesCluster)).items, ...pools]
  return (
    all.every(
      (each) =>
        each.metadata.deletionTimestamp === undefined &&
        activeOperationOf(each) === undefined &&
        each.status?.observedGeneration === each.metadata.generation,
    ) &&
    pools.every(
      ({ spec, status }) =>
        status?.isMade !== true ||
        (spec.count === (spec.autoscaling?.min ?? spec.count) && status.drains === undefined),
    ) &&
    pools.filter(({ status }) => status?.isMade === true).every((pool) => areNodesReady(clusters, pool))
  )
}

/** Names of nodes contain the uid of their pool: no other cluster has the same. */
const areNodesReady = ({ planes }: Pick<ClusterHosts, 'planes'>, pool: PoolObject): boolean =>
  namesOf(pool).every((name) => [...planes.values()].some(({ nodes }) => nodes.get(name)?.isReady === true))

/** Those that are made run what is claimed, with the nodes that their pools must have, and no others. */
export async function checkClusters(world: World, db: Database): Promise<string[]> {
  const { admin, clusters } = world
  if (clusters === undefined) return []
  const violations = [...clusters.nodes.violations]
  const objects = (await admin.list(KubernetesCluster)).items
  const pools = (await admin.list(NodePool)).items
  const known = new Set<string>()
  for (const { metadata, status } of objects) {
    const accountId = (metadata.namespace ?? '').replace('acct-', '')
    const claim = await findCluster(db, { accountId, clusterId: metadata.name })
    if (claim === undefined) continue
    known.add(claim.controlPlaneId)
    const plane = clusters.planes.get(claim.controlPlaneId)
    if (status?.isMade !== true) continue
    if (plane?.release !== claim.release)
      violations.push(`cluster ${metadata.name} shall run ${claim.release}, and runs ${plane?.release}`)
    const own = pools.filter(
      (pool) => pool.metadata.namespace === metadata.namespace && pool.spec.clusterId === metadata.name,
    )
    const made = own.filter((pool) => pool.status?.isMade === true)
    violations.push(...made.flatMap((pool) => poolViolations(world, claim.controlPlaneId, pool)))
    const names = new Set(own.flatMap(namesOf))
    for (const name of plane?.nodes.keys() ?? [])
      if (!names.has(name)) violations.push(`node ${name} of cluster ${metadata.name} is of no pool`)
  }
  for (const id of clusters.planes.keys()) if (!known.has(id)) violations.push(`control plane ${id} is of no cluster`)
  return [...violations, ...(await claimViolations(world, db))]
}

const namesOf = (pool: PoolObject): readonly string[] =>
  [...wantedNumbers(pool, pool.spec.count)].map((number) => nodeNameOf(namedOf(pool), number))

function poolViolations({ clusters }: World, plane: string, pool: PoolObject): readonly string[] {
  const { spec, status, metadata } = pool
  const found = clusters?.planes.get(plane)?.nodes
  return [
    ...namesOf(pool).flatMap((name) => {
      const node = found?.get(name)
      if (node?.isReady !== true) return [`node ${name} of pool ${metadata.name} is not ready: ${JSON.stringify(node)}`]
      return node.kubeletVersion.startsWith(`v${spec.version}.`)
        ? []
        : [`node ${name} shall run ${spec.version}, and runs ${node.kubeletVersion}`]
    }),
    ...(status?.join === undefined ? [] : [`pool ${metadata.name} keeps a token that nobody waits with`]),
    ...(status?.nodes?.length === spec.count
      ? []
      : [`pool ${metadata.name} shall have ${spec.count} nodes, and shows ${status?.nodes?.length}`]),
  ]
}

/** What is claimed is of those that exist. */
async function claimViolations({ admin }: World, db: Database): Promise<readonly string[]> {
  const idOf = (type: string) => (object: { readonly metadata: { namespace?: string; name: string } }) =>
    `${object.metadata.namespace} ${type}/${object.metadata.name}`
  const owners = new Set([
    ...(await admin.list(KubernetesCluster)).items.map(idOf('kubernetes_cluster')),
    ...(await admin.list(NodePool)).items.map(idOf('node_pool')),
  ])
  const rows = [
    ...(await db.selectFrom('kubernetes_cluster').select(['account_id', 'id']).execute()).map((row) => ({
      account: row.account_id,
      holder: `kubernetes_cluster/${row.id}`,
    })),
    ...(await db.selectFrom('node_pool').select(['account_id', 'id']).execute()).map((row) => ({
      account: row.account_id,
      holder: `node_pool/${row.id}`,
    })),
    ...(await db.selectFrom('quota_holding').select(['account_id', 'holder']).execute())
      .filter(({ holder }) => /^(kubernetes_cluster|node_pool)\//.test(holder))
      .map(({ account_id: account, holder }) => ({ account, holder })),
  ]
  return rows
    .filter(({ account, holder }) => !owners.has(`${accountNamespace(account)} ${holder}`))
    .map(({ holder }) => `something is claimed for ${holder}, which does not exist`)
}

/** Asks for the end of all of them; answers how many there were. */
export async function deleteClusters(world: World, accounts: readonly Account[]): Promise<number> {
  if (world.clusters === undefined) return 0
  const { items } = await world.admin.list(KubernetesCluster)
  for (const account of accounts)
    for (const { metadata } of items)
      if (metadata.namespace === accountNamespace(account.id))
        await ask(world, account, 'DELETE', `/v1/kubernetes-clusters/${metadata.name}`)
  return items.length
}
