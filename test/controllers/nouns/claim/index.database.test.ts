/** Claims of what was deleted and no longer exists: released, and only those. What is missing keeps them. */
import type { Transaction } from 'kysely'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { giveUpMissing, resumeSweeps } from '../../../../apiserver/staff/missing.ts'
import { keepInUse, usesSomething } from '../../../../db/claim/index.ts'
import { listQuotas } from '../../../../db/account/index.ts'
import { recordIntent, takeIntent } from '../../../../db/change/index.ts'
import { claimCustomImage } from '../../../../db/custom-image/index.ts'
import { claimFloatingIp } from '../../../../db/floating-ip/index.ts'
import { claimNetwork } from '../../../../db/network/index.ts'
import { mirrorNode } from '../../../../db/placement/index.ts'
import { mirrorPool } from '../../../../db/public-pool/index.ts'
import { listAbsences, orderRemoval } from '../../../../db/removal/index.ts'
import { claimRouter } from '../../../../db/router/index.ts'
import { claimServer, findServerClaims } from '../../../../db/server/index.ts'
import { claimSnapshot } from '../../../../db/snapshot/index.ts'
import { claimStorage } from '../../../../db/storage/index.ts'
import type { Tables } from '../../../../db/tables.ts'
import { parseShard } from '../../../../controllers/kit/shard.ts'
import type { Use } from '../../../../domain/claim/use.ts'
import { Unavailable } from '../../../../domain/problem.ts'
import { Namespace } from '../../../../kit/kube/object.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { CustomImage } from '../../../../resources/custom-image/index.ts'
import { Network, type NetworkSpec } from '../../../../resources/network/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { FloatingIp } from '../../../../resources/floating-ip/index.ts'
import {
  Image,
  Instance,
  NODE_REPORT_NAME,
  nodeNamespace,
  NodeReport,
  type NodeReportSpec,
  type NodeReportStatus,
  UNCLAIMED_NAMED_MAXIMUM,
  Volume,
} from '../../../../resources/instance/index.ts'
import { Storage } from '../../../../resources/storage/index.ts'
import { createAccount, setQuotas } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { instanceSpec } from '../../../agents/node/instance-spec.ts'
import { type Cloud, fastClock, NODE, openCloud, ZONE } from '../../cloud.ts'

const REPORT: NodeReportSpec = {
  agentVersion: '1',
  bootId: 'boot',
  logicalCpus: 8,
  memoryMebibytes: 8_192,
  storageGibibytes: 1_000,
  hypervisor: 'simulated',
  features: [],
}
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
    node: NODE,
    zone: ZONE,
    rack: 'r',
    cpuPool: null,
    dedicatedAccountId: null,
    isSchedulable: true,
    total: { cores: 8, memoryMebibytes: 8_192, storageGibibytes: 1_000 },
  })
})
beforeEach(async () => {
  accountId = await createAccount(database.db)
  namespace = accountNamespace(accountId)
  await cloud.openAccount(accountId)
})
afterEach(async () => {
  for (const table of ['absence', 'removal', 'quota_holding', 'storage_hold', 'storage_claim'] as const)
    await database.db.deleteFrom(table).execute()
})
afterAll(() => cloud.close())

const clock = fastClock
/** As the controllers note a deletion. */
const wasDeleted = (kind: string, name: string, uid = newUuid(systemRandom)) =>
  orderRemoval(database.db, { kind, namespace, name, uid }, { reason: 'deleted', clock, random: systemRandom })
const sweep = async (laterMilliseconds: number) => (await cloud.sweepClaims(laterMilliseconds)).released
const missing = async () => (await listAbsences(database.db)).map(({ kind, name }) => `${kind} ${name}`)

const transaction = (work: (tx: Transaction<Tables>) => Promise<unknown>): Promise<unknown> =>
  database.db.transaction().execute(work)
const claimDisk = (storageId: string) =>
  transaction((tx) => claimStorage(tx, { accountId, storageId, zone: ZONE, sizeGibibytes: 10 }, fastClock.now()))
const claimImage = (imageId: string) =>
  transaction((tx) => claimCustomImage(tx, { accountId, imageId, sizeGibibytes: 3 }))
const held = async () =>
  Object.fromEntries(
    (await listQuotas(database.db, accountId))
      .filter(({ name, used }) => used > 0 && !/^(snapshot|custom_image)_gibibytes$/.test(name)) // with their piece
      .map(({ name, used }) => [name, used]),
  )
const room = async () => {
  const { storage_gibibytes_used: used } = await database.db
    .selectFrom('node_capacity')
    .select('storage_gibibytes_used')
    .where('node', '=', NODE)
    .executeTakeFirstOrThrow()
  return used
}

test('a storage that was deleted gives back quota and room, and no other does', async () => {
  const before = await room()
  await claimDisk('gone')
  await claimDisk('kept')
  await wasDeleted('Storage', 'gone')
  await cloud.kubectl.create(Storage, {
    metadata: { name: 'kept', namespace },
    spec: Storage.spec.parse({ zone: ZONE, title: '', sizeGibibytes: 10 }),
  })
  expect([await sweep(0), await held()]).toEqual([0, { storage_gibibytes: 20, storages: 2 }])
  expect([await sweep(HOUR_MILLISECONDS), await held()]).toEqual([1, { storage_gibibytes: 10, storages: 1 }])
  expect((await room()) - before).toBe(10)
  expect(await sweep(HOUR_MILLISECONDS)).toBe(0)
})

test('a storage keeps its capacity until its host has released the disk', async () => {
  await claimDisk('lost')
  await wasDeleted('Storage', 'lost')
  const volume = { namespace: nodeNamespace(NODE), name: newUuid(systemRandom) }
  await cloud.kubectl.create(Volume, {
    metadata: volume,
    spec: { storage: { namespace, name: 'lost', uid: volume.name }, sizeGibibytes: 10 },
  })
  expect([await sweep(HOUR_MILLISECONDS), await held()]).toEqual([0, { storage_gibibytes: 10, storages: 1 }])
  await cloud.kubectl.delete(Volume, volume)
  expect([await sweep(HOUR_MILLISECONDS), await held()]).toEqual([1, {}])
})

test('a storage that something still holds keeps nothing else from being given back', async () => {
  await claimDisk('held')
  await transaction((tx) =>
    claimSnapshot(tx, {
      accountId,
      snapshotId: 's',
      storageId: 'held',
      bootServerId: undefined,
      isShared: false,
      sizeGibibytes: 10,
    }),
  )
  await claimImage('lost')
  await wasDeleted('CustomImage', 'lost')
  await wasDeleted('Storage', 'held')
  expect(await sweep(HOUR_MILLISECONDS)).toBe(1)
  expect(await held()).toEqual({ snapshots: 1, storage_gibibytes: 10, storages: 1 })
})

test('a custom image that was deleted gives back its quota, and no other does', async () => {
  await claimImage('lost')
  await wasDeleted('CustomImage', 'lost')
  await claimImage('kept')
  await cloud.kubectl.create(CustomImage, {
    metadata: { name: 'kept', namespace },
    spec: {
      zone: ZONE,
      title: 'Kept',
      labels: {},
      source: { url: 'https://images.example.com/disk.qcow2', checksum: 'a'.repeat(64) },
    },
  })
  expect([await sweep(HOUR_MILLISECONDS), await held()]).toEqual([1, { custom_images: 1 }])
})

test('a custom image that is just being asked for keeps its quota', async () => {
  const operationId = newUuid(systemRandom)
  await claimImage('young')
  await wasDeleted('CustomImage', 'young')
  await transaction((tx) =>
    recordIntent(tx, {
      operationId,
      accountId,
      resource: { type: 'template', id: 'young' },
      createdAt: fastClock.now(),
      audit: {} as Parameters<typeof recordIntent>[1]['audit'], // nobody reads it here
    }),
  )
  expect([await sweep(HOUR_MILLISECONDS), await held()]).toEqual([0, { custom_images: 1 }])
  await transaction((tx) => takeIntent(tx, operationId))
  expect([await sweep(HOUR_MILLISECONDS), await held()]).toEqual([1, {}])
})

test('a custom image keeps its quota until its hosts have released it', async () => {
  await claimImage('lost')
  await wasDeleted('CustomImage', 'lost')
  const key = { namespace: nodeNamespace(NODE), name: `${namespace}.lost` }
  await cloud.kubectl.create(Image, {
    metadata: key,
    spec: { image: { namespace, name: 'lost', uid: 'u' } },
  })
  expect([await sweep(HOUR_MILLISECONDS), await held()]).toEqual([0, { custom_images: 1 }])
  await cloud.kubectl.delete(Image, key)
  expect([await sweep(HOUR_MILLISECONDS), await held()]).toEqual([1, {}])
})

test('deleted networks, routers and floating IPs give back what they hold once the network forgot them', async () => {
  const holdings = { networks: 1, routers: 1, floating_ips: 1 }
  await transaction(async (tx) => {
    const pool = { id: 'floating', zone: ZONE, family: 'ipv4', use: 'floating_ipv4', state: 'active' } as const
    await mirrorPool(tx, { ...pool, cidr: '198.51.100.0/29' })
    await claimNetwork(tx, { accountId, networkId: 'lost', zone: ZONE, name: 'lost' }, systemRandom)
    await claimNetwork(tx, { accountId, networkId: 'kept', zone: ZONE, name: 'kept' }, systemRandom)
    const networkIds = ['lost']
    await claimRouter(tx, {
      accountId,
      routerId: 'lost-router',
      zone: ZONE,
      name: 'lost',
      natEnabled: false,
      networkIds,
    })
    await claimFloatingIp(tx, { accountId, floatingIpId: 'lost-ip', zone: ZONE })
  })
  const spec = { zone: ZONE, name: 'kept' } as NetworkSpec // has defaults
  const { uid } = (await cloud.kubectl.create(Network, { metadata: { name: 'kept', namespace }, spec })).metadata
  const row = (key: string) =>
    ({ table: key.startsWith('Network/') ? 'DHCP_Options' : 'DNS', key, columns: {} }) as const
  for (const owner of [
    `Network/${uid}`,
    'Network/dead',
    'Network/missing',
    'Router/dead2',
    'FloatingIP/dead3',
    'Server/dead4',
    'Server/lost',
  ])
    await cloud.ovn.apply({ zone: ZONE, owner, rows: [row(owner)] })
  await wasDeleted('Network', 'lost', 'dead')
  await wasDeleted('Router', 'lost-router', 'dead2')
  await wasDeleted('FloatingIP', 'lost-ip', 'dead3')
  await wasDeleted('Server', 'web', 'dead4')
  const operationId = newUuid(systemRandom)
  await transaction((tx) =>
    recordIntent(tx, {
      operationId,
      accountId,
      resource: { type: 'network', id: 'lost' },
      createdAt: fastClock.now(),
      audit: {} as Parameters<typeof recordIntent>[1]['audit'], // nobody reads it here
    }),
  )
  // Nothing is given back while rows may still lead there, and nothing of what is just being asked for.
  cloud.ovn.fail('lost', 'lost')
  expect([await sweep(0), await held()]).toEqual([0, { ...holdings, networks: 2 }])
  expect([await sweep(0), await held()]).toEqual([2, { networks: 2 }])
  // those of an owner that is missing stay
  const kept = [`Network/${uid}`, 'Network/missing', 'Server/lost']
  expect([...cloud.ovn.owners.keys()]).toEqual(kept.map((owner) => `${ZONE} ${owner}`))
  await transaction((tx) => takeIntent(tx, operationId))
  expect([await sweep(0), await held()]).toEqual([1, { networks: 1 }])
})

test('what is missing and was not deleted is kept and counted, and an operator alone gives it up', async () => {
  const name = newUuid(systemRandom)
  await claimDisk(name)
  await claimImage('never-deleted')
  const holdings = { custom_images: 1, storage_gibibytes: 10, storages: 1 }
  expect(await cloud.sweepClaims(HOUR_MILLISECONDS)).toMatchObject({
    released: 0,
    lost: { Storage: 1, CustomImage: 1, Server: 0 },
    isStopped: false,
  })
  expect([await held(), await missing()]).toEqual([holdings, ['CustomImage never-deleted', `Storage ${name}`]])
  // It is no longer missing when it is there again.
  await cloud.kubectl.create(Storage, {
    metadata: { name, namespace },
    spec: Storage.spec.parse({ zone: ZONE, title: '', sizeGibibytes: 10 }),
  })
  expect([await sweep(HOUR_MILLISECONDS), await missing()]).toEqual([0, ['CustomImage never-deleted']])
  const decision = { by: 'sam@example.com', reason: 'nobody has it' }
  const parts = { db: database.db, clock, random: systemRandom }
  expect(await giveUpMissing(parts, `Storage/${namespace}/${name}`, decision)).toBe(false)
  expect(await giveUpMissing(parts, `CustomImage/${namespace}/never-deleted`, decision)).toBe(true)
  expect([await sweep(HOUR_MILLISECONDS), await held(), await missing()]).toEqual([
    1,
    { storage_gibibytes: 10, storages: 1 },
    [],
  ])
})

test('an operator gives up a server whose guest runs only once its host reports that it has ended', async () => {
  const serverId = newUuid(systemRandom)
  const size = { cores: 1, memoryMebibytes: 192, storageGibibytes: 1 }
  const demand = { accountId, serverId, hostname: 'web', zone: ZONE, ...size }
  await transaction((tx) => claimServer(tx, demand, { now: clock.now(), random: systemRandom }))
  const report = { namespace: nodeNamespace(NODE), name: NODE_REPORT_NAME }
  await cloud.kubectl.create(NodeReport, { metadata: report, spec: REPORT })
  const guests = (unnamed: NodeReportStatus['unnamed']) =>
    cloud.kubectl.patch(NodeReport, report, { status: { unnamed } }, 'status')
  const macAddress = (await findServerClaims(database.db, { accountId, serverId }))?.macAddress
  const port = (name: string, mac?: string) =>
    ({ table: 'Logical_Switch_Port', key: name, columns: { name, addresses: [`${mac} 203.0.113.9`] } }) as const
  const owners = () => cloud.ovn.ownersIn(ZONE).then((all) => all.filter((owner) => owner.includes('/of-')).toSorted())
  await cloud.ovn.apply({ zone: ZONE, owner: 'PublicPort/of-guest', rows: [port('of-guest', macAddress)] })
  await cloud.ovn.apply({ zone: ZONE, owner: 'Server/of-guest', rows: [{ table: 'DNS', key: 'a', columns: {} }] })
  await cloud.ovn.apply({ zone: ZONE, owner: 'PublicPort/of-other', rows: [port('of-other', '52:54:00:00:00:09')] })
  await guests([{ name: 'guest', server: { namespace, name: serverId }, ...size }])
  expect(await cloud.sweepClaims(HOUR_MILLISECONDS)).toMatchObject({ released: 0, lost: { Server: 1 } })
  const decision = { by: 'sam@example.com', reason: 'nobody has it' }
  const parts = { db: database.db, clock, random: systemRandom }
  expect(await giveUpMissing(parts, `Server/${namespace}/${serverId}`, decision)).toBe(true)
  const user = { accountId, holder: `server/${serverId}`, uid: 'guest' }
  await keepInUse(database.db, user, [{ kind: 'address', scope: '', value: '203.0.113.200' }], clock.now())
  await wasDeleted('Server', serverId, user.uid)
  expect(await sweep(HOUR_MILLISECONDS)).toBe(0)
  expect(await usesSomething(database.db, user)).toBe(true)
  expect(await findServerClaims(database.db, { accountId, serverId })).toBeDefined()
  expect(await owners()).toEqual(['PublicPort/of-guest', 'PublicPort/of-other', 'Server/of-guest'])
  // A full list leaves others out, perhaps this one.
  await guests(Array.from({ length: UNCLAIMED_NAMED_MAXIMUM }, (_, index) => ({ name: `other-${index}`, ...size })))
  expect(await sweep(HOUR_MILLISECONDS)).toBe(0)
  expect(await usesSomething(database.db, user)).toBe(true)
  await guests([])
  expect(await sweep(HOUR_MILLISECONDS)).toBe(1)
  expect(await owners()).toEqual(['PublicPort/of-other'])
  expect(await findServerClaims(database.db, { accountId, serverId })).toBeUndefined()
  await cloud.kubectl.delete(NodeReport, report)
})

test('an order that was carried out says nothing about the next one of that name', async () => {
  await claimImage('again')
  await wasDeleted('CustomImage', 'again')
  expect([await sweep(HOUR_MILLISECONDS), await held()]).toEqual([1, {}])
  await claimImage('again')
  expect([await sweep(HOUR_MILLISECONDS), await held()]).toEqual([0, { custom_images: 1 }])
})

test('what was kept for an object without claims is free once that object was deleted, and no earlier', async () => {
  const addressOf = new Map<string, string>()
  const keep = async (holder: string, uid: string, value = `203.0.113.${addressOf.size + 1}`) => {
    addressOf.set(value, uid)
    await keepInUse(database.db, { accountId, holder, uid }, [{ kind: 'address', scope: '', value }], clock.now())
  }
  const kept = async () =>
    (await database.db.selectFrom('host_use').select('value').where('account_id', '=', accountId).execute())
      .map(({ value }) => addressOf.get(value))
      .toSorted()
  const spec = FloatingIp.spec.parse({ zone: ZONE })
  const leaving = await cloud.kubectl.create(FloatingIp, { metadata: { name: 'leaving', namespace }, spec })
  const { uid = '' } = leaving.metadata
  await keep('server/deleted', 'deleted')
  await keep('server/again', 'first of its name', '203.0.113.100')
  await keep('server/again', 'second of its name', '203.0.113.100')
  await keep('server/missing', 'missing')
  await keep('server/hosted', 'on a host')
  await keep('floating_ip/leaving', uid)
  await cloud.kubectl.create(Instance, {
    metadata: { name: 'hosted', namespace: nodeNamespace(NODE) },
    spec: { ...instanceSpec({ hostname: 'hosted' }), server: { namespace, name: 'hosted', uid: 'on a host' } },
  })
  await wasDeleted('Server', 'deleted', 'deleted')
  await wasDeleted('Server', 'again', 'first of its name')
  await wasDeleted('Server', 'hosted', 'on a host')
  await wasDeleted('FloatingIP', 'leaving', uid)
  await sweep(0)
  expect(await kept()).toEqual(['missing', 'on a host', 'second of its name', uid].toSorted())
  await cloud.kubectl.delete(FloatingIp, { namespace, name: 'leaving' })
  await cloud.kubectl.delete(Instance, { namespace: nodeNamespace(NODE), name: 'hosted' })
  await sweep(0)
  expect(await kept()).toEqual(['missing', 'second of its name'])
})

const keep = (holder: string, uid: string, use: Partial<Use>) =>
  keepInUse(
    database.db,
    { accountId, holder, uid },
    [{ kind: 'address', scope: '', value: '203.0.113.77', ...use }],
    clock.now(),
  )
const keptFor = async () =>
  (await database.db.selectFrom('host_use').select('uid').distinct().where('account_id', '=', accountId).execute())
    .map(({ uid }) => uid)
    .toSorted()

test('what was kept for a deleted object is free once nothing in the network has its rows', async () => {
  const rows = [{ table: 'DNS', key: 'left', columns: {} }] as const
  await keep('server/routed', 'routed', { value: '203.0.113.121' })
  await keep('load_balancer/routed', 'balanced', { value: '203.0.113.122' })
  await keep('floating_ip/routed', 'elsewhere', { value: '203.0.113.123' })
  await wasDeleted('Server', 'routed', 'routed')
  await wasDeleted('LoadBalancer', 'routed', 'balanced')
  await wasDeleted('FloatingIP', 'routed', 'elsewhere')
  for (const owner of ['PublicPort/routed', 'LoadBalancer/balanced', 'Unknown/elsewhere'])
    await cloud.ovn.apply({ zone: ZONE, owner, rows: [{ ...rows[0], key: owner }] })
  cloud.ovn.fail('lost', 'lost', 'lost')
  await sweep(0)
  expect(await keptFor()).toEqual(['balanced', 'elsewhere', 'routed'])
  await sweep(0)
  expect(await keptFor()).toEqual(['elsewhere'])
  const left = await cloud.ovn.ownersIn(ZONE)
  expect(left).toContain('Unknown/elsewhere')
  expect(left.filter((owner) => /routed|balanced/.test(owner))).toEqual([])
  await cloud.ovn.apply({ zone: ZONE, owner: 'Unknown/elsewhere', rows: [] })
  await sweep(0)
  expect(await keptFor()).toEqual([])
})

test('a network that fails once keeps the values of one deleted object only, and ends no sweep', async () => {
  for (const uid of ['one', 'other']) {
    await keep(`server/${uid}`, uid, { value: `203.0.113.13${uid.length}` })
    await wasDeleted('Server', uid, uid)
  }
  await cloud.ovn.apply({ zone: ZONE, owner: 'PublicPort/one', rows: [{ table: 'DNS', key: 'one', columns: {} }] })
  cloud.ovn.fail('lost')
  await claimDisk('missing')
  expect(await cloud.sweepClaims(HOUR_MILLISECONDS)).toMatchObject({
    lost: { Storage: 1 },
    failure: expect.any(Unavailable),
  })
  expect(await keptFor()).toHaveLength(1)
  await sweep(0)
  expect(await keptFor()).toEqual([])
})

test('the shard of its zone alone forgets what was kept for a deleted object', async () => {
  const pool = { id: 'shards', zone: ZONE, family: 'ipv4', use: 'floating_ipv4', state: 'active' } as const
  await transaction((tx) => mirrorPool(tx, { ...pool, cidr: '192.0.2.64/29' }))
  await keep('server/named', 'named', { kind: 'hostname', scope: `${accountId}/${ZONE}`, value: 'named' })
  await keep('floating_ip/pooled', 'pooled', { value: '192.0.2.65' })
  await keep('floating_ip/unknown', 'unknown', { value: '203.0.113.141' })
  await wasDeleted('Server', 'named', 'named')
  await wasDeleted('FloatingIP', 'pooled', 'pooled')
  await wasDeleted('FloatingIP', 'unknown', 'unknown')
  await cloud.sweepClaims(0, parseShard(`others:${ZONE}`))
  expect(await keptFor()).toEqual(['named', 'pooled', 'unknown'])
  await cloud.sweepClaims(0, parseShard(`zones:${ZONE}`))
  expect(await keptFor()).toEqual([])
})

test('of many that were deleted past their controllers most wait', async () => {
  await setQuotas(database.db, 1_000, { accountId })
  for (let index = 0; index < 25; index++) {
    await claimImage(`many-${index}`)
    await wasDeleted('CustomImage', `many-${index}`)
  }
  expect([await sweep(HOUR_MILLISECONDS), await held()]).toEqual([20, { custom_images: 5 }])
})

test('an empty Kubernetes costs nobody anything: every sweep stops until somebody has looked', async () => {
  const names = ['a', 'b', 'c', 'd']
  for (const name of names) await claimImage(name)
  await claimDisk('deleted')
  await wasDeleted('Storage', 'deleted')
  const holdings = { custom_images: 4, storage_gibibytes: 10, storages: 1 }
  expect(await cloud.sweepClaims(HOUR_MILLISECONDS)).toMatchObject({ lost: { CustomImage: 4 }, isStopped: true })
  expect([await cloud.sweepClaims(HOUR_MILLISECONDS), await held()]).toMatchObject([
    { released: 0, isStopped: true },
    holdings,
  ])
  const decision = { by: 'sam@example.com', reason: 'restored' }
  await resumeSweeps({ db: database.db, clock, random: systemRandom }, decision)
  expect(await cloud.sweepClaims(HOUR_MILLISECONDS)).toMatchObject({ released: 1, isStopped: false })
  expect(await held()).toEqual({ custom_images: 4 })
  const entries = await database.db
    .selectFrom('audit_entry')
    .select('action')
    .where('action', 'like', 'missing.%')
    .execute()
  expect(entries.map(({ action }) => action)).toContain('missing.resume_sweeps')
})
