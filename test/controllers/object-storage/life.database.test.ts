/** Object storage through the door of kubectl, with real controllers, a real database and a simulated store. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { findObjectStorage, tenantOf } from '../../../db/object-storage/index.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { ObjectStorage } from '../../../resources/object-storage/index.ts'
import { createAccount } from '../../accounts.ts'
import { useDatabase } from '../../database.ts'
import { type Cloud, openCloud, ZONE } from '../cloud.ts'

const database = useDatabase()
let cloud: Cloud
let accountId: string
let namespace: string

beforeAll(async () => {
  cloud = await openCloud(database.db)
  cloud.startControllers()
})
afterAll(() => cloud.close())
beforeEach(async () => {
  accountId = await createAccount(database.db)
  namespace = accountNamespace(accountId)
  await cloud.openAccount(accountId)
})

const create = (name = 'mine', zone = ZONE) =>
  cloud.kubectl.create(ObjectStorage, { metadata: { name, namespace }, spec: { zone } })
const read = (name = 'mine') => cloud.kubectl.get(ObjectStorage, { namespace, name })
const ready = async (name = 'mine') => (await read(name))?.status?.conditions?.find(({ type }) => type === 'Ready')
const tenant = () => cloud.objectStorage.tenants.get(tenantOf({ accountId, id: 'mine' }))
const row = () => findObjectStorage(database.db, accountId, 'mine')

test('made with kubectl gets key and tenant; what it holds is written down; it goes when it is empty', async () => {
  await create()
  await expect.poll(async () => (await ready())?.reason).toBe('Served')
  expect((await read())?.status).toMatchObject({
    accessKeyId: tenant()?.accessKeyId,
    bucketPrefix: tenant()?.bucketPrefix,
    endpoint: `https://${ZONE}.objects.example:9000`,
    usedBytes: 0,
  })
  Object.assign(tenant() ?? {}, {
    bucketCount: 1,
    usedBytes: 4_096,
    objectCount: 1,
    measuredAt: '2026-02-01T00:00:00.000Z',
  })
  await expect.poll(async () => (await row())?.usedBytes).toBe(4_096)
  await expect.poll(async () => (await read())?.status?.objectCount).toBe(1)

  await cloud.kubectl.delete(ObjectStorage, { namespace, name: 'mine' })
  await expect.poll(async () => (await ready())?.reason).toBe('InUse')
  expect(await row()).toBeDefined()
  Object.assign(tenant() ?? {}, { bucketCount: 0, usedBytes: 0, objectCount: 0 })
  await expect.poll(() => read()).toBeUndefined()
  expect([await row(), tenant()]).toEqual([undefined, undefined])
})

test('follows the quota and the suspension of its account', async () => {
  await create()
  await expect.poll(async () => (await ready())?.reason).toBe('Served')
  await database.db
    .updateTable('account_quota')
    .set({ limit: 2 })
    .where('account_id', '=', accountId)
    .where('name', '=', 'object_storage_gibibytes')
    .execute()
  await expect.poll(() => tenant()?.quotaBytes).toBe(2 * 1024 ** 3)
  await database.db
    .updateTable('account')
    .set({ suspended_by_staff_at: new Date(0) })
    .where('id', '=', accountId)
    .execute()
  await expect.poll(() => tenant()?.isSuspended).toBe(true)
  await expect.poll(async () => (await ready())?.reason).toBe('Suspended')
})

test('a store that has forgotten its tenant, or holds an older key, is told again', async () => {
  await create()
  await expect.poll(async () => (await ready())?.reason).toBe('Served')
  const secret = tenant()?.secretAccessKey
  cloud.objectStorage.tenants.clear()
  await expect.poll(() => tenant()?.secretAccessKey).toBe(secret)
  Object.assign(tenant() ?? {}, { secretAccessKey: 'o'.repeat(40) })
  await expect.poll(() => tenant()?.secretAccessKey).toBe(secret)
})

test('is once in a zone: a second one says so and gets nothing', async () => {
  await create()
  await expect.poll(async () => (await ready())?.reason).toBe('Served')
  await create('other')
  await expect.poll(async () => (await ready('other'))?.status).toBe('False')
  expect(await findObjectStorage(database.db, accountId, 'other')).toBeUndefined()
})

test('its zone says what serves it', async () => {
  await expect
    .poll(async () => (await cloud.kubectl.get(Zone, { name: ZONE }))?.status?.objectStorageBackend)
    .toBe('svc-s3-single')
})
