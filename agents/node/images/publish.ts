/** Publishes a finished image under its name. */
import { rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { syncToDisk } from '../../../kit/sys/durable-file.ts'

/** Renames the finished folder; the name is durable when this resolves. If another agent was faster, its folder stays
 *  and this one is removed. */
export async function publish(folder: string, path: string): Promise<void> {
  try {
    await rename(folder, path)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code // rename throws errno errors only
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error
    return rm(folder, { recursive: true, force: true })
  }
  await syncToDisk(dirname(path))
}
