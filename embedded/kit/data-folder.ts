/** The folder that contains everything of an embedded cloud: its layout, its lock, and the processes of an earlier run
 *  that are still running. */
import { constants } from 'node:fs'
import { access, chmod, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../kit/sys/clock.ts'
import { freeBytes } from '../../kit/sys/disk-space.ts'
import { writeDurably } from '../../kit/sys/durable-file.ts'
import { tryLock } from '../../kit/sys/file-lock.ts'
import { makeFolder } from '../../kit/sys/make-folder.ts'
import { signalProcess } from '../../kit/sys/process.ts'

/** A condition that a person must change before `npm start` can continue; the message is one line. */
export class StartRefused extends Error {}

export interface DataFolder {
  readonly root: string
  readonly logs: string
  readonly mail: string
  readonly postgres: string
  readonly kubernetes: string
  /** Kubeconfigs of the components. */
  readonly access: string
  readonly images: string
  readonly nodes: string
  /** Storage that the nodes of a zone share. */
  readonly shared: string
  /** Backups, by zone. */
  readonly backups: string
  /** The network of the servers, if there is one. */
  readonly network: string
  /** Power state of the nodes, and their controller. */
  readonly bmc: string
  readonly endpointsFile: string
  readonly processesFile: string
  readonly catalogFile: string
  /** Identity of the newest controllers in the leader election. */
  readonly leaderFile: string
  readonly operatorTokenFile: string
  /** Token that the embedded Kubernetes API sends to the webhook. */
  readonly webhookTokenFile: string
  /** Keys that encrypt authenticators in the database; never stored in the database. */
  readonly sealingKeysFile: string
  readonly authorityFile: string
  /** File with the offset of a test cloud's clock. */
  readonly testClockFile: string
  /** Data of the fake payment processor. */
  readonly fakePayments: string
  /** Buckets and their users. */
  readonly objectStorage: string
  /** Control planes of Kubernetes clusters. */
  readonly controlPlanes: string
}

export const layout = (root: string): DataFolder => ({
  root,
  logs: join(root, 'logs'),
  mail: join(root, 'mail'),
  postgres: join(root, 'postgres'),
  kubernetes: join(root, 'kubernetes'),
  access: join(root, 'access'),
  images: join(root, 'images'),
  nodes: join(root, 'nodes'),
  shared: join(root, 'shared'),
  backups: join(root, 'backups'),
  network: join(root, 'network'),
  bmc: join(root, 'bmc'),
  endpointsFile: join(root, 'endpoints.json'),
  processesFile: join(root, 'processes.json'),
  catalogFile: join(root, 'catalog.yaml'),
  leaderFile: join(root, 'leader'),
  operatorTokenFile: join(root, 'operator-token'),
  webhookTokenFile: join(root, 'access', 'webhook-token'),
  sealingKeysFile: join(root, 'sealing-keys'),
  authorityFile: join(root, 'kubernetes-ca.pem'),
  testClockFile: join(root, 'test-clock.json'),
  fakePayments: join(root, 'fake-payments'),
  objectStorage: join(root, 'object-storage'),
  controlPlanes: join(root, 'control-planes'),
})

const errorCode = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '')

/** Space for an empty database, the image of tiny-linux and logs. */
const NEW_BYTES_MINIMUM = 128 * 1024 ** 2
const BYTES_MINIMUM = 16 * 1024 ** 2
/** Below this limit a write of any size may fail. */
export const FULL_BYTES = 1024 ** 2

const diskFull = (folder: string, bytes: number): string =>
  `The disk of ${folder} is full: ${Math.floor(bytes / 1024 ** 2)} MiB are free. What is stored is whole; free some ` +
  'space and start again, or choose a folder on another disk: npm start -- --data DIR'

/** Message for people when the disk of the folder has less free space; undefined when it has enough. */
export async function diskFault(folder: string, bytesNeeded: number): Promise<string | undefined> {
  const bytes = await freeBytes(folder)
  return bytes < bytesNeeded ? diskFull(folder, bytes) : undefined
}

/** Creates the folder and its parts, accessible only to its owner. The database's part must be accessible to the
 *  account that runs it. */
export async function prepareDataFolder(root: string): Promise<DataFolder> {
  const folder = layout(root)
  try {
    await makeFolder(root, 0o711)
    await access(root, constants.R_OK | constants.W_OK | constants.X_OK)
    for (const part of [
      folder.logs,
      folder.mail,
      folder.kubernetes,
      folder.access,
      folder.images,
      folder.nodes,
      folder.bmc,
    ]) {
      await makeFolder(part, 0o700)
      await access(part, constants.W_OK | constants.X_OK)
    }
    const isNew = (await readdir(folder.postgres).catch(() => [])).length === 0
    await makeFolder(folder.postgres, 0o711)
    await chmod(folder.postgres, 0o711)
    const fault = await diskFault(root, isNew ? NEW_BYTES_MINIMUM : BYTES_MINIMUM)
    if (fault !== undefined) throw new StartRefused(fault)
  } catch (error) {
    if (error instanceof StartRefused) throw error
    const code = errorCode(error)
    if (code === 'EACCES' || code === 'EPERM')
      throw new StartRefused(
        `The folder ${root} cannot be written by this user. Choose another: npm start -- --data DIR`,
      )
    if (code === 'ENOTDIR' || code === 'EEXIST')
      throw new StartRefused(`${root} is not a folder. Choose another: npm start -- --data DIR`)
    if (code === 'EROFS')
      throw new StartRefused(`${root} is on a read-only file system. Choose another folder: npm start -- --data DIR`)
    if (code === 'ENOSPC') throw new StartRefused(diskFull(root, 0))
    if (code === 'ENOENT' || code === 'EINVAL' || code === 'ENAMETOOLONG')
      throw new StartRefused(`The folder ${root} cannot be made there. Choose another: npm start -- --data DIR`)
    throw error
  }
  return folder
}

/** Locks the folder for this process until `release` or until the process exits for any reason. */
export function lockDataFolder(root: string): { readonly release: () => void } {
  const release = tryLock(join(root, 'lock'))
  if (!release)
    throw new StartRefused(
      `The folder ${root} is in use by another svccloud. Stop that one, or choose another folder: npm start -- ` +
        '--data DIR',
    )
  return { release }
}

/** Identifies a process, even if a later process gets the same id. */
export interface ProcessRecord {
  readonly name: string
  readonly pid: number
  /** From /proc, in clock ticks since boot; undefined without /proc. */
  readonly startTicks?: string
  /** URL of its metrics, once it serves them. */
  readonly metricsUrl?: string
}

const START_TICKS_FIELD = 19 // field 22 of proc(5)'s stat, counted after the command name

/** Start time of the process; undefined when it does not exist, or the system does not report it. */
export async function startTicksOf(pid: number): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[START_TICKS_FIELD]
}

/** Writes the record atomically: after a crash it names either the earlier components or the current ones. */
export async function recordProcesses(folder: DataFolder, processes: readonly ProcessRecord[]): Promise<void> {
  await writeDurably(folder.processesFile, JSON.stringify(processes))
}

const isSame = async (record: ProcessRecord): Promise<boolean> =>
  record.startTicks !== undefined && (await startTicksOf(record.pid)) === record.startTicks

const LEFTOVER_PATIENCE_MILLISECONDS = 10_000
const POLL_MILLISECONDS = 100

/** Waits for components of an earlier run, which exit when their supervisor has exited, and kills those that do not.
 *  Guests are not among them. Call it with the folder locked. */
export async function endLeftovers(folder: DataFolder, clock: Clock): Promise<void> {
  const text = await readFile(folder.processesFile, 'utf8').catch(() => '[]')
  const deadline = clock.monotonicMilliseconds() + LEFTOVER_PATIENCE_MILLISECONDS
  for (const record of parseRecords(text)) {
    while (await isSame(record)) {
      if (clock.monotonicMilliseconds() > deadline) signalProcess(record.pid, 'SIGKILL')
      await clock.sleep(POLL_MILLISECONDS)
    }
  }
  await rm(folder.processesFile, { force: true })
}

/** An invalid file contains no processes. */
function parseRecords(text: string): readonly ProcessRecord[] {
  try {
    return JSON.parse(text) as readonly ProcessRecord[] // written by recordProcesses only
  } catch {
    return []
  }
}
