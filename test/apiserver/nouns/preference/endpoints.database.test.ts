import { afterAll, beforeAll, expect, test } from 'vitest'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person } from '../../cloud.ts'

const database = useDatabase()
let cloud: Cloud
let ada: Person
let bob: Person

beforeAll(async () => {
  cloud = await openCloud(database.db)
  ada = await cloud.signUp('ada@example.com')
  bob = await cloud.signUp('bob@example.com')
})
afterAll(() => cloud.close())

const PATH = '/v1/account/preferences'
const put = (preferences: unknown, person = ada, headers = {}) =>
  person.send('PUT', PATH, { body: { preferences }, headers })
const get = async (person = ada) => (await person.send('GET', PATH)).body

test('before the first change there are none', async () => {
  expect(await get()).toEqual({ preferences: {}, updated_at: null })
})

test('they are given back as they were, to the same person only', async () => {
  const preferences = {
    theme: 'dark',
    columns: { servers: ['name', 'state'] },
    odd: '\u{1F600} \u202E',
    deep: [[[1.5]]],
  }
  const reply = await put(preferences)
  expect([reply.status, reply.body['preferences']]).toEqual([200, preferences])
  expect(await get()).toEqual(reply.body)
  expect((await get(bob))['preferences']).toEqual({})
  const [entry] = await cloud.auditOf(reply)
  expect(entry).toMatchObject({ action: 'account.preferences_changed', resource_id: ada.userId })
  expect(JSON.stringify(entry)).not.toContain('dark')
})

test('they are the same in every account of the person', async () => {
  await cloud.db
    .insertInto('membership')
    .values({ account_id: bob.accountId, user_id: ada.userId, role: 'viewer', joined_at: new Date() })
    .execute()
  const before = await get()
  const become = (accountId: string) =>
    cloud.db.updateTable('app_user').set({ active_account_id: accountId }).where('id', '=', ada.userId).execute()
  await become(bob.accountId)
  expect(await get()).toEqual(before)
  expect((await put({ theme: 'light' })).status).toBe(200)
  await become(ada.accountId)
  expect((await get())['preferences']).toEqual({ theme: 'light' })
})

test('8 KiB as JSON is enough, one byte more is refused', async () => {
  const filled = (bytes: number) => ({ x: 'é'.repeat((bytes - '{"x":""}'.length) / 2) })
  expect(new TextEncoder().encode(JSON.stringify(filled(8_192))).length).toBe(8_192)
  expect((await put(filled(8_192))).status).toBe(200)
  expect((await put({ ...filled(8_192), y: 1 })).body).toMatchObject({
    status: 400,
    errors: [{ field: 'preferences' }],
  })
  expect((await get())['preferences']).toEqual(filled(8_192))
})

test('with If-Match they are replaced only when nobody has changed them since', async () => {
  const read = await ada.send('GET', PATH)
  const tag = String(read.headers['etag'])
  expect((await put({ a: 1 }, ada, { 'if-match': tag })).status).toBe(200)
  expect((await put({ a: 2 }, ada, { 'if-match': tag })).status).toBe(409)
  expect((await get())['preferences']).toEqual({ a: 1 })
})

test('tokens are refused, whatever their scope', async () => {
  for (const scope of ['read', 'read_write']) {
    const headers = { authorization: `Bearer ${await ada.token(scope)}` }
    expect((await cloud.send('GET', PATH, { headers })).status).toBe(403)
    expect((await cloud.send('PUT', PATH, { headers, body: { preferences: {} } })).status).toBe(403)
  }
})
