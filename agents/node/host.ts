/** Facts of the host that the agent runs on. Linux shows them as files; elsewhere only simulated guests run. */
import { readdir, readFile, readlink, stat, statfs } from 'node:fs/promises'
import { cpus, totalmem } from 'node:os'

const MEBIBYTE = 1024 ** 2
const GIBIBYTE = 1024 ** 3

/** Changes with every boot of the host's kernel; undefined when the system does not report it. */
export const bootId = (): Promise<string | undefined> =>
  readFile('/proc/sys/kernel/random/boot_id', 'utf8').then(
    (text) => text.trim(),
    () => undefined,
  )

/** `folder` is on the file system that holds the disks. */
export async function hostCapacity(
  folder: string,
): Promise<{ logicalCpus: number; memoryMebibytes: number; storageGibibytes: number }> {
  const { blocks, bsize } = await statfs(folder)
  return {
    logicalCpus: cpus().length,
    memoryMebibytes: Math.floor(totalmem() / MEBIBYTE),
    storageGibibytes: Math.floor((blocks * bsize) / GIBIBYTE),
  }
}

/** Whether a processor can run foreign kernels directly. A kernel that offers /dev/kvm without this flag is unsuitable.
 */
export const hasVirtualizationFlag = (): Promise<boolean> =>
  readFile('/proc/cpuinfo', 'utf8').then(
    (text) => /^flags\s*:.*\b(svm|vmx)\b/m.test(text),
    () => false,
  )

/** Arguments of a running process; undefined when it has exited or is a zombie. */
export async function processArgumentsOf(pid: number): Promise<string[] | undefined> {
  const text = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
  return text === '' ? undefined : text.split('\0')
}

export const processFolderOf = (pid: number): Promise<string | undefined> =>
  readlink(`/proc/${pid}/cwd`).catch(() => undefined)

/** Whether a process has the file open, even if the file has no name. Rejects when the host does not report it. */
export async function hasOpen(pid: number, path: string): Promise<boolean> {
  const wanted = await orUndefined(stat(path, { bigint: true }))
  for (const file of (await orUndefined(readdir(`/proc/${pid}/fd`))) ?? []) {
    const descriptor = `/proc/${pid}/fd/${file}`
    const name = await orUndefined(readlink(descriptor))
    if (name === path || name === `${path} (deleted)`) return true
    if (wanted === undefined || name?.startsWith('/') !== true) continue
    const found = await orUndefined(stat(descriptor, { bigint: true }))
    if (found?.dev === wanted.dev && found.ino === wanted.ino) return true
  }
  return false
}

/** Files and processes may disappear at any moment. */
const orUndefined = <T>(looking: Promise<T>): Promise<T | undefined> =>
  looking.catch((error: unknown) => {
    const { code = '' } = error as NodeJS.ErrnoException // other errors have none
    if (code === 'ENOENT' || code === 'ESRCH') return undefined
    throw error
  })

/** Processor time of all threads of a process. */
export async function processCpuMilliseconds(pid: number): Promise<number | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  // The name in brackets may hold anything; user and system time are fields 14 and 15, in hundredths of a second.
  const fields = text?.slice(text.lastIndexOf(')') + 2).split(' ')
  return fields === undefined ? undefined : (Number(fields[11]) + Number(fields[12])) * 10
}
