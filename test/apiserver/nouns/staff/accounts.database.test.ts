/** What is for the staff, used with a token of the management cluster. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud } from '../../cloud.ts'

const database = useDatabase()
let cloud: Cloud
beforeAll(async () => {
  cloud = await openCloud(database.db)
  await cloud.grant('chief', [{ resources: ['staffroles'], verbs: ['use'] }])
})
afterAll(() => cloud.close())

test('is done as staff, in the log of staff and in the chain of the account', async () => {
  const { accountId } = await cloud.signUp('ada@example.com')
  const path = `/v1/admin/accounts/${accountId}/suspend`
  const suspended = await cloud.operate('chief', 'POST', path, { reason: 'It was asked for.' })
  expect(suspended.status).toBe(200)
  const act = { action: 'account.suspended', actor_kind: 'staff', actor_email: 'chief' }
  expect(await cloud.staffAuditOf(suspended)).toMatchObject([{ ...act, staff_id: null, account_id: accountId }])
  expect(await cloud.auditOf(suspended)).toContainEqual(expect.objectContaining(act))

  const refused = await cloud.operate('nobody', 'POST', path, { reason: 'Why not?' })
  expect(refused.status).toBe(403)
  expect(await cloud.staffAuditOf(refused)).toMatchObject([
    { action: 'account.suspended', actor_kind: 'staff', actor_email: 'nobody', detail: { outcome: 'denied' } },
  ])
})

test('lists and reads accounts for who has a role of the staff, and for nobody else', async () => {
  const { accountId } = await cloud.signUp('listed@example.com')
  for (const path of ['/v1/admin/accounts', `/v1/admin/accounts/${accountId}`]) {
    expect((await cloud.operate('chief', 'GET', path)).status).toBe(200)
    expect((await cloud.operate('nobody', 'GET', path)).status).toBe(403)
  }
})
