/** What the format promises, whatever the content: docs/backup-format.md. */
import { createDecipheriv, createHmac, hkdfSync } from 'node:crypto'
import { inflateRawSync } from 'node:zlib'
import { assert, asyncProperty, integer, property, sparseArray, uint8Array, constantFrom } from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  CHUNK_BYTES,
  chunkCountOf,
  decodeManifest,
  digestAt,
  encodeManifest,
  type ChunkManifest,
  newDigests,
  setDigest,
} from '../../../kit/chunks/manifest.ts'
import {
  DamagedObject,
  DIGEST_BYTES,
  chunkDigest,
  openObject,
  repositoryKeys,
  sealObject,
} from '../../../kit/chunks/seal.ts'
import { systemRandom } from '../../../kit/sys/random.ts'

const KEY = Buffer.alloc(32, 7)
const keys = repositoryKeys(KEY)
const NAME = 'c/name'

/** Content as disks have it: repeated, random, or a mixture. */
const content = uint8Array({ minLength: 0, maxLength: 2_000 }).chain((seed) =>
  constantFrom(1, 3, 40).map((times) =>
    Buffer.concat(Array.from({ length: times }, (_, at) => (at % 2 === 0 ? Buffer.from(seed) : Buffer.alloc(500)))),
  ),
)

describe('sealing', () => {
  it('opens to the same content under its own name', () =>
    assert(
      asyncProperty(content, async (plain) => {
        const sealed = await sealObject(keys, NAME, plain, systemRandom)
        expect((await openObject(keys, NAME, sealed, plain.length)).equals(plain)).toBe(true)
      }),
    ))

  it('opens with no other name, no other key, no changed or missing byte, and never to more than expected', () =>
    assert(
      asyncProperty(content, integer({ min: 0 }), async (plain, position) => {
        const sealed = await sealObject(keys, NAME, plain, systemRandom)
        const changed = Buffer.from(sealed)
        const at = position % sealed.length
        changed[at] = (changed[at] ?? 0) ^ 0x10
        const refusals = [
          openObject(keys, 'c/other', sealed, plain.length),
          openObject(repositoryKeys(Buffer.alloc(32, 8)), NAME, sealed, plain.length),
          openObject(keys, NAME, changed, plain.length),
          openObject(keys, NAME, sealed.subarray(0, at), plain.length),
          ...(plain.length === 0 ? [] : [openObject(keys, NAME, sealed, plain.length - 1)]),
        ]
        for (const refusal of refusals) await expect(refusal).rejects.toThrow(DamagedObject)
      }),
    ))

  it('compresses what is worth it and stores the rest as it is', async () => {
    const sizeOf = async (plain: Buffer) => (await sealObject(keys, NAME, plain, systemRandom)).length
    expect(await sizeOf(Buffer.alloc(CHUNK_BYTES, 'text'))).toBeLessThan(CHUNK_BYTES / 50)
    expect(await sizeOf(systemRandom.bytes(CHUNK_BYTES))).toBe(CHUNK_BYTES + 29)
  })

  it('seals the same content differently each time', async () => {
    const seal = () => sealObject(keys, NAME, Buffer.from('content'), systemRandom)
    expect((await seal()).equals(await seal())).toBe(false)
  })

  it('can be opened with nothing but the page that describes it', async () => {
    const plain = Buffer.alloc(5_000, 'described')
    const sealed = await sealObject(keys, NAME, plain, systemRandom)
    const key = Buffer.from(hkdfSync('sha256', KEY, '', 'svccloud backup objects', 32))
    const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, 12))
    decipher.setAAD(Buffer.from(NAME)).setAuthTag(sealed.subarray(-16))
    const opened = Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()])
    expect(opened[0]).toBe(1)
    expect(inflateRawSync(opened.subarray(1)).equals(plain)).toBe(true)
    const nameKey = Buffer.from(hkdfSync('sha256', KEY, '', 'svccloud backup names', 32))
    expect(chunkDigest(keys, plain)).toEqual(createHmac('sha256', nameKey).update(plain).digest())
  })

  it('takes keys of 32 bytes only', () => {
    expect(() => repositoryKeys(Buffer.alloc(31))).toThrow('32 bytes')
  })
})

const newManifest = (sizeBytes: number, digests = newDigests(sizeBytes)): ChunkManifest => ({
  backup: 'b1',
  parent: undefined,
  origin: 's1',
  createdAt: '2026-11-22T00:00:00.000Z',
  sizeBytes,
  digests,
})
const decode = (bytes: Buffer) => decodeManifest('m/b1', 'b1', bytes)

describe('a manifest', () => {
  const manifest = sparseArray(uint8Array({ minLength: DIGEST_BYTES, maxLength: DIGEST_BYTES }), {
    maxLength: 60,
  }).chain((digests) =>
    integer({ min: 1, max: CHUNK_BYTES }).map((last) => {
      const found = newManifest(digests.length === 0 ? 0 : (digests.length - 1) * CHUNK_BYTES + last)
      digests.forEach((digest, chunk) => setDigest(found.digests, chunk, Buffer.from(digest)))
      return { ...found, parent: digests.length % 2 === 0 ? 'b0' : undefined }
    }),
  )

  it('reads back as it was written', () =>
    assert(property(manifest, (written) => void expect(decode(encodeManifest(written))).toEqual(written))))

  it('is refused with anything missing, anything more, and for another backup', () =>
    assert(
      property(manifest, integer({ min: 1 }), (written, cut) => {
        const bytes = encodeManifest(written)
        const shorter = bytes.subarray(0, bytes.length - 1 - (cut % (bytes.length - 1)))
        expect(() => decode(shorter)).toThrow(DamagedObject)
        expect(() => decode(Buffer.concat([bytes, Buffer.alloc(1)]))).toThrow(DamagedObject)
        expect(() => decodeManifest('m/b2', 'b2', bytes)).toThrow(DamagedObject)
      }),
    ))

  it('names no chunk twice, none out of order, and none behind the end', () => {
    const written = newManifest(4 * CHUNK_BYTES)
    for (const chunk of [0, 2]) setDigest(written.digests, chunk, Buffer.alloc(DIGEST_BYTES, 1))
    const [header = '', body] = encodeManifest(written).toString('latin1').split('\n')
    for (const runs of ['[[0,1],[0,1]]', '[[2,1],[0,1]]', '[[3,2]]', '[[0,3]]', '[[0,1]]', '[[-1,2]]', '[[0,0],[1,2]]'])
      expect(() => decode(Buffer.from(`${header.replace('[[0,1],[2,1]]', runs)}\n${body}`, 'latin1'))).toThrow(
        DamagedObject,
      )
  })

  it('has no digest for chunks that are zero, or behind the end', () => {
    const digests = newDigests(2 * CHUNK_BYTES + 1)
    expect(chunkCountOf(2 * CHUNK_BYTES + 1)).toBe(3)
    setDigest(digests, 1, Buffer.alloc(DIGEST_BYTES, 5))
    expect([0, 1, 2, 3].map((chunk) => digestAt(digests, chunk)?.[0])).toEqual([undefined, 5, undefined, undefined])
    setDigest(digests, 1, undefined)
    expect(digestAt(digests, 1)).toBeUndefined()
  })
})
