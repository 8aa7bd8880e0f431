/** Snapshots in object storage: pieces and finally a manifest, so that a snapshot with a manifest is complete. The keys
 *  of the control plane are stored beside them; without these nobody has access to a restored control plane. Everything
 *  is encrypted with a key that the store never has, and bound to its name. */
import { createHash } from 'node:crypto'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { z } from 'zod'
import type { ObjectStore } from '../../kit/chunks/object-store.ts'
import { DamagedObject, openObject, type RepositoryKeys, repositoryKeys, sealObject } from '../../kit/chunks/seal.ts'
import { openS3Store } from '../../kit/chunks/s3-store.ts'
import type { SnapshotPlace } from '../../integrations/control-planes/control.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { writeParts } from '../../kit/sys/durable-file.ts'
import type { Random } from '../../kit/sys/random.ts'

const MEBIBYTE = 1024 ** 2
const PIECE_BYTES = 8 * MEBIBYTE
/** Encryption adds a few bytes. */
const OBJECT_BYTES_MAXIMUM = 2 * PIECE_BYTES
const MANIFEST_BYTES_MAXIMUM = MEBIBYTE

const Manifest = z.object({
  id: z.uuid(),
  release: z.string(),
  createdAt: z.iso.datetime(),
  sizeBytes: z.int().min(1),
  sha256: z.string(),
  pieceBytes: z.literal(PIECE_BYTES),
})
const KEYS = 'k/keys'
/** Contents by file name. */
const Files = z.record(z.string().regex(/^[a-z-]+\.[a-z]+$/), z.string())

export interface SnapshotStore {
  readonly store: ObjectStore
  readonly keys: RepositoryKeys
  readonly random: Random
}

export const openSnapshotStore = (place: SnapshotPlace, clock: Clock, random: Random): SnapshotStore => ({
  store: openS3Store({ url: new URL(place.url), authority: place.authority, credentials: place, clock }),
  keys: repositoryKeys(Buffer.from(place.sealingKey, 'hex')),
  random,
})

/** The record of a snapshot with known content. */
export interface SnapshotContent {
  readonly id: string
  readonly release: string
  readonly createdAt: string
  readonly sizeBytes: number
  readonly sha256: string
}

const manifestName = (id: string): string => `m/${id}`
const pieceName = (id: string, index: number): string => `c/${id}-${index}`
const pieceCount = (sizeBytes: number): number => Math.ceil(sizeBytes / PIECE_BYTES)

/** The snapshot is complete in the store when this resolves. May be repeated. Throws StoreFailed, and the error of
 *  `throwIfOver` when the work is obsolete. */
export async function storeSnapshot(
  { store, keys, random }: SnapshotStore,
  { id, release, createdAt, sizeBytes, sha256 }: SnapshotContent,
  file: string,
  throwIfOver: () => void,
): Promise<void> {
  const put = async (name: string, content: Buffer) => store.put(name, await sealObject(keys, name, content, random))
  const source = await open(file, 'r')
  const digest = createHash('sha256')
  try {
    for (let index = 0; index < pieceCount(sizeBytes); index++) {
      throwIfOver()
      const piece = await readPiece(source, index * PIECE_BYTES, Math.min(PIECE_BYTES, sizeBytes - index * PIECE_BYTES))
      digest.update(piece)
      await put(pieceName(id, index), piece)
    }
  } finally {
    await source.close()
  }
  if (digest.digest('hex') !== sha256) throw new DamagedObject(id, 'is not what was taken')
  throwIfOver()
  const manifest = { id, release, createdAt, sizeBytes, sha256, pieceBytes: PIECE_BYTES }
  await put(manifestName(id), Buffer.from(JSON.stringify(manifest)))
}

async function readPiece(source: FileHandle, position: number, length: number): Promise<Buffer> {
  const piece = Buffer.alloc(length)
  for (let read = 0; read < length; ) {
    const { bytesRead } = await source.read(piece, read, length - read, position + read)
    if (bytesRead === 0) throw new Error('the file of the snapshot is too short')
    read += bytesRead
  }
  return piece
}

async function read({ store, keys }: SnapshotStore, name: string, maximumBytes: number): Promise<Buffer> {
  const found = await store.get(name, OBJECT_BYTES_MAXIMUM)
  if (found === undefined) throw new DamagedObject(name, 'is not in the object storage')
  return await openObject(keys, name, found.bytes, maximumBytes)
}

async function readManifest(from: SnapshotStore, id: string): Promise<SnapshotContent> {
  const manifest = Manifest.parse(JSON.parse((await read(from, manifestName(id), MANIFEST_BYTES_MAXIMUM)).toString()))
  if (manifest.id !== id) throw new DamagedObject(id, 'has the manifest of another')
  return manifest
}

/** All complete snapshots in the store. Throws StoreFailed and Damaged. */
export async function listStored(from: SnapshotStore): Promise<readonly SnapshotContent[]> {
  const found: SnapshotContent[] = []
  for await (const { name } of from.store.list('m/')) found.push(await readManifest(from, name.slice('m/'.length)))
  return found
}

/** Stores the files that are needed to recreate a control plane. */
export const storeKeys = async ({ store, keys, random }: SnapshotStore, files: z.infer<typeof Files>): Promise<void> =>
  store.put(KEYS, await sealObject(keys, KEYS, Buffer.from(JSON.stringify(files)), random))

/** Throws StoreFailed, and Damaged when there are none. */
export const fetchKeys = async (from: SnapshotStore): Promise<Readonly<Record<string, string>>> =>
  Files.parse(JSON.parse((await read(from, KEYS, MANIFEST_BYTES_MAXIMUM)).toString()))

/** Writes the file once all pieces have arrived and match the stored digest. Throws StoreFailed and Damaged. */
export async function fetchSnapshot(from: SnapshotStore, id: string, file: string): Promise<void> {
  const { sizeBytes, sha256 } = await readManifest(from, id)
  const partial = `${file}.partial`
  const digest = createHash('sha256')
  const pieces = async function* () {
    for (let index = 0; index < pieceCount(sizeBytes); index++) {
      const piece = await read(from, pieceName(id, index), PIECE_BYTES)
      digest.update(piece)
      yield piece
    }
  }
  try {
    await writeParts(partial, pieces())
    if (digest.digest('hex') !== sha256) throw new DamagedObject(id, 'is not what was stored')
    await rename(partial, file)
  } catch (error) {
    await rm(partial, { force: true })
    throw error
  }
}

/** Whether it was stored completely. Throws StoreFailed. */
export const isStoredIn = async ({ store }: SnapshotStore, id: string): Promise<boolean> =>
  (await store.get(manifestName(id), OBJECT_BYTES_MAXIMUM)) !== undefined

/** Removes it completely, even if it was only half stored. */
export async function removeStored(
  { store }: SnapshotStore,
  { id, sizeBytes }: Pick<SnapshotContent, 'id' | 'sizeBytes'>,
): Promise<void> {
  await store.remove(manifestName(id))
  for (let index = 0; index < pieceCount(sizeBytes); index++) await store.remove(pieceName(id, index))
}
