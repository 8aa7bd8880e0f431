/** Writes one point of a disk to the repository, or copies a backup from another repository. It reads what has changed
 *  since the parent and takes the rest from the parent's manifest. It may be killed and repeated: chunks that exist
 *  already are not sent again. */
import { forEachConcurrently } from '../../../kit/chunks/concurrently.ts'
import {
  CHUNK_BYTES,
  chunkCountOf,
  chunkLength,
  digestAt,
  type ChunkManifest,
  newDigests,
  setDigest,
} from '../../../kit/chunks/manifest.ts'
import { manifestName, type Repository } from '../../../kit/chunks/repository.ts'
import { DamagedObject } from '../../../kit/chunks/seal.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { DiskRange } from './nbd.ts'

export interface DiskPoint {
  readonly sizeBytes: number
  /** Reads into `place`, which has this length. */
  read(offset: number, length: number, place: Buffer): Promise<Buffer>
  /** Everything outside of these ranges reads as zeros. */
  readonly data: readonly DiskRange[]
  /** Ranges written since the parent's point. Undefined when that is unknown; then everything is read. */
  readonly changed?: readonly DiskRange[] | undefined
}

export interface BackupProgress {
  /** Bytes of the disk that were compared with the repository. */
  readonly bytesDone: number
  readonly bytesTotal: number
  /** Bytes that had to be sent. */
  readonly bytesSent: number
}

interface TargetOptions {
  readonly repository: Repository
  readonly backup: string
  readonly parent?: ChunkManifest | undefined
  /** No backup takes longer. A sweep may remove older chunks of others at any moment. */
  readonly longestBackupSeconds: number
  readonly clock: Clock
  readonly onProgress?: (progress: BackupProgress) => void
  readonly signal?: AbortSignal
}

export interface WriteOptions extends TargetOptions {
  readonly point: DiskPoint
  /** The disk. */
  readonly origin: string
}

export interface CopyOptions extends TargetOptions {
  /** The repository to copy from, with the same key. */
  readonly from: Repository
  /** Name of the backup in that repository. */
  readonly source: string
}

const WORKERS = 8

/** Resolves when the backup can be restored: its manifest was written last and verified by reading it back. */
export async function writeBackup(options: WriteOptions): Promise<ChunkManifest> {
  const { repository, point, backup, origin, parent, clock, onProgress, signal } = options
  const { sizeBytes } = point
  const digests = newDigests(sizeBytes)
  const chunks = inheritAndSelect(digests, options)
  const send = openSender(options)
  const progress = { bytesDone: 0, bytesTotal: chunks.length * CHUNK_BYTES, bytesSent: 0 }

  const free: Buffer[] = []
  await forEachConcurrently(chunks, WORKERS, async (chunk) => {
    signal?.throwIfAborted()
    const place = free.pop() ?? Buffer.allocUnsafe(CHUNK_BYTES)
    const length = chunkLength(sizeBytes, chunk)
    const content = await point.read(chunk * CHUNK_BYTES, length, place.subarray(0, length))
    if (!isZero(content)) {
      const digest = repository.digestOf(content)
      const sent = await send(digest, async () => content)
      progress.bytesSent += sent // add after the wait: concurrent sends change it meanwhile
      setDigest(digests, chunk, digest)
    }
    free.push(place)
    progress.bytesDone += CHUNK_BYTES
    onProgress?.({ ...progress })
  })
  return complete(options, {
    backup,
    parent: parent?.backup,
    origin,
    createdAt: clock.now().toISOString(),
    sizeBytes,
    digests,
  })
}

/** Like `writeBackup`, but copies a backup of another repository. Damaged when a part of it cannot be read. */
export async function copyBackup(options: CopyOptions): Promise<ChunkManifest> {
  const { from, source, backup, parent, onProgress, signal } = options
  const manifest = await from.getManifest(source)
  const { sizeBytes, digests } = manifest
  const chunks = Array.from({ length: chunkCountOf(sizeBytes) }, (_, chunk) => chunk)
  const send = openSender(options)
  const progress = { bytesDone: 0, bytesTotal: sizeBytes, bytesSent: 0 }
  await forEachConcurrently(chunks, WORKERS, async (chunk) => {
    signal?.throwIfAborted()
    const digest = digestAt(digests, chunk)
    const sent = digest === undefined ? 0 : await send(digest, () => from.getChunk(digest))
    progress.bytesSent += sent
    progress.bytesDone += chunkLength(sizeBytes, chunk)
    onProgress?.({ ...progress })
  })
  return complete(options, { ...manifest, backup, parent: parent?.backup })
}

/** Returns how many bytes had to be sent: none for chunks that the parent has, and equal chunks only once. */
function openSender({ repository, parent, longestBackupSeconds, clock }: TargetOptions) {
  const known = new Set(parent === undefined ? [] : eachDigest(parent))
  const underWay = new Map<string, Promise<number>>()
  const youngEnough = new Date(clock.now().getTime() - longestBackupSeconds * 1000)
  const send = async (digest: Buffer, read: () => Promise<Buffer>): Promise<number> => {
    // A killed attempt may have sent it.
    if (await repository.holdsChunk(digest, youngEnough)) return 0
    const content = await read()
    await repository.putChunk(digest, content)
    return content.length
  }
  return async (digest: Buffer, read: () => Promise<Buffer>): Promise<number> => {
    const name = digest.toString('hex')
    if (known.has(name)) return 0
    const other = underWay.get(name)
    if (other !== undefined) {
      await other // when this fails, the chunk is stored nowhere
      return 0
    }
    const sending = send(digest, read).finally(() => underWay.delete(name))
    underWay.set(name, sending)
    const sent = await sending
    known.add(name)
    return sent
  }
}

async function complete(
  { repository, parent, signal }: TargetOptions,
  manifest: ChunkManifest,
): Promise<ChunkManifest> {
  signal?.throwIfAborted()
  await repository.putManifest(manifest)
  // If the parent still exists, a sweep that did not know this manifest has kept the parent's chunks.
  if (parent !== undefined && !(await repository.hasManifest(parent.backup))) {
    await repository.removeManifest(manifest.backup)
    throw new DamagedObject(manifestName(parent.backup), 'was removed while its chunks were being used')
  }
  return manifest
}

/** Fills in the digests that the parent has; returns the chunks that must be read. */
function inheritAndSelect(digests: Buffer, { point, parent }: WriteOptions): number[] {
  const { sizeBytes, data, changed } = point
  const hasData = chunksOf(data, sizeBytes)
  const isChanged = changed === undefined || parent === undefined ? undefined : chunksOf(changed, sizeBytes)
  return Array.from({ length: chunkCountOf(sizeBytes) }, (_, chunk) => chunk).filter((chunk) => {
    const isInherited =
      parent !== undefined &&
      isChanged !== undefined &&
      isChanged[chunk] !== 1 &&
      chunk < chunkCountOf(parent.sizeBytes) &&
      chunkLength(parent.sizeBytes, chunk) === chunkLength(sizeBytes, chunk)
    if (isInherited) setDigest(digests, chunk, digestAt(parent.digests, chunk))
    return !isInherited && hasData[chunk] === 1
  })
}

/** One byte for each chunk, 1 when a range touches it. */
function chunksOf(ranges: readonly DiskRange[], sizeBytes: number): Uint8Array {
  const touched = new Uint8Array(chunkCountOf(sizeBytes))
  for (const { offset, length } of ranges)
    touched.fill(1, Math.floor(offset / CHUNK_BYTES), Math.ceil((offset + length) / CHUNK_BYTES))
  return touched
}

function* eachDigest({ sizeBytes, digests }: ChunkManifest): Iterable<string> {
  for (let chunk = 0; chunk < chunkCountOf(sizeBytes); chunk++) {
    const digest = digestAt(digests, chunk)
    if (digest !== undefined) yield digest.toString('hex')
  }
}

const ZEROS = Buffer.alloc(CHUNK_BYTES)
const isZero = (content: Buffer): boolean => content.equals(ZEROS.subarray(0, content.length))
