/** A manifest names every chunk of one point in time of one disk, in order; chunks that it does not name read as zeros.
 *  It is a header in JSON and a line feed, then the digests of the existing chunks. Each is complete: a restore needs
 *  no other one. */
import { z } from 'zod'
import { DamagedObject, DIGEST_BYTES } from './seal.ts'

export const CHUNK_BYTES = 1_048_576
const VERSION = 1
/** 16 384 GiB. */
export const DISK_BYTES_MAXIMUM = 2 ** 44
/** A disk of the maximal size in which every second chunk is zero has the longest list of runs. */
export const MANIFEST_BYTES_MAXIMUM = 2 ** 30

export interface ChunkManifest {
  readonly backup: string
  /** The backup from which the unchanged chunks were taken; for people, reading never needs it. */
  readonly parent: string | undefined
  /** The disk. */
  readonly origin: string
  /** RFC 3339, when the manifest was written. */
  readonly createdAt: string
  readonly sizeBytes: number
  /** A digest for each chunk of the disk; zeros where the chunk reads as zeros. */
  readonly digests: Buffer
}

const Header = z.strictObject({
  version: z.literal(VERSION),
  backup: z.string().min(1).max(63),
  parent: z.string().min(1).max(63).nullable(),
  origin: z.string().min(1).max(63),
  created_at: z.iso.datetime(),
  size_bytes: z.int().min(0).max(DISK_BYTES_MAXIMUM),
  chunk_bytes: z.literal(CHUNK_BYTES),
  /** `[first, count]` of the existing chunks. */
  runs: z.array(z.tuple([z.int().min(0), z.int().min(1)])),
})

const NO_DIGEST = Buffer.alloc(DIGEST_BYTES)

export const chunkCountOf = (sizeBytes: number): number => Math.ceil(sizeBytes / CHUNK_BYTES)

/** For a disk of which every chunk reads as zeros. */
export const newDigests = (sizeBytes: number): Buffer => Buffer.alloc(chunkCountOf(sizeBytes) * DIGEST_BYTES)

/** The digest of the chunk; undefined when it reads as zeros, or is beyond the end. */
export function digestAt(digests: Buffer, chunk: number): Buffer | undefined {
  const digest = digests.subarray(chunk * DIGEST_BYTES, (chunk + 1) * DIGEST_BYTES)
  return digest.length === 0 || digest.equals(NO_DIGEST) ? undefined : digest
}

/** Undefined for a chunk that reads as zeros. */
export function setDigest(digests: Buffer, chunk: number, digest: Buffer | undefined): void {
  ;(digest ?? NO_DIGEST).copy(digests, chunk * DIGEST_BYTES)
}

/** The bytes of the disk that the chunk holds; the last one may be shorter. */
export const chunkLength = (sizeBytes: number, chunk: number): number =>
  Math.min(CHUNK_BYTES, sizeBytes - chunk * CHUNK_BYTES)

export function encodeManifest({ backup, parent, origin, createdAt, sizeBytes, digests }: ChunkManifest): Buffer {
  const runs: [number, number][] = []
  const present: Buffer[] = []
  for (let chunk = 0; chunk < chunkCountOf(sizeBytes); chunk++) {
    const digest = digestAt(digests, chunk)
    if (digest === undefined) continue
    present.push(digest)
    const last = runs.at(-1)
    if (last !== undefined && last[0] + last[1] === chunk) last[1]++
    else runs.push([chunk, 1])
  }
  const header: z.infer<typeof Header> = {
    version: VERSION,
    backup,
    parent: parent ?? null,
    origin,
    created_at: createdAt,
    size_bytes: sizeBytes,
    chunk_bytes: CHUNK_BYTES,
    runs,
  }
  return Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), ...present])
}

/** Throws Damaged when it is not a manifest, or another backup's. */
export function decodeManifest(object: string, backup: string, content: Buffer): ChunkManifest {
  const end = content.indexOf('\n')
  const header = readHeader(content.subarray(0, Math.max(end, 0)).toString())
  if (header?.backup !== backup) throw new DamagedObject(object, 'is no manifest of this backup')
  const { parent, origin, created_at: createdAt, size_bytes: sizeBytes, runs } = header
  const digests = newDigests(sizeBytes)
  let next = 0
  let read = end + 1
  for (const [first, count] of runs) {
    const bytes = count * DIGEST_BYTES
    if (first < next || first + count > chunkCountOf(sizeBytes) || read + bytes > content.length)
      throw new DamagedObject(object, 'names chunks that the disk does not have')
    content.copy(digests, first * DIGEST_BYTES, read, read + bytes)
    next = first + count
    read += bytes
  }
  if (read !== content.length) throw new DamagedObject(object, 'has digests of no chunk')
  return { backup, parent: parent ?? undefined, origin, createdAt, sizeBytes, digests }
}

function readHeader(text: string): z.infer<typeof Header> | undefined {
  try {
    return Header.safeParse(JSON.parse(text)).data
  } catch {
    return undefined // no JSON
  }
}
