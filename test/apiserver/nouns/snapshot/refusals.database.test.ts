/** What is refused for the sake of snapshots, by every route that they stand in the way of. No controllers run: tests
 *  say what they would. */
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { begin } from '../../../../db/kit/begin.ts'
import { lockPlacement } from '../../../../db/placement/index.ts'
import { claimSnapshot } from '../../../../db/snapshot/index.ts'
import { claimStorage } from '../../../../db/storage/index.ts'
import type { OperationKind } from '../../../../domain/operations.ts'
import { makeNamespace } from '../../../../kit/kube/namespaces.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { accountNamespace, accountNamespaceOf } from '../../../../resources/index.ts'
import { Server } from '../../../../resources/server/index.ts'
import { Snapshot } from '../../../../resources/snapshot/index.ts'
import { Storage, type StorageSpec, type StorageStatus } from '../../../../resources/storage/index.ts'
import { useDatabase } from '../../../database.ts'
import { until } from '../../../eventually.ts'
import { lockWaits } from '../../../lock-waits.ts'
import { type Cloud, openCloud, type Person, PUBLIC_KEY, type Reply } from '../../cloud.ts'
import { setQuotas } from '../../../accounts.ts'

const SECOND = 'node-a2'
const SIZE_GIBIBYTES = 10
const database = useDatabase()
let cloud: Cloud
let owner: Person
let stranger: Person

const keyOf = (name: string, person = owner) => ({ namespace: accountNamespace(person.accountId), name })
beforeAll(async () => {
  cloud = await openCloud(database.db)
  owner = await cloud.signUp('owner@example.com')
  stranger = await cloud.signUp('stranger@example.com')
  for (const { accountId } of [owner, stranger]) await makeNamespace(cloud.admin, accountNamespaceOf(accountId))
  await cloud.grant('olga', [{ resources: ['nodes', 'storages'], verbs: ['get', 'list', 'update'] }])
  for (const name of [cloud.node, SECOND])
    await cloud.addNode(name, { room: { cores: 256, memoryMebibytes: 1_048_576, storageGibibytes: 8_192 } })
  await setQuotas(database.db, 1_000_000)
})
afterAll(() => cloud.close())

interface Made {
  readonly id?: string
  readonly person?: Person
  readonly node?: string
  readonly spec?: Partial<StorageSpec>
  readonly status?: Partial<StorageStatus>
}

/** One that is online on the node. */
async function storage({
  id = newUuid(systemRandom),
  person = owner,
  node = cloud.node,
  spec = {},
  status = {},
}: Made = {}): Promise<string> {
  const { accountId } = person
  const claim = { accountId, storageId: id, zone: cloud.zone, sizeGibibytes: SIZE_GIBIBYTES, preferredNode: node }
  if (spec.isBoot !== true)
    await cloud.db.transaction().execute((tx) => claimStorage(tx, claim, new Date('2026-01-01')))
  await cloud.admin.create(Storage, {
    metadata: keyOf(id, person),
    spec: { zone: cloud.zone, sizeGibibytes: SIZE_GIBIBYTES, ...spec } as StorageSpec, // the rest has defaults
  })
  const online = { state: 'online', nodeName: node, sizeGibibytes: SIZE_GIBIBYTES, ...status }
  cloud.caches.of(Storage).apply(await cloud.admin.patch(Storage, keyOf(id, person), { status: online }, 'status'))
  return id
}

interface Taken extends Made {
  readonly of?: string
  readonly bootServerId?: string
  readonly isShared?: boolean
}

/** One that is online, of that storage or of a separate one. */
async function snapshot({ of, bootServerId, isShared = false, ...made }: Taken = {}) {
  const { person = owner } = made
  const [id, storageId] = [newUuid(systemRandom), of ?? (await storage(made))]
  const { accountId } = person
  await cloud.db
    .transaction()
    .execute((tx) =>
      claimSnapshot(tx, { accountId, snapshotId: id, storageId, bootServerId, isShared, sizeGibibytes: 10 }),
    )
  await cloud.admin.create(Snapshot, {
    metadata: keyOf(id, person),
    spec: { storageId, title: '', labels: {} },
  })
  const status = { state: 'online', sizeGibibytes: SIZE_GIBIBYTES, isFrozen: false }
  cloud.caches.of(Snapshot).apply(await cloud.admin.patch(Snapshot, keyOf(id, person), { status }, 'status'))
  return { id, storageId }
}

let servers = 0
/** One that is stopped; answers where. */
async function server(): Promise<{ readonly id: string; readonly node: string; readonly other: string }> {
  const { body } = await owner.send('POST', '/v1/servers', {
    body: {
      zone: cloud.zone,
      hostname: `web-${(servers += 1)}`,
      plan: 'tiny',
      template: 'tiny-linux',
      ssh_keys: [PUBLIC_KEY],
    },
  })
  const id = String(body['server']?.id ?? expect.fail(JSON.stringify(body)))
  const made = await cloud.admin.get(Server, keyOf(id))
  const { id: operationId, kind, actor, requestedAt, deadlineAt } = made?.spec.operation ?? expect.fail('no operation')
  const operation = {
    id: operationId,
    kind,
    actor,
    createdAt: requestedAt,
    deadlineAt,
    startedAt: requestedAt,
    status: 'succeeded',
    step: 'started',
    stepIndex: 3,
    stepCount: 4,
    error: '',
    finishedAt: requestedAt,
  }
  const status = { state: 'stopped', memoryMebibytes: 1_024, storageGibibytes: 3, operation }
  cloud.caches.of(Server).apply(await cloud.admin.patch(Server, keyOf(id), { status }, 'status'))
  const { node } = await cloud.db
    .selectFrom('placement')
    .select('node')
    .where('server_id', '=', id)
    .executeTakeFirstOrThrow()
  return { id, node, other: node === SECOND ? cloud.node : SECOND }
}
/** With a snapshot of what it boots from. */
async function bootServer({ isShared = false } = {}) {
  const made = await server()
  const of = await storage({ node: made.node, spec: { isBoot: true, serverId: made.id } })
  await snapshot({ of, bootServerId: made.id, isShared })
  return made
}

/** With what it boots from; `operate` begins an operation of the server. */
async function booted() {
  const made = await server()
  const of = await storage({ id: made.id, node: made.node, spec: { isBoot: true, serverId: made.id } })
  const operate = async (kind: OperationKind) => {
    const operation = { ...(await cloud.admin.get(Server, keyOf(made.id)))?.spec.operation, id: newUuid(systemRandom) }
    await cloud.admin.patch(Server, keyOf(made.id), { spec: { operation: { ...operation, kind } } })
  }
  return { ...made, of, operate }
}

const state = async () =>
  JSON.stringify(
    await Promise.all([
      cloud.db.selectFrom('storage_hold').select('holder').orderBy('holder').execute(),
      cloud.db
        .selectFrom('storage_claim')
        .select(['storage_id', 'phase', 'target_node'])
        .orderBy('storage_id')
        .execute(),
      cloud.db.selectFrom('placement_target').select('server_id').execute(),
      cloud.db.selectFrom('account_quota').select(['name', 'used']).orderBy('name').orderBy('used').execute(),
    ]),
  )

type Ask = () => Promise<Reply>
const post = (path: string, body: unknown = {}): Ask => {
  return () => owner.send('POST', path, { body })
}
const remove = (path: string): Ask => {
  return () => owner.send('DELETE', path)
}
const clone = (body: object): Ask => post('/v1/storages', body)
const IN_USE = { status: 409, reason: 'in_use' }

test('the operation of a clone names its snapshot', async () => {
  const { id } = await snapshot()
  const { status, body } = await (await clone({ source_snapshot_id: id }))()
  expect(status, JSON.stringify(body)).toBe(202)
  const { operation, storage: made } = body
  expect(operation).toMatchObject({ kind: 'storage.create', storage_id: made.id, snapshot_id: id })
  expect((await owner.send('GET', `/v1/storages/${made.id}`)).body['storage'].active_operation).toMatchObject({
    snapshot_id: id,
  })
})

describe('refused, with nothing changed', () => {
  test.each<readonly [string, () => Promise<Ask>, object]>([
    [
      'a snapshot of a storage of tier local-nvme',
      async () => post(`/v1/storages/${await storage({ spec: { tier: 'local-nvme' } })}/snapshots`),
      { status: 409, reason: 'zone_capability_missing', capability: 'snapshots' },
    ],
    [
      'a snapshot of a storage that is not online',
      async () => post(`/v1/storages/${await storage({ status: { state: 'error' } })}/snapshots`),
      { status: 409, reason: 'state_not_allowed' },
    ],
    [
      'a snapshot of what a server boots from that is being deleted',
      async () => {
        const { of, operate } = await booted()
        await operate('server.delete')
        return post(`/v1/storages/${of}/snapshots`)
      },
      { status: 409, reason: 'operation_in_progress' },
    ],
    [
      'a snapshot of what a server boots from that is being rebuilt',
      async () => {
        const { of, operate } = await booted()
        await operate('server.rebuild')
        return post(`/v1/storages/${of}/snapshots`)
      },
      { status: 409, reason: 'operation_in_progress' },
    ],
    [
      'a snapshot of what a server booted from before it was rebuilt',
      async () => {
        const { id: serverId, node } = await server()
        const of = await storage({ node, spec: { isBoot: true, serverId } })
        return post(`/v1/storages/${of}/snapshots`)
      },
      { status: 409, reason: 'state_not_allowed' },
    ],
    [
      "a snapshot of somebody else's storage",
      async () => post(`/v1/storages/${await storage({ person: stranger })}/snapshots`),
      { status: 404 },
    ],
    ['to delete a storage that has one', async () => remove(`/v1/storages/${(await snapshot()).storageId}`), IN_USE],
    [
      'to delete one of which a storage is being made',
      async () => {
        const { id } = await snapshot()
        const made = await cloud.admin.create(Storage, {
          metadata: keyOf(newUuid(systemRandom)),
          spec: { zone: cloud.zone, sizeGibibytes: 10, source: { kind: 'snapshot', id } } as StorageSpec, // defaults
        })
        cloud.caches.of(Storage).apply(made)
        return remove(`/v1/snapshots/${id}`)
      },
      IN_USE,
    ],
    [
      "to delete somebody else's",
      async () => remove(`/v1/snapshots/${(await snapshot({ person: stranger })).id}`),
      { status: 404 },
    ],
    ['to delete a server that boots from it', async () => remove(`/v1/servers/${(await bootServer()).id}`), IN_USE],
    [
      'to rebuild a server that boots from it',
      async () => post(`/v1/servers/${(await bootServer()).id}/rebuild`, { template: 'tiny-linux' }),
      IN_USE,
    ],
    [
      'to move a server with it on local disks',
      async () => post(`/v1/servers/${(await bootServer()).id}/move`),
      IN_USE,
    ],
    [
      'to move a storage that has one',
      async () => {
        const { storageId } = await snapshot({ node: cloud.node })
        return () =>
          cloud.operate('olga', 'POST', `/v1/operator/storages/${storageId}/move`, { target_node_id: SECOND })
      },
      IN_USE,
    ],
    [
      'to attach a storage with one to a server of another host',
      async () => {
        const { id, other } = await server()
        const { storageId } = await snapshot({ node: other })
        return post(`/v1/storages/${storageId}/attach`, { server_id: id })
      },
      IN_USE,
    ],
    [
      'a storage smaller than it',
      async () => clone({ source_snapshot_id: (await snapshot()).id, size_gibibytes: 9 }),
      { status: 400, errors: [{ field: 'size_gibibytes' }] },
    ],
    [
      'a storage in another zone',
      async () => clone({ source_snapshot_id: (await snapshot()).id, zone: 'elsewhere' }),
      { status: 400, errors: [{ field: 'zone' }] },
    ],
    [
      "a storage from somebody else's",
      async () => clone({ source_snapshot_id: (await snapshot({ person: stranger })).id }),
      { status: 404 },
    ],
    [
      'a storage from two sources',
      async () => {
        const { id, storageId } = await snapshot()
        return clone({ source_snapshot_id: id, source_storage_id: storageId })
      },
      { status: 400, errors: [{ field: 'source_storage_id' }] },
    ],
  ])('%s', async (_what, arrange, expected) => {
    const ask = await arrange()
    const before = await state()
    expect((await ask()).body).toMatchObject(expected)
    expect(await state()).toBe(before)
  })
})

describe('accepted', () => {
  test.each<readonly [string, () => Promise<Ask>]>([
    [
      'to move a server with it on shared storage',
      async () => post(`/v1/servers/${(await bootServer({ isShared: true })).id}/move`),
    ],
    ['to delete one that nothing is made from', async () => remove(`/v1/snapshots/${(await snapshot()).id}`)],
    ['a larger storage from it', async () => clone({ source_snapshot_id: (await snapshot()).id, size_gibibytes: 11 })],
    [
      'to attach a storage with one to a server of its host',
      async () => {
        const { id, node } = await server()
        const { storageId } = await snapshot({ node })
        return post(`/v1/storages/${storageId}/attach`, { server_id: id })
      },
    ],
  ])('%s', async (_what, arrange) => expect((await (await arrange())()).status).toBe(202))
})

test('a snapshot is claimed for the storage that was judged, whatever a cache has of it', async () => {
  const id = await storage()
  const found = (await cloud.admin.get(Storage, keyOf(id))) ?? expect.fail('no storage')
  const { accountId } = owner
  const limit = (to: string) => {
    const change = sql`update account_quota set "limit" = ${sql.raw(to)}`
    return sql`${change} where account_id = ${accountId} and name = 'snapshots'`.execute(database.db)
  }
  cloud.caches.of(Storage).apply({
    ...found,
    metadata: { ...found.metadata, resourceVersion: '999999999' },
    status: { ...found.status, state: 'error' },
  })
  await limit('used')
  const { body } = await post(`/v1/storages/${id}/snapshots`)()
  await limit('1000000')
  expect(body).toMatchObject({ status: 422, reason: 'quota_exceeded' })
})

test.each<OperationKind>(['server.delete', 'server.rebuild'])(
  'a snapshot is refused after %s at once',
  async (kind) => {
    const { id, of, operate } = await booted()
    const before = await state()
    // The snapshot has looked at the server, and waits for its turn.
    const other = await begin(cloud.db)
    await lockPlacement(other.tx, { accountId: owner.accountId, serverId: id })
    const asked = owner.send('POST', `/v1/storages/${of}/snapshots`, { body: {} })
    await until(
      'the snapshot waits',
      () => lockWaits(cloud.db),
      (waiting) => waiting > 0,
    )
    await operate(kind)
    await other.commit()
    expect(await asked).toMatchObject({ status: 409, body: { reason: 'operation_in_progress' } })
    expect(await state()).toBe(before)
  },
)

test('a snapshot waits for the deletion of its storage that is being accepted', async () => {
  const { accountId } = owner
  const id = await storage()
  // The deletion has found no snapshot, and waits to note its intent.
  const other = await begin(cloud.db)
  await sql`lock table change_intent in share row exclusive mode`.execute(other.tx)
  const deleted = owner.send('DELETE', `/v1/storages/${id}`)
  const waiting = (count: number) =>
    until(
      `${count} wait`,
      () => lockWaits(cloud.db),
      (waits) => waits >= count,
    )
  await waiting(1)
  const claim = { accountId, snapshotId: newUuid(systemRandom), storageId: id, bootServerId: undefined }
  const taken = cloud.db
    .transaction()
    .execute((tx) => claimSnapshot(tx, { ...claim, isShared: false, sizeGibibytes: SIZE_GIBIBYTES }))
    .then(
      () => 'taken',
      (error: unknown) => String(error),
    )
  expect(await Promise.race([waiting(2).then(() => 'waits'), taken])).toBe('waits')
  await other.commit()
  expect((await deleted).status).toBe(202)
  await taken
})
