/** What a power cut leaves of a repository in a folder: names that were synced with their folders, and nothing else. */
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openFolderStore } from '../../../kit/chunks/folder-store.ts'
import { CHUNK_BYTES, newDigests, setDigest } from '../../../kit/chunks/manifest.ts'
import type { ObjectStore } from '../../../kit/chunks/object-store.ts'
import { chunkName, openRepository } from '../../../kit/chunks/repository.ts'
import { systemClock as clock } from '../../../kit/sys/clock.ts'
import { syncToDisk } from '../../../kit/sys/durable-file.ts'
import { systemRandom as random } from '../../../kit/sys/random.ts'

let root: string
let place: string
/** The names that each folder has for good. */
let durable: Map<string, readonly string[]>

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'svccloud-store-'))
  place = join(root, 'backups', 'account')
  durable = new Map()
})
afterEach(() => rm(root, { recursive: true }))

const newStore = (): ObjectStore =>
  openFolderStore(place, {
    async sync(folder) {
      await syncToDisk(folder)
      durable.set(folder, await readdir(folder))
    },
  })

/** Whether the file, and every folder above it that the store has made, are there after a power cut. */
function survives(path: string): boolean {
  if (path === root) return true
  const name = path.slice(dirname(path).length + 1)
  return durable.get(dirname(path))?.includes(name) === true && survives(dirname(path))
}

async function putBackup(store: ObjectStore): Promise<void> {
  const repository = openRepository({ store, key: Buffer.alloc(32, 1), clock, random })
  const sizeBytes = 8 * CHUNK_BYTES
  const digests = newDigests(sizeBytes)
  const chunks = Array.from({ length: 8 }, (_, index) => Buffer.alloc(CHUNK_BYTES, index + 1))
  await Promise.all(
    chunks.map(async (chunk, index) => {
      const digest = repository.digestOf(chunk)
      setDigest(digests, index, digest)
      if (!(await repository.holdsChunk(digest, new Date(0)))) await repository.putChunk(digest, chunk)
    }),
  )
  const createdAt = '2026-11-22T00:00:00.000Z'
  await repository.putManifest({ backup: 'b1', parent: undefined, origin: 's1', createdAt, sizeBytes, digests })
  for (const chunk of chunks) expect(survives(join(place, chunkName(repository.digestOf(chunk))))).toBe(true)
}

/** The store, which looks whether every chunk survives before a manifest can. */
const watched = (store: ObjectStore): ObjectStore => ({
  ...store,
  async put(name, bytes) {
    if (name.startsWith('m/'))
      for (const chunk of await readdir(join(place, 'c'))) expect(survives(join(place, 'c', chunk))).toBe(true)
    await store.put(name, bytes)
  },
})

it('a manifest is written when its chunks survive a power cut, and survives one itself', async () => {
  await putBackup(watched(newStore()))
  expect(survives(join(place, 'm', 'b1'))).toBe(true)
})

it('what an attempt that was killed has sent is settled by the next one', async () => {
  await putBackup({ ...newStore(), settle: async () => {} }).catch(() => {}) // killed before it settled anything
  const folders = [root, dirname(place), place]
  durable = new Map([...durable].filter(([folder]) => folders.includes(folder)))
  expect(survives(join(place, 'm', 'b1'))).toBe(false)
  await putBackup(watched(newStore()))
})

it('folders that another process has made, and was killed before it synced them, are there for good', async () => {
  await mkdir(join(place, 'c'), { recursive: true })
  await mkdir(join(place, 'm'))
  await putBackup(watched(newStore()))
  expect(survives(join(place, 'm', 'b1'))).toBe(true)
})

it('a manifest that is found is there for good', async () => {
  await newStore().put('m/b1', Buffer.from('written by one that was killed'))
  expect(survives(join(place, 'm', 'b1'))).toBe(false)
  const repository = openRepository({ store: newStore(), key: Buffer.alloc(32, 1), clock, random })
  expect(await repository.hasManifest('b1')).toBe(true)
  expect(survives(join(place, 'm', 'b1'))).toBe(true)
})

/** The folders that are synced when the store settles; `failing` fails with `code`. */
async function settledFolders({
  code = '',
  failing = '',
  device = (_folder: string): number => 1,
} = {}): Promise<string[]> {
  const synced: string[] = []
  const store = openFolderStore(place, {
    async sync(folder) {
      synced.push(folder)
      if (folder === failing) throw Object.assign(new Error(code), { code })
    },
    deviceOf: async (folder) => device(folder),
  })
  await store.settle()
  return synced
}

it('folders are synced up to the file system that contains them', async () => {
  const own = [join(place, 'c'), join(place, 'm'), place]
  const above = [dirname(place), root]
  expect(await settledFolders({ device: (folder) => (folder.startsWith(root) ? 1 : 2) })).toEqual([...own, ...above])
  expect(await settledFolders({ device: (folder) => (folder === place ? 1 : 2) })).toEqual(own)
  const all = await settledFolders()
  expect(all.slice(0, 5)).toEqual([...own, ...above])
  expect(all.at(-1)).toBe('/')
})

it.each(['EACCES', 'EINVAL', 'EROFS', 'ENOTSUP'])('a folder above that answers %s is ignored', async (code) => {
  expect(await settledFolders({ code, failing: root })).toContain('/')
  await expect(settledFolders({ code, failing: place })).rejects.toThrow(code)
  await expect(settledFolders({ code, failing: join(place, 'c') })).rejects.toThrow(code)
})

it('a folder above that fails to sync is a failure', async () => {
  await expect(settledFolders({ code: 'EIO', failing: root })).rejects.toThrow('EIO')
})
