/** Checks whether only this user can change the programs in a folder. */
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isRoot } from './process.ts'

const WRITABLE_BY_OTHERS = 0o022
const FILE_KIND = 0o170000
const LINK = 0o120000

/** Whether root can safely run what is in the folder: all of it belongs to root, and nobody else can write it. True for
 *  other users, who run their own files. */
export async function isRunByRootSafely(folder: string): Promise<boolean> {
  if (!isRoot()) return true
  const names = await readdir(folder, { recursive: true }).catch(() => [])
  for (const path of [folder, ...names.map((name) => join(folder, name))]) {
    const { uid, mode } = await lstat(path)
    // A link has no rights; its target inside the folder is checked as well.
    if (uid !== 0 || ((mode & FILE_KIND) !== LINK && (mode & WRITABLE_BY_OTHERS) !== 0)) return false
  }
  return true
}
