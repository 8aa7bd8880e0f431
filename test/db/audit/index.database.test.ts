import { execFile } from 'node:child_process'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { sql } from 'kysely'
import { beforeAll, describe, expect, test } from 'vitest'
import { upkeep } from '../../../apiserver/identity/upkeep.ts'
import {
  appendAudit,
  appendAudits,
  exportAudit,
  listAudit,
  pruneAudit,
  readIntegrity,
  verifyAudit,
} from '../../../db/audit/index.ts'
import type { UnsealedAuditEntry } from '../../../domain/audit/entry.ts'
import { seal } from '../../../domain/audit/chain.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { createAccount } from '../../accounts.ts'
import { useDatabase } from '../../database.ts'
import { rowsRead } from '../../rows-read.ts'
import { movableClock } from '../../apiserver/identity/harness.ts'

const database = useDatabase()
const clock = movableClock()
const by = { clock, random: systemRandom }

const entryOf = (
  account_id: string,
  request_id: string,
  part: Partial<UnsealedAuditEntry> = {},
): UnsealedAuditEntry => ({
  account_id,
  actor_email: 'ada@example.com',
  actor_kind: 'user',
  user_id: null,
  staff_id: null,
  token_id: null,
  token_name: null,
  action: 'server.create',
  resource_type: 'server',
  resource_id: 's',
  detail: { zone: 'zürich' },
  outcome: 'success',
  source_ip: '',
  user_agent: '',
  request_id,
  changes: [{ field: 'title', before: null, after: 'x' }],
  ...part,
})

async function chainOf(count: number): Promise<string> {
  const accountId = await createAccount(database.db)
  for (let index = 0; index < count; index++)
    await database.db.transaction().execute((tx) => appendAudit(tx, entryOf(accountId, `request-${index}`), by))
  return accountId
}

test('entries appended at the same moment make one chain without gaps', async () => {
  const accountId = await createAccount(database.db)
  await Promise.all(
    Array.from({ length: 40 }, (_, index) =>
      database.db.transaction().execute((tx) => appendAudit(tx, entryOf(accountId, `request-${index}`), by)),
    ),
  )
  expect(await verifyAudit(database.db, accountId, clock)).toMatchObject({
    status: 'verified',
    headSequence: 40,
    verifiedThroughSequence: 40,
    break: null,
  })
})

test('the same action of the same request is written once; a rolled back change leaves no entry', async () => {
  const accountId = await chainOf(1)
  await database.db.transaction().execute((tx) => appendAudit(tx, entryOf(accountId, 'request-0'), by))
  await database.db
    .transaction()
    .execute((tx) => appendAudit(tx, entryOf(accountId, 'request-0', { action: 'server.delete' }), by))
  await expect(
    database.db.transaction().execute(async (tx) => {
      await appendAudit(tx, entryOf(accountId, 'request-9'), by)
      throw new Error('rolled back')
    }),
  ).rejects.toThrow('rolled back')
  expect((await listAudit(database.db, accountId, { limit: 10 })).map((entry) => entry.action)).toEqual([
    'server.delete',
    'server.create',
  ])
  expect((await verifyAudit(database.db, accountId, clock)).status).toBe('verified')
})

test('entries appended together follow one another; with one that was written before none is written', async () => {
  const accountId = await chainOf(1)
  const together = (...requests: readonly string[]) =>
    database.db.transaction().execute((tx) =>
      appendAudits(
        tx,
        requests.map((request) => entryOf(accountId, request)),
        by,
      ),
    )
  await together('request-1', 'request-2', 'request-3')
  await expect(together('request-4', 'request-2')).rejects.toThrow('written before')
  await together()
  expect((await listAudit(database.db, accountId, { limit: 10 })).map((entry) => entry.request_id)).toEqual([
    'request-3',
    'request-2',
    'request-1',
    'request-0',
  ])
  expect(await verifyAudit(database.db, accountId, clock)).toMatchObject({ status: 'verified', headSequence: 4 })
})

test('new entries make a verified chain unverified until the next run', async () => {
  const accountId = await chainOf(2)
  expect((await readIntegrity(database.db, accountId)).status).toBe('unverified')
  await upkeep({ db: database.db, clock, random: systemRandom, log: silentLog }, clock.now())
  expect(await readIntegrity(database.db, accountId)).toMatchObject({ status: 'verified', verifiedThroughSequence: 2 })
})

describe('a long chain', () => {
  const ENTRIES = 20_000
  const START = Date.UTC(2026, 0, 1)
  const hours = (count: number) => new Date(START + count * 3_600_000)
  let accountId: string

  /** Ten entries an hour; three of them, the oldest, are of a rare action. */
  beforeAll(async () => {
    const { db } = database
    accountId = await createAccount(db)
    await sql`
      insert into audit_entry
        (account_id, sequence, id, at, action, request_id, body, previous_hash, entry_hash)
      select ${accountId}, sequence, gen_random_uuid(), ${hours(0)}::timestamptz + sequence * interval '6 minutes',
        case when sequence <= 3 then 'token.create' else 'server.create' end, sequence::text,
        json_build_object('sequence', sequence)::text, '', ''
      from generate_series(1, ${ENTRIES}) as sequence`.execute(db)
    // a replica whose clock is half an hour behind
    await sql`update audit_entry set at = at - interval '30 minutes'
      where account_id = ${accountId} and sequence % 2 = 0`.execute(db)
    await sql`analyze audit_entry`.execute(db)
  })

  const find = async (page: Partial<Parameters<typeof listAudit>[2]>) =>
    (await listAudit(database.db, accountId, { limit: 100, ...page })).map(({ sequence }) => sequence)
  const timesOf = async (from: Date, to: Date) => {
    const { rows } = await sql<{ sequence: number }>`select sequence from audit_entry
      where account_id = ${accountId} and at >= ${from} and at < ${to} order by sequence desc limit 100`.execute(
      database.db,
    )
    return rows.map(({ sequence }) => sequence)
  }

  test.each<[string, Partial<Parameters<typeof listAudit>[2]>, readonly number[]]>([
    ['a rare action', { actions: ['token.create'] }, [3, 2, 1]],
    [
      'a rare action that is asked for twice, beside none',
      { actions: ['token.create', 'x.y', 'token.create'] },
      [3, 2, 1],
    ],
    ['an action without entries', { actions: ['x.y'] }, []],
    ['the oldest', { to: hours(0.25) }, [6, 4, 2, 1]],
    ['what is to come', { from: hours(ENTRIES) }, []],
    ['what came before everything', { to: hours(-2) }, []],
    ['a rare action in time', { actions: ['token.create'], from: hours(-2), to: hours(0.25) }, [2, 1]],
    ['a rare action later', { actions: ['token.create'], from: hours(1_000) }, []],
    ['a frequent action before', { actions: ['server.create'], before: 6 }, [5, 4]],
  ])('%s is found, and little else is read', async (_what, page, expected) => {
    expect(await find(page)).toEqual(expected)
    const read = await rowsRead(database.db, 'audit_entry', (queries) =>
      listAudit(queries, accountId, { limit: 100, ...page }),
    )
    expect(read).toBeLessThan(250)
  })

  test('an hour in its middle is found whichever clock its entries have, and little else is read', async () => {
    const [from, to] = [hours(1_000), hours(1_001)]
    expect(await find({ from, to })).toEqual(await timesOf(from, to))
    expect((await find({ from, to })).length).toBe(10)
    const read = await rowsRead(database.db, 'audit_entry', (queries) =>
      listAudit(queries, accountId, { from, to, limit: 100 }),
    )
    expect(read).toBeLessThan(250)
  })
})

const change = (statement: (accountId: string) => ReturnType<typeof sql>) => async (accountId: string) =>
  void (await statement(accountId).execute(database.db))
test.each<[string, (accountId: string) => Promise<void>, number]>([
  [
    'the text of an entry',
    change(
      (id) =>
        sql`update audit_entry set body = replace(body, 'zürich', 'bern') where account_id = ${id} and sequence = 3`,
    ),
    3,
  ],
  [
    'an action column',
    change((id) => sql`update audit_entry set action = 'x' where account_id = ${id} and sequence = 2`),
    2,
  ],
  [
    'a time column',
    change(
      (id) =>
        sql`update audit_entry set at = at + interval '1 microsecond' * 1000 where account_id = ${id} and sequence = 5`,
    ),
    5,
  ],
  ['an entry away', change((id) => sql`delete from audit_entry where account_id = ${id} and sequence = 4`), 4],
  ['the first entry away', change((id) => sql`delete from audit_entry where account_id = ${id} and sequence = 1`), 1],
  ['the last entry away', change((id) => sql`delete from audit_entry where account_id = ${id} and sequence = 5`), 5],
  [
    'the last entry away and the head back',
    change(
      (id) => sql`with gone as (delete from audit_entry where account_id = ${id} and sequence = 5)
    update audit_head
    set sequence = 4, entry_hash = (select entry_hash from audit_entry where account_id = ${id} and sequence = 4)
    where account_id = ${id}`,
    ),
    5,
  ],
  ['the head', change((id) => sql`update audit_head set entry_hash = 'ff' where account_id = ${id}`), 5],
])('changing %s by hand breaks the chain, and says where, for good', async (_what, tamper, sequence) => {
  const accountId = await chainOf(5)
  expect((await verifyAudit(database.db, accountId, clock)).status).toBe('verified')
  await tamper(accountId)
  expect(await verifyAudit(database.db, accountId, clock)).toMatchObject({
    status: 'broken',
    break: { sequence, reason: expect.stringMatching(/./) },
  })
  expect(await readIntegrity(database.db, accountId)).toMatchObject({ status: 'broken', break: { sequence } })
})

test('a rewritten verified tail, with its hashes and head, is found', async () => {
  const accountId = await chainOf(5)
  expect((await verifyAudit(database.db, accountId, clock)).status).toBe('verified')
  const rows = await database.db
    .selectFrom('audit_entry')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('sequence')
    .execute()
  let head = { sequence: 2, entryHash: rows[1]?.entry_hash ?? '' }
  for (const { sequence, id, at, request_id } of rows.slice(2)) {
    const { entry, body } = seal(head, entryOf(accountId, request_id, { detail: { zone: 'bern' } }), { id, at })
    head = { sequence, entryHash: entry.entry_hash }
    await database.db
      .updateTable('audit_entry')
      .set({ body, previous_hash: entry.previous_hash, entry_hash: entry.entry_hash })
      .where('account_id', '=', accountId)
      .where('sequence', '=', sequence)
      .execute()
  }
  await database.db
    .updateTable('audit_head')
    .set({ entry_hash: head.entryHash })
    .where('account_id', '=', accountId)
    .execute()
  await database.db.transaction().execute((tx) => appendAudit(tx, entryOf(accountId, 'after'), by))
  expect(await verifyAudit(database.db, accountId, clock)).toMatchObject({
    status: 'broken',
    break: { sequence: 5, reason: 'the entry is not the one that was verified before' },
  })
})

test('retention removes old entries; the rest verifies from there, and nothing unverified goes', async () => {
  const accountId = await chainOf(3)
  clock.move(100 * 86_400)
  for (let index = 0; index < 3; index++)
    await database.db.transaction().execute((tx) => appendAudit(tx, entryOf(accountId, `later-${index}`), by))
  const cut = new Date(clock.now().getTime() - 86_400_000)
  expect(await pruneAudit(database.db, accountId, cut)).toBe(0)
  await verifyAudit(database.db, accountId, clock)
  await upkeep({ db: database.db, clock, random: systemRandom, log: silentLog, auditRetentionDays: 1 }, new Date(0))
  expect(await readIntegrity(database.db, accountId)).toMatchObject({ status: 'verified', prunedThroughSequence: 3 })
  expect((await exportAudit(database.db, accountId, { after: 0, limit: 10 })).map((entry) => entry.sequence)).toEqual([
    4, 5, 6,
  ])
  expect((await verifyAudit(database.db, accountId, clock)).status).toBe('verified')
})

test('the standalone verifier agrees with the export and finds a changed line', async () => {
  const accountId = await chainOf(4)
  const lines = (await exportAudit(database.db, accountId, { after: 0, limit: 10 })).map((entry) =>
    JSON.stringify(entry),
  )
  const file = join(await mkdtemp(join(tmpdir(), 'svccloud-export-')), `${newUuid(systemRandom)}.ndjson`)
  const verify = async (text: string) => {
    await writeFile(file, text)
    return await promisify(execFile)(process.execPath, ['tools/verify-audit.ts', file]).then(
      ({ stdout }) => stdout,
      (error: { stdout: string }) => error.stdout,
    )
  }
  expect(await verify(`${lines.join('\n')}\n`)).toMatch(/^OK: 4 entries, the last is 4/)
  expect(await verify(lines.slice(2).join('\n'))).toMatch(/^OK: 2 entries, the last is 4/)
  expect(await verify(lines.join('\n').replace('zürich', 'bern'))).toMatch(/^BROKEN: entry 1 .* was changed/)
  expect(await verify([lines[0], lines[2]].join('\n'))).toMatch(/^BROKEN: entry 3 .* comes after 1/)
})
