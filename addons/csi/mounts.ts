/** What is mounted on the node, as its kernel says. */
import { mkdir, readFile, rm, rmdir, stat, writeFile } from 'node:fs/promises'
import { runProgram } from './run-program.ts'

export interface Mount {
  readonly path: string
  /** What part of its file system it shows: a disk that is bound to a file is a path below /dev. */
  readonly root: string
  /** `major:minor` of the file system. */
  readonly device: string
  readonly type: string
  /** What was mounted: the path of a disk, as a rule. */
  readonly source: string
}

/** Later ones are on top of earlier ones (proc_pid_mountinfo(5)). */
export function parseMounts(text: string): readonly Mount[] {
  return text.split('\n').flatMap((line) => {
    const [before = '', after = ''] = line.split(' - ')
    const [, , device, root, path] = before.split(' ')
    const [type, source] = after.split(' ')
    if (device === undefined || root === undefined || path === undefined || type === undefined) return []
    return [{ path: plain(path), root: plain(root), device, type, source: plain(source ?? '') }]
  })
}

const plain = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))

export const readMounts = async (): Promise<readonly Mount[]> =>
  parseMounts(await readFile('/proc/self/mountinfo', 'utf8'))

/** What is on top there. */
export const mountAt = async (path: string): Promise<Mount | undefined> =>
  (await readMounts()).findLast((mount) => mount.path === path)

/** `major:minor` of a disk. Throws for what is none. */
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

/** `major:minor` of the disk that is behind the path: of its file system, or the one that is bound to it. Undefined
 *  where nothing is mounted. */
export async function diskBehind(path: string): Promise<string | undefined> {
  const mount = await mountAt(path)
  if (mount === undefined) return undefined
  return (await isBlock(path)) ? diskNumber(path) : mount.device
}

export async function bind(source: string, target: string, isReadOnly: boolean): Promise<void> {
  await runProgram('mount', ['--bind', source, target])
  // a bind mount takes no other options at once
  if (isReadOnly) await runProgram('mount', ['-o', 'remount,bind,ro', target])
}

/** Nothing is mounted there afterwards. Free where nothing is. */
export async function unmount(path: string): Promise<void> {
  while ((await mountAt(path)) !== undefined) await runProgram('umount', [path])
}

/** Unmounts it and removes the empty folder or the file; data never go with it. Free for one that is not there. */
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
/** That a disk is bound to. */
export const makeFile = (path: string): Promise<void> => writeFile(path, '', { flag: 'a', mode: 0o660 })
