/** The hash chain of an account's audit log: canonical JSON (RFC 8785), SHA-256, sealing and checking. Knows no
 *  database.
 *  Invariant: `entry_hash` is always the SHA-256 of the canonical JSON of exactly what the export shows, without
 *  `entry_hash`. */
import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'
import type { UnsealedAuditEntry } from './entry.ts'

/** The hash before the first entry. */
export const GENESIS_HASH = '0'.repeat(64)

export interface ChainHead {
  readonly sequence: number
  readonly entryHash: string
}

/** An entry as the API shows it. The account is not a field: a chain belongs to one account. */
export interface AuditEntry extends Omit<UnsealedAuditEntry, 'account_id'> {
  readonly id: string
  readonly sequence: number
  /** RFC 3339 in UTC with milliseconds. */
  readonly at: string
  readonly previous_hash: string
  readonly entry_hash: string
}

/** A sealed entry and its canonical text without `entry_hash`, which is what is stored. */
export interface SealedEntry {
  readonly entry: AuditEntry
  readonly body: string
}

/** SHA-256 of the text as UTF-8, in lower-case hexadecimal digits. */
export const sha256Hex = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex')

/** Appends an entry to the chain: sets its sequence, the hash of the previous entry and its own hash. */
export function seal(
  head: ChainHead,
  entry: UnsealedAuditEntry,
  stamp: { readonly id: string; readonly at: Date },
): SealedEntry {
  const { account_id: _account, ...content } = entry
  const unhashed = clean({
    ...content,
    id: stamp.id,
    sequence: head.sequence + 1,
    at: stamp.at.toISOString(),
    previous_hash: head.entryHash,
  })
  const body = canonicalize(unhashed)
  if (body === undefined) throw new TypeError('an audit entry is an object')
  return { entry: { ...unhashed, entry_hash: sha256Hex(body) }, body }
}

/** PostgreSQL text holds no NUL and canonical JSON no lone surrogate: both are removed from customers' text before it
 *  is sealed. */
function clean<T>(value: T): T {
  const cleaned = (inner: unknown): unknown => {
    if (typeof inner === 'string') return inner.replaceAll('\0', '').toWellFormed()
    if (Array.isArray(inner)) return inner.map(cleaned)
    if (inner !== null && typeof inner === 'object')
      return Object.fromEntries(Object.entries(inner).map(([name, member]) => [cleaned(name), cleaned(member)]))
    return inner
  }
  return cleaned(value) as T // the same shape, only its strings differ
}

/** One stored row: the canonical text is authoritative, the columns repeat parts of it for queries. */
export interface StoredEntry {
  readonly sequence: number
  readonly id: string
  readonly at: Date
  readonly action: string
  readonly request_id: string
  readonly body: string
  readonly previous_hash: string
  readonly entry_hash: string
}

export interface ChainBreak {
  readonly sequence: number
  readonly id: string | null
  readonly reason: string
}

/** Checks that the row is the next link after the head. Returns what is wrong with it, or undefined. */
export function checkLink(head: ChainHead, row: StoredEntry): ChainBreak | undefined {
  const broken = (reason: string, sequence = row.sequence): ChainBreak => ({ sequence, id: row.id, reason })
  if (row.sequence !== head.sequence + 1) {
    return {
      sequence: head.sequence + 1,
      id: null,
      reason: `entry ${head.sequence + 1} is missing; the next one kept is ${row.sequence}`,
    }
  }
  if (row.previous_hash !== head.entryHash) return broken('previous_hash is not the hash of the entry before')
  if (sha256Hex(row.body) !== row.entry_hash) return broken('the content does not have the entry_hash')
  const content = parse(row.body)
  if (content === undefined) return broken('the content is not JSON')
  const repeats =
    content.sequence === row.sequence &&
    content.id === row.id &&
    content.previous_hash === row.previous_hash &&
    content.action === row.action &&
    content.request_id === row.request_id &&
    content.at === row.at.toISOString()
  return repeats ? undefined : broken('the stored columns are not those of the content')
}

function parse(body: string): Partial<AuditEntry> | undefined {
  try {
    return JSON.parse(body) as Partial<AuditEntry> // compared field by field by the caller
  } catch {
    return undefined
  }
}

/** The entry of a stored row, as the API shows it. */
export const entryOfRow = (row: Pick<StoredEntry, 'body' | 'entry_hash'>): AuditEntry => ({
  ...(JSON.parse(row.body) as Omit<AuditEntry, 'entry_hash'>), // written by `seal` only
  entry_hash: row.entry_hash,
})
