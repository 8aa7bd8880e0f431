/** Whether the disks of a guest that found no space can grow again. */
import { statfs } from 'node:fs/promises'
import { dirname, isAbsolute } from 'node:path'

const ROOM_BYTES = 1024 ** 3
/** Of a small file system. */
const ROOM_SHARE = 0.05

/** True when each file system has a gibibyte free, or a twentieth of its size. Storage of which nothing is known counts
 *  as free: a guest that finds no space is paused again. */
export async function hasRoomFor(paths: readonly string[]): Promise<boolean> {
  for (const folder of new Set(paths.filter(isAbsolute).map((path) => dirname(path)))) {
    const found = await statfs(folder).catch(() => undefined)
    if (found === undefined) continue
    const { bavail, bsize, blocks } = found
    if (bavail * bsize < Math.min(ROOM_BYTES, blocks * bsize * ROOM_SHARE)) return false
  }
  return true
}
