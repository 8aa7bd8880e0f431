/** Creates folders. */
import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Creates the folder and its parents; does nothing when it exists. Node's own `recursive` retries for ever where the
 *  system reports that an existing folder does not exist, as /proc does. Rejects with the system's error, EEXIST for a
 *  file. */
export async function makeFolder(path: string, mode?: number): Promise<void> {
  try {
    await makeOne(path, mode)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException // mkdir throws errno errors only
    if (code !== 'ENOENT' || dirname(path) === path) throw error
    await makeFolder(dirname(path), mode)
    await makeOne(path, mode)
  }
}

const makeOne = (path: string, mode: number | undefined): Promise<void> =>
  mkdir(path, mode).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST' || !(await stat(path)).isDirectory()) throw error
  })
