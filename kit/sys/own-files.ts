/** Whether what is run from a folder is this user's alone to change. */
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isRoot } from './process.ts'

const WRITABLE_BY_OTHERS = 0o022
const FILE_KIND = 0o170000
const LINK = 0o120000

/** Whether root runs nothing that another user has put into the folder, or may: all of it is root's, and writable by
 *  nobody else. True for other users, who run what is theirs. */
export async function isRunByRootSafely(folder: string): Promise<boolean> {
  if (!isRoot()) return true
  const names = await readdir(folder, { recursive: true }).catch(() => [])
  for (const path of [folder, ...names.map((name) => join(folder, name))]) {
    const { uid, mode } = await lstat(path)
    // A link has no rights of its own; where it leads inside the folder is looked at as well.
    if (uid !== 0 || ((mode & FILE_KIND) !== LINK && (mode & WRITABLE_BY_OTHERS) !== 0)) return false
  }
  return true
}
