/** Secrets at rest: AES-256-GCM under a key of the deployment that is not in the database. The first key seals; the
 *  others only unseal, so that keys can be replaced one after the other. A text is bound to its owner. */
import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto'
import type { Random } from './random.ts'

export interface SealingKey {
  /** Short name without a dot, stored beside what it sealed. */
  readonly id: string
  /** 32 bytes. */
  readonly key: Uint8Array
}

export interface Sealing {
  /** False without any key: nothing can be sealed or unsealed then. */
  readonly isAvailable: boolean
  seal(text: string, owner: string): string
  /** Throws when the key is missing, the text was changed or it belongs to another owner. */
  open(sealed: string, owner: string): string
  /** Whether another key than the first sealed it. */
  isOutdated(sealed: string): boolean
  /** A key for the purpose from each key, in their order: it reveals nothing about the key, or about keys for other
   *  purposes. */
  derive(purpose: string): readonly SealingKey[]
}

const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Seals with the first key and unseals with any; without keys nothing can be sealed. */
export function createSealing(keys: readonly SealingKey[], random: Random): Sealing {
  const byId = new Map(keys.map(({ id, key }) => [id, key]))
  const [first] = keys
  return {
    isAvailable: first !== undefined,
    seal(text, owner) {
      if (first === undefined) throw new Error('there is no sealing key')
      const nonce = random.bytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', first.key, nonce).setAAD(Buffer.from(owner))
      const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return `${first.id}.${Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url')}`
    },
    open(sealed, owner) {
      const [id = '', content = ''] = sealed.split('.')
      const key = byId.get(id)
      if (key === undefined) throw new Error(`the sealing key ${id} is not configured`)
      const bytes = Buffer.from(content, 'base64url')
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES)).setAAD(Buffer.from(owner))
      decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES))
      return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]).toString(
        'utf8',
      )
    },
    isOutdated: (sealed) => first !== undefined && sealed.split('.')[0] !== first.id,
    derive: (purpose) =>
      keys.map(({ id, key }) => ({
        id,
        key: Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), `svccloud ${purpose}`, KEY_BYTES)),
      })),
  }
}

/** Reads `id:base64,id:base64`, the newest first. Throws what is wrong with it, never a key. */
export function parseSealingKeys(text: string): readonly SealingKey[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map((part) => {
      const [id = '', encoded = ''] = part.split(':')
      const key = Buffer.from(encoded, 'base64')
      if (!/^[A-Za-z0-9_-]{1,32}$/.test(id) || key.length !== KEY_BYTES)
        throw new TypeError('sealing keys are written as id:base64 of 32 bytes, separated by commas')
      return { id, key }
    })
}
