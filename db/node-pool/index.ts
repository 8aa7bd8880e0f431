/** Node pools of managed Kubernetes clusters: their names. Locks are taken in one order: the quota of the account, then
 *  the cluster. */
import type { Transaction } from 'kysely'
import { notFound } from '../../domain/problem.ts'
import { releaseQuotas, takeQuotas } from '../account/index.ts'
import type { Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere } from '../kit/where.ts'
import { requireFreeName } from '../kit/free-name.ts'

export interface NodePoolId {
  readonly accountId: string
  readonly nodePoolId: string
}

export interface NodePoolDemand extends NodePoolId {
  readonly clusterId: string
  readonly name: string
}

const holdingOf = ({ accountId, nodePoolId }: NodePoolId) => ({ accountId, holder: `node_pool/${nodePoolId}` as const })

/** Does nothing when it is claimed already. Throws 404 when nothing is claimed for the cluster, and the Problems
 *  `quota_exceeded` (422) and `name_taken` (409). */
export async function claimNodePool(tx: Transaction<Tables>, demand: NodePoolDemand): Promise<void> {
  const { accountId, nodePoolId: id, clusterId, name } = demand
  if (await isNodePoolClaimed(tx, demand)) return
  await takeQuotas(tx, { ...holdingOf(demand), amounts: { node_pools: 1 } })
  const cluster = await selectWhere(tx, 'kubernetes_cluster', { account_id: accountId, id: clusterId })
    .select('id')
    .forShare()
    .executeTakeFirst()
  if (cluster === undefined) throw notFound('Kubernetes cluster')
  await requireFreeName(tx, 'node_pool', { account_id: accountId, id, cluster_id: clusterId, name })
  await tx.insertInto('node_pool').values({ account_id: accountId, id, cluster_id: clusterId, name }).execute()
}

export const isNodePoolClaimed = async (db: Queries, { accountId, nodePoolId }: NodePoolId): Promise<boolean> =>
  (await selectWhere(db, 'node_pool', { account_id: accountId, id: nodePoolId }).select('id').executeTakeFirst()) !==
  undefined

/** Idempotent. */
export async function releaseNodePool(tx: Transaction<Tables>, id: NodePoolId): Promise<void> {
  await releaseQuotas(tx, holdingOf(id))
  await deleteWhere(tx, 'node_pool', { account_id: id.accountId, id: id.nodePoolId }).execute()
}
