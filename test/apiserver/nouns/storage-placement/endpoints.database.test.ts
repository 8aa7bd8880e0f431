/** The operators' routes about where storages lie. No controllers run: tests say what they would. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { claimStorage, findStorageClaim } from '../../../../db/storage/index.ts'
import { defined } from '../../../../domain/defined.ts'
import { makeNamespace } from '../../../../kit/kube/namespaces.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { Zone, type ZoneSpec, type ZoneStatus } from '../../../../resources/catalog/index.ts'
import { accountNamespace, accountNamespaceOf } from '../../../../resources/index.ts'
import { Node } from '../../../../resources/node/index.ts'
import { Storage, type StorageSpec, type StorageStatus } from '../../../../resources/storage/index.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person, type Reply } from '../../cloud.ts'

const database = useDatabase()
let cloud: Cloud
let owner: Person

beforeAll(async () => {
  cloud = await openCloud(database.db)
  owner = await cloud.signUp('owner@example.com')
  await makeNamespace(cloud.admin, accountNamespaceOf(owner.accountId))
  await cloud.grant('olga', [{ resources: ['nodes', 'storages', 'zones'], verbs: ['get', 'list', 'update'] }])
  await cloud.grant('nora', [{ resources: ['nodes'], verbs: ['get', 'list', 'update'] }])
})
afterAll(() => cloud.close())

let count = 0
let nodes: readonly [home: string, other: string]
beforeEach(async () => {
  count += 1
  nodes = [`home-${count}`, `other-${count}`]
})

/** A storage that is online and on the node, that no server has. */
async function storageOn(
  node: string,
  spec: Partial<StorageSpec> = {},
  status: Partial<StorageStatus> = {},
): Promise<string> {
  const [id, namespace] = [newUuid(systemRandom), accountNamespace(owner.accountId)]
  await cloud.db.transaction().execute((tx) =>
    claimStorage(
      tx,
      {
        accountId: owner.accountId,
        storageId: id,
        zone: cloud.zone,
        sizeGibibytes: 10,
        preferredNode: node,
      },
      new Date('2026-01-01'),
    ),
  )
  await cloud.admin.create(Storage, {
    metadata: { namespace, name: id },
    // the API server fills in the defaults
    spec: { zone: cloud.zone, sizeGibibytes: 10, tier: 'local-nvme', ...spec } as StorageSpec,
  })
  await cloud.admin.patch(
    Storage,
    { namespace, name: id },
    { status: { state: 'online', nodeName: node, ...status } },
    'status',
  )
  await expect.poll(() => cloud.caches.of(Storage).get({ namespace, name: id })?.status?.nodeName).toBe(node)
  return id
}
const move = (id: string, body: unknown, who = 'olga'): Promise<Reply> =>
  cloud.operate(who, 'POST', `/v1/operator/storages/${id}/move`, body)
const drain = (node: string, body: unknown = {}): Promise<Reply> =>
  cloud.operate('olga', 'POST', `/v1/operator/nodes/${node}/drain-storage`, body)
const stored = (id: string) => cloud.admin.get(Storage, { namespace: accountNamespace(owner.accountId), name: id })

describe('the storage policy of a zone', () => {
  const path = (zone: string) => `/v1/operator/zones/${zone}/storage-policy`
  const set = (zone: string, who = 'olga', body: object = { replicas: 3, failure_domain: 'host' }) =>
    cloud.operate(who, 'PUT', path(zone), body)
  const read = async (zone: string) => (await cloud.operate('olga', 'GET', path(zone))).body['storage_policy']
  const POOL = { name: 'p1', replicas: 2, failureDomain: 'host', hosts: 3, racks: 1, misplacedGroups: 0 }

  async function zoneWith(sharedStorage?: ZoneSpec['sharedStorage'], pools: readonly string[] = ['p1']) {
    const zone = `policy-${count}`
    const spec = { displayName: zone, region: 'eu-1', isClosed: false, capabilities: [] }
    await cloud.admin.create(Zone, {
      metadata: { name: zone },
      spec: { ...spec, ...defined({ sharedStorage }) },
    })
    await cloud.admin.create(Node, { metadata: { name: nodes[0] }, spec: Node.spec.parse({ zone }) })
    const node = await cloud.admin.patch(Node, { name: nodes[0] }, { status: { state: 'ready', pools } }, 'status')
    cloud.caches.of(Node).apply(node)
    return zone
  }
  const report = (zone: string, sharedStorage: NonNullable<ZoneStatus['sharedStorage']>) =>
    cloud.admin.patch(Zone, { name: zone }, { status: { sharedStorage } }, 'status')
  const answered = { readAt: '2026-01-01T00:00:00Z', detail: '', pools: [POOL] }
  const CEPH = { protocol: 'ceph', secretName: 'policy' } as const

  test('is that of its administrator where the platform is a client only', async () => {
    expect((await set('nowhere')).status).toBe(404)
    expect((await set(await zoneWith(undefined, []))).body).toMatchObject({
      status: 409,
      reason: 'zone_capability_missing',
    })
    nodes = [`second-${count}`, nodes[1]]
    count += 1_000
    const zone = await zoneWith()
    expect(await read(zone)).toEqual({ zone, pools: ['p1'], replicas: null, failure_domain: null })
    expect((await set(zone)).body).toMatchObject({ status: 501, detail: expect.stringContaining('p1') })
    expect((await set(zone, 'nora')).status).toBe(403)
  })

  test('is refused with the reason, and nothing is changed', async () => {
    const zone = await zoneWith(CEPH, ['p1', 'folder'])
    expect((await set(zone)).body).toMatchObject({ status: 503, reason: 'host_unreachable' })
    await report(zone, { ...answered, detail: 'silent' })
    expect((await set(zone)).body).toMatchObject({ status: 503, detail: expect.stringContaining('silent') })
    await report(zone, answered)
    expect((await set(zone)).body).toMatchObject({ status: 501, detail: expect.stringContaining('folder') })
    const only = { replicas: 3, failure_domain: 'rack', pools: ['p1'] }
    expect((await set(zone, 'olga', only)).body).toMatchObject({
      status: 409,
      reason: 'state_not_allowed',
      detail: expect.stringContaining('1 rack'),
    })
    expect((await set(zone, 'olga', { ...only, pools: ['p9'] })).body).toMatchObject({
      status: 400,
      errors: [{ field: 'pools' }],
    })
    expect((await set(zone, 'olga', { ...only, replicas: 4 })).status).toBe(400)
    expect((await cloud.admin.get(Zone, { name: zone }))?.spec).toMatchObject({ sharedStorage: CEPH })
    expect((await cloud.admin.get(Zone, { name: zone }))?.spec.operation).toBeUndefined()
  })

  test('is an operation of the zone, and in the log of operators', async () => {
    const zone = await zoneWith({ ...CEPH, policy: { replicas: 2, failureDomain: 'host', pools: ['p1'] } })
    await report(zone, answered)
    expect(await read(zone)).toEqual({ zone, pools: ['p1'], replicas: 2, failure_domain: 'host' })
    const reply = await set(zone)
    expect(reply.body['operation']).toMatchObject({
      kind: 'storage.rebalance_policy',
      status: 'pending',
      step: 'applied',
      step_count: 2,
    })
    expect((await cloud.admin.get(Zone, { name: zone }))?.spec.sharedStorage).toEqual({
      ...CEPH,
      policy: { replicas: 3, failureDomain: 'host' },
    })
    expect(await cloud.staffAuditOf(reply)).toMatchObject([{ action: 'storage.rebalance_policy', resource_id: zone }])
    expect((await set(zone)).body).toMatchObject({ status: 409, reason: 'operation_in_progress' })
  })
})

describe('moving a storage', () => {
  test('writes its operation, which names where it comes from, and is in both logs', async () => {
    for (const node of nodes) await cloud.addNode(node)
    const id = await storageOn(nodes[0])
    const reply = await move(id, { target_node_id: nodes[1] })
    expect(reply.status).toBe(202)
    expect(reply.body['operation']).toMatchObject({
      kind: 'storage.move',
      storage_id: id,
      status: 'pending',
      step: 'reserved',
      step_count: 3,
    })
    expect((await stored(id))?.spec.operation).toMatchObject({
      kind: 'storage.move',
      arguments: { source_node_id: nodes[0], target_node_id: nodes[1] },
    })
    expect(await cloud.staffAuditOf(reply)).toMatchObject([{ action: 'storage.move', resource_id: id }])
    // the operators' log and the chain of the account
    expect((await cloud.auditOf(reply)).map(({ action }) => action)).toEqual(['storage.move', 'storage.move'])
    // what it holds, the controller takes
    const claim = await findStorageClaim(cloud.db, { accountId: owner.accountId, storageId: id })
    expect(claim).toMatchObject({ node: nodes[0], targetNode: undefined })
    expect((await move(id, { target_node_id: nodes[1] })).body).toMatchObject({
      status: 409,
      reason: 'operation_in_progress',
    })
  })

  test('is refused with what to do instead, and changes nothing', async () => {
    await cloud.addNode(nodes[0])
    await cloud.addNode(nodes[1], { room: { storageGibibytes: 5 } })
    const id = await storageOn(nodes[0])
    const refusals = [
      [{}, 400, {}],
      [{ target_node_id: 'nowhere' }, 400, { errors: [{ field: 'target_node_id' }] }],
      [{ target_node_id: nodes[0] }, 400, { errors: [{ field: 'target_node_id' }] }],
      [{ target_node_id: nodes[1] }, 503, { reason: 'no_capacity' }],
      [{ tier: 'local-nvme' }, 400, { errors: [{ field: 'tier' }] }],
    ] as const
    for (const [body, status, problem] of refusals)
      expect((await move(id, body)).body).toMatchObject({ status, ...problem })
    expect((await stored(id))?.spec.operation).toBeUndefined()
    expect((await move('nobody', { tier: 'standard' })).status).toBe(404)
    expect((await move(id, { tier: 'standard' }, 'nora')).status).toBe(403)
    const busy = await storageOn(nodes[0], {}, { state: 'restoring' })
    expect((await move(busy, { target_node_id: nodes[1] })).body).toMatchObject({
      status: 409,
      reason: 'state_not_allowed',
    })
  })

  test('to shared storage needs a node that reaches it', async () => {
    await cloud.addNode(nodes[0])
    await cloud.addNode(nodes[1])
    const id = await storageOn(nodes[0])
    await cloud.addNode(`shared-${count}`, { status: { pools: ['p1'] } })
    expect((await move(id, { target_node_id: nodes[1], tier: 'standard' })).body).toMatchObject({
      status: 409,
      detail: expect.stringContaining('does not reach the shared storage'),
    })
    const reply = await move(id, { target_node_id: `shared-${count}`, tier: 'standard' })
    expect(reply.status).toBe(202)
    expect((await stored(id))?.spec).toMatchObject({
      tier: 'local-nvme', // until it has arrived
      operation: { arguments: { tier: 'standard', target_node_id: `shared-${count}` } },
    })
  })
})

describe('draining the storages of a node', () => {
  test('cordons it and gives the moves so many hours', async () => {
    for (const node of nodes) await cloud.addNode(node)
    await storageOn(nodes[0])
    const reply = await drain(nodes[0], { deadline_hours: 3 })
    expect(reply.status).toBe(202)
    expect(reply.body['operation']).toMatchObject({ kind: 'storage.drain_host', node_id: nodes[0], step: 'cordoned' })
    const { operation, isCordoned } = (await cloud.admin.get(Node, { name: nodes[0] }))?.spec ?? {}
    expect(isCordoned).toBe(true)
    const hours = (Date.parse(operation?.deadlineAt ?? '') - Date.parse(operation?.requestedAt ?? '')) / 3_600_000
    expect(hours).toBe(3)
    expect(await cloud.staffAuditOf(reply)).toMatchObject([{ action: 'storage.drain_host', resource_id: nodes[0] }])
  })

  test('is refused where the zone has no room for them', async () => {
    await cloud.addNode(nodes[0])
    await storageOn(nodes[0])
    await cloud.db.updateTable('node_capacity').set({ is_schedulable: false }).where('node', '!=', nodes[0]).execute()
    expect((await drain(nodes[0])).body).toMatchObject({ status: 503, reason: 'no_capacity' })
    expect((await cloud.admin.get(Node, { name: nodes[0] }))?.spec).toMatchObject({ isCordoned: false })
  })
})
