/** The disk in a file that somebody else created. It is checked by its header, then with qemu-img in the sandbox, and
 *  rewritten as qcow2 that depends on no other file. */
import { type FileHandle, open, stat } from 'node:fs/promises'
import { syncToDisk } from '../../../../kit/sys/durable-file.ts'
import { runProgram } from '../../run-program.ts'
import {
  HEADER_BYTES,
  type ImageFormat,
  type ImageHeader,
  ImageRefused,
  readImageHeader,
  requireIndependent,
  TRAILER_BYTES,
} from './image-format.ts'
import { giveToSandbox, runSandboxed, SandboxFailed, type SandboxLimits } from './sandbox.ts'

export interface DiskLimits {
  /** Limit of the disk's size for guests. */
  readonly maximumVirtualBytes: number
  /** Time limit for each program that reads the file. */
  readonly convertMilliseconds: number
}

export interface DiskOptions {
  readonly limits: DiskLimits
  readonly signal?: AbortSignal | undefined
}

export interface ImportedDisk {
  /** A qcow2 file on the same file system as the folder. The caller moves or removes it. */
  readonly path: string
  /** Format of the imported file. */
  readonly format: ImageFormat
  readonly virtualBytes: number
}

export interface JudgedDisk extends ImageHeader {
  /** Upper limit of the disk's size when it is written as qcow2. */
  readonly requiredBytes: number
}

/** The disk is complete, and larger than its owner may have it now. */
export class DiskTooLarge extends ImageRefused {
  readonly neededGibibytes: number
  constructor(virtualBytes: bigint, allowedBytes: number) {
    super(`The disk of the image has ${virtualBytes} bytes; ${allowedBytes} are allowed.`)
    this.name = 'DiskTooLarge'
    this.neededGibibytes = Math.ceil(Number(virtualBytes) / GIBIBYTE)
  }
}

const MEBIBYTE = 1024 ** 2
const GIBIBYTE = 1024 ** 3
const PROGRAM_MEMORY_MEBIBYTES = 512
const CREATE_TIMEOUT_MILLISECONDS = 60_000
/** Maximum bytes of disk data per byte of the file. Compressed systems have 2 to 10. */
export const EXPANSION_MAXIMUM = 32
/** Free allowance for tiny images, whose data compress best. */
const EXPANDED_BYTES_FREE = 64 * MEBIBYTE
/** Allowance for tables of a qcow2 file beyond the measured size. */
const OVERHEAD_RATIO = 1.01
const OVERHEAD_BYTES = 64 * MEBIBYTE
/** Exit codes of `qemu-img check` for a complete image, and for one with clusters that nothing refers to. */
const CHECK_EXITS = { whole: 0, leaks: 3 } as const

export async function withFile<T>(path: string, flags: string, work: (file: FileHandle) => Promise<T>): Promise<T> {
  const file = await open(path, flags, 0o600)
  try {
    return await work(file)
  } finally {
    await file.close()
  }
}

export const programLimits = ({ limits }: DiskOptions, fileBytes: number): SandboxLimits => ({
  memoryMebibytes: PROGRAM_MEMORY_MEBIBYTES,
  cpuSeconds: Math.ceil(limits.convertMilliseconds / 1000),
  fileBytes,
  timeoutMilliseconds: limits.convertMilliseconds,
})

async function readHeader(path: string): Promise<ImageHeader & { readonly fileBytes: bigint }> {
  const { size } = await stat(path, { bigint: true })
  return withFile(path, 'r', async (file) => {
    const read = async (bytes: number, from: bigint) => {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), 0, bytes, Number(from))
      return buffer.subarray(0, bytesRead)
    }
    const trailer = BigInt(TRAILER_BYTES)
    const end = size > trailer ? await read(TRAILER_BYTES, size - trailer) : Buffer.alloc(0)
    return { ...readImageHeader(await read(HEADER_BYTES, 0n), size, end), fileBytes: size }
  })
}

/** Checks the header first, which opens no other file. Then qemu-img checks whether the file depends on others, whether
 *  it is incomplete, and how large it becomes. Throws ImageRefused and DiskTooLarge. */
export async function judgeDisk(path: string, options: DiskOptions): Promise<JudgedDisk> {
  const { fileBytes, ...header } = await readHeader(path)
  requireSize(header.virtualBytes, options.limits)
  await giveToSandbox(path)
  const { format } = header
  requireIndependent(JSON.parse(await qemuImg(path, ['info', '--output=json', '-f', format], options)))
  if (format === 'qcow2') await requireWhole(path, options)
  const { required } = JSON.parse(
    await qemuImg(path, ['measure', '--output=json', '-O', 'qcow2', '-f', format], options),
  )
  if (typeof required !== 'number') throw new ImageRefused('The size of the image cannot be determined.')
  if (required > EXPANDED_BYTES_FREE + EXPANSION_MAXIMUM * Number(fileBytes))
    throw new ImageRefused(
      `The image becomes ${required} bytes, more than ${EXPANSION_MAXIMUM} times the ${fileBytes} bytes of its file.`,
    )
  return { ...header, requiredBytes: required }
}

const qemuImg = (path: string, input: readonly string[], options: DiskOptions): Promise<string> =>
  withFile(path, 'r', (file) =>
    runSandboxed({
      program: 'qemu-img',
      input: [...input, '/proc/self/fd/3'],
      files: [file.fd],
      limits: programLimits(options, 0),
      signal: options.signal,
    }),
  )

/** A truncated file would read as zeros where its data are missing. */
async function requireWhole(path: string, options: DiskOptions): Promise<void> {
  try {
    await qemuImg(path, ['check', '-q', '-f', 'qcow2'], options)
  } catch (error) {
    if (!(error instanceof SandboxFailed) || error.exitCode === undefined) throw error
    if (error.exitCode !== CHECK_EXITS.leaks)
      throw new ImageRefused('The image is damaged or incomplete: qemu-img check finds errors in it.', { cause: error })
  }
}

/** The same checks for a disk that this host has created. */
export async function requireOwnDisk(
  path: string,
  limits: Pick<DiskLimits, 'maximumVirtualBytes'>,
): Promise<{ readonly virtualBytes: number }> {
  const { format, virtualBytes } = await readHeader(path)
  if (format !== 'qcow2') throw new ImageRefused('The image was not converted.')
  requireSize(virtualBytes, limits)
  return { virtualBytes: Number(virtualBytes) }
}

function requireSize(virtualBytes: bigint, limits: Pick<DiskLimits, 'maximumVirtualBytes'>): void {
  if (virtualBytes > BigInt(limits.maximumVirtualBytes))
    throw new DiskTooLarge(virtualBytes, limits.maximumVirtualBytes)
}

/** Writes no more than `judgeDisk` measured. */
export async function convertDisk(
  from: string,
  to: string,
  { format, virtualBytes, requiredBytes }: JudgedDisk,
  options: DiskOptions,
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
        limits: programLimits(options, Math.ceil(requiredBytes * OVERHEAD_RATIO) + OVERHEAD_BYTES),
        signal: options.signal,
      }),
    ),
  )
  // The image may have attacked qemu-img, so this verifies that the result refers to no other file.
  const header = await readHeader(to)
  if (header.format !== 'qcow2' || header.virtualBytes !== virtualBytes)
    throw new ImageRefused('The image was not converted.')
  await syncToDisk(to)
  return { path: to, format, virtualBytes: Number(virtualBytes) }
}
