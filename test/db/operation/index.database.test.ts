import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { listOperationRows } from '../../../db/operation/index.ts'
import { createAccount } from '../../accounts.ts'
import { useDatabase } from '../../database.ts'
import { rowsRead } from '../../rows-read.ts'

const database = useDatabase()

test('the operations of one resource, and those of a time, are found in a long history', async () => {
  const { db } = database
  const accountId = await createAccount(db)
  await sql`
    insert into operation_history
      (id, account_id, kind, status, target_type, target_id, created_at, finished_at, body)
    select gen_random_uuid(), ${accountId}, 'server_start', 'succeeded', 'server',
      case when turn <= 3 then 'old' else 'busy' end, at, at, json_build_object('turn', turn)
    from generate_series(1, 20000) as turn,
      lateral (select '2026-01-01Z'::timestamptz + turn * interval '1 minute') as t (at)`.execute(db)
  await sql`analyze operation_history`.execute(db)
  const asked = [
    { target: { type: 'server', id: 'old' } },
    { target: { type: 'server', id: 'none' } },
    { before: new Date('2026-01-01T00:04:00Z') },
    { from: new Date('2026-01-05T00:00:00Z'), before: new Date('2026-01-05T00:03:00Z') },
  ]
  const found: number[] = []
  for (const filter of asked) {
    const page = { ...filter, after: undefined, limit: 100 }
    found.push((await listOperationRows(db, accountId, page)).length)
    expect(
      await rowsRead(db, 'operation_history', (queries) => listOperationRows(queries, accountId, page)),
    ).toBeLessThan(250)
  }
  expect(found).toEqual([3, 0, 3, 3])
})
