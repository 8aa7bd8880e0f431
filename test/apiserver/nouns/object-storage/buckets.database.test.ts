/** Buckets and objects through the API, with a simulated store. The real one is in `browse.objects.test.ts`. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Zone } from '../../../../resources/catalog/index.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person, type Reply } from '../../cloud.ts'

const database = useDatabase()
let cloud: Cloud
let made = 0

beforeAll(async () => {
  cloud = await openCloud(database.db)
})
afterAll(() => cloud.close())

interface Owner {
  readonly person: Person
  /** Of its buckets. */
  readonly prefix: string
  readonly secret: string
}

async function newOwner(): Promise<Owner> {
  const person = await cloud.signUp(`owner-${(made += 1)}@example.com`)
  const { body } = await person.send('POST', '/v1/object-storage', { body: { zone: cloud.zone } })
  return { person, prefix: body['object_storage'].bucket_prefix, secret: body['credentials'].secret_access_key }
}

const at = (rest = '') => `/v1/object-storage/${cloud.zone}/buckets${rest}`
const create = ({ person }: Owner, name: string) => person.send('POST', at(), { body: { name } })
const presign = ({ person }: Owner, bucket: string, body: object) =>
  person.send('POST', at(`/${bucket}/presign`), { body })
const namesOf = ({ body }: Reply): readonly string[] => body['items'].map(({ name }: { name: string }) => name)

test('a bucket is created, listed and deleted once it is empty; each change is written down', async () => {
  const ada = await newOwner()
  const name = `${ada.prefix}photos`
  const created = await create(ada, name)
  expect([created.status, created.body['bucket']], created.text).toEqual([
    201,
    { name, created_at: '2026-01-02T03:04:05.000Z' },
  ])
  expect(await cloud.auditOf(created)).toMatchObject([
    { action: 'object_storage.create_bucket', outcome: 'success', detail: { bucket: name } },
  ])
  expect((await create(ada, name)).body).toMatchObject({ status: 409, reason: 'name_taken' })
  expect(namesOf(await ada.person.send('GET', at()))).toContain(name)

  cloud.objectStorage.buckets.get(name)?.add('a/b.txt')
  const listed = await ada.person.send('GET', at(`/${name}/objects?prefix=a/`))
  expect(listed.body).toEqual({
    items: [{ key: 'a/b.txt', size_bytes: 3, modified_at: '2026-01-02T03:04:05.000Z', etag: 'e' }],
    folders: [],
    next_cursor: null,
  })
  expect((await ada.person.send('DELETE', at(`/${name}`))).body).toMatchObject({ status: 409, reason: 'in_use' })
  const emptied = await ada.person.send('POST', at(`/${name}/delete-object`), { body: { key: 'a/b.txt' } })
  expect(emptied.status, emptied.text).toBe(204)
  expect(await cloud.auditOf(emptied)).toMatchObject([
    { action: 'object_storage.delete_object', outcome: 'success', detail: { bucket: name, key: 'a/b.txt' } },
  ])
  expect((await ada.person.send('DELETE', at(`/${name}`))).status).toBe(204)
  expect((await ada.person.send('GET', at(`/${name}/objects`))).status).toBe(404)
})

test('a signed address is for one object and one method, downloads, and is kept nowhere', async () => {
  const ada = await newOwner()
  const bucket = `${ada.prefix}docs`
  await create(ada, bucket)
  const key = "fo o/ü'<b>.html"
  const reply = await presign(ada, bucket, { method: 'GET', key, expires_in_seconds: 60 })
  expect(reply.status, reply.text).toBe(200)
  const url = new URL(reply.body['presigned_url'])
  expect([url.origin, decodeURIComponent(url.pathname)]).toEqual([
    `https://${cloud.zone}.objects.example:9000`,
    `/${bucket}/${key}`,
  ])
  expect(Object.fromEntries(url.searchParams)).toMatchObject({
    'X-Amz-Expires': '60',
    'X-Amz-SignedHeaders': 'host',
    'response-content-disposition': "attachment; filename*=UTF-8''%C3%BC%27%3Cb%3E.html",
  })
  expect(reply.text).not.toContain(ada.secret)
  const [entry] = await cloud.auditOf(reply)
  expect(entry).toMatchObject({ action: 'object_storage.presign', detail: { bucket, key, method: 'GET' } })
  expect(JSON.stringify(entry)).not.toContain('X-Amz-Signature')

  const once = {
    body: { method: 'PUT', key: 'a' },
    headers: { 'idempotency-key': 'c0c1d7e0-6d4e-4c52-9d0f-0b7d7f6f4a11' },
  }
  const put = await ada.person.send('POST', at(`/${bucket}/presign`), once)
  expect(new URL(put.body['presigned_url']).searchParams.has('response-content-disposition')).toBe(false)
  const again = await ada.person.send('POST', at(`/${bucket}/presign`), once)
  expect([again.status, 'presigned_url' in again.body]).toEqual([200, false])
})

test('an address to upload to Ceph signs that headers which do more are absent', async () => {
  const person = await cloud.signUp(`owner-${(made += 1)}@example.com`)
  await cloud.admin.create(Zone, {
    metadata: { name: 'replicated' },
    spec: { displayName: 'Replicated', region: 'eu-1', isClosed: false, capabilities: [] },
  })
  await expect.poll(() => cloud.caches.of(Zone).get({ name: 'replicated' })).toBeDefined()
  cloud.gatewayZones.push('replicated')
  await person.send('POST', '/v1/object-storage', { body: { zone: 'replicated' } })
  const buckets = '/v1/object-storage/replicated/buckets'
  await person.send('POST', buckets, { body: { name: 'photos' } })
  const signedOf = async (method: string) => {
    const { body, text } = await person.send('POST', `${buckets}/photos/presign`, { body: { method, key: 'a' } })
    const url = new URL(body['presigned_url'] ?? `about:${text}`)
    return [url.host, url.searchParams.get('X-Amz-SignedHeaders')?.split(';')]
  }
  expect(await signedOf('GET')).toEqual(['replicated.rgw.example:9000', ['host']])
  expect(await signedOf('PUT')).toEqual([
    'replicated.rgw.example:9000',
    expect.arrayContaining(['host', 'x-amz-acl', 'x-amz-copy-source', 'x-amz-grant-read']),
  ])
})

test('bounds of a signed address: lifetime, method and key', async () => {
  const ada = await newOwner()
  const bucket = `${ada.prefix}docs`
  await create(ada, bucket)
  const fieldOf = async (body: object) => {
    const reply = await presign(ada, bucket, body)
    return [reply.status, reply.body['errors']?.[0]?.field]
  }
  const valid = { method: 'PUT', key: 'a' }
  expect(await fieldOf(valid)).toEqual([200, undefined])
  for (const seconds of [0, 3_601, 1.5, '60'])
    expect(await fieldOf({ ...valid, expires_in_seconds: seconds })).toEqual([400, 'expires_in_seconds'])
  for (const method of ['DELETE', 'POST', 'HEAD', 'put'])
    expect(await fieldOf({ ...valid, method })).toEqual([400, 'method'])
  for (const key of ['', 'a//b', '/a', '../a', 'a/./b', 'a\0', '\ud800', 'ü'.repeat(600), '.sgwtmp/x', 'a\u0001'])
    expect(await fieldOf({ ...valid, key }), key).toEqual([400, 'key'])
  expect((await presign(ada, bucket, { ...valid, key: 'a//b' })).body['detail']).toContain('empty segments')
})

test('buckets of others are not there, whatever their names are', async () => {
  const [ada, bob] = [await newOwner(), await newOwner()]
  const bucket = `${ada.prefix}docs`
  await create(ada, bucket)
  cloud.objectStorage.buckets.get(bucket)?.add('secret.txt')
  for (const name of [bucket, `${bob.prefix}none`, 'tiny']) {
    const replies = [
      await bob.person.send('GET', at(`/${name}/objects`)),
      await bob.person.send('DELETE', at(`/${name}`)),
      await bob.person.send('POST', at(`/${name}/delete-object`), { body: { key: 'secret.txt' } }),
      await presign(bob, name, { method: 'GET', key: 'secret.txt' }),
    ]
    for (const { body } of replies) expect(body, name).toMatchObject({ status: 404, detail: 'No such bucket.' })
  }
  expect((await create(bob, bucket)).body).toMatchObject({ status: 400, errors: [{ field: 'name' }] })
  expect([...(cloud.objectStorage.buckets.get(bucket) ?? [])]).toEqual(['secret.txt'])
})

test('who may only read lists, and neither changes nor signs', async () => {
  const ada = await newOwner()
  const bucket = `${ada.prefix}docs`
  await create(ada, bucket)
  const headers = { authorization: `Bearer ${await ada.person.token('read')}` }
  const statuses = await Promise.all([
    cloud.send('GET', at(), { headers }),
    cloud.send('GET', at(`/${bucket}/objects`), { headers }),
    cloud.send('POST', at(), { headers, body: { name: `${ada.prefix}more` } }),
    cloud.send('DELETE', at(`/${bucket}`), { headers }),
    cloud.send('POST', at(`/${bucket}/presign`), { headers, body: { method: 'GET', key: 'a' } }),
    cloud.send('POST', at(`/${bucket}/delete-object`), { headers, body: { key: 'a' } }),
  ])
  expect(statuses.map(({ status }) => status)).toEqual([200, 200, 403, 403, 403, 403])
})

test('a suspended account reads and deletes, and gets no address to upload with', async () => {
  const ada = await newOwner()
  const bucket = `${ada.prefix}docs`
  await create(ada, bucket)
  await database.db
    .updateTable('account')
    .set({ suspended_by_staff_at: new Date() })
    .where('id', '=', ada.person.accountId)
    .execute()
  expect((await presign(ada, bucket, { method: 'PUT', key: 'a' })).body).toMatchObject({
    status: 402,
    reason: 'account_suspended',
  })
  expect((await create(ada, `${ada.prefix}more`)).status).toBe(402)
  expect((await presign(ada, bucket, { method: 'GET', key: 'a' })).status).toBe(200)
  expect((await ada.person.send('DELETE', at(`/${bucket}`))).status).toBe(204)
})

test('a deletion is written down before the store is asked, and so is its refusal', async () => {
  const ada = await newOwner()
  const bucket = `${ada.prefix}docs`
  await create(ada, bucket)
  cloud.objectStorage.buckets.get(bucket)?.add('a')
  cloud.objectStorage.refuses = ({ method }) =>
    method === 'DELETE' ? { status: 403, code: 'AccessDenied' } : undefined
  try {
    const refused = await ada.person.send('POST', at(`/${bucket}/delete-object`), { body: { key: 'a' } })
    expect(refused.body).toMatchObject({ status: 409, reason: 'state_not_allowed' })
    const entries = await cloud.auditOf(refused)
    expect(entries.map(({ action, outcome }) => [action, outcome]).toSorted()).toEqual([
      ['object_storage.delete_object', 'success'],
      ['object_storage.delete_object_failed', 'failed'],
    ])
  } finally {
    cloud.objectStorage.refuses = undefined
  }
  const missing = await ada.person.send('POST', at(`/${ada.prefix}none/delete-object`), { body: { key: 'a' } })
  expect([missing.status, await cloud.auditOf(missing)]).toEqual([404, []])
  const full = await ada.person.send('DELETE', at(`/${bucket}`))
  expect([full.status, await cloud.auditOf(full)]).toMatchObject([
    409,
    [{ action: 'object_storage.delete_bucket', outcome: 'failed' }],
  ])
})

test('a bucket is created, and written down, though the store then does not list it', async () => {
  const ada = await newOwner()
  const name = `${ada.prefix}docs`
  cloud.objectStorage.refuses = ({ path = '' }) =>
    path === '' && cloud.objectStorage.buckets.has(name) ? { status: 503, code: 'SlowDown' } : undefined
  try {
    const created = await create(ada, name)
    expect([created.status, created.body['bucket'].name], created.text).toEqual([201, name])
    expect(await cloud.auditOf(created)).toMatchObject([{ action: 'object_storage.create_bucket', outcome: 'success' }])
  } finally {
    cloud.objectStorage.refuses = undefined
  }
})

test('what the store does not let be read is 409 with its reason, and a cursor that it refuses is named', async () => {
  const ada = await newOwner()
  const bucket = `${ada.prefix}docs`
  await create(ada, bucket)
  const objects = (query = '') => ada.person.send('GET', at(`/${bucket}/objects${query}`))
  try {
    cloud.objectStorage.refuses = () => ({ status: 403, code: 'AccessDenied' })
    for (const reply of [
      await ada.person.send('GET', at()),
      await objects(),
      await presign(ada, bucket, { method: 'GET', key: 'a' }),
    ])
      expect(reply.body).toMatchObject({ status: 409, reason: 'state_not_allowed' })
    cloud.objectStorage.refuses = () => ({ status: 403, code: 'InvalidAccessKeyId' })
    expect((await objects()).status).toBe(503)
    cloud.objectStorage.refuses = () => ({ status: 400, code: 'InvalidArgument' })
    expect((await objects()).body).toMatchObject({ status: 400, errors: [{ field: 'prefix' }] })
    expect((await objects('?cursor=YQ')).body).toMatchObject({ status: 400, errors: [{ field: 'cursor' }] })
  } finally {
    cloud.objectStorage.refuses = undefined
  }
})

test('everything is 503 while the store is away, and a cursor that is none is refused', async () => {
  const ada = await newOwner()
  const bucket = `${ada.prefix}docs`
  await create(ada, bucket)
  for (const cursor of ['a*', '_w'])
    expect((await ada.person.send('GET', at(`/${bucket}/objects?cursor=${cursor}`))).body).toMatchObject({
      status: 400,
      errors: [{ field: 'cursor' }],
    })
  cloud.objectStorage.isAway = true
  try {
    const replies = [
      await ada.person.send('GET', at()),
      await ada.person.send('GET', at(`/${bucket}/objects`)),
      await create(ada, `${ada.prefix}more`),
      await ada.person.send('DELETE', at(`/${bucket}`)),
      await presign(ada, bucket, { method: 'GET', key: 'a' }),
    ]
    expect(replies.map(({ status }) => status)).toEqual([503, 503, 503, 503, 503])
  } finally {
    cloud.objectStorage.isAway = false
  }
})
