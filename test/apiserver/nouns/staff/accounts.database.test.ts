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

test('reads the people of an account by their ids, in the log of staff and in the chain of the account', async () => {
  const { accountId, userId } = await cloud.signUp('people@example.com')
  const path = `/v1/admin/accounts/${accountId}/members`
  const read = await cloud.operate('chief', 'GET', path)
  expect(read).toMatchObject({
    status: 200,
    body: { items: [{ user_id: userId, email: 'people@example.com', role: 'owner', disabled_at: null }] },
  })
  const act = { action: 'account.members_read', actor_kind: 'staff', actor_email: 'chief' }
  expect(await cloud.staffAuditOf(read)).toMatchObject([{ ...act, account_id: accountId }])
  expect(await cloud.auditOf(read)).toContainEqual(expect.objectContaining(act))
  await cloud.operate('chief', 'POST', `/v1/admin/users/${userId}/disable`, { reason: 'It was asked for.' })
  const [person] = (await cloud.operate('chief', 'GET', path)).body['items']
  expect(person.disabled_at).toMatch(/^\d{4}-/)
})

test('lists the credits of an account, which are revoked by their ids', async () => {
  const { accountId } = await cloud.signUp('credited@example.com')
  const path = `/v1/admin/accounts/${accountId}/credits`
  await cloud.operate('chief', 'POST', path, { label: 'Sorry', amount_cents: 500 })
  const list = await cloud.operate('chief', 'GET', path)
  const credit = list.body['items'].find(({ label }: { label: string }) => label === 'Sorry')
  expect(credit).toMatchObject({ source: 'staff', amount_cents: 500, remaining_cents: 500, state: 'live' })
  expect((await cloud.operate('chief', 'DELETE', `${path}/${credit.id}`)).status).toBe(204)
  const [revoked] = (await cloud.operate('chief', 'GET', `${path}?limit=1`)).body['items']
  expect(revoked).toMatchObject({ id: credit.id, state: 'revoked' })
})

test('shows people to the support and credits to all of the staff; nobody else has either', async () => {
  const { accountId } = await cloud.signUp('hidden@example.com')
  await cloud.grant('accountant', [{ resources: ['staffroles'], verbs: ['use'], resourceNames: ['finance'] }])
  const statusOf = async (name: string, what: string) =>
    (await cloud.operate(name, 'GET', `/v1/admin/accounts/${accountId}/${what}`)).status
  expect([await statusOf('accountant', 'members'), await statusOf('accountant', 'credits')]).toEqual([403, 200])
  expect([await statusOf('nobody', 'members'), await statusOf('nobody', 'credits')]).toEqual([403, 403])
  const none = '/v1/admin/accounts/00000000-0000-4000-8000-00000000dead'
  for (const what of ['members', 'credits'])
    expect((await cloud.operate('chief', 'GET', `${none}/${what}`)).status).toBe(404)
})
