/** Managed Kubernetes clusters through the API. No controllers run: tests say what they would. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  createClusterToken,
  findCluster,
  recordClusterSnapshot,
  releaseCluster,
} from '../../../../db/kubernetes-cluster/index.ts'
import { defined } from '../../../../domain/defined.ts'
import { newBase62, newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { formatClusterToken } from '../../../../kit/sys/token-format.ts'
import { Zone } from '../../../../resources/catalog/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { KubernetesCluster } from '../../../../resources/kubernetes-cluster/index.ts'
import { Price } from '../../../../resources/price/index.ts'
import { useDatabase } from '../../../database.ts'
import { until } from '../../../eventually.ts'
import { type Cloud, openCloud, type Person } from '../../cloud.ts'

const database = useDatabase()
let cloud: Cloud
let owner: Person
let networkId: string
let count = 0

beforeAll(async () => {
  cloud = await openCloud(database.db)
  owner = await cloud.signUp('owner@example.com')
  const body = { zone: cloud.zone, name: 'back', ipv4_cidr: '10.1.0.0/24' }
  networkId = (await owner.send('POST', '/v1/networks', { body })).body['network'].id
})
afterAll(() => cloud.close())

const keyOf = (id: string) => ({ namespace: accountNamespace(owner.accountId), name: id })
const pathOf = (id: string, rest = '') => `/v1/kubernetes-clusters/${id}${rest}`
const make = (more: object = {}) =>
  owner.send('POST', '/v1/kubernetes-clusters', {
    body: { zone: cloud.zone, name: `shop-${++count}`, network_id: networkId, ...more },
  })

async function made(more: object = {}): Promise<string> {
  const reply = await make(more)
  expect(reply.status, JSON.stringify(reply.body)).toBe(202)
  return reply.body['kubernetes_cluster'].id
}

/** What its controller says when it has come about. */
async function finish(id: string, more: object = {}): Promise<void> {
  const operation = (await cloud.admin.get(KubernetesCluster, keyOf(id)))?.spec.operation
  if (operation === undefined) throw new Error(`${id} has no operation`)
  const { requestedAt, deadlineAt, actor, kind } = operation
  const progress = { id: operation.id, kind, actor, deadlineAt, createdAt: requestedAt, error: '' }
  const ended = { ...progress, status: 'succeeded', step: 'control_plane', stepIndex: 2, stepCount: 2 }
  const status = { isMade: true, version: '1.35', kubernetesVersion: '1.35.4', operation: ended, ...more }
  await cloud.admin.patch(KubernetesCluster, keyOf(id), { status }, 'status')
}

async function remove(id: string): Promise<void> {
  await cloud.admin.patch(KubernetesCluster, keyOf(id), { metadata: { finalizers: null } })
  await cloud.admin.delete(KubernetesCluster, keyOf(id))
  await database.db.transaction().execute((tx) => releaseCluster(tx, { accountId: owner.accountId, clusterId: id }))
}

test('versions say their price, their end and where they lead', async () => {
  const spec = { resourceType: 'kubernetes_cluster', plan: '', monthlyMillicents: 2_000_000 }
  await cloud.admin.create(Price, { metadata: { name: 'kube' }, spec: { ...spec, validFrom: '2026-01-01T00:00:00Z' } })
  await cloud.admin.create(Price, {
    metadata: { name: 'kube-later' },
    spec: { ...spec, monthlyMillicents: 9_000_000, validFrom: '2099-01-01T00:00:00Z' },
  })
  const items = await until(
    'the price',
    async () => (await owner.send('GET', '/v1/kubernetes-clusters/versions')).body['items'],
    ([first]) => first.control_plane_price_monthly_cents > 0,
  )
  expect(items).toEqual([
    {
      version: '1.36',
      kubernetes_version: '1.36.3',
      status: 'supported',
      is_default: true,
      upgradable_to: [],
      end_of_life_at: '2027-06-28T00:00:00.000Z',
      control_plane_price_monthly_cents: 2_000,
    },
    {
      version: '1.35',
      kubernetes_version: '1.35.4',
      status: 'supported',
      is_default: false,
      upgradable_to: ['1.36'],
      end_of_life_at: '2027-02-28T00:00:00.000Z',
      control_plane_price_monthly_cents: 2_000,
    },
  ])
})

test('what cannot be made is refused, and nothing is claimed', async () => {
  const nodes = await make({ node_pools: [{ name: 'a', plan: 'tiny', count: 1 }] })
  expect([nodes.status, nodes.body['reason']], 'without an image for nodes').toEqual([409, 'zone_capability_missing'])
  cloud.controlPlanes.isAway = true
  expect((await make()).status).toBe(503)
  cloud.controlPlanes.isAway = false
  expect(await database.db.selectFrom('kubernetes_cluster').select('id').execute()).toEqual([])
})

test('a zone without control planes says why', async () => {
  const tell = (status: object) => cloud.admin.patch(Zone, { name: cloud.zone }, { status }, 'status')
  await tell({ kubernetesReleases: null, kubernetesObstacle: 'the programs are not built' })
  const reply = await until('the refusal', make, ({ status }) => status === 409)
  expect(reply.body).toMatchObject({
    reason: 'zone_capability_missing',
    detail: expect.stringContaining('are not built'),
  })
  await tell({ kubernetesReleases: ['1.35.4', '1.36.3'], kubernetesObstacle: null })
  await until(
    'clusters to be offered',
    async () => (await owner.send('GET', '/v1/kubernetes-clusters/versions')).body['items'].length,
    (length) => length === 2,
  )
})

test('a cluster of a name is one, within the quota, and keeps its network', async () => {
  const id = await made({ name: 'twice', labels: { tier: 'front' }, version: '1.35' })
  expect((await owner.send('GET', pathOf(id))).body['kubernetes_cluster']).toMatchObject({
    id,
    name: 'twice',
    state: 'creating',
    region: 'eu-1',
    version: '1.35',
    node_pools: [],
    endpoint: null,
    labels: { tier: 'front' },
    platform: { state: 'unlinked' },
    etcd_snapshot_schedule: '0 */6 * * *',
  })
  const twice = await make({ name: 'twice' })
  expect([twice.status, twice.body['reason']]).toEqual([409, 'name_taken'])
  const network = await owner.send('DELETE', `/v1/networks/${networkId}`)
  expect([network.status, network.body['resource']]).toEqual([409, { type: 'kubernetes_cluster', id }])
  const others = [await made(), await made(), await made(), await made()]
  const sixth = await make()
  expect([sixth.status, sixth.body['reason']]).toEqual([422, 'quota_exceeded'])
  for (const each of [id, ...others]) await remove(each)
})

test('the reason for waiting is reported: no access, snapshot or upgrade before it runs', async () => {
  const id = await made()
  for (const [method, rest, body] of [
    ['GET', '/kubeconfig', undefined],
    ['GET', '/token', undefined],
    ['POST', '/snapshots', {}],
    ['POST', '/upgrade', { version: '1.36' }],
    ['POST', '/restore', { snapshot_id: newUuid(systemRandom) }],
    ['POST', '/platform/register', undefined],
  ] as const)
    expect([rest, (await owner.send(method, pathOf(id, rest), body === undefined ? {} : { body })).status]).toEqual([
      rest,
      409,
    ])
  await remove(id)
})

test('upgrades go one minor version at a time', async () => {
  const id = await made({ version: '1.35' })
  await finish(id)
  const upgrade = (version: string) => owner.send('POST', pathOf(id, '/upgrade'), { body: { version } })
  expect((await upgrade('1.34')).body['detail']).toContain('not offered')
  expect((await upgrade('1.35')).body['detail']).toContain('nothing newer')
  const begun = await upgrade('1.36')
  expect([begun.status, begun.body['operation'].kind]).toEqual([202, 'kubernetes_cluster.upgrade'])
  expect((await upgrade('1.36')).body['reason']).toBe('operation_in_progress')
  expect((await owner.send('GET', pathOf(id))).body['kubernetes_cluster'].state).toBe('upgrading')
  await remove(id)
})

test('only its own snapshots bring a cluster back, and none of a newer version', async () => {
  const [id, other] = [await made({ version: '1.35' }), await made({ version: '1.35' })]
  await finish(id)
  const restore = (snapshotId: string) =>
    owner.send('POST', pathOf(id, '/restore'), { body: { snapshot_id: snapshotId } })
  const keep = async (clusterId: string, release: string) => {
    const snapshot = {
      id: newUuid(systemRandom),
      kind: 'manual',
      release,
      sizeBytes: 7,
      createdAt: new Date(),
    } as const
    await recordClusterSnapshot(database.db, { accountId: owner.accountId, clusterId }, snapshot)
    return snapshot.id
  }
  const [foreign, newer, own] = [await keep(other, '1.35.4'), await keep(id, '1.36.3'), await keep(id, '1.35.4')]
  expect((await restore(foreign)).status).toBe(404)
  expect((await restore(newer)).status).toBe(400)
  expect((await owner.send('GET', pathOf(id, '/snapshots'))).body['items']).toHaveLength(2)
  const begun = await restore(own)
  expect([begun.status, begun.body['operation'].kind]).toEqual([202, 'kubernetes_cluster.restore'])
  expect((await owner.send('GET', pathOf(id))).body['kubernetes_cluster'].state).toBe('restoring')
  for (const each of [id, other]) await remove(each)
})

test('a token is for one cluster, and its reading is in the audit log', async () => {
  const id = await made()
  await finish(id, { endpoint: 'https://127.0.0.1:1', certificateAuthority: 'pem' })
  const reply = await owner.send('GET', pathOf(id, '/token'))
  const [, payload = ''] = String(reply.body['token']).split('.')
  const claim = await findCluster(database.db, { accountId: owner.accountId, clusterId: id })
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
  expect(claims).toMatchObject({ aud: claim?.controlPlaneId, account_role: 'owner', iss: expect.any(String) })
  expect(claims.exp - claims.iat).toBe(900)
  expect((await cloud.auditOf(reply)).map(({ action }) => action)).toEqual(['kubernetes_cluster.token'])
  // Nobody gets into what is simulated.
  await finish(id, { isSimulated: true })
  expect((await owner.send('GET', pathOf(id, '/kubeconfig'))).status).toBe(409)
  await remove(id)
})

test('a protected cluster is not deleted', async () => {
  const id = await made({ is_protected: true })
  await finish(id)
  expect((await owner.send('DELETE', pathOf(id))).body['reason']).toBe('protected')
  const update = (body: object) => owner.send('PATCH', pathOf(id), { body })
  expect((await update({ is_protected: false })).body['kubernetes_cluster'].is_protected).toBe(false)
  expect((await update({ is_protected: true, etcd_snapshot_schedule: '0 3 * * *' })).status).toBe(200)
  expect((await update({ etcd_snapshot_schedule: 'never' })).status).toBe(400)
  const refused = await owner.send('DELETE', pathOf(id))
  expect([refused.status, refused.body['reason']]).toEqual([409, 'protected'])
  await update({ is_protected: false })
  expect((await owner.send('DELETE', pathOf(id))).body['operation'].kind).toBe('kubernetes_cluster.delete')
  expect((await owner.send('GET', pathOf(id))).body['kubernetes_cluster'].state).toBe('deleting')
  await remove(id)
})

test('a token of a cluster is for what its add-on does, is nobody, and dies with it', async () => {
  const id = await made()
  const [token, old] = [
    formatClusterToken(newBase62(systemRandom, 40)),
    formatClusterToken(newBase62(systemRandom, 40)),
  ]
  const give = (text: string, expiresAt: Date) =>
    createClusterToken(
      database.db,
      { accountId: owner.accountId, clusterId: id },
      {
        id: newUuid(systemRandom),
        program: 'csi-driver',
        token: text,
        scopes: ['storages'],
        createdAt: new Date(),
        expiresAt,
      },
    )
  await give(token, new Date(Date.now() + 3_600_000))
  await give(old, new Date(Date.now() - 1_000))
  const send = (method: string, path: string, body?: object, as = token) =>
    owner.send(method, path, {
      headers: { cookie: undefined, 'x-csrf-token': undefined, authorization: `Bearer ${as}` },
      ...defined({ body }),
    })
  const storage = await send('POST', '/v1/storages', { zone: cloud.zone, size_gibibytes: 1, title: 'default/data' })
  expect([storage.status, storage.body['operation']?.actor]).toEqual([202, `token:kubernetes-cluster/${id}/csi-driver`])
  expect(await cloud.auditOf(storage)).toMatchObject([
    {
      action: 'storage.create',
      actor_kind: 'token',
      user_id: null,
      actor_email: '',
      outcome: 'success',
      token_name: `kubernetes-cluster/${id}/csi-driver`,
    },
  ])
  // Not even what it is a part of, nor anything else that its account may.
  for (const [method, path] of [
    ['GET', pathOf(id)],
    ['GET', pathOf(id, '/kubeconfig')],
    ['GET', '/v1/load-balancers'],
    ['POST', '/v1/servers'],
    ['GET', '/v1/audit'],
    ['POST', '/mcp'],
  ] as const)
    expect([path, (await send(method, path, method === 'POST' ? {} : undefined)).status]).toEqual([path, 403])
  expect((await send('GET', '/v1/storages', undefined, old)).status).toBe(401)
  const rows = JSON.stringify(await database.db.selectFrom('kubernetes_token').selectAll().execute())
  expect(rows).not.toContain(token.slice(11, 40))
  await remove(id)
  await until(
    'the end of the token',
    () => send('GET', '/v1/storages'),
    ({ status }) => status === 401,
  )
})
