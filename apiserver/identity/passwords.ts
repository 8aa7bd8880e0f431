/** Password hashes: argon2id (RFC 9106), as PHC strings. Only a few hashes are computed at once, so that a burst of
 *  sign-ins cannot starve everything else. An account that does not exist costs the same as one that does. */
import { hash, verify } from '@node-rs/argon2'
import { rateLimited } from '../../domain/problem.ts'
import type { Random } from '../../kit/sys/random.ts'

const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }
const PREFIX = `$argon2id$v=19$m=${PARAMETERS.memoryCost},t=${PARAMETERS.timeCost},p=${PARAMETERS.parallelism}$`
const CONCURRENT_HASHES_MAXIMUM = 2
const WAITING_HASHES_MAXIMUM = 100
const SALT_BYTES = 16

export interface Passwords {
  /** Both throw the Problem 429 when too many hashes are waiting. Passwords must be normalized already. */
  hash(password: string): Promise<string>
  /** False for a wrong password and, after the same work, for a missing hash. */
  verify(stored: string | null | undefined, password: string): Promise<boolean>
  /** Whether the hash was made with other parameters than today's. */
  isOutdated(stored: string): boolean
}

/** Hashing takes memory and time: this many at once, then a queue, then 429. */
export async function createPasswords(random: Random): Promise<Passwords> {
  const enter = createGate(CONCURRENT_HASHES_MAXIMUM, WAITING_HASHES_MAXIMUM)
  const hashNow = (password: string) => hash(password, { ...PARAMETERS, salt: random.bytes(SALT_BYTES) })
  const nobody = await hashNow(random.bytes(SALT_BYTES).toString('hex'))
  return {
    hash: (password) => enter(() => hashNow(password)),
    verify: (stored, password) => enter(async () => (await verify(stored ?? nobody, password)) && stored != null),
    isOutdated: (stored) => !stored.startsWith(PREFIX),
  }
}

function createGate(runningMaximum: number, waitingMaximum: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = []
  let running = 0
  return async (work) => {
    if (running >= runningMaximum) {
      if (waiting.length >= waitingMaximum) throw rateLimited(1)
      await new Promise<void>((resolve) => waiting.push(resolve)) // the hash that finishes passes its slot on
    } else running += 1
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next !== undefined) next()
      else running -= 1
    }
  }
}
