/** The API tokens that are in use, as the database has them. Results are cached for half a second. Tokens that are
 *  requested at the same time are read together, and those in use are refreshed together before they expire from the
 *  cache: with any number of clients, a replica queries the database a few times a second. */
import { hashSecret } from '../../db/identity/index.ts'
import type { Clock } from '../../kit/sys/clock.ts'

export interface KnownTokens<Known> {
  /** Undefined when nobody may use a token with that text now. */
  find(text: string): Promise<Known | undefined>
  /** Every token is read again at its next use. */
  forget(): void
}

export interface KnownTokenOptions<Known> {
  readonly clock: Clock
  /** How long a result of the database is valid. */
  readonly keptMilliseconds: number
  readonly keptMaximum: number
  /** Those of the tokens with these hashes (see hashSecret) that may be used now. */
  readonly read: (secretHashes: readonly Buffer[]) => Promise<readonly FoundToken<Known>[]>
}

export interface FoundToken<Known> {
  readonly secretHash: Buffer
  readonly known: Known
}

/** How much of a result's lifetime passes before tokens in use are refreshed. */
const RENEWED_AFTER = 0.6
/** A token that nobody sent for this long is not in use. */
const IN_USE_MILLISECONDS = 5_000
/** Beyond this many, tokens are read one by one on demand. */
const RENEWED_MAXIMUM = 2_000

interface Entry<Known> {
  readonly hash: Buffer
  known: Promise<Known | undefined>
  /** On the monotonic clock. */
  until: number
  usedAt: number
}

/** Tokens that are requested at the same moment are read in one query. */
export function createKnownTokens<Known>(options: KnownTokenOptions<Known>): KnownTokens<Known> {
  const { clock, keptMilliseconds, keptMaximum } = options
  const entries = new Map<string, Entry<Known>>()
  let isRenewing = false
  let renewAt = 0

  const read = async (hashes: readonly Buffer[]): Promise<ReadonlyMap<string, Known>> =>
    new Map((await options.read(hashes)).map(({ secretHash, known }) => [keyOf(secretHash), known]))

  const ask = openBatch(read)

  const renew = async (now: number): Promise<void> => {
    const inUse = [...entries]
      .filter(([, { usedAt, until }]) => usedAt > now - IN_USE_MILLISECONDS && until < now + keptMilliseconds)
      .slice(-RENEWED_MAXIMUM)
    const found = await read(inUse.map(([, { hash }]) => hash))
    for (const [key, entry] of inUse) {
      entry.known = Promise.resolve(found.get(key))
      entry.until = now + keptMilliseconds
    }
  }

  const find = (hash: Buffer, now: number): Promise<Known | undefined> => {
    const key = keyOf(hash)
    const entry = entries.get(key)
    if (entry !== undefined && entry.until > now) {
      entry.usedAt = now
      return entry.known
    }
    const newEntry: Entry<Known> = { hash, known: ask(hash), until: now + keptMilliseconds, usedAt: now }
    newEntry.known.catch(() => {
      if (entries.get(key) === newEntry) entries.delete(key)
    })
    entries.delete(key)
    entries.set(key, newEntry) // newest last
    if (entries.size > keptMaximum)
      for (const oldest of entries.keys()) {
        entries.delete(oldest)
        break
      }
    return newEntry.known
  }

  return {
    find(text) {
      const now = clock.monotonicMilliseconds()
      const found = find(hashSecret(text), now)
      if (now >= renewAt && !isRenewing) {
        isRenewing = true
        renewAt = now + keptMilliseconds * RENEWED_AFTER
        // A token that could not be renewed is read when it is needed. If that fails too, its caller gets the error.
        renew(now)
          .catch(() => {})
          .finally(() => {
            isRenewing = false
          })
      }
      return found
    },
    forget: () => entries.clear(),
  }
}

/** Reads one token, together with all others requested at the same moment. */
function openBatch<Known>(
  read: (hashes: readonly Buffer[]) => Promise<ReadonlyMap<string, Known>>,
): (hash: Buffer) => Promise<Known | undefined> {
  let wanted: Buffer[] = []
  let batch: Promise<ReadonlyMap<string, Known>> | undefined
  return async (hash) => {
    wanted.push(hash)
    batch ??= Promise.resolve().then(() => {
      const hashes = wanted
      wanted = []
      batch = undefined
      return read(hashes)
    })
    return (await batch).get(keyOf(hash))
  }
}

const keyOf = (hash: Buffer): string => hash.toString('base64')
