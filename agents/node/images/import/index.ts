/** Makes the disk of an image from a file on the Internet: fetched, compared with its checksum before anything reads
 *  what is in it, judged, and written anew as qcow2 that depends on no other file. Every program that touches the
 *  bytes runs in the sandbox. A half-made image is never found: an import that was killed begins again. */
import { type FileHandle, mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { syncToDisk } from '../../../../kit/sys/durable-file.ts'
import { nodeBinary } from '../../../../kit/sys/process.ts'
import { runProgram } from '../../run-program.ts'
import type { FetchResult, TestTrust } from './fetch.ts'
import {
  HEADER_BYTES,
  type ImageFormat,
  type ImageHeader,
  ImageRefused,
  readImageHeader,
  requireIndependent,
} from './image-format.ts'
import { giveToSandbox, runSandboxed, SandboxFailed, type SandboxLimits } from './sandbox.ts'

export { ImageRefused } from './image-format.ts'

export interface ImportSource {
  /** Of https. */
  readonly url: string
  /** SHA-256 of the file, 64 hex digits. */
  readonly checksum: string
}

export interface ImportLimits {
  /** Of the file that is fetched. */
  readonly maximumBytes: number
  /** Of the disk that guests find in it. */
  readonly maximumVirtualBytes: number
  /** For all of the fetching, and for all of the conversion. */
  readonly fetchMilliseconds: number
  readonly convertMilliseconds: number
  /** How long the server may send nothing. */
  readonly idleMilliseconds: number
}

export interface ImportOptions {
  /** Holds a folder for each import that is under way. */
  readonly folder: string
  /** Of the import: a second one of the same name takes the place of a first that was killed. */
  readonly name: string
  readonly limits: ImportLimits
  readonly signal?: AbortSignal | undefined
  readonly trust?: TestTrust | undefined
}

export interface ImportedDisk {
  /** A qcow2 file on the same file system as the folder, which is the caller's to move or remove. */
  readonly path: string
  /** What the file was. */
  readonly format: ImageFormat
  readonly virtualBytes: number
}

const GIBIBYTE = 1024 ** 3
export const IMPORT_LIMITS: ImportLimits = {
  maximumBytes: 64 * GIBIBYTE,
  maximumVirtualBytes: 1024 * GIBIBYTE,
  fetchMilliseconds: 4 * 3_600_000,
  convertMilliseconds: 3_600_000,
  idleMilliseconds: 60_000,
}

const FOLDER_PREFIX = 'import-'
const FETCHED = 'fetched'
const DISK = 'disk.qcow2'
const SOURCE_ROOT = new URL('../../../../', import.meta.url).pathname
const FETCH_PROCESS = join(import.meta.dirname, 'fetch-process.ts')
const FETCH_MEMORY_MEBIBYTES = 1024
const FETCH_HEAP_MEBIBYTES = 64
const PROGRAM_MEMORY_MEBIBYTES = 512
const CREATE_TIMEOUT_MILLISECONDS = 60_000
/** Tables of a qcow2 file besides its data, at the most. */
const OVERHEAD_RATIO = 1.01
const OVERHEAD_BYTES = 64 * 1024 ** 2

/** Throws ImageRefused for a file that cannot be had or is not taken, and the signal's reason when it is aborted. What
 *  was made until then is gone. */
export async function importImage(source: ImportSource, options: ImportOptions): Promise<ImportedDisk> {
  const folder = join(options.folder, `${FOLDER_PREFIX}${options.name}`)
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true, mode: 0o700 })
  try {
    const fetched = join(folder, FETCHED)
    await fetchFile(fetched, source, options)
    await compareChecksum(fetched, source.checksum, options)
    const header = await inspect(fetched, options)
    const disk = await convert(fetched, join(folder, DISK), header, options)
    await rm(fetched)
    return disk
  } catch (error) {
    await rm(folder, { recursive: true, force: true })
    options.signal?.throwIfAborted()
    if (error instanceof SandboxFailed) throw new ImageRefused(error.message, { cause: error })
    throw error
  }
}

/** Removes what imports left behind whose agent was killed. Only while none is under way. */
export async function removeAbandonedImports(folder: string): Promise<void> {
  const names = await readdir(folder).catch(() => [])
  for (const name of names)
    if (name.startsWith(FOLDER_PREFIX)) await rm(join(folder, name), { recursive: true, force: true })
}

async function withFile<T>(path: string, flags: string, work: (file: FileHandle) => Promise<T>): Promise<T> {
  const file = await open(path, flags, 0o600)
  try {
    return await work(file)
  } finally {
    await file.close()
  }
}

async function fetchFile(path: string, { url }: ImportSource, { limits, signal, trust }: ImportOptions): Promise<void> {
  const { maximumBytes, idleMilliseconds, fetchMilliseconds } = limits
  const answer = await withFile(path, 'wx', (file) =>
    runSandboxed({
      program: nodeBinary(),
      input: [
        '--permission', // no file but its own source, no program, no worker
        `--allow-fs-read=${SOURCE_ROOT}`,
        '--disable-warning=SecurityWarning',
        `--max-old-space-size=${FETCH_HEAP_MEBIBYTES}`,
        FETCH_PROCESS,
      ],
      files: [file.fd],
      standardInput: { text: `${JSON.stringify({ url, maximumBytes, idleMilliseconds, trust })}\n` },
      dropping: 'own',
      isNetworked: true,
      limits: {
        memoryMebibytes: FETCH_MEMORY_MEBIBYTES,
        cpuSeconds: Math.ceil(fetchMilliseconds / 1000),
        fileBytes: maximumBytes,
        timeoutMilliseconds: fetchMilliseconds,
      },
      signal,
    }),
  )
  // The process is believed no more than the Internet: its words are for people only.
  const result: FetchResult = JSON.parse(answer)
  if (!result.isFetched)
    throw new ImageRefused(`The file could not be fetched: ${String(result.reason).slice(0, 300)}.`)
}

/** Computed from the file as it lies there, by a process that has no network. */
async function compareChecksum(path: string, expected: string, options: ImportOptions): Promise<void> {
  const output = await withFile(path, 'r', (file) =>
    runSandboxed({
      program: 'sha256sum',
      input: [],
      standardInput: file.fd,
      limits: programLimits(options, 0),
      signal: options.signal,
    }),
  )
  const found = output.slice(0, 64)
  if (found !== expected.toLowerCase()) throw new ImageRefused(`The SHA-256 of the file is ${found}, not ${expected}.`)
}

const programLimits = ({ limits }: ImportOptions, fileBytes: number): SandboxLimits => ({
  memoryMebibytes: PROGRAM_MEMORY_MEBIBYTES,
  cpuSeconds: Math.ceil(limits.convertMilliseconds / 1000),
  fileBytes,
  timeoutMilliseconds: limits.convertMilliseconds,
})

async function readHeader(path: string): Promise<ImageHeader> {
  const { size } = await stat(path, { bigint: true })
  const start = Buffer.alloc(HEADER_BYTES)
  const { bytesRead } = await withFile(path, 'r', (file) => file.read(start, 0, HEADER_BYTES, 0))
  return readImageHeader(start.subarray(0, bytesRead), size)
}

/** By the header first, which opens no other file; then by what qemu-img makes of the whole. */
async function inspect(path: string, options: ImportOptions): Promise<ImageHeader> {
  const header = await readHeader(path)
  requireSize(header.virtualBytes, options)
  await giveToSandbox(path)
  const output = await withFile(path, 'r', (file) =>
    runSandboxed({
      program: 'qemu-img',
      input: ['info', '--output=json', '-f', header.format, '/proc/self/fd/3'],
      files: [file.fd],
      limits: programLimits(options, 0),
      signal: options.signal,
    }),
  )
  requireIndependent(JSON.parse(output))
  return header
}

/** The same judgement of a disk that this host has made itself. */
export async function requireOwnDisk(
  path: string,
  limits: Pick<ImportLimits, 'maximumVirtualBytes'>,
): Promise<{ readonly virtualBytes: number }> {
  const { format, virtualBytes } = await readHeader(path)
  if (format !== 'qcow2') throw new ImageRefused('The image was not converted.')
  requireSize(virtualBytes, { limits })
  return { virtualBytes: Number(virtualBytes) }
}

function requireSize(
  virtualBytes: bigint,
  { limits }: { readonly limits: Pick<ImportLimits, 'maximumVirtualBytes'> },
): void {
  if (virtualBytes > BigInt(limits.maximumVirtualBytes))
    throw new ImageRefused(
      `The disk of the image has ${virtualBytes} bytes; ${limits.maximumVirtualBytes} are allowed.`,
    )
}

async function convert(
  from: string,
  to: string,
  { format, virtualBytes }: ImageHeader,
  options: ImportOptions,
): Promise<ImportedDisk> {
  await runProgram('qemu-img', ['create', '-q', '-f', 'qcow2', to, String(virtualBytes)], {
    timeoutMilliseconds: CREATE_TIMEOUT_MILLISECONDS,
  })
  await giveToSandbox(to)
  await withFile(from, 'r', (source) =>
    withFile(to, 'r+', (target) =>
      runSandboxed({
        program: 'qemu-img',
        input: ['convert', '-n', '-f', format, '-O', 'qcow2', '/proc/self/fd/3', '/proc/self/fd/4'],
        files: [source.fd, target.fd],
        limits: programLimits(options, Math.ceil(Number(virtualBytes) * OVERHEAD_RATIO) + OVERHEAD_BYTES),
        signal: options.signal,
      }),
    ),
  )
  // Whatever the image made of qemu-img: what guests begin as names no other file.
  const made = await readHeader(to)
  if (made.format !== 'qcow2' || made.virtualBytes !== virtualBytes)
    throw new ImageRefused('The image was not converted.')
  await syncToDisk(to)
  return { path: to, format, virtualBytes: Number(virtualBytes) }
}
