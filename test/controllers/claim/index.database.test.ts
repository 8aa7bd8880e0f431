/** Claims of what is gone, or never came to be: given back, and only those. */
import type { Transaction } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { listQuotas } from '../../../db/account/index.ts'
import { recordIntent, takeIntent } from '../../../db/change/index.ts'
import { claimCustomImage } from '../../../db/custom-image/index.ts'
import { claimFloatingIp } from '../../../db/floating-ip/index.ts'
import { claimNetwork } from '../../../db/network/index.ts'
import { mirrorNode } from '../../../db/placement/index.ts'
import { mirrorPool } from '../../../db/public-pool/index.ts'
import { claimRouter } from '../../../db/router/index.ts'
import { claimSnapshot } from '../../../db/snapshot/index.ts'
import { claimStorage } from '../../../db/storage/index.ts'
import type { Tables } from '../../../db/tables.ts'
import { Namespace } from '../../../kit/kube/object.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { CustomImage } from '../../../resources/custom-image/index.ts'
import { Network, type NetworkSpec } from '../../../resources/network/index.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { Image, nodeNamespace, Volume } from '../../../resources/instance/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import { createAccount } from '../../accounts.ts'
import { useDatabase } from '../../database.ts'
import { type Cloud, fastClock, NODE, openCloud, ZONE } from '../cloud.ts'

const HOUR_MILLISECONDS = 3_600_000
const database = useDatabase()
let cloud: Cloud
let accountId: string
let namespace: string

// Without controllers: these give back what they can see.
beforeAll(async () => {
  cloud = await openCloud(database.db)
  await cloud.kubectl.create(Namespace, { metadata: { name: nodeNamespace(NODE) }, spec: undefined })
  await mirrorNode(database.db, {
    ...{ node: NODE, zone: ZONE, rack: 'r', cpuPool: null, dedicatedAccountId: null, isSchedulable: true },
    total: { cores: 8, memoryMebibytes: 8_192, storageGibibytes: 1_000 },
  })
})
beforeEach(async () => {
  accountId = await createAccount(database.db)
  namespace = accountNamespace(accountId)
  await cloud.openAccount(accountId)
})
afterAll(() => cloud.close())

const transaction = (work: (tx: Transaction<Tables>) => Promise<unknown>): Promise<unknown> =>
  database.db.transaction().execute(work)
const claimDisk = (storageId: string) =>
  transaction((tx) => claimStorage(tx, { accountId, storageId, zone: ZONE, sizeGibibytes: 10 }, fastClock.now()))
const claimImage = (imageId: string) => transaction((tx) => claimCustomImage(tx, { accountId, imageId }))
const held = async () =>
  Object.fromEntries(
    (await listQuotas(database.db, accountId)).filter(({ used }) => used > 0).map(({ name, used }) => [name, used]),
  )
const room = async () => {
  const { storage_gibibytes_used: used } = await database.db
    .selectFrom('node_capacity')
    .select('storage_gibibytes_used')
    .where('node', '=', NODE)
    .executeTakeFirstOrThrow()
  return used
}

test('a storage that never came to be gives back quota and room, and no other does', async () => {
  const before = await room()
  await claimDisk('lost')
  await claimDisk('kept')
  await cloud.kubectl.create(Storage, {
    metadata: { name: 'kept', namespace },
    spec: Storage.spec.parse({ zone: ZONE, title: '', sizeGibibytes: 10 }),
  })
  expect([await cloud.sweepClaims(0), await held()]).toEqual([0, { storage_gibibytes: 20, storages: 2 }])
  expect([await cloud.sweepClaims(HOUR_MILLISECONDS), await held()]).toEqual([
    1,
    { storage_gibibytes: 10, storages: 1 },
  ])
  expect((await room()) - before).toBe(10)
  expect(await cloud.sweepClaims(HOUR_MILLISECONDS)).toBe(0)
})

test('a storage keeps its room until its host has let go of the disk', async () => {
  await claimDisk('lost')
  const volume = { namespace: nodeNamespace(NODE), name: newUuid(systemRandom) }
  await cloud.kubectl.create(Volume, {
    metadata: volume,
    spec: { storage: { namespace, name: 'lost', uid: volume.name }, sizeGibibytes: 10 },
  })
  expect([await cloud.sweepClaims(HOUR_MILLISECONDS), await held()]).toEqual([
    0,
    { storage_gibibytes: 10, storages: 1 },
  ])
  await cloud.kubectl.delete(Volume, volume)
  expect([await cloud.sweepClaims(HOUR_MILLISECONDS), await held()]).toEqual([1, {}])
})

test('a storage that something still holds keeps nothing else from being given back', async () => {
  await claimDisk('held')
  await transaction((tx) =>
    claimSnapshot(tx, { accountId, snapshotId: 's', storageId: 'held', bootServerId: undefined, isShared: false }),
  )
  await claimImage('lost')
  expect(await cloud.sweepClaims(HOUR_MILLISECONDS)).toBe(1)
  expect(await held()).toEqual({ snapshots: 1, storage_gibibytes: 10, storages: 1 })
})

test('a custom image that never came to be gives back its quota, and no other does', async () => {
  await claimImage('lost')
  await claimImage('kept')
  await cloud.kubectl.create(CustomImage, {
    metadata: { name: 'kept', namespace },
    spec: {
      ...{ zone: ZONE, title: 'Kept', labels: {} },
      source: { url: 'https://images.example.com/disk.qcow2', checksum: 'a'.repeat(64) },
    },
  })
  expect([await cloud.sweepClaims(HOUR_MILLISECONDS), await held()]).toEqual([1, { custom_images: 1 }])
})

test('a custom image that is just being asked for keeps its quota', async () => {
  const operationId = newUuid(systemRandom)
  await claimImage('young')
  await transaction((tx) =>
    recordIntent(tx, {
      ...{ operationId, accountId, resource: { type: 'template', id: 'young' }, createdAt: fastClock.now() },
      audit: {} as Parameters<typeof recordIntent>[1]['audit'], // nobody reads it here
    }),
  )
  expect([await cloud.sweepClaims(HOUR_MILLISECONDS), await held()]).toEqual([0, { custom_images: 1 }])
  await transaction((tx) => takeIntent(tx, operationId))
  expect([await cloud.sweepClaims(HOUR_MILLISECONDS), await held()]).toEqual([1, {}])
})

test('a custom image keeps its quota until its hosts have let go of it', async () => {
  await claimImage('lost')
  const key = { namespace: nodeNamespace(NODE), name: `${namespace}.lost` }
  await cloud.kubectl.create(Image, {
    metadata: key,
    spec: { image: { namespace, name: 'lost', uid: 'u' } },
  })
  expect([await cloud.sweepClaims(HOUR_MILLISECONDS), await held()]).toEqual([0, { custom_images: 1 }])
  await cloud.kubectl.delete(Image, key)
  expect([await cloud.sweepClaims(HOUR_MILLISECONDS), await held()]).toEqual([1, {}])
})

test('lost networks, routers and floating IPs give back what they hold once the network forgot them', async () => {
  const holdings = { networks: 1, routers: 1, floating_ips: 1 }
  await transaction(async (tx) => {
    const pool = { id: 'floating', zone: ZONE, family: 'ipv4', use: 'floating_ipv4', state: 'active' } as const
    await mirrorPool(tx, { ...pool, cidr: '198.51.100.0/29' })
    await claimNetwork(tx, { accountId, networkId: 'lost', zone: ZONE, name: 'lost' }, systemRandom)
    await claimNetwork(tx, { accountId, networkId: 'kept', zone: ZONE, name: 'kept' }, systemRandom)
    const networkIds = ['lost']
    await claimRouter(tx, { accountId, routerId: 'lost', zone: ZONE, name: 'lost', natEnabled: false, networkIds })
    await claimFloatingIp(tx, { accountId, floatingIpId: 'lost', zone: ZONE })
  })
  const spec = { zone: ZONE, name: 'kept' } as NetworkSpec // has defaults
  const { uid } = (await cloud.kubectl.create(Network, { metadata: { name: 'kept', namespace }, spec })).metadata
  const row = (key: string) => ({ table: 'DNS', key, columns: {} }) as const
  for (const owner of [`Network/${uid}`, 'Network/dead', 'Router/dead', 'FloatingIP/dead', 'Server/dead'])
    await cloud.ovn.apply({ zone: ZONE, owner, rows: [row(owner)] })
  const operationId = newUuid(systemRandom)
  await transaction((tx) =>
    recordIntent(tx, {
      ...{ operationId, accountId, resource: { type: 'network', id: 'lost' }, createdAt: fastClock.now() },
      audit: {} as Parameters<typeof recordIntent>[1]['audit'], // nobody reads it here
    }),
  )
  // Nothing is given back while rows may still lead there, and nothing of what is just being asked for.
  cloud.ovn.fail('lost', 'lost')
  expect([await cloud.sweepClaims(0), await held()]).toEqual([0, { ...holdings, networks: 2 }])
  expect([await cloud.sweepClaims(0), await held()]).toEqual([2, { networks: 2 }])
  expect([...cloud.ovn.owners.keys()]).toEqual([`${ZONE} Network/${uid}`])
  await transaction((tx) => takeIntent(tx, operationId))
  expect([await cloud.sweepClaims(0), await held()]).toEqual([1, { networks: 1 }])
})
