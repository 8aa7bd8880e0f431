/** Files that are complete or absent, whatever is killed when. */
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Replaces the file's content; on return it is on the disk under its name. */
export async function writeDurably(path: string, content: string | Buffer, mode = 0o600): Promise<void> {
  const temporary = `${path}.new`
  const file = await open(temporary, 'w', mode)
  try {
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(temporary, path)
  await syncFolder(dirname(path))
}

/** Makes creations, renames and removals inside the folder last. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/** Gives a finished file or folder its name. False, and the new one is dropped, when another was faster. */
export async function publish(temporary: string, path: string): Promise<boolean> {
  try {
    await rename(temporary, path)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code // rename throws errno errors only
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error
    await rm(temporary, { recursive: true, force: true })
    return false
  }
  await syncFolder(dirname(path))
  return true
}
