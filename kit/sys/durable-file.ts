/** Files that are whole or absent, whatever is killed when, also by a power cut. */
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { newBase62, systemRandom } from './random.ts'

/** What was being written when its writer was killed; whoever opens the folder may remove it. */
export const UNFINISHED = '.new'
const OWNER_ONLY = 0o600
const NAME_LETTERS = 8

/** Replaces the file's content: readers see the old one or the new one, and on return the new one is on the disk. Only
 *  the owner may read it.
 *  Several processes may write the same file: the last one's content stays. Throws what the file system says, and then
 *  leaves nothing behind. */
export async function writeDurably(path: string, content: string | Buffer): Promise<void> {
  await writeWhole(path, content)
  await syncToDisk(dirname(path))
}

/** As `writeDurably`, but that a power cut may undo it until the file's folder is synced. */
export async function writeWhole(path: string, content: string | Buffer): Promise<void> {
  const unfinished = `${path}.${newBase62(systemRandom, NAME_LETTERS)}${UNFINISHED}`
  const file = await open(unfinished, 'wx', OWNER_ONLY)
  try {
    await file.writeFile(content)
    await file.sync()
    await rename(unfinished, path)
  } catch (error) {
    await rm(unfinished, { force: true })
    throw error
  } finally {
    await file.close()
  }
}

/** Waits until the content of the file is on the disk; of a folder, what was created, renamed or removed in it. */
export async function syncToDisk(path: string): Promise<void> {
  const file = await open(path, 'r')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}
