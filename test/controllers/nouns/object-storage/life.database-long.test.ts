/** Object storage with kubectl, with real controllers, a real database and a simulated store. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { findObjectStorage, tenantOf, whileTelling } from '../../../../db/object-storage/index.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Zone } from '../../../../resources/catalog/index.ts'
import { ObjectStorage } from '../../../../resources/object-storage/index.ts'
import { Operation } from '../../../../resources/operation/index.ts'
import { createAccount, setQuotas } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, fastClock, openCloud, ZONE } from '../../cloud.ts'

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

test('is not removed from its store while a request announces it there', async () => {
  await create()
  await expect.poll(async () => (await ready())?.reason).toBe('Served')
  const told = tenant()
  const parts = { db: database.db, clock: fastClock, random: systemRandom }
  const meanwhile = async () => {
    const looks = cloud.objectStorage.looks
    await cloud.kubectl.delete(ObjectStorage, { namespace, name: 'mine' })
    // It is looked at before its turn is asked for, and again when it was not given.
    await expect.poll(() => cloud.objectStorage.looks).toBeGreaterThan(looks + 1)
    expect(tenant()).toEqual(told)
  }
  await whileTelling(parts, { accountId, id: 'mine' }, meanwhile, () => expect.fail('another one has the turn'))
  await expect.poll(() => read()).toBeUndefined()
  expect([await row(), tenant()]).toEqual([undefined, undefined])
})

test('follows the quota and the suspension of its account', async () => {
  await create()
  await expect.poll(async () => (await ready())?.reason).toBe('Served')
  await setQuotas(database.db, 2, { accountId, name: 'object_storage_gibibytes' })
  await expect.poll(() => tenant()?.quotaBytes).toBe(2 * 1024 ** 3)
  await database.db
    .updateTable('account')
    .set({ suspended_by_staff_at: new Date(0) })
    .where('id', '=', accountId)
    .execute()
  await expect.poll(() => tenant()?.isSuspended).toBe(true)
  await expect.poll(async () => (await ready())?.reason).toBe('Suspended')
})

test('a store that has forgotten its tenant, or has an older key, is informed again', async () => {
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

test('without a verified owner it is refused, but where the deployment can send no mail', async () => {
  await database.db
    .updateTable('app_user')
    .set({ email_verified_at: null })
    .where('own_account_id', '=', accountId)
    .execute()
  await create()
  await expect
    .poll(async () => (await read())?.status?.conditions?.find(({ type }) => type === 'Claimed')?.reason)
    .toBe('EmailUnverified')
  const stop = cloud.startControllers(undefined, { areAddressesConfirmed: true })
  await expect.poll(async () => (await ready())?.reason).toBe('Served')
  await stop()
})

test('its zone says what serves it', async () => {
  await expect
    .poll(async () => (await cloud.kubectl.get(Zone, { name: ZONE }))?.status?.objectStorageBackend)
    .toBe('svc-s3-single')
})

const startMove = (id: string, more: object = {}) => {
  const [requestedAt, deadlineAt] = [0, 7].map((days) => new Date(Date.now() + days * 86_400_000).toISOString())
  const stanza = { id, kind: 'object_storage.migrate', actor: 'user:ada', requestId: 'r', requestedAt, deadlineAt }
  return cloud.kubectl.patch(
    ObjectStorage,
    { namespace, name: 'mine' },
    { spec: { operation: { ...stanza, ...more } } },
  )
}
const phase = async () => [(await row())?.move?.phase, (await read())?.status?.operation?.error]
const atGateway = () => cloud.gateway.tenants.get(tenantOf({ accountId, id: 'mine' }))

describe('a move to the gateway', () => {
  beforeEach(async () => {
    await create()
    await expect.poll(async () => (await ready())?.reason).toBe('Served')
    cloud.gatewayZones.push(ZONE)
    cloud.objectStorage.openWrites = 1
  })
  afterEach(() => {
    cloud.gatewayZones.pop()
    cloud.objectStorage.openWrites = 0
  })

  test('keeps endpoint and key, and lets clients write again', async () => {
    const [secret, endpoint] = [tenant()?.secretAccessKey, (await read())?.status?.endpoint]
    await startMove(newUuid(systemRandom))
    await expect.poll(phase).toEqual(['frozen', ''])
    await expect.poll(() => tenant()?.isFrozen).toBe(true)
    expect(atGateway()?.secretAccessKey, 'nobody but the mover has it').not.toBe(secret)
    cloud.objectStorage.openWrites = 0
    await expect.poll(async () => (await row())?.backend).toBe('rgw')
    await expect.poll(() => tenant()?.upstream).toMatchObject({ isSourceKept: true })
    await expect.poll(() => tenant()?.isFrozen).toBe(false)
    expect(atGateway()).toMatchObject({ secretAccessKey: secret, isFrozen: false })
    await expect.poll(async () => (await read())?.status?.operation?.status).toBe('succeeded')
    await expect.poll(async () => (await read())?.status?.backend).toBe('rgw')
    expect((await read())?.status).toMatchObject({ endpoint })
    expect((await read())?.status?.bucketPrefix).toBeUndefined()

    await database.db
      .updateTable('object_storage')
      .set({ moved_at: new Date(0) })
      .where('id', '=', 'mine')
      .execute()
    await expect.poll(() => tenant()?.upstream).toMatchObject({ isSourceKept: false })
    await cloud.kubectl.delete(ObjectStorage, { namespace, name: 'mine' })
    await expect.poll(() => read()).toBeUndefined()
    expect([tenant(), atGateway()]).toEqual([undefined, undefined])
  })

  test('reports why it waits while the gateway is unavailable or refuses, and continues by itself', async () => {
    cloud.gateway.isAway = true
    const events = async () => (await cloud.kubectl.get(Operation, { namespace, name: id }))?.status?.events ?? []
    const id = newUuid(systemRandom)
    await startMove(id)
    await expect
      .poll(async () => (await events()).filter(({ kind }) => kind === 'waiting').map(({ message }) => message))
      .toEqual(['The gateway does not answer.'])
    cloud.gateway.isAway = false
    await expect.poll(phase).toEqual(['frozen', ''])
    expect(atGateway()?.quotaBytes, 'what is there has to fit, however the gateway counts').toBeGreaterThan(2 ** 50)
  })

  test('that is cancelled leaves the single host serving, and nothing at the gateway', async () => {
    const id = newUuid(systemRandom)
    await startMove(id)
    await expect.poll(phase).toEqual(['frozen', ''])
    await startMove(id, { arguments: { cancel: 'true' } })
    await expect.poll(async () => (await read())?.status?.operation?.status).toBe('cancelled')
    await expect.poll(() => tenant()?.isFrozen).toBe(false)
    expect([await row(), atGateway()]).toMatchObject([{ backend: 'svc-s3-single', move: null }, undefined])
  })
})
