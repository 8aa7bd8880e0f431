import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { checkLink, GENESIS_HASH, seal, sha256Hex, type StoredEntry } from '../../../domain/audit/chain.ts'
import type { UnsealedAuditEntry } from '../../../domain/audit/entry.ts'

const said: UnsealedAuditEntry = {
  account_id: 'a',
  actor_email: 'ada@example.com',
  actor_kind: 'user',
  user_id: 'u',
  staff_id: null,
  token_id: null,
  token_name: null,
  action: 'server.create',
  resource_type: 'server',
  resource_id: 's',
  detail: {},
  outcome: 'success',
  source_ip: '192.0.2.1',
  user_agent: 'curl',
  request_id: 'r',
  changes: [],
}
const at = new Date('2026-03-01T12:00:00.123Z')

function chainOf(entries: readonly Partial<UnsealedAuditEntry>[]): StoredEntry[] {
  let head = { sequence: 0, entryHash: GENESIS_HASH }
  return entries.map((part, index) => {
    const { entry, body } = seal(head, { ...said, ...part }, { id: `id-${index}`, at })
    head = { sequence: entry.sequence, entryHash: entry.entry_hash }
    return { ...entry, at, body }
  })
}

function firstBreak(rows: readonly StoredEntry[]) {
  let head = { sequence: 0, entryHash: GENESIS_HASH }
  for (const row of rows) {
    const found = checkLink(head, row)
    if (found !== undefined) return found
    head = { sequence: row.sequence, entryHash: row.entry_hash }
  }
  return undefined
}

describe('a sealed entry', () => {
  const { entry, body } = seal({ sequence: 4, entryHash: 'ff' }, said, { id: 'i', at })
  test('takes the next sequence and names the hash before it', () =>
    expect(entry).toMatchObject({ sequence: 5, previous_hash: 'ff', at: '2026-03-01T12:00:00.123Z' }))
  test('hashes its canonical JSON without entry_hash', () => expect(entry.entry_hash).toBe(sha256Hex(body)))
  test('writes canonical JSON: members sorted, no spaces', () =>
    expect(body).toMatch(/^\{"action":"server\.create","actor_email":"ada@example\.com","actor_kind":"user","at":/))
  test('never says the account', () => expect(entry).not.toHaveProperty('account_id'))
})

test('everything that customers write can be sealed and verifies', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.record({
          user_agent: fc.string({ unit: 'binary' }),
          detail: fc.dictionary(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' })),
        }),
        { maxLength: 5 },
      ),
      (parts) => {
        const rows = chainOf(parts)
        expect(firstBreak(rows)).toBeUndefined()
        for (const row of rows) expect(row.body).not.toContain('\\u0000')
      },
    ),
  )
})

test('NUL and halves of surrogate pairs leave names and values, however deep', () => {
  const torn = 'a\0b\uD800c'
  const { entry, body } = seal(
    { sequence: 0, entryHash: GENESIS_HASH },
    { ...said, detail: { [torn]: torn }, changes: [{ field: torn, before: { [torn]: [torn] }, after: torn }] },
    { id: 'i', at },
  )
  const clean = 'ab\uFFFDc'
  expect([entry.detail, entry.changes]).toEqual([
    { [clean]: clean },
    [{ field: clean, before: { [clean]: [clean] }, after: clean }],
  ])
  expect(body.isWellFormed()).toBe(true)
})

test('null is kept, and an empty list', () => {
  const { entry } = seal(
    { sequence: 0, entryHash: GENESIS_HASH },
    { ...said, changes: [{ field: 'f', before: null, after: [] }] },
    { id: 'i', at },
  )
  expect([entry.changes, entry.staff_id]).toEqual([[{ field: 'f', before: null, after: [] }], null])
})

const rows = chainOf([{}, {}, {}, {}])
const edit = (index: number, change: Partial<StoredEntry>) =>
  rows.map((row, at) => (at === index ? { ...row, ...change } : row))
test.each<[string, readonly StoredEntry[], number]>([
  ['the content', edit(1, { body: rows[1]!.body.replace('curl', 'wget') }), 2],
  ['the hash', edit(1, { entry_hash: '0'.repeat(64) }), 2],
  ['content and hash together', edit(1, { body: '{}', entry_hash: sha256Hex('{}') }), 2],
  ['the previous hash', edit(2, { previous_hash: 'aa' }), 3],
  ['the action column alone', edit(0, { action: 'server.delete' }), 1],
  ['the time column alone', edit(0, { at: new Date(0) }), 1],
  ['the request id column alone', edit(3, { request_id: 'other' }), 4],
  ['the content to no JSON', edit(0, { body: 'x', entry_hash: sha256Hex('x') }), 1],
  ['a row away', rows.filter((_, index) => index !== 1), 2],
])('changing %s breaks the chain there', (_what, changed, sequence) =>
  expect(firstBreak(changed)?.sequence).toBe(sequence),
)

test('a break says what is wrong: the number that is missing, or the row and the reason', () => {
  expect(firstBreak(rows.filter((_, index) => index !== 1))).toEqual({
    sequence: 2,
    id: null,
    reason: 'entry 2 is missing; the next one kept is 3',
  })
  const reasonOf = (changed: readonly StoredEntry[]) => firstBreak(changed)?.reason
  expect(reasonOf(edit(2, { previous_hash: 'aa' }))).toBe('previous_hash is not the hash of the entry before')
  expect(reasonOf(edit(1, { entry_hash: '0'.repeat(64) }))).toBe('the content does not have the entry_hash')
  expect(reasonOf(edit(0, { body: 'x', entry_hash: sha256Hex('x') }))).toBe('the content is not JSON')
  expect(firstBreak(edit(0, { action: 'server.delete' }))).toEqual({
    sequence: 1,
    id: 'id-0',
    reason: 'the stored columns are not those of the content',
  })
})

test.each<[keyof StoredEntry, Partial<StoredEntry>]>([
  ['id', { id: 'other' }],
  ['action', { action: 'other' }],
  ['request_id', { request_id: 'other' }],
  ['at', { at: new Date(0) }],
])('the column %s alone breaks the chain', (_column, change) => expect(firstBreak(edit(3, change))?.sequence).toBe(4))

test.each(['sequence', 'previous_hash'])('a content of another %s breaks the chain, its hash or not', (name) => {
  const [row] = rows
  const body = JSON.stringify({ ...JSON.parse(row!.body), [name]: 'other' }) // there are four
  expect(firstBreak([{ ...row!, body, entry_hash: sha256Hex(body) }])?.reason).toBe(
    'the stored columns are not those of the content',
  )
})
