/** How much an account may hold, and how much of that each resource uses. Counting is in `db/account/quotas.ts`. */
import type { Room } from '../node/placement.ts'

/** How many of each noun with objects in Kubernetes a new account may have. Answers list nouns in this order. */
const OBJECT_LIMITS = {
  server: 25,
  server_group: 100,
  storage: 100,
  snapshot: 200,
  backup: 500,
  custom_image: 20,
  network: 20,
  router: 10,
  floating_ip: 10,
  load_balancer: 10,
  edge: 10,
  /** One in each zone; its size is limited. */
  object_storage: 'unlimited',
  database: 5,
  kubernetes_cluster: 5,
  node_pool: 25,
  dev_cluster: 5,
  /** In total, including those that have ended. */
  playground: 1,
  webhook: 10,
} as const
/** The same of nouns that are rows in PostgreSQL only. */
const ROW_LIMITS = { ssh_key: 100, init_script: 100, audit_sink: 5 } as const
/** Limits of their sizes. */
const SIZE_LIMITS = {
  cores: 64,
  memory_mebibytes: 131_072,
  storage_gibibytes: 10_240,
  snapshot_gibibytes: 20_480,
  backup_gibibytes: 51_200,
  custom_image_gibibytes: 1_024,
  object_storage_gibibytes: 1_024,
} as const

type ObjectNoun = keyof typeof OBJECT_LIMITS
/** Nouns that are rows in PostgreSQL only. */
export type RowNounName = keyof typeof ROW_LIMITS
/** Nouns that hold quota, each a separate one: it is named by their plural. */
export type QuotaHolder = Exclude<ObjectNoun, 'object_storage'> | RowNounName

/** What an account has, settings included. */
// the keys of both
export const QUOTA_NOUNS = Object.keys({ ...OBJECT_LIMITS, ...ROW_LIMITS }) as readonly (ObjectNoun | RowNounName)[]

/** Neither counted among the resources of an account nor the subject of events. */
const SETTING = 'audit_sink'
/** The resources of an account, in the order in which answers list them. */
export type AccountNoun = Exclude<(typeof QUOTA_NOUNS)[number], typeof SETTING>
export const ACCOUNT_NOUNS: readonly AccountNoun[] = QUOTA_NOUNS.filter((noun) => noun !== SETTING)

/** Limits of a new account, by the plural noun of the paths. */
export const DEFAULT_QUOTAS = {
  ...Object.fromEntries(
    Object.entries({ ...OBJECT_LIMITS, ...ROW_LIMITS }).flatMap(([noun, limit]) =>
      limit === 'unlimited' ? [] : [[`${noun}s`, limit]],
    ),
  ),
  ...SIZE_LIMITS,
} as Readonly<Record<`${QuotaHolder}s` | keyof typeof SIZE_LIMITS, number>> // the keys just above
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
