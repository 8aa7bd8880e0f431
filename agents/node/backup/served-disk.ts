/** Serves a disk that no guest has open, with qemu-nbd on a UNIX socket, for the time of the work. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../../kit/sys/clock.ts'
import { environment } from '../../../kit/sys/process.ts'
import { formatOf } from '../drivers/storage/rbd-path.ts'
import { ALLOCATION, bitmapContext, type NbdDisk, type NbdOptions, openNbd } from './nbd.ts'

export interface ServedDiskOptions {
  /** Folder for the socket. */
  readonly folder: string
  /** The path as programs of the host accept it. */
  readonly path: string
  readonly isWritable?: boolean
  /** The bitmap to serve with it. */
  readonly bitmap?: string | undefined
  readonly clock: Clock
}

const SERVER_PROGRAM = 'qemu-nbd'
/** Absolute, because qemu-nbd requires it, and short, because the address of a socket must be. */
const SOCKET_OF_SERVER = '/proc/self/cwd/s'
const EXPORT_NAME = 'disk'
const READY_MILLISECONDS = 10_000
const POLL_MILLISECONDS = 20
const END_MILLISECONDS = 60_000
const ERROR_CHARACTERS = 300
const CONNECTIONS = 8

/** Runs the work with the disk, and stops the server in every case. Rejects when the disk cannot be opened, for example
 *  because a guest has it open, or when it has no such bitmap. */
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
    // A server that writes must close its disk in order, so that its bitmaps are kept; if it is killed, the next backup
    // is a full one. A cluster that is not informed considers the disk open for another 30 seconds. Before qemu-nbd
    // serves, it may miss SIGTERM.
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
  /** Why the server exited. */
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

/** The socket file exists before the server listens, and the server listens before it has opened its disk. So this
 *  retries until the server answers or exits. */
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
