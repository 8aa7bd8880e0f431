/** Files that are complete or absent, even if a process is killed or the power fails at any moment. */
import { open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { newBase62, systemRandom } from './random.ts'

/** A file that was being written when its writer was killed; the process that opens the folder may remove it. */
export const UNFINISHED = '.new'
const OWNER_ONLY = 0o600
const NAME_LETTERS = 8

/** Replaces the file's content: readers see the old one or the new one, and on return the new one is on the disk. Only
 *  the owner may read it. Several processes may write the same file: the last one's content stays. Throws the error of
 *  the file system, and then leaves nothing behind. */
export async function writeDurably(path: string, content: string | Buffer): Promise<void> {
  await writeWhole(path, content)
  await syncToDisk(dirname(path))
}

/** As `writeDurably`, except that a power failure may undo it until the file's folder is synced. */
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

/** Writes the parts to a file, replacing its content, and waits until they are on the disk. Only the owner may read a
 *  file that is created. On an error of the file system or of the parts, the file is closed and incomplete, and the
 *  caller removes it. (A stream that opens the file itself may create it after the caller has removed it.) */
export async function writeParts(path: string, parts: AsyncIterable<Uint8Array>): Promise<void> {
  const file = await open(path, 'w', OWNER_ONLY)
  try {
    await file.writeFile(parts)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** The content of a text file; undefined when it does not exist. Throws any other error of the file system. */
export const readIfThere = (path: string): Promise<string | undefined> =>
  readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })

/** Waits until the content of the file is on the disk; of a folder, what was created, renamed or removed in it. */
export async function syncToDisk(path: string): Promise<void> {
  const file = await open(path, 'r')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}
