import { afterAll, beforeAll, expect, test } from 'vitest'
import { listQuotas } from '../../../../db/account/index.ts'
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

const SINKS = '/v1/account/audit-sinks'
const URL = 'https://collector.example.com/audit'
const ACCESS = { access_key_id: 'AKIDEXAMPLE', secret_access_key: 'wJalrXUtnFEMI' }
const BUCKET = { type: 's3', url: 'https://s3.example.com', bucket: 'audit', ...ACCESS }
let made = 0
const create = (body: object = {}, by: Person = ada) =>
  by.send('POST', SINKS, { body: { name: `sink ${(made += 1)}`, type: 'https', url: URL, ...body } })
const removeAll = async () => {
  for (const { id } of (await ada.send('GET', SINKS)).body['items']) await ada.send('DELETE', `${SINKS}/${id}`)
}

test('a collector is created, read, changed and deleted; its secret is shown once', async () => {
  const answer = await create({ name: 'archive' })
  expect(answer.status, answer.text).toBe(201)
  const { audit_sink: sink, secret } = answer.body
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  expect(sink).toMatchObject({ name: 'archive', state: 'active', bucket: null, sent_sequence: 0, skipped_entries: 0 })
  expect(sink.pending_entries).toBeGreaterThan(0)
  const read = await ada.send('GET', `${SINKS}/${sink.id}`)
  expect([read.status, read.body['audit_sink'].id, read.text.includes('whsec_')]).toEqual([200, sink.id, false])
  const change = await ada.send('PATCH', `${SINKS}/${sink.id}`, { body: { enabled: false } })
  expect(change.body['audit_sink']).toMatchObject({ state: 'disabled', name: 'archive', url: URL })
  expect((await create({ name: 'archive' })).status).toBe(409)
  expect((await bob.send('GET', `${SINKS}/${sink.id}`)).status).toBe(404)
  const remove = await ada.send('DELETE', `${SINKS}/${sink.id}`)
  expect(remove.status).toBe(204)
  const entries = (await Promise.all([answer, change, remove].map((reply) => cloud.auditOf(reply)))).flat()
  expect(entries.map(({ action }) => action)).toEqual(['audit_sink.create', 'audit_sink.update', 'audit_sink.delete'])
  expect(JSON.stringify(entries)).not.toContain(secret)
})

test('a repeated request gets the answer without the secret', async () => {
  const headers = { 'idempotency-key': '01a1ff50-8add-720c-b721-970d86569b23' }
  const request = { body: { name: 'again', type: 'https', url: URL }, headers }
  const [first, second] = [await ada.send('POST', SINKS, request), await ada.send('POST', SINKS, request)]
  expect([first.status, second.status, second.body['audit_sink'].id]).toEqual([201, 201, first.body['audit_sink'].id])
  expect([typeof first.body['secret'], second.body['secret']]).toEqual(['string', undefined])
})

test('a bucket needs its access key, whose secret nobody sees again', async () => {
  await removeAll()
  const answer = await create(BUCKET)
  expect(answer.status, answer.text).toBe(201)
  expect(answer.body['audit_sink']).toMatchObject({ bucket: 'audit', prefix: '', region: 'us-east-1' })
  const { id } = answer.body['audit_sink']
  expect(answer.text + (await ada.send('GET', `${SINKS}/${id}`)).text).not.toContain(ACCESS.secret_access_key)
  const row = await database.db.selectFrom('audit_sink').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
  expect(JSON.stringify(row)).not.toContain(ACCESS.secret_access_key)
  // Whoever may change the sink may not send the secret's signatures to another store.
  const elsewhere = await ada.send('PATCH', `${SINKS}/${id}`, { body: { url: 'https://other.example.com' } })
  expect([elsewhere.status, elsewhere.text]).toEqual([400, expect.stringContaining('secret_access_key')])
  const moved = await ada.send('PATCH', `${SINKS}/${id}`, { body: { url: 'https://other.example.com', ...ACCESS } })
  expect(moved.status, moved.text).toBe(200)
})

test.each([
  ['a bucket without an access key', { ...BUCKET, access_key_id: undefined }],
  ['a bucket without a name', { ...BUCKET, bucket: undefined }],
  ['a bucket at a path', { ...BUCKET, url: 'https://s3.example.com/audit' }],
  ['a collector with a bucket', { bucket: 'audit' }],
  ['a private address', { url: 'https://10.0.0.1/' }],
  ['an address without TLS', { url: 'http://collector.example.com/' }],
])('refused: %s', async (_what, body) => {
  const answer = await create(body)
  expect(answer.status, answer.text).toBe(400)
})

test('counts against the quota', async () => {
  const quota = async () => (await listQuotas(database.db, bob.accountId)).find(({ name }) => name === 'audit_sinks')
  while (((await quota())?.used ?? 0) < ((await quota())?.limit ?? 0)) expect((await create({}, bob)).status).toBe(201)
  expect((await create({}, bob)).body['quota']).toMatchObject({ name: 'audit_sinks' })
})
