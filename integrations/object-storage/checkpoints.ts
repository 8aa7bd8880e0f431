/** Checkpoints of the audit log in object storage: the newest entry of each chain at a time. Each is a separate object
 *  that is never overwritten, signed with a key that neither the store nor the database has. So an attacker who
 *  rewrites chains in the database cannot make the checkpoints match. The first checkpoint of a day contains all
 *  chains, the others only those that have grown since the previous one. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import type { ObjectStore } from '../../kit/chunks/object-store.ts'
import { newBase62, type Random } from '../../kit/sys/random.ts'
import type { Sealing } from '../../kit/sys/sealing.ts'

/** The newest entry of a chain. */
export interface CheckpointHead {
  readonly chain: string
  readonly sequence: number
  readonly entryHash: string
}

export interface Checkpoint {
  readonly at: Date
  /** It contains all chains that existed. */
  readonly isFull: boolean
  readonly heads: readonly CheckpointHead[]
}

/** The evidence in the store. */
export interface Testimony {
  /** Time of the newest checkpoint; undefined when there is none. */
  readonly at: Date | undefined
  /** Time of the newest checkpoint with all chains. */
  readonly fullAt: Date | undefined
  /** By chain, from the newest checkpoint that contains it. */
  readonly heads: ReadonlyMap<string, CheckpointHead & { readonly at: Date }>
  /** Objects without a valid signature. */
  readonly forged: readonly string[]
}

const Content = z.object({
  format: z.literal(1),
  at: z.iso.datetime(),
  isFull: z.boolean(),
  heads: z.array(z.tuple([z.string(), z.int(), z.string()])),
})

const PURPOSE = 'signatures of audit checkpoints'
const BYTES_MAXIMUM = 256 * 1024 ** 2
const NAME_CHARACTERS = 8
/** Days that are searched for a checkpoint with all chains; if there is none, everything is read. */
const DAYS_LOOKED_AT = 7
const DAY_MILLISECONDS = 86_400_000

/** Names sort by time. */
const dayOf = (at: Date): string => `a/${at.toISOString().slice(0, 10).replaceAll('-', '')}`
const nameOf = (at: Date, isFull: boolean, random: Random): string =>
  `${dayOf(at)}t${at.toISOString().slice(11, 23).replaceAll(/[:.]/g, '')}-${isFull ? 'full' : 'some'}-` +
  newBase62(random, NAME_CHARACTERS).toLowerCase()
const isFullName = (name: string): boolean => name.includes('-full-')

/** Includes the name, so that one object cannot replace another. */
const signatureOf = (key: Uint8Array, name: string, text: string): Buffer =>
  createHmac('sha256', key).update(`${name}\n${text}`).digest()

/** The checkpoint is stored when this resolves. Throws StoreFailed. */
export async function writeCheckpoint(
  store: ObjectStore,
  { at, isFull, heads }: Checkpoint,
  { sealing, random }: { readonly sealing: Sealing; readonly random: Random },
): Promise<void> {
  const [key] = sealing.derive(PURPOSE)
  if (key === undefined) throw new Error('there is no key to sign with')
  const named = heads.map(({ chain, sequence, entryHash }) => [chain, sequence, entryHash])
  const text = JSON.stringify({ format: 1, at: at.toISOString(), isFull, heads: named })
  const name = nameOf(at, isFull, random)
  await store.put(name, Buffer.from(`${key.id}.${signatureOf(key.key, name, text).toString('hex')}\n${text}`))
}

/** The newest entry of each chain. Throws StoreFailed. */
export async function readCheckpoints(store: ObjectStore, sealing: Sealing, now: Date): Promise<Testimony> {
  const heads = new Map<string, CheckpointHead & { readonly at: Date }>()
  const forged: string[] = []
  let [at, fullAt]: (Date | undefined)[] = []
  for await (const name of newestFirst(store, now)) {
    const checkpoint = await readOne(store, sealing, name)
    if (checkpoint === undefined) {
      forged.push(name)
      continue
    }
    at ??= checkpoint.at
    for (const head of checkpoint.heads)
      if (!heads.has(head.chain)) heads.set(head.chain, { ...head, at: checkpoint.at })
    if (checkpoint.isFull) {
      fullAt = checkpoint.at
      break
    }
  }
  return { at, fullAt, heads, forged }
}

async function* newestFirst(store: ObjectStore, now: Date): AsyncIterable<string> {
  const earlierNames = new Set<string>()
  const prefixes = Array.from({ length: DAYS_LOOKED_AT }, (_, days) =>
    dayOf(new Date(now.getTime() - days * DAY_MILLISECONDS)),
  )
  for (const prefix of [...prefixes, 'a/']) {
    const names: string[] = []
    for await (const { name } of store.list(prefix)) if (!earlierNames.has(name)) names.push(name)
    for (const name of names.toSorted().toReversed()) {
      earlierNames.add(name)
      yield name
    }
  }
}

/** Undefined when no known key has signed it. */
async function readOne(store: ObjectStore, sealing: Sealing, name: string): Promise<Checkpoint | undefined> {
  const found = await store.get(name, BYTES_MAXIMUM)
  if (found === undefined) return undefined
  const content = found.bytes.toString()
  const end = content.indexOf('\n')
  const [id, signature = ''] = content.slice(0, end).split('.')
  const key = sealing.derive(PURPOSE).find((each) => each.id === id)
  const text = content.slice(end + 1)
  if (key === undefined || !isSame(signatureOf(key.key, name, text), Buffer.from(signature, 'hex'))) return undefined
  const { at, isFull, heads } = Content.parse(JSON.parse(text))
  if (isFull !== isFullName(name)) return undefined
  return {
    at: new Date(at),
    isFull,
    heads: heads.map(([chain, sequence, entryHash]) => ({ chain, sequence, entryHash })),
  }
}

const isSame = (one: Buffer, other: Buffer): boolean => one.length === other.length && timingSafeEqual(one, other)
