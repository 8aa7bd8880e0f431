/** Object storage through the API, with a simulated store. */
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { addObjectStorage } from '../../../../db/object-storage/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Zone } from '../../../../resources/catalog/index.ts'
import { ObjectStorage } from '../../../../resources/object-storage/index.ts'
import { useDatabase } from '../../../database.ts'
import { eventually } from '../../../eventually.ts'
import { type Cloud, openCloud, type Person } from '../../cloud.ts'

const database = useDatabase()
let cloud: Cloud
let made = 0

beforeAll(async () => {
  cloud = await openCloud(database.db)
})
afterAll(() => cloud.close())

const someone = (): Promise<Person> => cloud.signUp(`owner-${(made += 1)}@example.com`)
const enable = (by: Person, zone = cloud.zone) => by.send('POST', '/v1/object-storage', { body: { zone } })
const list = async (by: Person) => (await by.send('GET', '/v1/object-storage')).body['items']
const credentials = (by: Person, zone = cloud.zone) => by.send('GET', `/v1/object-storage/${zone}/credentials`)
const turns = async () => (await database.db.selectFrom('turn').select('name').execute()).length
const inTransactions = async () => {
  const { rows } = await sql<{ count: number }>`select count(*) from pg_stat_activity
    where datname = current_database() and state like 'idle in transaction%'`.execute(database.db)
  return rows[0]?.count
}
const rotate = (by: Person, zone = cloud.zone) => by.send('POST', `/v1/object-storage/${zone}/rotate-keys`)
const move = (by: Person) => by.send('POST', `/v1/object-storage/${cloud.zone}/migrate`)
const tenantOf = (accessKeyId: string) =>
  [...cloud.objectStorage.tenants.values()].find((tenant) => tenant.accessKeyId === accessKeyId)

describe('object storage', () => {
  test('is enabled once: the store knows the key, and a repetition answers the same', async () => {
    const ada = await someone()
    const [first, again] = [await enable(ada), await enable(ada)]
    expect([first.status, again.status], first.text).toEqual([201, 201])
    expect(again.body).toEqual(first.body)
    const { object_storage: storage, credentials: keys } = first.body
    expect(storage).toMatchObject({
      zone: cloud.zone,
      endpoint: `https://${cloud.zone}.objects.example:9000`,
      access_key_id: keys.access_key_id,
      quota_bytes: 1_024 * 1024 ** 3,
      used_bytes: 0,
      object_count: 0,
      usage_measured_at: null,
      backend: 'svc-s3-single',
      durability: 'single_copy',
    })
    expect(storage.certificate_authority).toContain('BEGIN CERTIFICATE')
    expect(tenantOf(keys.access_key_id)).toMatchObject({
      secretAccessKey: keys.secret_access_key,
      bucketPrefix: storage.bucket_prefix,
      quotaBytes: storage.quota_bytes,
      isSuspended: false,
    })
    expect(await list(ada)).toEqual([storage])
    const object = await cloud.admin.get(ObjectStorage, {
      namespace: accountNamespace(ada.accountId),
      name: storage.id,
    })
    expect(object?.spec).toEqual({ zone: cloud.zone })
    for (const reply of [first, again])
      expect(await cloud.auditOf(reply)).toMatchObject([
        { action: 'object_storage.enable', outcome: 'success', resource_id: storage.id },
      ])
  })

  test('of many at once is one', async () => {
    const ada = await someone()
    const replies = await Promise.all([enable(ada), enable(ada), enable(ada)])
    expect(replies.map(({ status }) => status)).toEqual([201, 201, 201])
    expect(new Set(replies.map(({ body }) => body['credentials'].secret_access_key)).size).toBe(1)
    expect(await list(ada)).toHaveLength(1)
  })

  test('that died half-way is announced to no store: its row is released', async () => {
    const ada = await someone()
    const keys = { accessKeyId: 'HALF', bucketPrefix: 'half-', sealedSecret: '', backend: 'svc-s3-single' } as const
    const half = { ...keys, id: 'half', accountId: ada.accountId, zone: cloud.zone, createdAt: new Date() }
    await database.db.transaction().execute((tx) => addObjectStorage(tx, half))
    expect([(await enable(ada)).status, (await rotate(ada)).status]).toEqual([503, 503])
    expect(tenantOf('HALF')).toBeUndefined()
  })

  test('of two accounts shares neither key nor prefix; neither sees the other', async () => {
    const [ada, bob] = [await someone(), await someone()]
    const [one, other] = [(await enable(ada)).body, (await enable(bob)).body]
    for (const field of ['access_key_id', 'bucket_prefix', 'id'])
      expect(one['object_storage'][field]).not.toBe(other['object_storage'][field])
    expect(one['credentials'].secret_access_key).not.toBe(other['credentials'].secret_access_key)
    const eve = await someone()
    expect([(await credentials(eve)).status, (await rotate(eve)).status, await list(eve)]).toEqual([404, 404, []])
  })

  test('has its secret sealed in the database, and nowhere in Kubernetes', async () => {
    const ada = await someone()
    const { credentials: keys } = (await enable(ada)).body
    const rows = await database.db.selectFrom('object_storage').selectAll().execute()
    expect(rows.map(({ access_key_id }) => access_key_id)).toContain(keys.access_key_id)
    expect(JSON.stringify(rows)).not.toContain(keys.secret_access_key)
    const objects = await cloud.admin.list(ObjectStorage, {})
    expect(JSON.stringify(objects)).not.toContain(keys.secret_access_key)
  })

  test('shows its key to who may operate, and writes that down', async () => {
    const ada = await someone()
    const enabled = (await enable(ada)).body
    const read = await credentials(ada)
    expect([read.status, read.body['credentials']]).toEqual([200, enabled['credentials']])
    expect(await cloud.auditOf(read)).toMatchObject([{ action: 'object_storage.credentials', outcome: 'success' }])
    const token = await ada.token('read')
    const refused = await cloud.send('GET', `/v1/object-storage/${cloud.zone}/credentials`, {
      headers: { authorization: `Bearer ${token}` },
    })
    expect(refused.body).toMatchObject({ status: 403 })
  })

  test('has another secret after a rotation, and the store refuses the old one when that is answered', async () => {
    const ada = await someone()
    const before = (await enable(ada)).body
    const { toldAt = Number.NaN } = tenantOf(before['credentials'].access_key_id) ?? {}
    const rotated = await rotate(ada)
    expect(rotated.status, rotated.text).toBe(200)
    const { credentials: keys, object_storage: storage } = rotated.body
    expect(tenantOf(keys.access_key_id)?.toldAt).toBeGreaterThan(toldAt)
    expect(keys.access_key_id).toBe(before['credentials'].access_key_id)
    expect(keys.secret_access_key).not.toBe(before['credentials'].secret_access_key)
    expect(tenantOf(keys.access_key_id)?.secretAccessKey).toBe(keys.secret_access_key)
    expect((await credentials(ada)).body['credentials']).toEqual(keys)
    expect(await cloud.auditOf(rotated)).toMatchObject([
      { action: 'object_storage.rotate_keys', outcome: 'success', resource_id: storage.id },
    ])
  })

  test('holds no connection during the call to its store, for any number of concurrent rotations', async () => {
    const [ada, bob] = [await someone(), await someone()]
    await enable(ada)
    const hesitation = Promise.withResolvers<void>()
    cloud.objectStorage.hesitation = hesitation.promise
    const rotations = Promise.all(Array.from({ length: 40 }, () => rotate(ada)))
    try {
      await eventually('the store is being told', async () => (await turns()) === 1)
      expect(await list(bob)).toEqual([])
      expect(await inTransactions()).toBe(0)
    } finally {
      cloud.objectStorage.hesitation = undefined
      hesitation.resolve()
    }
    const replies = await rotations
    const statuses = [...new Set(replies.map(({ status }) => status))]
    expect(statuses).toContain(200)
    expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([])
    const keys = replies.flatMap(({ body }) => body['credentials'] ?? [])
    expect(keys).toContainEqual((await credentials(ada)).body['credentials'])
    expect(await turns()).toBe(0)
  })

  test('is not replaced when the turn was lost in between', async () => {
    const ada = await someone()
    const before = (await enable(ada)).body['credentials']
    const hesitation = Promise.withResolvers<void>()
    cloud.objectStorage.hesitation = hesitation.promise
    const rotation = rotate(ada)
    try {
      await eventually('the store is being told', async () => (await turns()) === 1)
      await database.db.deleteFrom('turn').execute()
    } finally {
      cloud.objectStorage.hesitation = undefined
      hesitation.resolve()
    }
    expect((await rotation).status).toBe(503)
    expect((await credentials(ada)).body['credentials']).toEqual(before)
  })

  test('keeps its key when the store does not answer a rotation', async () => {
    const ada = await someone()
    const before = (await enable(ada)).body['credentials']
    cloud.objectStorage.isAway = true
    try {
      expect((await rotate(ada)).status).toBe(503)
    } finally {
      cloud.objectStorage.isAway = false
    }
    expect((await credentials(ada)).body['credentials']).toEqual(before)
    expect(tenantOf(before.access_key_id)?.secretAccessKey).toBe(before.secret_access_key)
  })

  test('is 503 with the reason in a zone that keeps no objects, and 400 in none', async () => {
    const ada = await someone()
    await cloud.admin.create(Zone, {
      metadata: { name: 'bare' },
      spec: { displayName: 'Bare', region: 'eu-1', isClosed: false, capabilities: [] },
    })
    await expect.poll(() => cloud.caches.of(Zone).get({ name: 'bare' })).toBeDefined()
    const refused = await enable(ada, 'bare')
    expect(refused.body).toMatchObject({ status: 503, reason: 'not_configured' })
    expect(refused.body['detail']).toContain('bare has no object storage')
    expect((await enable(ada, 'nowhere')).body).toMatchObject({ status: 400, errors: [{ field: 'zone' }] })
    expect(await list(ada)).toEqual([])
  })

  test('of a zone with a gateway is on it, and has free names of buckets', async () => {
    const ada = await someone()
    await cloud.admin.create(Zone, {
      metadata: { name: 'replicated' },
      spec: { displayName: 'Replicated', region: 'eu-1', isClosed: false, capabilities: [] },
    })
    await expect.poll(() => cloud.caches.of(Zone).get({ name: 'replicated' })).toBeDefined()
    cloud.gatewayZones.push('replicated')
    const { object_storage: storage, credentials: keys } = (await enable(ada, 'replicated')).body
    expect(storage).toMatchObject({
      backend: 'rgw',
      durability: 'replicated',
      bucket_prefix: null,
      endpoint: 'https://replicated.rgw.example:9000',
    })
    const tenants = ({ tenants: all }: typeof cloud.gateway) => [...all.values()].map((tenant) => tenant.accessKeyId)
    expect(tenants(cloud.gateway)).toEqual([keys.access_key_id])
    const rotated = (await rotate(ada, 'replicated')).body['credentials']
    expect([...cloud.gateway.tenants.values()][0]?.secretAccessKey).toBe(rotated.secret_access_key)
    expect(tenants(cloud.objectStorage)).not.toContain(keys.access_key_id)
  })

  test('stays where it is when its zone gets a gateway', async () => {
    const [ada, bob] = [await someone(), await someone()]
    const before = (await enable(ada)).body
    cloud.gatewayZones.push(cloud.zone)
    try {
      expect((await enable(ada)).body).toEqual(before)
      expect((await rotate(ada)).body['object_storage']).toMatchObject({ backend: 'svc-s3-single' })
      expect((await enable(bob)).body['object_storage']).toMatchObject({ backend: 'rgw' })
    } finally {
      cloud.gatewayZones.pop()
    }
  })

  test('does not move where there is nothing replicated to move it to', async () => {
    const ada = await someone()
    expect((await move(ada)).status).toBe(404)
    await enable(ada)
    expect((await move(ada)).body).toMatchObject({ status: 409, reason: 'zone_capability_missing' })
  })

  test('moves once its zone has a gateway: one operation at a time, which its owner cancels', async () => {
    const [ada, bob] = [await someone(), await someone()]
    await enable(ada)
    cloud.gatewayZones.push(cloud.zone)
    try {
      const begun = await move(ada)
      expect(begun.status, begun.text).toBe(202)
      const { operation, object_storage: storage } = begun.body
      expect(operation).toMatchObject({ kind: 'object_storage.migrate', step: 'prepared', step_count: 5 })
      expect(storage).toMatchObject({ backend: 'svc-s3-single' })
      expect(await cloud.auditOf(begun)).toMatchObject([
        { action: 'object_storage.migrate', outcome: 'success', resource_id: storage.id },
      ])
      expect((await move(ada)).body).toMatchObject({ status: 409, active_operation_id: operation.id })
      expect((await bob.send('POST', `/v1/operations/${operation.id}/cancel`)).status).toBe(404)
      expect((await ada.send('POST', `/v1/operations/${operation.id}/cancel`)).status).toBe(202)
      const stored = await cloud.admin.get(ObjectStorage, {
        namespace: accountNamespace(ada.accountId),
        name: storage.id,
      })
      expect(stored?.spec.operation?.arguments).toEqual({ cancel: 'true' })
      await enable(bob)
      expect((await move(bob)).body, 'it is there').toMatchObject({ status: 409, reason: 'state_not_allowed' })
    } finally {
      cloud.gatewayZones.pop()
    }
  })

  test('is a capability of its zone', async () => {
    const ada = await someone()
    const { items } = (await ada.send('GET', '/v1/zones')).body
    const zone = items.find(({ name }: { name: string }) => name === cloud.zone)
    expect(zone.object_storage_backend).toBe('svc-s3-single')
    expect(zone.capabilities).toContain('object_storage')
  })
})
