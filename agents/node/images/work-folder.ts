/** The folders in which images are built. Programs that unpack a system mount file systems there (debootstrap mounts
 *  /proc), and leave them when they are killed. */
import { mkdtemp, readdir, realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { readMounts } from '../../../kit/sys/mounts.ts'
import { runProgram } from '../run-program.ts'

/** How the names of all these folders start. */
export const WORK = 'work-'
const prefixOf = (template: string): string => `${WORK}${template}-`
/** Whether it is a folder of this template, and not of one whose name only starts the same: that has another lock. */
const isOf = (template: string, name: string): boolean =>
  name.startsWith(prefixOf(template)) && /^[A-Za-z0-9]{6}$/.test(name.slice(prefixOf(template).length))

/** Calls `build` with a new folder in `folder`, and removes it afterwards. First it removes what killed builds of the
 *  template left. Only the holder of the template's lock may call it. Throws what `build` throws, and an error when a
 *  folder cannot be removed. */
export async function inWorkFolder(
  folder: string,
  template: string,
  build: (work: string) => Promise<void>,
): Promise<void> {
  for (const name of await readdir(folder)) if (isOf(template, name)) await removeWork(join(folder, name))
  const work = await mkdtemp(join(folder, prefixOf(template)))
  try {
    await build(work)
  } catch (error) {
    await removeWork(work).catch(() => undefined) // the next build removes it; this error is the cause
    throw error
  }
  await removeWork(work)
}

async function removeWork(work: string): Promise<void> {
  // paths of mounts have no links
  const below = `${await realpath(work)}/`
  const mounts = (await readMounts()).filter(({ path }) => path.startsWith(below))
  for (const { path } of mounts.toReversed())
    await runProgram('umount', [path]).catch((error: unknown) => {
      throw new Error(`${path}, which an earlier build left, cannot be unmounted`, { cause: error })
    })
  await rm(work, { recursive: true, force: true })
}
