/** Creates the disk of an image from a file on the Internet. The file is fetched, its checksum is compared before
 *  anything reads its content, and it is checked and rewritten as qcow2 that depends on no other file. Every program
 *  that touches the bytes runs in the sandbox. A half-created image is never found: an import that was killed starts
 *  again. */
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../../../kit/sys/clock.ts'
import { nodeBinary } from '../../../../kit/sys/process.ts'
import type { Turns } from '../../turns.ts'
import { requireRoom, type Room, whileRoom } from '../room.ts'
import { convertDisk, type DiskLimits, type ImportedDisk, judgeDisk, programLimits, withFile } from './disk-file.ts'
import type { TestTrust } from '../../../../integrations/public-internet/lookup.ts'
import type { FetchResult } from './fetch.ts'
import { ImageRefused } from './image-format.ts'
import { runSandboxed, SandboxFailed } from './sandbox.ts'

export { DiskTooLarge, requireOwnDisk } from './disk-file.ts'
export { ImageRefused } from './image-format.ts'

export interface ImportSource {
  /** An https URL. */
  readonly url: string
  /** SHA-256 of the file, 64 hex digits. */
  readonly checksum: string
}

export interface ImportLimits extends DiskLimits {
  /** Limit of the fetched file. */
  readonly maximumBytes: number
  /** Limit for the complete fetch. */
  readonly fetchMilliseconds: number
  /** Longest time without data from the server. */
  readonly idleMilliseconds: number
}

export interface ImportOptions {
  /** Holds one folder for each import in progress. */
  readonly folder: string
  /** Name of the import. A second import of the same name replaces a first one that was killed. */
  readonly name: string
  readonly limits: ImportLimits
  readonly clock: Clock
  /** Turns of the host's conversions, of which one runs at a time. */
  readonly turns: Turns
  /** As in `Room`. */
  readonly reserveBytes?: Room['reserveBytes']
  readonly signal?: AbortSignal | undefined
  readonly trust?: TestTrust | undefined
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

/** Throws ImageRefused for a file that cannot be fetched or is not accepted, DiskTooLarge when its disk is larger than
 *  the limit, NoRoom while the host lacks space, and the signal's reason when it is aborted. On an error it removes
 *  what exists until then. */
export async function importImage(source: ImportSource, options: ImportOptions): Promise<ImportedDisk> {
  const folder = join(options.folder, `${FOLDER_PREFIX}${options.name}`)
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true, mode: 0o700 })
  try {
    return await whileRoom({ ...options, folder }, options.signal, (signal) =>
      importInto(folder, source, { ...options, signal }),
    )
  } catch (error) {
    await rm(folder, { recursive: true, force: true })
    options.signal?.throwIfAborted()
    if (error instanceof SandboxFailed) throw new ImageRefused(error.message, { cause: error })
    throw error
  }
}

async function importInto(folder: string, source: ImportSource, options: ImportOptions): Promise<ImportedDisk> {
  const fetched = join(folder, FETCHED)
  await fetchFile(fetched, source, options)
  await compareChecksum(fetched, source.checksum, options)
  const disk = await options.turns.run(async () => {
    const judged = await judgeDisk(fetched, options)
    await requireRoom({ ...options, folder }, judged.requiredBytes)
    return convertDisk(fetched, join(folder, DISK), judged, options)
  }, options.signal)
  await rm(fetched)
  return disk
}

/** Removes what imports of killed agents left behind. Call it only while no import is in progress. */
export async function removeAbandonedImports(folder: string): Promise<void> {
  const names = await readdir(folder).catch(() => [])
  for (const name of names)
    if (name.startsWith(FOLDER_PREFIX)) await rm(join(folder, name), { recursive: true, force: true })
}

async function fetchFile(path: string, { url }: ImportSource, { limits, signal, trust }: ImportOptions): Promise<void> {
  const { maximumBytes, idleMilliseconds, fetchMilliseconds } = limits
  const answer = await withFile(path, 'wx', (file) =>
    runSandboxed({
      program: nodeBinary(),
      input: [
        '--permission', // no files except its source, no programs, no workers
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
  // The process is trusted no more than the Internet: its reason is only shown to people.
  const result: FetchResult = JSON.parse(answer)
  if (!result.isFetched)
    throw new ImageRefused(`The file could not be fetched: ${String(result.reason).slice(0, 300)}.`)
}

/** A process without a network computes it from the file on the disk. */
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
