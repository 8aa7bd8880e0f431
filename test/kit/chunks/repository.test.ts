/** A repository in a store that lies: what it says is there can be read, and what cannot be read it says. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { CHUNK_BYTES, newDigests, setDigest, type ChunkManifest } from '../../../kit/chunks/manifest.ts'
import { openRepository, type Repository, restoreDisk, verifyBackup } from '../../../kit/chunks/repository.ts'
import { openS3Store } from '../../../kit/chunks/s3-store.ts'
import { DamagedObject } from '../../../kit/chunks/seal.ts'
import { type Clock, systemClock } from '../../../kit/sys/clock.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { type Fault, type HostileS3, startHostileS3 } from './hostile-s3.ts'

/** Waits between attempts take no time. */
const clock: Clock = { ...systemClock, sleep: async () => {} }
const LONG_AGO = new Date(0)
let server: HostileS3
let repository: Repository

const open = (key = Buffer.alloc(32, 1)): Repository =>
  openRepository({
    store: openS3Store({
      url: server.url,
      credentials: { accessKeyId: 'id', secretAccessKey: 'secret', region: 'us-east-1' },
      clock,
    }),
    key,
    clock,
    random: systemRandom,
  })
beforeEach(async () => {
  server = await startHostileS3()
  repository = open()
})
afterEach(() => server.close())

const chunkOf = (letter: string): Buffer => Buffer.alloc(CHUNK_BYTES, letter)
async function putBackup(backup: string, letters: readonly (string | undefined)[]): Promise<ChunkManifest> {
  const sizeBytes = letters.length * CHUNK_BYTES
  const digests = newDigests(sizeBytes)
  for (const [index, letter] of letters.entries()) {
    if (letter === undefined) continue
    const digest = repository.digestOf(chunkOf(letter))
    await repository.putChunk(digest, chunkOf(letter))
    setDigest(digests, index, digest)
  }
  const createdAt = '2026-11-22T00:00:00.000Z'
  const manifest = { backup, parent: undefined, origin: 's1', createdAt, sizeBytes, digests }
  await repository.putManifest(manifest)
  return manifest
}

async function restored(backup: string): Promise<string> {
  const manifest = await repository.getManifest(backup)
  const disk: string[] = []
  await restoreDisk(repository, manifest, {
    async write(offset, bytes) {
      expect(bytes.equals(Buffer.alloc(bytes.length, bytes[0]))).toBe(true)
      disk[offset / CHUNK_BYTES] = String.fromCharCode(bytes[0] ?? 0)
    },
    async zero(offset) {
      disk[offset / CHUNK_BYTES] = '-'
    },
  })
  return disk.join('')
}

it('restores what was written, with zeros where nothing was', async () => {
  await putBackup('b1', ['a', undefined, 'b', 'a'])
  expect(await restored('b1')).toBe('a-ba')
  expect([...server.objects.keys()].filter((key) => key.startsWith('c/'))).toHaveLength(2)
  expect(await repository.listManifests()).toEqual(['b1'])
})

it.each(['error', 'short', 'truncated', 'wrong', 'absent'] as const)(
  'copes with a store whose every second answer is a lie (%s)',
  async (fault: Fault) => {
    const counts = new Map<string, number>()
    server.fault = ({ method, key }) => {
      const count = (counts.get(`${method} ${key}`) ?? 0) + 1
      counts.set(`${method} ${key}`, count)
      return count % 2 === 1 ? fault : undefined
    }
    await putBackup('b1', ['a', undefined, 'b'])
    expect(await restored('b1')).toBe('a-b')
  },
)

it.each(['error', 'short', 'truncated', 'wrong', 'absent'] as const)(
  'never takes a manifest for written that does not read back (%s)',
  async (fault: Fault) => {
    server.fault = ({ method, key }) => (method === 'GET' && key.startsWith('m/') ? fault : undefined)
    await expect(putBackup('b1', ['a'])).rejects.toThrow()
  },
)

it('never restores other bytes than were backed up: chunks that changed places are found', async () => {
  await putBackup('b1', ['a', 'b'])
  const [first, second] = [...server.objects.entries()].filter(([key]) => key.startsWith('c/'))
  if (first === undefined || second === undefined) throw new Error('two chunks were written')
  server.objects.set(first[0], second[1])
  await expect(restored('b1')).rejects.toThrow(DamagedObject)
  await expect(verifyBackup(repository, 'b1')).rejects.toThrow(first[0])
})

it('verification reads every chunk, and names the one that is missing', async () => {
  await putBackup('b1', ['a', undefined, 'b'])
  let progress = 0
  await verifyBackup(repository, 'b1', { onProgress: (bytes) => void (progress = bytes) })
  expect(progress).toBe(3 * CHUNK_BYTES)
  const key = [...server.objects.keys()].find((name) => name.startsWith('c/')) ?? ''
  server.objects.delete(key)
  await expect(verifyBackup(repository, 'b1')).rejects.toThrow(`${key} is missing`)
})

it('holds a chunk only when it is whole and young enough', async () => {
  await putBackup('b1', ['a'])
  const digest = repository.digestOf(chunkOf('a'))
  expect(await repository.holdsChunk(digest, LONG_AGO)).toBe(true)
  expect(await repository.holdsChunk(digest, new Date(Date.now() + 60_000))).toBe(false)
  expect(await repository.holdsChunk(repository.digestOf(chunkOf('b')), LONG_AGO)).toBe(false)
  server.fault = ({ method }) => (method === 'GET' ? 'wrong' : undefined)
  expect(await repository.holdsChunk(digest, LONG_AGO)).toBe(false)
})

it('gives nothing away to another key', async () => {
  await putBackup('b1', ['a'])
  const other = open(Buffer.alloc(32, 2))
  await expect(other.getManifest('b1')).rejects.toThrow(DamagedObject)
  expect(other.digestOf(chunkOf('a')).equals(repository.digestOf(chunkOf('a')))).toBe(false)
})

it('a manifest cannot be passed off as another backup', async () => {
  await putBackup('b1', ['a'])
  const stored = server.objects.get('m/b1')
  if (stored === undefined) throw new Error('it was written')
  server.objects.set('m/b2', stored)
  await expect(repository.getManifest('b2')).rejects.toThrow(DamagedObject)
})
