/** Where the snapshots of a cluster are stored in object storage: a tenant of its control plane, and a key that seals
 *  them. That key is derived from the key of the account's backups, so that it opens the snapshots of one control plane
 *  only. */
import { hkdfSync } from 'node:crypto'
import type { ClusterClaim } from '../../../db/kubernetes-cluster/index.ts'
import type { SnapshotPlace } from '../../../integrations/control-planes/control.ts'
import { accountKey, type BackupAccess } from '../../kit/backup-key.ts'
import { findInternalPlace, type InternalPlace, openInternalTenant } from '../../kit/internal-tenant.ts'
import type { Parts } from '../../kit/parts.ts'

type PlaceParts = Pick<Parts, 'db' | 'clock' | 'random' | 'objectStorage'> & BackupAccess
type ClusterReference = Pick<ClusterClaim, 'zone' | 'controlPlaneId'> & { readonly accountId: string }

const KEY_BYTES = 32
const idOf = ({ controlPlaneId: owner, zone }: ClusterReference) => ({ purpose: 'clusters', owner, zone }) as const

/** The place as it was last opened, without asking the store; undefined before. Throws Unavailable. */
export async function findSnapshotPlace(
  parts: PlaceParts,
  cluster: ClusterReference,
): Promise<SnapshotPlace | undefined> {
  const place = await findInternalPlace(parts, idOf(cluster))
  return place && (await snapshotPlaceOf(parts, cluster, place))
}

/** Creates the place where needed, and configures the store with its key. Throws 503 where there is no object storage,
 *  and Unavailable while a store is unavailable that does not know it yet. */
export const openSnapshotPlace = async (parts: PlaceParts, cluster: ClusterReference): Promise<SnapshotPlace> =>
  snapshotPlaceOf(parts, cluster, await openInternalTenant(parts, idOf(cluster)))

async function snapshotPlaceOf(
  parts: PlaceParts,
  { accountId, zone, controlPlaneId }: ClusterReference,
  { store, bucket, accessKeyId, secretAccessKey }: InternalPlace,
): Promise<SnapshotPlace> {
  const key = Buffer.from(await accountKey(parts, accountId), 'hex')
  const purpose = `svccloud snapshots of ${controlPlaneId}`
  return {
    url: `${store.endpointOf(zone)}/${bucket}`,
    authority: store.certificateAuthority,
    accessKeyId,
    secretAccessKey,
    sealingKey: Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), purpose, KEY_BYTES)).toString('hex'),
  }
}
