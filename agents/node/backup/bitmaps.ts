/** The records of what was written to a disk since each backup: dirty bitmaps in its qcow2 file. One is begun at the
 *  point of every backup and named after it; it is kept until a later backup is complete, so a backup that fails costs
 *  nothing. */

/** As QEMU and qemu-img name it. */
export const bitmapOf = (backup: string): string => `backup-${backup}`
const PREFIX = bitmapOf('')

export const isBackupBitmap = (name: string): boolean => name.startsWith(PREFIX)

/** A bitmap as QEMU describes it, of a disk in use or not. */
export interface FoundBitmap {
  readonly name: string
  /** It has missed writes: whoever had the disk open was killed. */
  readonly isLost: boolean
}

/** Which record of changes a backup may build on, or why it must read everything. */
export type Changes = { readonly since: string } | { readonly fullBecause: string }

/** `parent` is the newest complete backup of the storage; undefined when there is none. */
export function changesSince(parent: string | undefined, bitmaps: readonly FoundBitmap[]): Changes {
  if (parent === undefined) return { fullBecause: 'it is the first backup of the storage' }
  const found = bitmaps.find(({ name }) => name === bitmapOf(parent))
  if (found === undefined) return { fullBecause: 'the disk has no record of what has changed since the last backup' }
  if (found.isLost) return { fullBecause: 'the record of what has changed was lost when its guest was killed' }
  return { since: parent }
}
