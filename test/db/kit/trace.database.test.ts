import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { openDatabase } from '../../../db/kit/open.ts'
import { inSpan } from '../../../kit/sys/tracing.ts'
import { useDatabase } from '../../database.ts'
import { useTracing } from '../../tracing.ts'

const database = useDatabase()
const spansSince = useTracing()

test('statements are spans of the trace that they belong to, without their values; others make no trace', async () => {
  const db = openDatabase({ url: database.url, connectionsMaximum: 1 })
  try {
    await sql`select 1`.execute(db)
    await inSpan({ name: 'request' }, async () => {
      await db.transaction().execute(async (tx) => {
        await sql`select ${'a secret'} as word`.execute(tx)
      })
      await sql`select * from nowhere`.execute(db).catch(() => {})
    })
    const spans = await spansSince()
    const request = spans.find(({ name }) => name === 'request')
    const statements = spans.filter((span) => span !== request)
    expect(statements.map(({ attributes }) => attributes['db.query.text'])).toEqual([
      'begin',
      'select $1 as word',
      'commit',
      'select * from nowhere',
    ])
    for (const { traceId, parentSpanId, kind, startTimeUnixNano, endTimeUnixNano } of statements) {
      expect([traceId, parentSpanId, kind]).toEqual([request?.traceId, request?.spanId, 3])
      expect(startTimeUnixNano <= endTimeUnixNano).toBe(true)
      expect(startTimeUnixNano >= (request?.startTimeUnixNano ?? 0n) - 5_000_000n).toBe(true)
    }
    expect(statements.at(-1)?.status?.code).toBe(2)
  } finally {
    await db.destroy()
  }
})
