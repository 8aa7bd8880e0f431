import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newUuid, systemRandom as random } from '../../../../kit/sys/random.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud } from '../../cloud.ts'

const database = useDatabase()
let cloud: Cloud
const accountId = newUuid(random)
const invoiceId = newUuid(random)
const AT = '2026-03-01T01:00:00.000Z'

beforeAll(async () => {
  cloud = await openCloud(database.db)
  const { db } = cloud
  await cloud.grant('finance', [{ resources: ['staffroles'], verbs: ['use'] }])
  await sql`
    insert into invoice_run values ('2026-02', 3, ${AT}, null), ('2026-01', 2, ${AT}, ${AT})`.execute(db)
  await sql`
    insert into invoice_task values ('2026-02', ${accountId}, 2, '2100-01-01Z', 'a resource has no name'),
      ('2026-02', ${newUuid(random)}, 0, ${AT}, null)`.execute(db)
  await sql`
    insert into invoice values (${invoiceId}, ${accountId}, '2026-01', ${AT}, ${AT}, 'eur', 500, 0, 'unbilled', null,
      ${AT})`.execute(db)
  await sql`
    insert into invoice_push (invoice_id, attempts, next_attempt_at, last_error)
    values (${invoiceId}, 4, '2100-01-01Z', 'refused')`.execute(db)
  await sql`insert into payment_difference values ('in_1', 'charged_twice', 'another', ${AT})`.execute(db)
})
afterAll(() => cloud.close())

const get = async (path: string) => (await cloud.operate('finance', 'GET', `/v1/admin/${path}`)).body
const post = (path: string) => cloud.operate('finance', 'POST', `/v1/admin/${path}`)

test('staff see what failed and why, and have it tried again', async () => {
  expect((await get('invoice-runs'))['items']).toEqual([
    { period: '2026-02', started_at: AT, finished_at: null, account_count: 3, waiting_count: 2, failed_count: 1 },
    { period: '2026-01', started_at: AT, finished_at: AT, account_count: 2, waiting_count: 0, failed_count: 0 },
  ])
  const failure = { account_id: accountId, attempts: 2, error: 'a resource has no name' }
  expect((await get('invoice-runs/2026-02/failures'))['items']).toMatchObject([failure])
  expect((await get('invoice-runs/2026-01/failures'))['items']).toEqual([])
  expect((await post('invoice-runs/2020-01/retry')).status).toBe(404)
  const retried = await post('invoice-runs/2026-02/retry')
  expect(retried.body).toEqual({ retried_count: 1 })
  expect(await cloud.staffAuditOf(retried)).toMatchObject([
    { action: 'invoice_run.retry', resource_id: '2026-02', detail: { retried_count: '1' } },
  ])
  const [again] = (await get('invoice-runs/2026-02/failures'))['items'] as { next_attempt_at: string }[]
  expect(Date.parse(again?.next_attempt_at ?? '')).toBeLessThanOrEqual(Date.now())
})

test('so with what the processor did not take; differences are shown', async () => {
  const failure = { invoice_id: invoiceId, account_id: accountId, period: '2026-01', attempts: 4, error: 'refused' }
  expect((await get('payments/failures'))['items']).toMatchObject([failure])
  expect((await post('payments/retry')).body).toEqual({ retried_count: 1 })
  expect(await get('payments/differences')).toEqual({
    items: [{ subject: 'in_1', kind: 'charged_twice', detail: 'another', found_at: AT }],
    next_cursor: null,
    compared_at: null,
  })
})
