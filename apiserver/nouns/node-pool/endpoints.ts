/** Creating, reading, changing and deleting node pools. Their list is part of their cluster. */
import { isDeepStrictEqual } from 'node:util'
import type { AuditChange } from '../../../domain/audit/entry.ts'
import { defined } from '../../../domain/defined.ts'
import { requireIdle } from '../../../domain/idle-rules.ts'
import { type ClusterFacts, requireChangeableCluster } from '../../../domain/kubernetes-cluster/rules.ts'
import { poolVersionFault, requireDeletablePool } from '../../../domain/node-pool/rules.ts'
import { type PoolBounds, bounded } from '../../../domain/node-pool/autoscaling/judge.ts'
import { badField, notFound } from '../../../domain/problem.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import { replacing } from '../../../kit/kube/merge-patch.ts'
import type { KubernetesClusterSpec, KubernetesClusterStatus } from '../../../resources/kubernetes-cluster/index.ts'
import {
  createKubernetesNodePool,
  deleteKubernetesNodePool,
  getKubernetesNodePool,
  type NodePoolSpec,
  type UpdateNodePool,
  updateKubernetesNodePool,
} from '../../../resources/node-pool/index.ts'
import { begin, type OperatedObjects } from '../../kit/change/operate.ts'
import type { Parts } from '../../kit/parts.ts'
import { etagOfObject } from '../../kit/plain/objects.ts'
import { type NodePoolObject, type NodePools, poolClusterOf } from './objects.ts'
import { rehearseNodes, requireNodeImage, requireWithin } from './rules.ts'
import { WORDS } from '../../kit/words.ts'

/** Opened by their noun, which shows pools itself. */
type Clusters = Pick<
  OperatedObjects<KubernetesClusterSpec, KubernetesClusterStatus, unknown, ClusterFacts>,
  'read' | 'factsOf'
>
export type NodePoolParts = Parts & {
  readonly kubernetesClusters: Clusters
  readonly nodePools: NodePools
}

export const nodePoolEndpoints = (parts: NodePoolParts): readonly Endpoint[] => [
  customerEndpoint(createKubernetesNodePool, (call) => createEndpoint(parts, call)),
  customerEndpoint(getKubernetesNodePool, async (call) => answerOf(parts, 200, await readPool(parts, call), {})),
  customerEndpoint(updateKubernetesNodePool, (call) => update(parts, call)),
  customerEndpoint(deleteKubernetesNodePool, (call) => remove(parts, call)),
]

async function createEndpoint(
  { kubernetesClusters, nodePools }: NodePoolParts,
  call: Call<typeof createKubernetesNodePool, Customer>,
): Promise<Answer> {
  const { accountId } = call.caller
  const cluster = await kubernetesClusters.read(accountId, call.params.id)
  requireChangeableCluster(kubernetesClusters.factsOf(cluster))
  const of = poolClusterOf(cluster)
  await nodePools.rehearse(accountId, of, [call.body])
  return nodePools.make(call, of, call.body)
}

/** The type of reads is that of deletions. */
type RouteOfPool = typeof updateKubernetesNodePool | typeof deleteKubernetesNodePool

const answerOf = ({ nodePools }: NodePoolParts, status: 200 | 202, pool: NodePoolObject, others: object): Answer => ({
  status,
  body: { node_pool: nodePools.viewOf(pool), ...others },
  headers: { etag: etagOfObject(pool) },
})

/** Also throws 404 for a pool of another cluster. */
async function readPool(
  { nodePools }: NodePoolParts,
  { caller, params }: Call<RouteOfPool, Customer>,
): Promise<NodePoolObject> {
  const pool = await nodePools.read(caller.accountId, params.node_pool_id)
  if (pool.spec.clusterId !== params.id) throw notFound('node pool')
  return pool
}

/** The target of the call: the pool, not the cluster that its path starts with. */
const ofPool = <R extends typeof updateKubernetesNodePool | typeof deleteKubernetesNodePool>(
  call: Call<R, Customer>,
): Call<R, Customer> => ({ ...call, params: { ...call.params, id: call.params.node_pool_id } })

async function update(parts: NodePoolParts, call: Call<typeof updateKubernetesNodePool, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    body,
  } = call
  const { kubernetesClusters, nodePools } = parts
  const pool = await readPool(parts, call)
  const { spec } = pool
  requireIdle('node_pool', nodePools.factsOf(pool))
  if (body.count !== undefined) requireWithin(body.count, boundsOf(spec, body))
  const { networkId, version } = poolClusterOf(await kubernetesClusters.read(accountId, spec.clusterId))
  const fault = body.version === undefined ? undefined : poolVersionFault(body.version, version)
  if (fault !== undefined) throw badField('version', fault)
  requireNodeImage(parts, spec.zone)
  await rehearseNodes(parts, WORDS.rest, {
    accountId,
    networkId,
    nodePoolId: pool.metadata.name,
    zone: spec.zone,
    plan: spec.plan,
    publicIpv4: spec.publicIpv4,
    count: countOf(spec, body) - spec.count,
  })
  const isUpgrade = body.version !== undefined && body.version !== spec.version
  const operation = await begin(parts, nodePools, ofPool(call), {
    kind: 'node_pool.sync',
    arguments: { action: isUpgrade ? 'upgrade' : 'scale' },
    validate: (facts) => requireIdle('node_pool', facts),
    changes: (target) => changesOf(target.spec, body),
    spec: ({ target }) => patchOf(target.spec, body),
  })
  return answerOf(parts, 202, await readPool(parts, call), { operation })
}

const boundsOf = ({ autoscaling: before }: NodePoolSpec, { autoscaling }: UpdateNodePool): PoolBounds | null =>
  autoscaling === undefined ? (before ?? null) : autoscaling
/** If the count is outside the new bounds, it becomes the nearer one. */
const countOf = (spec: NodePoolSpec, body: UpdateNodePool): number =>
  bounded(body.count ?? spec.count, boundsOf(spec, body))

const patchOf = (spec: NodePoolSpec, body: UpdateNodePool) => ({
  ...patchOfOthers(spec, body),
  ...(countOf(spec, body) === spec.count ? {} : { count: countOf(spec, body) }),
  ...defined({ autoscaling: body.autoscaling }),
})
const patchOfOthers = (spec: NodePoolSpec, { labels, taints, version, max_unavailable }: UpdateNodePool) => ({
  ...(labels === undefined ? {} : { labels: replacing(spec.labels, labels) }),
  ...defined({ taints, version, maxUnavailable: max_unavailable }),
})

const changesOf = (spec: NodePoolSpec, body: UpdateNodePool): readonly AuditChange[] =>
  (
    [
      ['count', spec.count, countOf(spec, body)],
      ['autoscaling', spec.autoscaling ?? null, body.autoscaling],
      ['labels', spec.labels, body.labels],
      ['taints', spec.taints, body.taints],
      ['version', spec.version, body.version],
      ['max_unavailable', spec.maxUnavailable, body.max_unavailable],
    ] as const
  ).flatMap(([field, before, after]) =>
    after === undefined || isDeepStrictEqual(before, after) ? [] : [{ field, before, after }],
  )

async function remove(parts: NodePoolParts, call: Call<typeof deleteKubernetesNodePool, Customer>): Promise<Answer> {
  await readPool(parts, call)
  const operation = await begin(parts, parts.nodePools, ofPool(call), {
    kind: 'node_pool.delete',
    arguments: { action: 'delete' },
    validate: requireDeletablePool,
    spec: {},
  })
  return { status: 202, body: { operation } }
}
