/** The keys of a new tenant. */
import { hkdfSync } from 'node:crypto'
import { newBase62, type Random } from '../../kit/sys/random.ts'
import type { Sealing, SealingKey } from '../../kit/sys/sealing.ts'

const KEY_CHARACTERS = 20
const SECRET_CHARACTERS = 40
const PREFIX_CHARACTERS = 10

export const newSecret = (random: Random): string => newBase62(random, SECRET_CHARACTERS)

export interface TenantKeys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly bucketPrefix: string
}

/** The keys do not reveal the tenant, and none can be guessed from another. */
export const newTenantKeys = (random: Random): TenantKeys => ({
  accessKeyId: newBase62(random, KEY_CHARACTERS).toUpperCase(),
  secretAccessKey: newSecret(random),
  bucketPrefix: `${newBase62(random, PREFIX_CHARACTERS).toLowerCase()}-`,
})

/** Keys of a tenant that needs no record: one set for each sealing key, newest first. */
export const derivedTenantKeys = (sealing: Sealing, purpose: string): readonly TenantKeys[] =>
  sealing.derive(`tenant ${purpose}`).map((key) => newTenantKeys(followingFrom(key)))

/** The same key gives the same bytes. `fraction` is for jitter, which is not needed here. */
function followingFrom({ key }: SealingKey): Random {
  let count = 0
  return {
    bytes: (length) => Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), `bytes ${count++}`, length)),
    fraction: () => 0,
  }
}
