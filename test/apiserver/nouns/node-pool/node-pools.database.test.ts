/** Node pools through the API. No controllers run: tests say what they would. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { listQuotas } from '../../../../db/account/index.ts'
import { releaseNodePool } from '../../../../db/node-pool/index.ts'
import { Plan, Zone } from '../../../../resources/catalog/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { KubernetesCluster } from '../../../../resources/kubernetes-cluster/index.ts'
import { NodePool } from '../../../../resources/node-pool/index.ts'
import { useDatabase } from '../../../database.ts'
import { until } from '../../../eventually.ts'
import { type Cloud, openCloud, type Person } from '../../cloud.ts'

const database = useDatabase()
let cloud: Cloud
let owner: Person
let networkId: string
let clusterId: string

const PLAN = {
  family: 'starter',
  cores: 1,
  memoryMebibytes: 2_048,
  storageGibibytes: 10,
  priceMonthlyCents: 500,
} as const

beforeAll(async () => {
  cloud = await openCloud(database.db)
  owner = await cloud.signUp('owner@example.com')
  await cloud.admin.apply(Plan, { metadata: { name: 'worker' }, spec: PLAN })
  const network = { zone: cloud.zone, name: 'back', ipv4_cidr: '10.1.0.0/24' }
  networkId = (await owner.send('POST', '/v1/networks', { body: network })).body['network'].id
  const cluster = { zone: cloud.zone, name: 'shop', network_id: networkId, version: '1.35' }
  const reply = await owner.send('POST', '/v1/kubernetes-clusters', { body: cluster })
  clusterId = reply.body['kubernetes_cluster'].id
  const missing = await make()
  expect([missing.status, missing.body['reason'], missing.body['detail']]).toEqual([
    409,
    'zone_capability_missing',
    expect.stringMatching(/no image for nodes.*sudo npm run image:kubernetes/),
  ])
  const status = { builtTemplates: ['kubernetes-node'] }
  await cloud.admin.patch(Zone, { name: cloud.zone }, { status }, 'status')
  await until(
    'nodes to be offered',
    () => make({ plan: 'none' }),
    ({ status: is }) => is === 400,
  )
})
afterAll(() => cloud.close())

const poolsPath = (id = clusterId) => `/v1/kubernetes-clusters/${id}/node-pools`
const make = (more: object = {}, id = clusterId) =>
  owner.send('POST', poolsPath(id), { body: { name: 'web', plan: 'worker', count: 2, ...more } })
const keyOf = (id: string) => ({ namespace: accountNamespace(owner.accountId), name: id })
const poolsOf = async (id = clusterId) =>
  (await owner.send('GET', `/v1/kubernetes-clusters/${id}`)).body['kubernetes_cluster'].node_pools
const used = async (quota: string) =>
  (await listQuotas(database.db, owner.accountId)).find(({ name }) => name === quota)?.used

async function made(more: object = {}): Promise<string> {
  const reply = await make(more)
  expect(reply.status, JSON.stringify(reply.body)).toBe(202)
  return reply.body['node_pool'].id
}

/** What its controller says when it has come about. */
async function finish(id: string): Promise<void> {
  const operation = (await cloud.admin.get(NodePool, keyOf(id)))?.spec.operation
  if (operation === undefined) throw new Error(`${id} has no operation`)
  const { requestedAt, deadlineAt, actor, kind } = operation
  const progress = { id: operation.id, kind, actor, deadlineAt, createdAt: requestedAt, error: '' }
  const ended = { ...progress, status: 'succeeded', step: 'drained', stepIndex: 4, stepCount: 4 }
  await cloud.admin.patch(NodePool, keyOf(id), { status: { isMade: true, operation: ended } }, 'status')
}

async function remove(id: string): Promise<void> {
  await cloud.admin.patch(NodePool, keyOf(id), { metadata: { finalizers: null } })
  await cloud.admin.delete(NodePool, keyOf(id))
  const pool = { accountId: owner.accountId, nodePoolId: id }
  await database.db.transaction().execute((tx) => releaseNodePool(tx, pool))
}

test('what cannot be made is refused, and nothing is claimed', async () => {
  const refusals = [
    [{ name: 'A' }, 400, undefined],
    [{ plan: 'none' }, 400, undefined],
    [{ plan: 'tiny' }, 400, undefined],
    [{ zones: [cloud.zone, 'another'] }, 400, undefined],
    [{ labels: { 'kubernetes.io/hostname': 'x' } }, 400, undefined],
    [{ labels: { tier: 'not a value' } }, 400, undefined],
    [{ taints: [{ key: 'a', value: '', effect: 'Never' }] }, 400, undefined],
    [{ count: 101 }, 400, undefined],
    [{ count: 4, autoscaling: { min: 1, max: 3 } }, 400, undefined],
    [{ autoscaling: { min: 4, max: 3 } }, 400, undefined],
    [{ count: 26 }, 422, 'quota_exceeded'],
  ] as const
  for (const [more, status, reason] of refusals) {
    const reply = await make(more)
    expect([more, reply.status, reply.body['reason']]).toEqual([more, status, reason])
  }
  expect((await make({}, 'none')).status).toBe(404)
  cloud.controlPlanes.nodesObstacle = 'servers do not reach the host of control planes'
  expect((await make()).body['detail']).toContain('servers do not reach')
  cloud.controlPlanes.nodesObstacle = ''
  expect([await used('node_pools'), await used('servers'), await poolsOf()]).toEqual([0, 0, []])
})

test('a pool is shown with its cluster, is one of its name, and its making is in the audit log', async () => {
  const reply = await make({ labels: { tier: 'front' }, taints: [{ key: 'only', value: 'web', effect: 'NoSchedule' }] })
  const { node_pool: pool, operation } = reply.body as Record<string, Record<string, unknown>>
  expect(reply.status).toBe(202)
  expect(operation).toMatchObject({ kind: 'node_pool.sync', node_pool_id: pool?.['id'], step: 'claimed' })
  expect(await poolsOf()).toMatchObject([
    {
      id: pool?.['id'],
      cluster_id: clusterId,
      name: 'web',
      plan: 'worker',
      count: 2,
      zones: [cloud.zone],
      version: '1.35',
      state: 'creating',
      nodes: [],
      autoscaling: null,
      public_ipv4: false,
      max_unavailable: 1,
      labels: { tier: 'front' },
      taints: [{ key: 'only', value: 'web', effect: 'NoSchedule' }],
    },
  ])
  expect(await cloud.auditOf(reply)).toMatchObject([{ action: 'node_pool.create', resource_id: pool?.['id'] }])
  const twice = await make()
  expect([twice.status, twice.body['reason']]).toEqual([409, 'name_taken'])
  expect(await used('node_pools')).toBe(1)
  await remove(String(pool?.['id']))
})

test('one pool is read by its cluster and id, as its cluster shows it', async () => {
  const id = await made()
  const read = (cluster: string, pool: string) => owner.send('GET', `${poolsPath(cluster)}/${pool}`)
  const reply = await read(clusterId, id)
  expect([reply.status, reply.body]).toEqual([200, { node_pool: (await poolsOf())[0] }])
  expect(reply.headers['etag']).toMatch(/^"\d+"$/)
  expect((await read(clusterId, 'none')).status).toBe(404)
  expect((await read('none', id)).status).toBe(404)
  await remove(id)
})

test('a change starts an operation, one at a time, and no version exceeds that of the control plane', async () => {
  const id = await made()
  const update = (body: object, poolId = id) => owner.send('PATCH', `${poolsPath()}/${poolId}`, { body })
  expect((await update({ count: 3 })).body['reason']).toBe('operation_in_progress')
  await finish(id)
  expect((await update({ version: '1.36' })).status).toBe(400)
  expect((await update({ count: 4, autoscaling: { min: 1, max: 3 } })).status).toBe(400)
  // Bounds that leave out what there is bring it within them.
  const bounds = await update({ autoscaling: { min: 1, max: 1 } })
  expect(bounds.body['node_pool']).toMatchObject({ count: 1, autoscaling: { min: 1, max: 1 } })
  expect((await cloud.auditOf(bounds))[0]).toMatchObject({
    changes: [
      { field: 'count', before: 2, after: 1 },
      { field: 'autoscaling', before: null, after: { min: 1, max: 1 } },
    ],
  })
  await finish(id)
  expect((await update({ count: 2 })).status).toBe(400)
  const without = await update({ count: 2, autoscaling: null })
  expect(without.body['node_pool']).toMatchObject({ count: 2, autoscaling: null })
  await finish(id)
  expect((await update({ count: 40 })).body['reason']).toBe('quota_exceeded')
  expect((await update({ count: 1 }, 'none')).status).toBe(404)
  const scaled = await update({ count: 3, labels: { tier: 'back' } })
  expect(scaled.body).toMatchObject({
    node_pool: { count: 3, labels: { tier: 'back' }, state: 'scaling' },
    operation: { kind: 'node_pool.sync', node_pool_id: id },
  })
  expect(await cloud.auditOf(scaled)).toMatchObject([
    {
      action: 'node_pool.update',
      resource_id: id,
      changes: [
        { field: 'count', before: 2, after: 3 },
        { field: 'labels', before: {}, after: { tier: 'back' } },
      ],
    },
  ])
  await finish(id)
  await cloud.admin.patch(KubernetesCluster, keyOf(clusterId), { status: { kubernetesVersion: '1.36.3' } }, 'status')
  const upgraded = await until(
    'the newer control plane',
    () => update({ version: '1.36' }),
    ({ status }) => status === 202,
  )
  expect(upgraded.body['node_pool']).toMatchObject({ version: '1.36', state: 'upgrading' })
  // It can be deleted whatever is done with it, by the path of its cluster only.
  const another = { zone: cloud.zone, name: 'other', network_id: networkId }
  const other = (await owner.send('POST', '/v1/kubernetes-clusters', { body: another })).body['kubernetes_cluster'].id
  expect((await owner.send('DELETE', `${poolsPath(other)}/${id}`)).status).toBe(404)
  const deleted = await owner.send('DELETE', `${poolsPath()}/${id}`)
  expect([deleted.status, deleted.body['operation'].kind]).toEqual([202, 'node_pool.delete'])
  expect((await owner.send('DELETE', `${poolsPath()}/${id}`)).body['reason']).toBe('operation_in_progress')
  expect((await poolsOf())[0].state).toBe('deleting')
  await remove(id)
})

test('a cluster is made with its pools, or not at all', async () => {
  const pool = (more: object) => ({ name: 'web', plan: 'worker', count: 1, ...more })
  const send = (pools: readonly object[]) =>
    owner.send('POST', '/v1/kubernetes-clusters', {
      body: { zone: cloud.zone, name: 'both', network_id: networkId, node_pools: pools },
    })
  const clusters = await used('kubernetes_clusters')
  const twice = await send([pool({}), pool({})])
  expect([twice.status, twice.body['errors']?.[0]?.field ?? twice.body['detail']]).toEqual([
    400,
    expect.stringContaining('node_pools.1.name'),
  ])
  expect((await send([pool({}), pool({ name: 'big', count: 26 })])).status).toBe(422)
  expect(await used('kubernetes_clusters')).toBe(clusters)
  const both = await send([pool({}), pool({ name: 'jobs', count: 0 })])
  expect(both.body['node_pools']).toMatchObject([
    { name: 'web', state: 'creating', active_operation: { kind: 'node_pool.sync' } },
    { name: 'jobs', count: 0 },
  ])
  expect(await cloud.auditOf(both)).toMatchObject([
    { action: 'kubernetes_cluster.create', detail: { name: 'both', node_pools: 'web,jobs' } },
  ])
})
