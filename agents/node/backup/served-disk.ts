/** A disk that no guest has open, served by qemu-nbd on a UNIX socket for as long as the work with it takes. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../../kit/sys/clock.ts'
import { environment } from '../../../kit/sys/process.ts'
import { formatOf } from '../drivers/storage/rbd-path.ts'
import { ALLOCATION, bitmapContext, type NbdDisk, type NbdOptions, openNbd } from './nbd.ts'

export interface ServedDiskOptions {
  /** Where the socket is made. */
  readonly folder: string
  /** As programs of the host take it. */
  readonly path: string
  readonly isWritable?: boolean
  /** The bitmap to be read with it. */
  readonly bitmap?: string | undefined
  readonly clock: Clock
}

const SERVER_PROGRAM = 'qemu-nbd'
/** Absolute, as qemu-nbd wants it, and short, as addresses of sockets must be. */
const SOCKET_OF_SERVER = '/proc/self/cwd/s'
const EXPORT_NAME = 'disk'
const READY_MILLISECONDS = 10_000
const POLL_MILLISECONDS = 20
const END_MILLISECONDS = 60_000
const ERROR_CHARACTERS = 300
const CONNECTIONS = 8

/** Does the work with the disk and ends the server, however the work ends. Rejects when the disk cannot be opened, as
 *  while a guest has it, or has no such bitmap. */
export async function withServedDisk<Result>(
  options: ServedDiskOptions,
  work: (disk: NbdDisk) => Promise<Result>,
): Promise<Result> {
  const { folder, isWritable = false, bitmap, clock } = options
  const own = await mkdtemp(join(folder, 'nbd-'))
  const server = startServer(options, own)
  let disk: NbdDisk | undefined
  try {
    const contexts = isWritable ? [] : [ALLOCATION, ...(bitmap === undefined ? [] : [bitmapContext(bitmap)])]
    disk = await openWhenReady(server, clock, { socket: join(own, 's'), exportName: EXPORT_NAME, contexts })
    const result = await work(disk)
    if (isWritable) await disk.flush()
    return result
  } finally {
    disk?.close()
    // A writer closes its disk in order, so that what its bitmaps recorded is kept; killed, it only makes the next
    // backup a full one. To a cluster that is not told, a disk is open for half a minute more. Asked to end before it
    // serves, qemu-nbd may overhear it.
    const isOrderly = (isWritable || formatOf(options.path) === 'raw') && disk !== undefined
    const forget = clock.after(isOrderly ? END_MILLISECONDS : 0, () => server.child.kill('SIGKILL'))
    if (isOrderly) server.child.kill('SIGTERM')
    await server.ended
    forget()
    await rm(own, { recursive: true, force: true })
  }
}

interface DiskServer {
  readonly child: ChildProcess
  readonly ended: Promise<void>
  /** Why it ended. */
  readonly failure: () => string | undefined
}

function startServer({ path, isWritable = false, bitmap }: ServedDiskOptions, folder: string): DiskServer {
  const child = spawn(
    SERVER_PROGRAM,
    [
      '--persistent',
      `--shared=${CONNECTIONS}`,
      `--export-name=${EXPORT_NAME}`,
      `--socket=${SOCKET_OF_SERVER}`,
      `--format=${formatOf(path)}`,
      '--discard=unmap',
      '--detect-zeroes=unmap',
      ...(isWritable ? [] : ['--read-only']),
      ...(bitmap === undefined ? [] : [`--bitmap=${bitmap}`]),
      path,
    ],
    { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'], env: { PATH: environment()['PATH'] } },
  )
  let end: string | undefined
  let output = ''
  child.stderr.on('data', (bytes: Buffer) => void (output = `${output}${bytes}`.slice(-ERROR_CHARACTERS)))
  const ended = new Promise<void>((resolve) => {
    child.once('exit', (code) => {
      end ??= `${SERVER_PROGRAM} ended with code ${code}`
      resolve()
    })
    child.once('error', (error) => {
      end ??= error.message
      resolve()
    })
  })
  return { child, ended, failure: () => (end === undefined ? undefined : output.trim() || end) }
}

/** The socket is there before the server listens, and the server listens before it has opened its disk: until it
 *  answers or ends, it is tried again. */
async function openWhenReady({ child, ended, failure }: DiskServer, clock: Clock, nbd: NbdOptions): Promise<NbdDisk> {
  let isLate = false
  const forget = clock.after(READY_MILLISECONDS, () => {
    isLate = true
    child.kill('SIGKILL')
  })
  try {
    for (;;) {
      try {
        return await openNbd(nbd)
      } catch (cause) {
        await Promise.race([ended, clock.sleep(POLL_MILLISECONDS)])
        if (isLate) throw new Error(`${SERVER_PROGRAM} does not answer`, { cause })
        const reason = failure()
        if (reason !== undefined) throw new Error(reason, { cause })
      }
    }
  } finally {
    forget()
  }
}
