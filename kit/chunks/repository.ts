/** The repository of one account: chunks and manifests in an object store, sealed with the account's key. It does not
 *  trust the store: every answer is unsealed and compared, and requested again when it is wrong. */
import { backoffMilliseconds } from '../sys/backoff.ts'
import type { Clock } from '../sys/clock.ts'
import type { Random } from '../sys/random.ts'
import { forEachConcurrently } from './concurrently.ts'
import {
  CHUNK_BYTES,
  chunkCountOf,
  chunkLength,
  decodeManifest,
  digestAt,
  encodeManifest,
  type ChunkManifest,
  MANIFEST_BYTES_MAXIMUM,
} from './manifest.ts'
import { type ObjectStore, type StoredObject, StoreFailed } from './object-store.ts'
import { DamagedObject, chunkDigest, openObject, repositoryKeys, SEAL_BYTES, sealObject } from './seal.ts'

export interface RepositoryOptions {
  readonly store: ObjectStore
  /** The key of the account, 32 bytes. */
  readonly key: Buffer
  readonly clock: Clock
  readonly random: Random
  /** Aborts the wait between attempts; then the last failure is thrown. */
  readonly signal?: AbortSignal
}

export interface Repository {
  digestOf(chunk: Buffer): Buffer
  putChunk(digest: Buffer, chunk: Buffer): Promise<void>
  /** Throws Damaged when it does not exist, or has other bytes, however often it is read. */
  getChunk(digest: Buffer): Promise<Buffer>
  /** Whether the complete chunk exists and was written since then: it is read and compared. */
  holdsChunk(digest: Buffer, since: Date): Promise<boolean>
  /** Resolves when it has been read back the same. */
  putManifest(manifest: ChunkManifest): Promise<void>
  /** Throws Damaged as `getChunk` does. */
  getManifest(backup: string): Promise<ChunkManifest>
  /** Whether it exists durably. */
  hasManifest(backup: string): Promise<boolean>
  removeManifest(backup: string): Promise<void>
  listManifests(): Promise<string[]>
  listChunks(): AsyncIterable<{ readonly digest: Buffer; readonly modifiedAt: Date }>
  removeChunk(digest: Buffer): Promise<void>
}

interface Content {
  readonly content: Buffer
  readonly modifiedAt: Date
}

const ATTEMPTS_MAXIMUM = 5
const BACKOFF = { baseMilliseconds: 200, maximumMilliseconds: 10_000 }
const CHUNK = 'c/'
const MANIFEST = 'm/'
const CHUNK_NAME = /^c\/[0-9a-f]{64}$/

export const chunkName = (digest: Buffer): string => `${CHUNK}${digest.toString('hex')}`
export const manifestName = (backup: string): string => `${MANIFEST}${backup}`

type Persistently = <Result>(work: () => Promise<Result>) => Promise<Result>

/** Retries: a store that fails for a while, or returns a wrong answer once, may answer correctly later. */
async function retry<Result>(
  work: () => Promise<Result>,
  { clock, random, signal }: Pick<RepositoryOptions, 'clock' | 'random' | 'signal'>,
): Promise<Result> {
  for (let failures = 1; ; failures++) {
    try {
      return await work()
    } catch (error) {
      const mayPass = error instanceof StoreFailed || error instanceof DamagedObject
      if (!mayPass || failures >= ATTEMPTS_MAXIMUM || signal?.aborted === true) throw error
      await clock.sleep(backoffMilliseconds(failures - 1, BACKOFF, random), signal)
    }
  }
}

async function listAll(store: ObjectStore, prefix: string): Promise<readonly StoredObject[]> {
  const objects: StoredObject[] = []
  for await (const object of store.list(prefix)) objects.push(object)
  return objects
}

export function openRepository(options: RepositoryOptions): Repository {
  const { store, key, random } = options
  const keys = repositoryKeys(key)

  const persistently: Persistently = (work) => retry(work, options)
  async function read(object: string, maximumBytes: number): Promise<Content> {
    const stored = await store.get(object, maximumBytes + SEAL_BYTES)
    if (stored === undefined) throw new DamagedObject(object, 'is missing')
    return { content: await openObject(keys, object, stored.bytes, maximumBytes), modifiedAt: stored.modifiedAt }
  }
  async function readChunk(digest: Buffer): Promise<Content> {
    const object = chunkName(digest)
    const found = await read(object, CHUNK_BYTES)
    if (!chunkDigest(keys, found.content).equals(digest))
      throw new DamagedObject(object, 'has the content of another chunk')
    return found
  }
  const readManifest = async (object: string, backup: string): Promise<ChunkManifest> =>
    decodeManifest(object, backup, (await read(object, MANIFEST_BYTES_MAXIMUM)).content)
  const list = (prefix: string) => persistently(() => listAll(store, prefix))

  return {
    digestOf: (chunk) => chunkDigest(keys, chunk),
    async putChunk(digest, chunk) {
      const object = chunkName(digest)
      const sealed = await sealObject(keys, object, chunk, random)
      await persistently(() => store.put(object, sealed))
    },
    getChunk: (digest) => persistently(async () => (await readChunk(digest)).content),
    holdsChunk: (digest, since) =>
      persistently(() =>
        readChunk(digest).then(
          ({ modifiedAt }) => modifiedAt >= since,
          (error: unknown) => {
            if (error instanceof DamagedObject) return false
            throw error
          },
        ),
      ),
    async putManifest(manifest) {
      const object = manifestName(manifest.backup)
      const content = encodeManifest(manifest)
      const sealed = await sealObject(keys, object, content, random)
      await persistently(() => store.settle()) // chunks must be durable before anything refers to them
      await persistently(async () => {
        await store.put(object, sealed)
        await store.settle()
        if (!(await read(object, MANIFEST_BYTES_MAXIMUM)).content.equals(content))
          throw new DamagedObject(object, 'reads back as something else')
      })
    },
    getManifest: (backup) => persistently(() => readManifest(manifestName(backup), backup)),
    hasManifest: (backup) =>
      persistently(async () => {
        const isThere = (await store.get(manifestName(backup), MANIFEST_BYTES_MAXIMUM)) !== undefined
        if (isThere) await store.settle() // its writer may have been killed before it did
        return isThere
      }),
    removeManifest: (backup) => persistently(() => store.remove(manifestName(backup))),
    async listManifests() {
      return (await list(MANIFEST)).map(({ name }) => name.slice(MANIFEST.length))
    },
    async *listChunks() {
      for (const { name, modifiedAt } of await list(CHUNK))
        if (CHUNK_NAME.test(name)) yield { digest: Buffer.from(name.slice(CHUNK.length), 'hex'), modifiedAt }
    },
    removeChunk: (digest) => persistently(() => store.remove(chunkName(digest))),
  }
}

const READERS = 8

export interface DiskWriter {
  write(offset: number, bytes: Buffer): Promise<void>
  /** Makes the range read as zeros. */
  zero(offset: number, length: number): Promise<void>
}

export interface ReadOptions {
  /** Called with the number of bytes of the disk that are done. */
  readonly onProgress?: (bytes: number) => void
  readonly signal?: AbortSignal
}

/** Writes the point in time to the disk. Throws Damaged when a part of it is not available; then the disk is
 *  incomplete. */
export async function restoreDisk(
  repository: Repository,
  { sizeBytes, digests }: ChunkManifest,
  disk: DiskWriter,
  { onProgress, signal }: ReadOptions = {},
): Promise<void> {
  let done = 0
  await forEachConcurrently(chunkIndexes(sizeBytes), READERS, async (chunk) => {
    signal?.throwIfAborted()
    const digest = digestAt(digests, chunk)
    const [offset, length] = [chunk * CHUNK_BYTES, chunkLength(sizeBytes, chunk)]
    if (digest === undefined) await disk.zero(offset, length)
    else await disk.write(offset, checkLength(await repository.getChunk(digest), digest, length))
    done += length
    onProgress?.(done)
  })
}

/** Reads every chunk of the backup as a restore would. Throws Damaged for the first one that is not available. */
export async function verifyBackup(
  repository: Repository,
  backup: string,
  { onProgress, signal }: ReadOptions = {},
): Promise<ChunkManifest> {
  const manifest = await repository.getManifest(backup)
  await restoreDisk(
    repository,
    manifest,
    { write: async () => {}, zero: async () => {} },
    { ...(onProgress && { onProgress }), ...(signal && { signal }) },
  )
  return manifest
}

function checkLength(content: Buffer, digest: Buffer, length: number): Buffer {
  if (content.length !== length)
    throw new DamagedObject(chunkName(digest), `has ${content.length} bytes, not ${length}`)
  return content
}

function* chunkIndexes(sizeBytes: number): Iterable<number> {
  for (let chunk = 0; chunk < chunkCountOf(sizeBytes); chunk++) yield chunk
}
