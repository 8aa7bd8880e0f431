/** How much an account may hold, and how much of that each resource uses. Counting is in `db/account/quotas.ts`. */
import type { Room } from '../node/placement.ts'

/** Limits of a new account, by the plural noun of the paths. */
export const DEFAULT_QUOTAS = {
  servers: 25,
  cores: 64,
  memory_mebibytes: 131_072,
  storages: 100,
  storage_gibibytes: 10_240,
  ssh_keys: 100,
  init_scripts: 100,
  server_groups: 100,
  networks: 20,
  routers: 10,
  snapshots: 200,
  snapshot_gibibytes: 20_480,
  backups: 500,
  backup_gibibytes: 51_200,
  floating_ips: 10,
  load_balancers: 10,
  edges: 10,
  databases: 5,
  kubernetes_clusters: 5,
  node_pools: 25,
  /** In total, including those that have ended. */
  playgrounds: 1,
  dev_clusters: 5,
  custom_images: 20,
  custom_image_gibibytes: 1_024,
  object_storage_gibibytes: 1_024,
  webhooks: 10,
  audit_sinks: 5,
} as const
/** Counts per zone; all others count per account. */
export const ZONE_QUOTA = 'object_storage_gibibytes'
export type QuotaName = keyof typeof DEFAULT_QUOTAS
export type QuotaAmounts = Partial<Readonly<Record<QuotaName, number>>>

/** What a server of the size counts against the quotas of its account. */
export const serverQuota = (size: Pick<Room, 'cores' | 'memoryMebibytes'>): QuotaAmounts => ({
  servers: 1,
  cores: size.cores,
  memory_mebibytes: size.memoryMebibytes,
})
/** What a storage of so many GiB counts against the quotas of its account. */
export const storageQuota = (sizeGibibytes: number): QuotaAmounts => ({ storages: 1, storage_gibibytes: sizeGibibytes })
/** The same for a snapshot of a storage of that size. */
export const snapshotQuota = (sizeGibibytes: number): QuotaAmounts => ({
  snapshots: 1,
  snapshot_gibibytes: sizeGibibytes,
})
/** The same for a backup of a disk of that size. */
export const backupQuota = (sizeGibibytes: number): QuotaAmounts => ({ backups: 1, backup_gibibytes: sizeGibibytes })
/** The same for a custom image whose disk has that size. */
export const customImageQuota = (sizeGibibytes: number): QuotaAmounts => ({
  custom_images: 1,
  custom_image_gibibytes: sizeGibibytes,
})
/** What a custom image counts until the size of its disk is known: an import of a larger one waits until more is
 *  claimed. */
export const UNKNOWN_IMAGE_GIBIBYTES = 64
