/** Checks whether only this user can change the programs in a folder. */
import { readdir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isRoot } from './process.ts'

const WRITABLE_BY_OTHERS = 0o022

/** Whether root can safely run what is in the folder: all of it, and what its links point to, belongs to root, and
 *  nobody else can write it. True for other users, who run their own files. Throws when it cannot be read. */
export async function isRunByRootSafely(folder: string): Promise<boolean> {
  if (!isRoot()) return true
  // A link itself has no rights, also when it is the folder.
  const names = await readdir(folder, { recursive: true })
  for (const path of [folder, ...names.map((name) => join(folder, name))]) {
    const real = await realpath(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined // a link to nothing runs nothing
      throw error
    })
    if (real === undefined) continue
    const found = await stat(real)
    // links to /dev/null disable services
    const isRun = found.isFile() || found.isDirectory()
    if (isRun && (found.uid !== 0 || (found.mode & WRITABLE_BY_OTHERS) !== 0)) return false
  }
  return true
}
