/** The QMP commands of one attempt, for both hosts. The receiver waits (`beginReceive`). The sender copies mirrored
 *  disks, then the memory while the guest runs (`beginSend`, `nextSendStep`). QEMU pauses the guest and waits before
 *  the hand-over (pause-before-switchover), which only an agent orders. Until that order the move can be cancelled.
 *  After it, a cancel that races with the last bytes could leave a running copy on each host. There is no return path:
 *  the sender has handed over once everything is written. */
import { z } from 'zod'
import { defined } from '../../../../domain/defined.ts'
import { Instance } from '../../../../resources/instance/index.ts'
import type { Transfer } from './hypervisor.ts'
import { diskNode } from './qemu-disks.ts'
import type { Qmp } from './qmp.ts'

/** The last attempt in the guest's record. */
export const Move = z.strictObject({
  role: z.enum(['receive', 'send']),
  id: z.string(),
  attempt: z.int(),
  mirroredDisks: z.array(z.int()),
  beganAt: z.string(),
  /** Address where the receiver listens; absent until it listens. */
  host: z.string().optional(),
  port: z.int().optional(),
  diskPort: z.int().optional(),
  /** Of the sender only. */
  orders: z
    .strictObject({ downtimeLimitMilliseconds: z.int(), isThrottled: z.boolean(), timeoutSeconds: z.int() })
    .optional(),
  /** The agent may have ordered the sender's QEMU to send the memory. */
  isStarted: z.boolean(),
  /** How it ended. */
  end: Instance.status.shape.transfer,
})
export type Move = z.infer<typeof Move>

/** File in the guest's folder: one line `qemu:<64 hex digits>`. QEMU requires this name. */
export const KEY_FILE = 'keys.psk'
export const keyFileText = (key: string): string => `qemu:${key}\n`

const CREDENTIALS = 'move-credentials'
const copyNode = (slot: number): string => `copy${slot}`
const copyJob = (slot: number): string => `copy-job${slot}`

/** Faster than any link, so that the network limits the stream, not QEMU. */
const UNLIMITED_MEBIBYTES_PER_SECOND = 16 * 1024
/** QEMU opens files, flushes and connects within these commands, and does nothing else meanwhile. */
const SLOW_COMMAND_MILLISECONDS = 60_000
const withSlowTimeout = (qmp: Qmp): Pick<Qmp, 'execute'> => ({
  execute: (command, input) => qmp.execute(command, input, SLOW_COMMAND_MILLISECONDS),
})

async function useKey(qmp: Pick<Qmp, 'execute'>, endpoint: 'client' | 'server'): Promise<void> {
  await qmp.execute('object-del', { id: CREDENTIALS }).catch(() => undefined) // of an earlier attempt
  await qmp.execute('object-add', { 'qom-type': 'tls-creds-psk', id: CREDENTIALS, dir: '.', endpoint })
}

const setCapabilities = (qmp: Pick<Qmp, 'execute'>, states: Readonly<Record<string, boolean>>) =>
  qmp.execute('migrate-set-capabilities', {
    capabilities: Object.entries(states).map(([capability, state]) => ({ capability, state })),
  })

/** Makes the receiver's QEMU listen. */
export async function beginReceive(
  connection: Qmp,
  mirroredDisks: readonly number[],
  { host, port, diskPort }: { readonly host: string; readonly port: number; readonly diskPort?: number | undefined },
): Promise<void> {
  const qmp = withSlowTimeout(connection)
  await useKey(qmp, 'server')
  await setCapabilities(qmp, { events: true, 'late-block-activate': mirroredDisks.length > 0 })
  await qmp.execute('migrate-set-parameters', { 'tls-creds': CREDENTIALS })
  if (diskPort !== undefined) {
    await qmp.execute('nbd-server-start', {
      addr: { type: 'inet', data: { host, port: String(diskPort) } },
      'tls-creds': CREDENTIALS,
    })
    for (const slot of mirroredDisks)
      await qmp.execute('block-export-add', {
        type: 'nbd',
        id: diskNode(slot),
        'node-name': diskNode(slot),
        name: diskNode(slot),
        writable: true,
      })
  }
  await qmp.execute('migrate-incoming', { uri: addressOf(host, port) })
}

/** Resumes the guest once everything has arrived. It is paused because its disks were copied: from now on only this
 *  copy may write to them. */
export async function resumeReceived(connection: Qmp): Promise<void> {
  const qmp = withSlowTimeout(connection)
  await qmp.execute('nbd-server-stop').catch(() => undefined) // an agent that was killed may have stopped it
  await qmp.execute('cont')
}

/** Prepares the sender and starts to copy the disks; `nextSendStep` starts the memory. Disk copies and memory each stay
 *  below `mebibytesPerSecond`. The limit does not apply where the guest waits: to its writes meanwhile, and to the rest
 *  of the memory while it is paused. */
export async function beginSend(
  connection: Qmp,
  { mirroredDisks, host = '', diskPort, orders }: Move,
  mebibytesPerSecond = UNLIMITED_MEBIBYTES_PER_SECOND,
): Promise<void> {
  const qmp = withSlowTimeout(connection)
  const bytesPerSecond = mebibytesPerSecond * 1024 ** 2
  await endCopies(connection)
  await useKey(qmp, 'client')
  await setCapabilities(qmp, {
    events: true,
    'pause-before-switchover': true,
    'auto-converge': orders?.isThrottled === true,
  })
  await qmp.execute('migrate-set-parameters', {
    'tls-creds': CREDENTIALS,
    'max-bandwidth': bytesPerSecond,
    'downtime-limit': downtimeLimitAt(0, orders?.downtimeLimitMilliseconds ?? 0),
  })
  for (const slot of mirroredDisks) {
    const server = { type: 'inet', host, port: String(diskPort) }
    await qmp.execute('blockdev-add', {
      driver: 'nbd',
      'node-name': copyNode(slot),
      server,
      export: diskNode(slot),
      'tls-creds': CREDENTIALS,
    })
    await qmp.execute('blockdev-mirror', {
      'job-id': copyJob(slot),
      device: diskNode(slot),
      target: copyNode(slot),
      sync: 'full',
      speed: bytesPerSecond,
      'copy-mode': 'write-blocking',
      'auto-dismiss': false,
    })
  }
}

export const sendMemory = (qmp: Qmp, { host = '', port = 0 }: Move): Promise<unknown> =>
  withSlowTimeout(qmp).execute('migrate', { uri: addressOf(host, port) })

const addressOf = (host: string, port: number): string => `tcp:${host.includes(':') ? `[${host}]` : host}:${port}`

/** QEMU's report of a memory transfer. */
export interface MigrationInfo {
  readonly status?: string
  readonly 'error-desc'?: string
  readonly downtime?: number
  readonly ram?: {
    readonly transferred: number
    readonly total: number
    readonly 'dirty-pages-rate': number
    readonly 'page-size': number
    readonly 'dirty-sync-count': number
  }
}

export interface CopyJob {
  readonly id: string
  readonly status: string
  readonly error?: string
}

export interface ObservedSend {
  readonly migration: MigrationInfo
  readonly copies: readonly CopyJob[]
}

/** QEMU's run state, such as `running`. Rejects when it does not answer. */
export async function queryStatus(qmp: Qmp): Promise<string> {
  // shape of QEMU's documented answer
  return ((await qmp.execute('query-status')) as { readonly status: string }).status
}

async function queryJobs(qmp: Qmp): Promise<readonly CopyJob[]> {
  // shape of QEMU's documented answer
  return (await qmp.execute('query-jobs')) as readonly CopyJob[]
}

/** Progress of the send in QEMU. Rejects when QEMU does not answer. */
export async function observeSend(qmp: Qmp, { mirroredDisks }: Move): Promise<ObservedSend> {
  // shape of QEMU's documented answer
  const look = async () => (await qmp.execute('query-migrate')) as MigrationInfo
  let migration = await look()
  if (migration.status === 'completed') {
    // QEMU reports `completed` a moment before it has computed the downtime. For a guest that runs on, `completed`
    // refers to the migration to this host: it was never ordered to send.
    const status = await queryStatus(qmp)
    migration =
      status === 'postmigrate'
        ? await look()
        : { ...migration, status: status === 'finish-migrate' ? 'device' : 'none' }
  }
  const jobs = mirroredDisks.length === 0 ? [] : await queryJobs(qmp)
  const ids = mirroredDisks.map(copyJob)
  return { migration, copies: jobs.filter(({ id }) => ids.includes(id)) }
}

export type SendStep =
  | { readonly do: 'wait' | 'sendMemory' | 'cancel' | 'finishCopies' | 'handOver' }
  | { readonly do: 'allowDowntime'; readonly milliseconds: number }
  | { readonly do: 'end'; readonly phase: 'completed' | 'failed'; readonly detail: string }

const failed = (detail: string): SendStep => ({ do: 'end', phase: 'failed', detail })

/** The next step of the attempt. It depends on QEMU's report only, so that another agent can continue. `reason`: why
 *  the attempt must be cancelled, if it must. Pure. */
export function nextSendStep(
  { isStarted, mirroredDisks, orders }: Move,
  { migration, copies }: ObservedSend,
  reason: string | undefined,
): SendStep {
  const broken = copies.find(({ error }) => error !== undefined)
  const lost =
    broken !== undefined
      ? `copy of a disk: ${broken.error}`
      : copies.length < mirroredDisks.length
        ? 'the copy of a disk was interrupted'
        : undefined
  if (!isStarted) {
    if (reason !== undefined || lost !== undefined) return failed(reason ?? lost ?? '')
    return { do: copies.every(({ status }) => status === 'ready') ? 'sendMemory' : 'wait' }
  }
  switch (migration.status) {
    case 'completed':
      return { do: 'end', phase: 'completed', detail: '' }
    case 'pre-switchover':
      if (lost !== undefined) return { do: 'cancel' }
      return {
        do: copies.every(({ status }) => status === 'concluded')
          ? 'handOver'
          : copies.some(({ status }) => status === 'ready')
            ? 'finishCopies'
            : 'wait',
      }
    case 'active':
      return reason !== undefined || lost !== undefined
        ? { do: 'cancel' }
        : {
            do: 'allowDowntime',
            milliseconds: downtimeLimitAt(
              migration.ram?.['dirty-sync-count'] ?? 0,
              orders?.downtimeLimitMilliseconds ?? 0,
            ),
          }
    case 'setup':
      return { do: reason === undefined ? 'wait' : 'cancel' }
    case undefined:
    case 'none':
      return failed(reason ?? lost ?? 'the sending was interrupted before it began')
    case 'failed':
    case 'cancelled':
      return failed(reason ?? lost ?? migration['error-desc'] ?? 'the stream to the receiver broke')
    default:
      return { do: 'wait' }
  }
}

const FIRST_DOWNTIME_MILLISECONDS = 50
/** From this pass on, the full limit is allowed. */
const LAST_PASS = 5

/** A quiet guest moves with little downtime; a busy one is allowed more with each pass, up to the limit. */
export function downtimeLimitAt(pass: number, limitMilliseconds: number): number {
  const share = limitMilliseconds * 2 ** Math.min(0, pass - LAST_PASS)
  return Math.round(Math.min(limitMilliseconds, Math.max(FIRST_DOWNTIME_MILLISECONDS, share)))
}

/** Completes the disk copies while the guest is paused, so that they are consistent. */
export async function finishCopies(qmp: Qmp, copies: readonly CopyJob[]): Promise<void> {
  for (const { id, status } of copies) if (status === 'ready') await qmp.execute('block-job-cancel', { device: id })
}

/** The point of no return. */
export async function handOver(connection: Qmp, { mirroredDisks }: Move): Promise<void> {
  const qmp = withSlowTimeout(connection)
  // an agent that was killed may have deleted them
  for (const slot of mirroredDisks)
    await qmp.execute('blockdev-del', { 'node-name': copyNode(slot) }).catch(() => undefined)
  await qmp.execute('migrate-continue', { state: 'pre-switchover' })
}

const JOB_END_LOOKS = 100

/** Removes the disk copies of an attempt. The guest keeps running. */
export async function endCopies(qmp: Qmp, pause: () => Promise<void> = async () => {}): Promise<void> {
  const mine = async () => (await queryJobs(qmp)).filter(({ id }) => id.startsWith('copy-job'))
  for (let look = 0; look < JOB_END_LOOKS; look++) {
    const jobs = await mine()
    if (jobs.length === 0) break
    for (const { id, status } of jobs) {
      if (status === 'concluded') await qmp.execute('job-dismiss', { id })
      // it may have concluded meanwhile
      else await qmp.execute('block-job-cancel', { device: id, force: true }).catch(() => undefined)
    }
    await pause()
  }
  // shape of QEMU's documented answer
  const nodes = (await qmp.execute('query-named-block-nodes', { flat: true })) as readonly {
    readonly 'node-name': string
  }[]
  for (const node of nodes)
    if (/^copy\d+$/.test(node['node-name'])) await qmp.execute('blockdev-del', { 'node-name': node['node-name'] })
}

/** Report on an attempt. */
export function transferOf(move: Move, at: Date, { ram, downtime }: MigrationInfo = {}): Transfer {
  return {
    id: move.id,
    attempt: move.attempt,
    role: move.role,
    phase: 'transferring',
    ...(move.role === 'receive' && move.host !== undefined
      ? { host: move.host, port: move.port, ...defined({ diskPort: move.diskPort }) }
      : {}),
    iteration: ram?.['dirty-sync-count'] ?? 0,
    transferredBytes: ram?.transferred ?? 0,
    totalBytes: ram?.total ?? 0,
    dirtyBytesPerSecond: (ram?.['dirty-pages-rate'] ?? 0) * (ram?.['page-size'] ?? 0),
    downtimeMilliseconds: downtime ?? 0,
    detail: '',
    reportedAt: at.toISOString(),
  }
}
