/** Records of what was written to a disk since each backup: dirty bitmaps in its qcow2 file. A bitmap starts at the
 *  point of each backup and is named after it. It is kept until a later backup is complete, so a backup that fails
 *  costs nothing. */

/** The name that QEMU and qemu-img use. */
export const bitmapOf = (backup: string): string => `backup-${backup}`
const PREFIX = bitmapOf('')

export const isBackupBitmap = (name: string): boolean => name.startsWith(PREFIX)

/** A bitmap as QEMU describes it, of a disk that is in use or not. */
export interface FoundBitmap {
  readonly name: string
  /** It has missed writes, because the process that had the disk open was killed. */
  readonly isLost: boolean
}

/** The backup whose record of changes may be used, or the reason why everything must be read. */
export type Changes = { readonly since: string } | { readonly fullBecause: string }

/** `parent` is the newest complete backup of the storage; undefined when there is none. */
export function changesSince(parent: string | undefined, bitmaps: readonly FoundBitmap[]): Changes {
  if (parent === undefined) return { fullBecause: 'it is the first backup of the storage' }
  const found = bitmaps.find(({ name }) => name === bitmapOf(parent))
  if (found === undefined) return { fullBecause: 'the disk has no record of what has changed since the last backup' }
  if (found.isLost) return { fullBecause: 'the record of what has changed was lost when its guest was killed' }
  return { since: parent }
}
