/** Randomness as an input: ids, secrets and jitter. Never elsewhere: Math.random, crypto.random*. */
import { randomBytes } from 'node:crypto'

export interface Random {
  bytes(count: number): Buffer
  /** Uniform in [0, 1). */
  fraction(): number
}

export const systemRandom: Random = {
  bytes: (count) => (count > SMALL_BYTES ? randomBytes(count) : fromPool(count)),
  fraction: () => fromPool(6).readUIntBE(0, 6) / 2 ** 48,
}

/** A system call costs more than the bytes that it returns: small amounts come from a larger one, each byte once. */
const POOL_BYTES = 4_096
const SMALL_BYTES = 64
let pool = Buffer.alloc(0)

function fromPool(count: number): Buffer {
  if (pool.length < count) pool = randomBytes(POOL_BYTES)
  const bytes = Buffer.from(pool.subarray(0, count)) // a copy
  pool.fill(0, 0, count)
  pool = pool.subarray(count)
  return bytes
}

/** Uniform in [least, most). */
export const numberBetween = (random: Random, { least, most }: Range): number =>
  least + (most - least) * random.fraction()

export interface Range {
  readonly least: number
  readonly most: number
}

/** A version 4 UUID. */
export const newUuid = (random: Random): string => uuidOf(random.bytes(16), 4)

/** A version 7 UUID: later ones sort after earlier ones, to the millisecond. */
export function newOrderedUuid(random: Random, at: Date): string {
  const bytes = random.bytes(16)
  bytes.writeUIntBE(at.getTime(), 0, 6)
  return uuidOf(bytes, 7)
}

function uuidOf(bytes: Buffer, version: 4 | 7): string {
  bytes[6] = (bytes[6]! & 0x0f) | (version << 4) // 16 bytes were requested
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** `length` characters of 0-9A-Za-z, each uniform (bytes of 248 and above are discarded). */
export function newBase62(random: Random, length: number): string {
  let text = ''
  while (text.length < length) {
    for (const byte of random.bytes(length)) {
      if (byte < 248 && text.length < length) text += BASE62[byte % 62]
    }
  }
  return text
}
