/** How much space the archive of a database has, and how much of it is billed. Pure. */

const GIBIBYTE = 1024 ** 3
const QUOTA_GIBIBYTES_MINIMUM = 50
const QUOTA_STORAGES = 8
const FREE_STORAGES = 4
/** The part of the quota at which the owner is warned. */
const NEARLY_FULL_SHARE = 0.9
/** The part of the quota below which an archive from before quotas is limited. */
const ROOM_SHARE = 0.8
/** The quota of archives from before quotas: practically unlimited. */
export const UNBOUNDED_BYTES = 2 ** 50

/** How much the archive of a database with a storage of so many GiB may hold. */
export const archiveQuotaBytes = (storageGibibytes: number): number =>
  Math.max(QUOTA_GIBIBYTES_MINIMUM, QUOTA_STORAGES * storageGibibytes) * GIBIBYTE

/** The quota to set in the store. An archive that outgrew it before there were quotas continues: it would stop at once
 *  otherwise. */
export function boundedQuotaBytes(
  storageGibibytes: number,
  reported: { readonly quotaBytes: number; readonly usedBytes: number } | undefined,
): number {
  const quota = archiveQuotaBytes(storageGibibytes)
  return reported?.quotaBytes === UNBOUNDED_BYTES && reported.usedBytes > quota * ROOM_SHARE ? UNBOUNDED_BYTES : quota
}

/** GiB of an archive of so many bytes that are billed as object storage: the part above four times the storage. */
export const billedArchiveGibibytes = (usedBytes: number, storageGibibytes: number): number =>
  Math.max(0, Math.ceil(usedBytes / GIBIBYTE - FREE_STORAGES * storageGibibytes))

export type ArchiveRoom = 'enough' | 'over_allowance' | 'nearly_full' | 'full'

export function archiveRoomOf(usedBytes: number, storageGibibytes: number): ArchiveRoom {
  const quota = archiveQuotaBytes(storageGibibytes)
  if (usedBytes >= quota) return 'full'
  if (usedBytes >= quota * NEARLY_FULL_SHARE) return 'nearly_full'
  return billedArchiveGibibytes(usedBytes, storageGibibytes) > 0 ? 'over_allowance' : 'enough'
}

/** For the owner of the database; empty while there is nothing to report. */
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
