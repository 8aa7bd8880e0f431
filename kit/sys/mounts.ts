/** The mounts of this process's namespace, as its kernel reports them. */
import { readFile } from 'node:fs/promises'

export interface Mount {
  readonly path: string
  /** The mounted part of its file system. For a disk that is bound to a file, it is a path below /dev. */
  readonly root: string
  /** `major:minor` of the file system. */
  readonly device: string
  readonly type: string
  /** The mounted source: usually the path of a disk. */
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
