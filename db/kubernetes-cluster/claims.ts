/** Managed Kubernetes clusters of accounts: their names, the networks that they hold, and which control planes are
 *  theirs. Locks are taken in one order: the quota of the account, then the network. */
import type { Transaction } from 'kysely'
import { rangesBeside } from '../../domain/kubernetes-cluster/rules.ts'
import { badField } from '../../domain/problem.ts'
import { releaseQuotas, takeQuotas } from '../account/index.ts'
import { lockNetwork } from '../network/index.ts'
import type { Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'
import { requireFreeName } from '../kit/free-name.ts'

export interface ClusterId {
  readonly accountId: string
  readonly clusterId: string
}

export interface ClusterDemand extends ClusterId {
  readonly zone: string
  readonly region: string
  readonly name: string
  readonly networkId: string
  /** For when it is not claimed yet, as the next two are. */
  readonly controlPlaneId: string
  readonly release: string
  readonly replicas: number
}

export interface ClusterClaim {
  readonly zone: string
  readonly region: string
  readonly name: string
  readonly networkId: string
  readonly controlPlaneId: string
  /** The release that its control plane must run. */
  readonly release: string
  readonly replicas: number
  readonly podCidr: string
  readonly serviceCidr: string
}

const holdingOf = ({ accountId, clusterId }: ClusterId) => ({
  accountId,
  holder: `kubernetes_cluster/${clusterId}` as const,
})

/** Does nothing when it is claimed already. Throws 404 for an unknown network, 400 for one of another zone, and the
 *  Problems `quota_exceeded` (422) and `name_taken` (409). */
export async function claimCluster(
  tx: Transaction<Tables>,
  demand: ClusterDemand,
  field = 'network_id',
): Promise<void> {
  const { accountId, clusterId: id, zone, name, networkId } = demand
  if ((await findCluster(tx, demand)) !== undefined) return
  await takeQuotas(tx, { ...holdingOf(demand), amounts: { kubernetes_clusters: 1 } })
  const network = await lockNetwork(tx, { accountId, networkId })
  if (network.zone !== zone) throw badField(field, `is in zone ${network.zone}, not in ${zone}`)
  await requireFreeName(tx, 'kubernetes_cluster', { account_id: accountId, id, name })
  const { pods, services } = rangesBeside(network.ipv4Cidr)
  await tx
    .insertInto('kubernetes_cluster')
    .values({
      account_id: accountId,
      id,
      zone,
      region: demand.region,
      name,
      network_id: networkId,
      control_plane_id: demand.controlPlaneId,
      release: demand.release,
      replicas: demand.replicas,
      pod_cidr: pods,
      service_cidr: services,
    })
    .execute()
}

/** Undefined when nothing is claimed. */
export async function findCluster(db: Queries, { accountId, clusterId }: ClusterId): Promise<ClusterClaim | undefined> {
  const row = await selectWhere(db, 'kubernetes_cluster', { account_id: accountId, id: clusterId })
    .selectAll()
    .executeTakeFirst()
  return (
    row && {
      zone: row.zone,
      region: row.region,
      name: row.name,
      networkId: row.network_id,
      controlPlaneId: row.control_plane_id,
      release: row.release,
      replicas: row.replicas,
      podCidr: row.pod_cidr,
      serviceCidr: row.service_cidr,
    }
  )
}

/** From now on its control plane must run that. Does nothing when it is deleted. */
export async function setClusterRelease(
  db: Queries,
  { accountId, clusterId }: ClusterId,
  release: string,
): Promise<void> {
  await updateWhere(db, 'kubernetes_cluster', { account_id: accountId, id: clusterId }).set({ release }).execute()
}

/** Idempotent. The records of its snapshots are deleted with it. */
export async function releaseCluster(tx: Transaction<Tables>, id: ClusterId): Promise<void> {
  await releaseQuotas(tx, holdingOf(id))
  await deleteWhere(tx, 'kubernetes_cluster', { account_id: id.accountId, id: id.clusterId }).execute()
}
