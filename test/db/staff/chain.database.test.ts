/** What staff did before there was a chain of it enters the chain as it was. */
import { type Kysely, sql } from 'kysely'
import { expect, test } from 'vitest'
import { STAFF_CHAIN, verifyAudit } from '../../../db/audit/index.ts'
import { up } from '../../../db/migrations/0011-staff-chain.ts'
import { appendStaffAudit, listStaffAudit } from '../../../db/staff/staff.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { useDatabase } from '../../database.ts'

const database = useDatabase()

test('an old log is sealed in its order, completely, and continues', async () => {
  const { db } = database
  await sql`create table staff_audit_entry (id uuid, at timestamptz, body jsonb)`.execute(db)
  const accountId = newUuid(systemRandom)
  const common = {
    ...({ actor_email: 'sam@staff.example', actor_kind: 'staff', staff_id: newUuid(systemRandom) } as const),
    resource_type: 'node',
    source_ip: '::1',
    user_agent: 'x',
  }
  const entries = [
    { ...common, account_id: null, action: 'node.cordon', resource_id: 'n2', detail: {}, request_id: 'r2' },
    { ...common, account_id: accountId, action: 'a.b', resource_id: '1', detail: { reason: 'é' }, request_id: 'r1' },
    { ...common, account_id: null, action: 'node.cordon', resource_id: 'n3', detail: {}, request_id: 'r2' },
  ]
  for (const [index, entry] of entries.entries()) {
    const id = newUuid(systemRandom)
    const at = new Date(Date.UTC(2026, 0, index === 1 ? 1 : 2 + index, 0, 0, 0, 7))
    const body = JSON.stringify({ id, at: at.toISOString(), ...entry })
    await sql`insert into staff_audit_entry values (${id}, ${at}, ${body}::jsonb)`.execute(db)
  }
  await up(db as unknown as Kysely<unknown>) // a migration knows no tables
  const read = async () => (await listStaffAudit(db, { limit: 10 })).map(({ resource_id }) => resource_id)
  expect(await read()).toEqual(['n3', 'n2', '1'])
  expect(await listStaffAudit(db, { actions: ['a.b'], limit: 10 })).toMatchObject([
    { ...entries[1], sequence: 1, at: '2026-01-01T00:00:00.007Z' },
  ])
  expect(await verifyAudit(db, STAFF_CHAIN, systemClock)).toMatchObject({ status: 'verified', headSequence: 3 })
  const added = { ...common, user_id: null, token_id: null, token_name: null, outcome: 'success', changes: [] } as const
  const entry = { ...added, account_id: null, action: 'x.y', resource_id: 'new', detail: {}, request_id: 'r9' }
  for (let times = 0; times < 2; times++)
    await db.transaction().execute((tx) => appendStaffAudit(tx, entry, { clock: systemClock, random: systemRandom }))
  expect(await read()).toEqual(['new', 'n3', 'n2', '1'])
  expect(await verifyAudit(db, STAFF_CHAIN, systemClock)).toMatchObject({ status: 'verified', headSequence: 4 })
})
