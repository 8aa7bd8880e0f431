/** Facts of the host that the agent runs on. Linux shows them as files; elsewhere only simulated guests run. */
import { readdir, readFile, readlink, stat, statfs } from 'node:fs/promises'
import { cpus, totalmem } from 'node:os'

const MEBIBYTE = 1024 ** 2
const GIBIBYTE = 1024 ** 3

/** Changes with every start of the host's kernel; undefined where the system does not tell. */
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

/** Whether a processor can run foreign kernels directly. A kernel that offers /dev/kvm without it is not fit. */
export const hasVirtualizationFlag = (): Promise<boolean> =>
  readFile('/proc/cpuinfo', 'utf8').then(
    (text) => /^flags\s*:.*\b(svm|vmx)\b/m.test(text),
    () => false,
  )

/** Arguments of a living process; undefined when it is gone or only waits to be reaped. */
export async function processArgumentsOf(pid: number): Promise<string[] | undefined> {
  const text = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
  return text === '' ? undefined : text.split('\0')
}

export const processFolderOf = (pid: number): Promise<string | undefined> =>
  readlink(`/proc/${pid}/cwd`).catch(() => undefined)

/** Whether a process has the file open, also one that nothing names any more. Rejects when the host does not tell. */
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

/** Files and processes may go at any moment. */
const orUndefined = <T>(looking: Promise<T>): Promise<T | undefined> =>
  looking.catch((error: unknown) => {
    const { code = '' } = error as NodeJS.ErrnoException // other errors have none
    if (code === 'ENOENT' || code === 'ESRCH') return undefined
    throw error
  })

/** Processor time that a process has used, all threads together. */
export async function processCpuMilliseconds(pid: number): Promise<number | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  // The name in brackets may hold anything; user and system time are fields 14 and 15, in hundredths of a second.
  const fields = text?.slice(text.lastIndexOf(')') + 2).split(' ')
  return fields === undefined ? undefined : (Number(fields[11]) + Number(fields[12])) * 10
}
