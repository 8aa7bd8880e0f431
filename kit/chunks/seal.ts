/** Seals the objects of a backup repository: they are compressed, encrypted and bound to their names. A chunk's name is
 *  a keyed digest of its content, so equal content of one account is stored once, and nobody without the key can test
 *  whether a repository contains certain content. The format is described in `docs/backup-format.md`. */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto'
import { promisify } from 'node:util'
import { deflateRaw, deflateRawSync, inflateRaw } from 'node:zlib'
import type { Random } from '../sys/random.ts'

export const KEY_BYTES = 32
export const DIGEST_BYTES = 32
const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16
const METHOD_BYTES = 1
/** How much sealing adds to incompressible content. */
export const SEAL_BYTES = NONCE_BYTES + METHOD_BYTES + TAG_BYTES

/** The first byte of the plaintext. */
const METHOD = { stored: 0, deflated: 1 } as const
const DEFLATE_LEVEL = 1
/** Content is compressed when this many samples of this size shrink by this share. */
const SAMPLES = 4
const SAMPLE_BYTES = 2_048
const WORTHWHILE_RATIO = 0.95

export interface RepositoryKeys {
  readonly name: Buffer
  readonly seal: Buffer
}

/** An object that does not exist, or does not have the content that its name says. */
export class DamagedObject extends Error {
  readonly object: string
  constructor(object: string, fault: string, options?: ErrorOptions) {
    super(`${object} ${fault}`, options)
    this.name = 'DamagedObject'
    this.object = object
  }
}

const derive = (key: Buffer, purpose: string): Buffer =>
  Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), purpose, KEY_BYTES))

/** Of the account's key, 32 bytes. */
export function repositoryKeys(key: Buffer): RepositoryKeys {
  if (key.length !== KEY_BYTES) throw new Error(`a repository's key has ${KEY_BYTES} bytes, not ${key.length}`)
  return { name: derive(key, 'svccloud backup names'), seal: derive(key, 'svccloud backup objects') }
}

export const chunkDigest = ({ name }: RepositoryKeys, content: Buffer): Buffer =>
  createHmac('sha256', name).update(content).digest()

const deflate = promisify(deflateRaw)
const inflate = promisify(inflateRaw)

/** `nonce, AES-256-GCM(method, body), tag`, with the object's name as associated data. */
export async function sealObject(
  { seal }: RepositoryKeys,
  object: string,
  content: Buffer,
  random: Random,
): Promise<Buffer> {
  const packed = isCompressible(content) ? await deflate(content, { level: DEFLATE_LEVEL }) : content
  const [method, body] =
    packed.length < content.length ? [METHOD.deflated, packed] : ([METHOD.stored, content] as const)
  // The nonce must be random: one derived from the content would be used twice when another zlib compresses it
  // differently.
  const nonce = random.bytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, seal, nonce).setAAD(Buffer.from(object))
  const encrypted = [cipher.update(Buffer.of(method)), cipher.update(body), cipher.final()]
  return Buffer.concat([nonce, ...encrypted, cipher.getAuthTag()])
}

/** Whether compressing the content is worth the time, judged by samples. */
function isCompressible(content: Buffer): boolean {
  if (content.length <= SAMPLES * SAMPLE_BYTES) return true
  const step = Math.floor((content.length - SAMPLE_BYTES) / (SAMPLES - 1))
  const sample = Buffer.concat(
    Array.from({ length: SAMPLES }, (_, index) => content.subarray(index * step, index * step + SAMPLE_BYTES)),
  )
  return deflateRawSync(sample, { level: DEFLATE_LEVEL }).length < sample.length * WORTHWHILE_RATIO
}

/** The content. Throws Damaged when the bytes were not sealed under this name with this key, or exceed the maximum. */
export async function openObject(
  { seal }: RepositoryKeys,
  object: string,
  sealed: Buffer,
  maximumBytes: number,
): Promise<Buffer> {
  if (sealed.length < SEAL_BYTES) throw new DamagedObject(object, `has only ${sealed.length} bytes`)
  const decipher = createDecipheriv(CIPHER, seal, sealed.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(object))
    .setAuthTag(sealed.subarray(-TAG_BYTES))
  try {
    const plain = Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
    const body = plain.subarray(METHOD_BYTES)
    if (plain[0] === METHOD.deflated) return await inflate(body, { maxOutputLength: maximumBytes })
    if (plain[0] === METHOD.stored && body.length <= maximumBytes) return body
  } catch (cause) {
    throw new DamagedObject(object, 'cannot be opened: other bytes, another key, or another name', { cause })
  }
  throw new DamagedObject(object, 'is of no known kind')
}
