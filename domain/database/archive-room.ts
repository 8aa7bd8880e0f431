/** How much room the archive of a database has, and what of it costs. Pure. */

const GIBIBYTE = 1024 ** 3
const QUOTA_GIBIBYTES_MINIMUM = 50
const QUOTA_STORAGES = 8
const FREE_STORAGES = 4
/** Of the quota, from which somebody should hear of it. */
const NEARLY_FULL_SHARE = 0.9
/** Of the quota: an archive from before there was one is held to it once it is smaller. */
const ROOM_SHARE = 0.8
/** What archives had before: as good as none. */
export const UNBOUNDED_BYTES = 2 ** 50

/** How much the archive may hold of a database with a storage of so many GiB. */
export const archiveQuotaBytes = (storageGibibytes: number): number =>
  Math.max(QUOTA_GIBIBYTES_MINIMUM, QUOTA_STORAGES * storageGibibytes) * GIBIBYTE

/** The quota that the store is to be told. What has grown beyond it while there was none goes on being archived: it
 *  would end at once otherwise. */
export function boundedQuotaBytes(
  storageGibibytes: number,
  told: { readonly quotaBytes: number; readonly usedBytes: number } | undefined,
): number {
  const quota = archiveQuotaBytes(storageGibibytes)
  return told?.quotaBytes === UNBOUNDED_BYTES && told.usedBytes > quota * ROOM_SHARE ? UNBOUNDED_BYTES : quota
}

/** GiB of an archive of so many bytes that are billed as object storage: what is above four times the storage. */
export const billedArchiveGibibytes = (usedBytes: number, storageGibibytes: number): number =>
  Math.max(0, Math.ceil(usedBytes / GIBIBYTE - FREE_STORAGES * storageGibibytes))

export type ArchiveRoom = 'enough' | 'over_allowance' | 'nearly_full' | 'full'

export function archiveRoomOf(usedBytes: number, storageGibibytes: number): ArchiveRoom {
  const quota = archiveQuotaBytes(storageGibibytes)
  if (usedBytes >= quota) return 'full'
  if (usedBytes >= quota * NEARLY_FULL_SHARE) return 'nearly_full'
  return billedArchiveGibibytes(usedBytes, storageGibibytes) > 0 ? 'over_allowance' : 'enough'
}

/** For the owner of the database; empty while there is nothing to say. */
export function archiveRoomText(usedBytes: number, storageGibibytes: number): string {
  const room = archiveRoomOf(usedBytes, storageGibibytes)
  if (room === 'enough') return ''
  const used = Math.ceil(usedBytes / GIBIBYTE)
  const above = billedArchiveGibibytes(usedBytes, storageGibibytes)
  const billed = `Its archive holds ${used} GiB${above === 0 ? '' : `, of which ${above} are billed as object storage`}`
  if (room === 'over_allowance') return `${billed}.`
  const quota = archiveQuotaBytes(storageGibibytes) / GIBIBYTE
  return `${billed}; it may hold ${quota}: keep backups for fewer days, or restore into a larger database.`
}
