/** Restores a disk from a backup with only its location and the account's key: it needs neither the service nor its
 *  database nor a hypervisor. */
import { type FileHandle, open, readFile, rename, rm, stat } from 'node:fs/promises'
import { openStoreAt } from '../kit/chunks/locate.ts'
import type { ChunkManifest } from '../kit/chunks/manifest.ts'
import { type ObjectStore, StoreFailed } from '../kit/chunks/object-store.ts'
import { openRepository, type Repository, restoreDisk } from '../kit/chunks/repository.ts'
import { DamagedObject, KEY_BYTES } from '../kit/chunks/seal.ts'
import { EXIT, Failure, usageFailure } from './exit.ts'
import type { RunParts } from './session.ts'

export interface OfflineRestore {
  readonly backup: string
  /** Folder of the account, or its part of a bucket. */
  readonly location: string
  readonly keyFile: string
  /** Output file for the disk; it must not exist yet. */
  readonly output: string
}

const PERCENT = 100
const KEY = new RegExp(`^[0-9a-f]{${KEY_BYTES * 2}}$`)
const UNFINISHED = '.unfinished'

/** Writes the disk as a raw, sparse file and returns its size in bytes. Throws a Failure when any part is missing or
 *  modified; then there is no file of that name. */
export async function restoreOffline(
  { backup, location, keyFile, output }: OfflineRestore,
  parts: RunParts,
): Promise<number> {
  const { clock, random, signal } = parts
  const key = await readKey(keyFile)
  if ((await stat(output).catch(() => undefined)) !== undefined) throw usageFailure(`${output} exists already`)
  const repository = openRepository({ store: openStore(location, parts), key, clock, random, signal })
  const unfinished = `${output}${UNFINISHED}`
  try {
    const manifest = await repository.getManifest(backup)
    await writeDisk(repository, manifest, unfinished, parts)
    await rename(unfinished, output)
    return manifest.sizeBytes
  } catch (error) {
    await rm(unfinished, { force: true })
    if (signal.aborted) throw new Failure(EXIT.interrupted, 'interrupted', error)
    if (error instanceof DamagedObject) throw new Failure(EXIT.refused, `backup ${backup}: ${error.message}`, error)
    if (error instanceof StoreFailed) throw new Failure(EXIT.unreachable, error.message, error)
    throw error
  }
}

function openStore(location: string, { environment, clock }: RunParts): ObjectStore {
  try {
    return openStoreAt({ location, environment, clock })
  } catch (error) {
    throw usageFailure(error instanceof Error ? error.message : String(error))
  }
}

async function readKey(path: string): Promise<Buffer> {
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw usageFailure(`${path} cannot be read: ${error.message}`)
  })
  if (!KEY.test(text.trim())) throw usageFailure(`${path} does not contain a key: ${KEY_BYTES * 2} digits 0-9a-f`)
  return Buffer.from(text.trim(), 'hex')
}

async function writeDisk(
  repository: Repository,
  manifest: ChunkManifest,
  path: string,
  { terminal, signal }: RunParts,
): Promise<void> {
  const file = await open(path, 'w', 0o600)
  try {
    await file.truncate(manifest.sizeBytes)
    await restoreDisk(repository, manifest, writerOf(file), { signal, onProgress: showProgress(manifest, terminal) })
    await file.sync()
  } finally {
    await file.close()
  }
}

/** The file already reads as zeros. */
const writerOf = (file: FileHandle) => ({
  async write(offset: number, bytes: Buffer): Promise<void> {
    const { bytesWritten } = await file.write(bytes, 0, bytes.length, offset)
    if (bytesWritten !== bytes.length) throw new Failure(EXIT.refused, 'there is not enough space for the disk')
  },
  zero: async (): Promise<void> => {},
})

function showProgress({ sizeBytes }: ChunkManifest, terminal: RunParts['terminal']): (bytes: number) => void {
  let shown = -1
  return (bytes) => {
    const percent = Math.floor((bytes / sizeBytes) * PERCENT)
    if (percent <= shown || !terminal.isErrorTerminal) return
    shown = percent
    terminal.writeError(`\r${percent} %${percent === PERCENT ? '\n' : ''}`)
  }
}
