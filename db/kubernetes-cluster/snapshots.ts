/** Snapshots of managed Kubernetes clusters: the kind, release and size of each. */
import type { SnapshotKind } from '../../domain/kubernetes-cluster/rules.ts'
import { isSnapshotKind } from '../../domain/kubernetes-cluster/rules.ts'
import type { Queries } from '../kit/open.ts'
import type { ClusterId } from './claims.ts'
import { deleteWhere, selectWhere } from '../kit/where.ts'

export interface ClusterSnapshot {
  readonly id: string
  readonly kind: SnapshotKind
  readonly release: string
  readonly sizeBytes: number
  readonly createdAt: Date
}

/** Newest first. */
export async function listClusterSnapshots(
  db: Queries,
  { accountId, clusterId }: ClusterId,
): Promise<readonly ClusterSnapshot[]> {
  const rows = await selectWhere(db, 'kubernetes_snapshot', { account_id: accountId, cluster_id: clusterId })
    .selectAll()
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .execute()
  return rows.map(({ id, kind, release, size_bytes: sizeBytes, created_at: createdAt }) => ({
    id,
    kind: isSnapshotKind(kind) ? kind : 'manual',
    release,
    sizeBytes,
    createdAt,
  }))
}

/** Idempotent. */
export async function recordClusterSnapshot(
  db: Queries,
  { accountId, clusterId }: ClusterId,
  { id, kind, release, sizeBytes, createdAt }: ClusterSnapshot,
): Promise<void> {
  await db
    .insertInto('kubernetes_snapshot')
    .values({
      account_id: accountId,
      cluster_id: clusterId,
      id,
      kind,
      release,
      size_bytes: sizeBytes,
      created_at: createdAt,
    })
    .onConflict((clash) => clash.doNothing())
    .execute()
}

/** Idempotent. */
export async function forgetClusterSnapshot(
  db: Queries,
  { accountId, clusterId }: ClusterId,
  id: string,
): Promise<void> {
  await deleteWhere(db, 'kubernetes_snapshot', { account_id: accountId, cluster_id: clusterId, id }).execute()
}
