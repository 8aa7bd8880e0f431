/** Mounts on the node. */
import { mkdir, rm, rmdir, stat, writeFile } from 'node:fs/promises'
import { type Mount, readMounts } from '../../kit/sys/mounts.ts'
import { runProgram } from './run-program.ts'

/** The topmost mount at this path. */
export const mountAt = async (path: string): Promise<Mount | undefined> =>
  (await readMounts()).findLast((mount) => mount.path === path)

/** `major:minor` of a disk. Throws when the path is not a disk. */
export async function diskNumber(path: string): Promise<string> {
  const { rdev, isBlockDevice } = await stat(path).then((found) => ({
    rdev: found.rdev,
    isBlockDevice: found.isBlockDevice(),
  }))
  if (!isBlockDevice) throw new Error(`${path} is not a disk`)
  return `${(rdev >> 8) & 0xfff}:${(rdev & 0xff) | ((rdev >> 12) & 0xfff00)}`
}

const isBlock = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isBlockDevice(),
    () => false,
  )

/** `major:minor` of the disk behind the path: the disk of its file system, or a disk that is bound to it. Undefined
 *  when nothing is mounted. */
export async function diskBehind(path: string): Promise<string | undefined> {
  const mount = await mountAt(path)
  if (mount === undefined) return undefined
  return (await isBlock(path)) ? diskNumber(path) : mount.device
}

export async function bind(source: string, target: string, isReadOnly: boolean): Promise<void> {
  await runProgram('mount', ['--bind', source, target])
  // a bind mount does not accept other options at the same time
  if (isReadOnly) await runProgram('mount', ['-o', 'remount,bind,ro', target])
}

/** Unmounts everything at this path. Does nothing when nothing is mounted. */
export async function unmount(path: string): Promise<void> {
  while ((await mountAt(path)) !== undefined) await runProgram('umount', [path])
}

/** Unmounts the path and removes the empty folder or the file; never removes data. Does nothing when it does not exist.
 */
export async function removeTarget(path: string): Promise<void> {
  await unmount(path)
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (found?.isDirectory() === true) await rmdir(path)
  else if (found !== undefined) await rm(path)
}

export const makeFolder = (path: string): Promise<unknown> => mkdir(path, { recursive: true, mode: 0o750 })
/** Creates a file to which a disk can be bound. */
export const makeFile = (path: string): Promise<void> => writeFile(path, '', { flag: 'a', mode: 0o660 })
