/** Hosts of control planes as operators see them. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createKubernetesCluster } from '../../../resources/kubernetes-cluster/index.ts'
import { bootstrapKubernetesHost } from '../../../resources/kubernetes-host/index.ts'
import { useDatabase } from '../../database.ts'
import { type Cloud, openCloud } from '../cloud.ts'

const database = useDatabase()
const PATH = '/v1/operator/kubernetes-hosts'
let cloud: Cloud

beforeAll(async () => {
  cloud = await openCloud(database.db)
  await cloud.grant('olga', [{ resources: ['regions'], verbs: ['get', 'list', 'update'] }])
  await cloud.grant('rene', [{ resources: ['regions'], verbs: ['get', 'list'] }])
})
afterAll(() => cloud.close())

const hosts = async (query = '') => (await cloud.operate('rene', 'GET', `${PATH}${query}`)).body['items']

test('a host has one id for good, counts its clusters, and says what it has room for', async () => {
  const [first] = await hosts()
  expect(first).toMatchObject({
    ...{ region: 'eu-1', zones: expect.arrayContaining([cloud.zone]), version: '1.36.3', state: 'ready' },
    ...{ node_count: 1, clusters_hosted: 0, clusters_capacity: 333_333, etcd_capacity_bytes: 1_000_000_000 },
  })
  const owner = await cloud.signUp('owner@example.com')
  const network = { zone: cloud.zone, name: 'back', ipv4_cidr: '10.1.0.0/24' }
  const networkId = (await owner.send('POST', '/v1/networks', { body: network })).body['network'].id
  const cluster = { ...createKubernetesCluster.example, zone: cloud.zone, network_id: networkId }
  expect((await owner.send('POST', '/v1/kubernetes-clusters', { body: cluster })).status).toBe(202)

  const again = await cloud.operate('rene', 'GET', `${PATH}/${first.id}`)
  expect(again.body['kubernetes_host']).toEqual({ ...first, clusters_hosted: 1, clusters_capacity: 333_334 })
  expect(await hosts('?region=eu-1')).toHaveLength(1)
  expect(await hosts('?region=us-1')).toEqual([])
  expect((await cloud.operate('rene', 'GET', `${PATH}/nobody`)).status).toBe(404)
})

test('a host that does not answer is listed as such', async () => {
  cloud.controlPlanes.isAway = true
  const [host] = await hosts()
  cloud.controlPlanes.isAway = false
  expect(host).toMatchObject({
    ...{ state: 'error', version: null, node_count: 0, etcd_capacity_bytes: 0, clusters_hosted: 1 },
  })
})

test('each region has a host of its own, which answers for itself', async () => {
  cloud.otherControlPlanes.isAway = true
  const states = async () => (await hosts()).map(({ region, state }: Record<string, string>) => [region, state])
  expect(await states()).toEqual([
    ['eu-1', 'ready'],
    ['eu-2', 'error'],
  ])
  cloud.otherControlPlanes.isAway = false
  expect(await states()).toEqual([
    ['eu-1', 'ready'],
    ['eu-2', 'ready'],
  ])
})

test('none is made where there is one, nor for places that are not', async () => {
  const ask = (more: object, who = 'olga') =>
    cloud.operate(who, 'POST', PATH, { ...bootstrapKubernetesHost.example, plan: 'tiny', zones: [cloud.zone], ...more })
  const detailOf = async (more: object) => {
    const { status, body } = await ask(more)
    return [status, body['detail']]
  }
  const refused = await ask({})
  expect([refused.status, refused.body['detail']]).toEqual([409, 'Region eu-1 has a host of control planes.'])
  expect(await cloud.staffAuditOf(refused)).toMatchObject([{ action: 'kubernetes_host.bootstrap' }])
  expect(await detailOf({ region: 'us-1' })).toEqual([400, 'region: there is no region us-1'])
  expect(await detailOf({ zones: ['us-1a'] })).toEqual([400, 'zones: us-1a is no zone of region eu-1'])
  expect(await detailOf({ plan: 'huge' })).toEqual([400, 'plan: there is no plan huge'])
  expect((await ask({}, 'rene')).status).toBe(403)
})
