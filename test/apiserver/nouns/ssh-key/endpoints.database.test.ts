/** Renaming a key; what else happens to keys is in the tests of all routes. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person, PUBLIC_KEY } from '../../cloud.ts'

const OTHER_KEY = PUBLIC_KEY.replace('Bv7n', 'Dv7n')

const database = useDatabase()
let cloud: Cloud
let ada: Person
let id: string

const add = (name: string, public_key: string) => ada.send('POST', '/v1/ssh-keys', { body: { name, public_key } })
const rename = (name: string, headers = {}) => ada.send('PATCH', `/v1/ssh-keys/${id}`, { body: { name }, headers })

beforeAll(async () => {
  cloud = await openCloud(database.db)
  ada = await cloud.signUp('ada@example.com')
  id = (await add('laptop', PUBLIC_KEY)).body['ssh_key'].id
})
afterAll(() => cloud.close())

test('a key is renamed, keeps its text, and says so in the audit log', async () => {
  const before = (await ada.send('GET', `/v1/ssh-keys/${id}`)).body['ssh_key']
  const reply = await rename('desktop')
  expect([reply.status, reply.body, reply.headers['etag']]).toEqual([
    200,
    { ssh_key: { ...before, name: 'desktop' } },
    '"2"',
  ])
  expect(await cloud.auditOf(reply)).toMatchObject([
    { action: 'ssh_key.update', changes: [{ field: 'name', before: 'laptop', after: 'desktop' }] },
  ])
  expect((await ada.send('GET', `/v1/ssh-keys/${id}`)).body['ssh_key'].name).toBe('desktop')
})

test('only in the version that If-Match names', async () => {
  const headers = { 'if-match': String((await ada.send('GET', `/v1/ssh-keys/${id}`)).headers['etag']) }
  expect([(await rename('one', headers)).status, (await rename('two', headers)).status]).toEqual([200, 409])
})

test('not to the name of another key, though to its own; its text cannot be sent', async () => {
  const other = (await add('server', OTHER_KEY)).body['ssh_key']
  expect((await rename('server')).body).toMatchObject({
    reason: 'name_taken',
    resource: { type: 'ssh_key', id: other.id },
  })
  expect((await rename('mine')).status).toBe(200)
  expect((await rename('mine')).status).toBe(200)
  const text = await ada.send('PATCH', `/v1/ssh-keys/${id}`, { body: { public_key: OTHER_KEY } })
  expect(text.body).toMatchObject({ status: 400 })
})

test('one of many that ask for a name at once gets it', async () => {
  const { id: second } = (await add('third', PUBLIC_KEY.replace('Bv7n', 'Cv7n'))).body['ssh_key']
  const replies = await Promise.all([
    rename('raced'),
    ada.send('PATCH', `/v1/ssh-keys/${second}`, { body: { name: 'raced' } }),
  ])
  expect(replies.map(({ status }) => status).sort()).toEqual([200, 409])
})
