/** Node pools for requests, and their creation, alone or with their cluster. */
import type { IdleFacts } from '../../../domain/idle-rules.ts'
import { minorOf } from '../../../domain/kubernetes-cluster/rules.ts'
import { badField } from '../../../domain/problem.ts'
import { claimNodePool, releaseNodePool } from '../../../db/node-pool/index.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import type { Route } from '../../../kit/http/route.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { KubernetesClusterSpec, KubernetesClusterStatus } from '../../../resources/kubernetes-cluster/index.ts'
import {
  type NewNodePool,
  NodePool,
  type NodePoolSpec,
  type NodePoolStatus,
  type NodePoolView,
  toNodePoolView,
} from '../../../resources/node-pool/index.ts'
import { idleFactsOf } from '../../../resources/operation/index.ts'
import { create } from '../../kit/change/create.ts'
import { type OperatedObjects, openOperated } from '../../kit/change/operate.ts'
import type { Parts } from '../../kit/parts.ts'
import type { ObjectParts } from '../../kit/plain/objects.ts'
import { rehearseNodes, requireNodeImage, requireNodePlan, requireReachable, requireWithin } from './rules.ts'
import { WORDS } from '../../kit/words.ts'

export type NodePoolObject = KubeObject<NodePoolSpec, NodePoolStatus>

/** The facts about their cluster that pools need, also while it is being created. */
export interface PoolCluster {
  readonly zone: string
  readonly networkId: string
  /** Minor version of its control plane. */
  readonly version: string
}

export interface NodePools extends OperatedObjects<NodePoolSpec, NodePoolStatus, NodePoolView, IdleFacts> {
  /** All pools of a cluster, newest first. */
  ofCluster(accountId: string, clusterId: string): Promise<readonly NodePoolObject[]>
  /** Throws the refusals that creating them would get. `at` names where the request has them. */
  rehearse(accountId: string, cluster: PoolCluster, pools: readonly NewNodePool[], at?: string): Promise<void>
  /** Answers 202 with the pool and the operation. The audit entry of the request is written once, even if it creates
   *  several. */
  make<R extends Route>(
    call: Call<R, Customer>,
    cluster: PoolCluster & { readonly id: string },
    pool: NewNodePool,
  ): Promise<Answer>
}

/** A cluster has few. */
const POOLS_MAXIMUM = 1_000

export const poolClusterOf = ({
  metadata: { name: id },
  spec,
  status,
}: KubeObject<KubernetesClusterSpec, KubernetesClusterStatus>): PoolCluster & { readonly id: string } => ({
  id,
  zone: spec.zone,
  networkId: spec.networkId,
  version: status?.kubernetesVersion === undefined ? spec.version : minorOf(status.kubernetesVersion),
})

export function openNodePools(parts: Parts & ObjectParts): NodePools {
  const objects = openOperated(parts, {
    name: 'node_pool',
    title: 'node pool',
    resource: NodePool,
    surroundingsOf: () => ({}),
    toView: toNodePoolView,
    factsOf: idleFactsOf,
    fields: { cluster: ({ clusterId }) => clusterId },
  })
  const nodePools: NodePools = {
    ...objects,
    async ofCluster(accountId, cluster) {
      await objects.catchUp(accountId)
      return objects.page(accountId, { fields: { cluster } }, undefined, POOLS_MAXIMUM)
    },
    async rehearse(accountId, { zone, networkId }, pools, at = '') {
      if (pools.length === 0) return
      requireNodeImage(parts, zone)
      await requireReachable(parts, zone)
      const names = pools.map(({ name }) => name)
      for (const [index, pool] of pools.entries()) {
        const field = (name: string) => (at === '' ? name : `${at}.${index}.${name}`)
        requireNodePlan(parts, pool.plan, field('plan'))
        if (names.indexOf(pool.name) !== index) throw badField(field('name'), 'is that of another pool')
        if (pool.zones?.some((name) => name !== zone) === true)
          throw badField(field('zones'), `the network of the cluster is in ${zone} only`)
        requireWithin(pool.count, pool.autoscaling, field('count'))
        const { plan, count, public_ipv4: publicIpv4 } = pool
        await rehearseNodes(parts, (name) => field(WORDS.rest(name)), {
          accountId,
          zone,
          networkId,
          plan,
          publicIpv4,
          count,
        })
      }
    },
    make(call, { id: clusterId, zone, version }, pool) {
      const { accountId } = call.caller
      const { name, plan, count, labels, taints, public_ipv4: publicIpv4, max_unavailable: maxUnavailable } = pool
      return create(parts, nodePools, call, {
        kind: 'node_pool.sync',
        arguments: { action: 'create' },
        detail: { kubernetes_cluster_id: clusterId, name, plan, count: String(count) },
        claim: (tx, nodePoolId) => claimNodePool(tx, { accountId, nodePoolId, clusterId, name }),
        release: (tx, nodePoolId) => releaseNodePool(tx, { accountId, nodePoolId }),
        specOf: (operation): NodePoolSpec => ({
          clusterId,
          zone,
          name,
          plan,
          count,
          version,
          labels,
          taints,
          publicIpv4,
          maxUnavailable,
          ...(pool.autoscaling === null ? {} : { autoscaling: pool.autoscaling }),
          operation,
        }),
      })
    },
  }
  return nodePools
}
