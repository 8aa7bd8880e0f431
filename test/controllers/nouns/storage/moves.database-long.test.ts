/** Storages that move, with real controllers that die again and again, real agents and a real database: alone, with
 *  their server, to another tier, and all of a node. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { findCandidate } from '../../../../db/placement/index.ts'
import { storageEffects } from '../../../../controllers/nouns/storage/effects.ts'
import type { Parts } from '../../../../controllers/kit/parts.ts'
import { claimStorage, findStorageClaim, reserveStorageMove } from '../../../../db/storage/index.ts'
import type { OperationKind } from '../../../../domain/operations.ts'
import { Secret } from '../../../../kit/kube/object.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { nodeNamespace, nodeOf, Volume } from '../../../../resources/instance/index.ts'
import { Node } from '../../../../resources/node/index.ts'
import { Server, type ServerSpec } from '../../../../resources/server/index.ts'
import type { OperationStanza } from '../../../../resources/kit/shapes.ts'
import { Snapshot } from '../../../../resources/snapshot/index.ts'
import { Storage, type StorageSpec } from '../../../../resources/storage/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, fastClock, openCloud, ZONE } from '../../cloud.ts'
import { until } from '../../until.ts'
import { requestedNow } from '../../requested.ts'

const database = useDatabase()
const NODES = ['n1', 'n2', 'n3'] as const
const DEATHS = 60
let cloud: Cloud
let accountId: string
let namespace: string

beforeAll(async () => {
  cloud = await openCloud(database.db, undefined, NODES)
  for (const node of NODES) cloud.startAgent(node)
})
afterAll(() => cloud.close())
beforeEach(async () => {
  accountId = await createAccount(database.db)
  namespace = accountNamespace(accountId)
  await cloud.openAccount(accountId)
})

const stanza = (kind: OperationKind, args: Record<string, string> = {}): OperationStanza =>
  requestedNow(kind, { seconds: 3_600, actor: 'operator', arguments: args })
const read = (name = 'data') => cloud.kubectl.get(Storage, { namespace, name })
const ended = async (kind: OperationKind, name = 'data') => {
  const found = await until(
    `the end of ${kind} of ${name}`,
    () => read(name),
    (storage) =>
      storage?.status?.operation?.kind === kind &&
      storage.status.operation.id === storage.spec.operation?.id &&
      storage.status.operation.finishedAt !== undefined,
  )
  return found?.status?.operation
}
const ready = (node: string) =>
  until(
    `node ${node}`,
    () => cloud.kubectl.get(Node, { name: node }),
    (found) => found?.status?.state === 'ready',
  )
const move = (args: Record<string, string>, name = 'data') =>
  cloud.kubectl.patch(Storage, { namespace, name }, { spec: { operation: stanza('storage.move', args) } })
const placesOf = async (name = 'data') => {
  const uid = (await read(name))?.metadata.uid
  return (await cloud.kubectl.list(Volume)).items
    .filter(({ spec }) => spec.storage.uid === uid)
    .map((volume) => `${nodeOf(volume)} ${volume.spec.pool ?? 'local'}`)
}
const usedOn = async (node: string) => (await findCandidate(database.db, node))?.used.storageGibibytes
const used = () => Promise.all(NODES.map(usedOn))

/** A storage whose data lie on the node. */
async function storageOn(node: string, spec: Partial<StorageSpec> = {}, name = 'data'): Promise<void> {
  await ready(node)
  const sizeGibibytes = 2
  await database.db
    .transaction()
    .execute((tx) =>
      claimStorage(tx, { accountId, storageId: name, zone: ZONE, sizeGibibytes, preferredNode: node }, fastClock.now()),
    )
  await cloud.kubectl.create(Storage, {
    metadata: { namespace, name },
    // the API server fills in the defaults
    spec: {
      zone: ZONE,
      sizeGibibytes,
      tier: 'local-nvme',
      operation: stanza('storage.create'),
      ...spec,
    } as StorageSpec,
  })
  expect(await ended('storage.create', name)).toMatchObject({ status: 'succeeded' })
}
/** A started server on the node: the others are closed meanwhile. */
async function serverOn(node: string): Promise<void> {
  const others = NODES.filter((each) => each !== node)
  for (const each of NODES) await ready(each)
  for (const each of others) await cloud.kubectl.patch(Node, { name: each }, { spec: { isCordoned: true } })
  for (const each of others)
    await until(
      `${each} to be closed`,
      () => findCandidate(database.db, each),
      (candidate) => candidate?.isSchedulable === false,
    )
  const spec = { hostname: 'web', zone: ZONE, plan: 'tiny', template: 'tiny-linux' } as unknown as ServerSpec
  await cloud.kubectl.create(Server, { metadata: { namespace, name: 'web' }, spec })
  await serverWhen('started', node)
  for (const each of others) await cloud.kubectl.patch(Node, { name: each }, { spec: { isCordoned: false } })
  for (const each of NODES) await ready(each)
}
const serverWhen = (state: 'started' | 'stopped', node: string) =>
  until(
    `the server to be ${state} on ${node}`,
    () => cloud.kubectl.get(Server, { namespace, name: 'web' }),
    (server) =>
      server?.status?.state === state &&
      server.status.nodeName === node &&
      server.status.operation?.finishedAt !== undefined,
  )
async function cleanUp(names: readonly string[] = ['data']): Promise<void> {
  for (const name of names) await cloud.kubectl.delete(Storage, { namespace, name })
  for (const name of names)
    await until(
      `${name} to go`,
      () => read(name),
      (storage) => storage === undefined,
    )
}

test('alone it is copied, and its source is freed, however often the controllers die', {}, async () => {
  const mortals = cloud.startMortals(1, DEATHS)
  await storageOn('n1')
  await move({ source_node_id: 'n1', target_node_id: 'n2' })
  expect(await ended('storage.move')).toMatchObject({ status: 'succeeded', error: '' })
  expect(await placesOf()).toEqual(['n2 local'])
  expect((await read())?.status).toMatchObject({ nodeName: 'n2', state: 'online' })
  expect(await findStorageClaim(database.db, { accountId, storageId: 'data' })).toMatchObject({
    node: 'n2',
    targetNode: undefined,
  })
  expect(await used()).toEqual([0, 2, 0])
  const keys = (await Promise.all(NODES.map((node) => cloud.kubectl.list(Secret, { namespace: nodeNamespace(node) }))))
    .flatMap(({ items }) => items)
    .filter(({ metadata }) => metadata.name.startsWith('copy-'))
  expect(keys).toEqual([])
  expect(mortals.deaths()).toBeGreaterThan(8)
  await cleanUp()
  expect(await used()).toEqual([0, 0, 0])
  await mortals.stop()
})

test('to the other tier and back its data go to shared storage and to a host', async () => {
  const mortals = cloud.startMortals(2, DEATHS)
  await storageOn('n1')
  await move({ source_node_id: 'n1', target_node_id: 'n2', tier: 'standard' })
  expect(await ended('storage.move')).toMatchObject({ status: 'succeeded' })
  expect([await placesOf(), (await read())?.spec.tier]).toEqual([['n2 pool-1'], 'standard'])
  expect(cloud.pool.size).toBe(1)
  await move({ source_node_id: 'n2', target_node_id: 'n3', tier: 'local-nvme' })
  expect(await ended('storage.move')).toMatchObject({ status: 'succeeded' })
  expect([await placesOf(), (await read())?.spec.tier]).toEqual([['n3 local'], 'local-nvme'])
  expect(cloud.pool.size).toBe(0)
  expect(await used()).toEqual([0, 0, 2])
  await cleanUp()
  await mortals.stop()
})

test('a snapshot goes along where the data stay on shared storage, and keeps them from being copied', {}, async () => {
  const stop = cloud.startControllers()
  await storageOn('n1', { tier: 'standard' })
  await cloud.kubectl.create(Snapshot, { metadata: { namespace, name: 'point' }, spec: { storageId: 'data' } as never })
  const point = () => cloud.kubectl.get(Snapshot, { namespace, name: 'point' })
  await until('the snapshot', point, (found) => found?.status?.state === 'online')
  await move({ source_node_id: 'n1', target_node_id: 'n2' })
  expect(await ended('storage.move')).toMatchObject({ status: 'succeeded', error: '' })
  expect(await placesOf()).toEqual(['n2 pool-1'])
  const uid = (await point())?.metadata.uid
  const kept = await until(
    'the host to say what the disk has',
    async () => (await cloud.kubectl.list(Volume, { namespace: nodeNamespace('n2') })).items[0]?.status?.snapshots,
    (found) => found !== undefined,
  )
  expect(kept?.map(({ name }) => name)).toEqual([uid])
  await move({ source_node_id: 'n2', target_node_id: 'n3', tier: 'local-nvme' })
  expect(await ended('storage.move')).toMatchObject({
    status: 'failed',
    error: 'The storage has snapshots. Delete them first.',
  })
  expect(await placesOf()).toEqual(['n2 pool-1'])
  await cloud.kubectl.delete(Snapshot, { namespace, name: 'point' })
  await until('the snapshot to go', point, (found) => found === undefined)
  await cleanUp()
  await stop()
})

test('a storage moves nowhere where its volume is being deleted, with any cache', async () => {
  const stop = cloud.startControllers()
  await storageOn('n1')
  await stop()
  const storage = await read()
  if (storage === undefined) throw new Error('there is no storage')
  const { name: storageId, uid = '' } = storage.metadata
  await database.db.transaction().execute((tx) => reserveStorageMove(tx, { accountId, storageId, node: 'n2' }))
  const key = { namespace: nodeNamespace('n2'), name: uid }
  await cloud.kubectl.create(Volume, {
    metadata: { ...key, finalizers: ['svccloud.dev/agent'] },
    spec: { storage: { namespace, name: storageId, uid }, sizeGibibytes: 2 },
  })
  await cloud.kubectl.delete(Volume, key)
  const { landMove, land } = storageEffects({
    db: database.db,
    store: cloud.kubectl,
    clock: fastClock,
  } as unknown as Parts) // nothing else is asked of them
  const there = { accountId, storageId, node: 'n2' }
  await expect(landMove(there, storage)).rejects.toThrow('on its way out')
  await expect(land({ ...there, serverId: 'web' }, storage)).rejects.toThrow('on its way out')
  expect(await findStorageClaim(database.db, { accountId, storageId })).toMatchObject({ node: 'n1', targetNode: 'n2' })
  const again = cloud.startControllers()
  await cleanUp()
  await again()
})

test('what a server has goes with the running server', async () => {
  const stop = cloud.startControllers()
  await serverOn('n1')
  await storageOn('n1', { serverId: 'web' })
  const guest = cloud.hostOf('n1').running()[0]?.uid
  await stop()
  const mortals = cloud.startMortals(2, DEATHS)
  await move({ source_node_id: 'n1', target_node_id: 'n2', tier: 'standard' })
  expect(await ended('storage.move')).toMatchObject({ status: 'succeeded', error: '' })
  await serverWhen('started', 'n2')
  expect([await placesOf(), (await read())?.spec.tier]).toEqual([['n2 pool-1'], 'standard'])
  expect([cloud.hostOf('n1').running(), cloud.hostOf('n2').running().length]).toEqual([[], 1])
  expect(guest).toBeDefined()
  await cloud.kubectl.delete(Server, { namespace, name: 'web' })
  await until(
    'the server to go',
    () => cloud.kubectl.get(Server, { namespace, name: 'web' }),
    (server) => server === undefined,
  )
  await until('its storage to be detached', read, (storage) => storage?.spec.serverId === undefined)
  await cleanUp()
  await mortals.stop()
})

test('a node that is drained of its storages keeps none, and takes none', async () => {
  const mortals = cloud.startMortals(3, DEATHS)
  const names = ['one', 'two', 'three']
  for (const name of names) await storageOn('n1', {}, name)
  await ready('n1')
  await cloud.kubectl.patch(
    Node,
    { name: 'n1' },
    { spec: { isCordoned: true, operation: stanza('storage.drain_host') } },
  )
  const drained = await until(
    'the drain to end',
    () => cloud.kubectl.get(Node, { name: 'n1' }),
    (node) => node?.status?.operation?.kind === 'storage.drain_host' && node.status.operation.finishedAt !== undefined,
  )
  expect(drained?.status?.operation).toMatchObject({ status: 'succeeded', error: '' })
  expect((await cloud.kubectl.list(Volume, { namespace: nodeNamespace('n1') })).items).toEqual([])
  expect(await usedOn('n1')).toBe(0)
  expect(await findCandidate(database.db, 'n1')).toMatchObject({ isSchedulable: false })
  await cleanUp(names)
  await cloud.kubectl.patch(Node, { name: 'n1' }, { spec: { isCordoned: false } })
  await ready('n1')
  await mortals.stop()
})
