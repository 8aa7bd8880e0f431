/** Hosts of control planes as operators see them. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { KUBERNETES_NODE_TEMPLATE } from '../../../../domain/managed-machine/rules.ts'
import { mirrorNode } from '../../../../db/placement/index.ts'
import { createKubernetesCluster } from '../../../../resources/kubernetes-cluster/index.ts'
import { bootstrapKubernetesHost, KubernetesHost } from '../../../../resources/kubernetes-host/index.ts'
import { Region, Zone } from '../../../../resources/catalog/index.ts'
import { MANIFESTS, settingsFrom } from '../../../controllers/nouns/kubernetes-host/host-cluster.ts'
import { until } from '../../../controllers/until.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud } from '../../cloud.ts'

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
    region: 'eu-1',
    zones: expect.arrayContaining([cloud.zone]),
    version: '1.36.3',
    state: 'ready',
    node_count: 1,
    clusters_hosted: 0,
    clusters_capacity: 333_333,
    etcd_capacity_bytes: 1_000_000_000,
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
    state: 'error',
    version: null,
    node_count: 0,
    etcd_capacity_bytes: 0,
    clusters_hosted: 1,
  })
})

test('each region has a separate host, which answers for itself', async () => {
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

const ask = (more: object, who = 'olga', on = cloud) =>
  on.operate(who, 'POST', PATH, {
    ...bootstrapKubernetesHost.example,
    plan: 'starter-2c-4g',
    zones: [cloud.zone],
    ...more,
  })
const detailOf = async (more: object, on = cloud) => {
  const { status, body } = await ask(more, 'olga', on)
  return [status, body['detail']]
}

test('none is made where there is one, nor for places that are not', async () => {
  const refused = await ask({})
  expect([refused.status, refused.body['detail']]).toEqual([409, 'Region eu-1 has a host of control planes.'])
  expect(await cloud.staffAuditOf(refused)).toMatchObject([{ action: 'kubernetes_host.bootstrap' }])
  expect(await detailOf({ region: 'us-1' })).toEqual([400, 'region: there is no region us-1'])
  expect(await detailOf({ zones: ['us-1a'] })).toEqual([400, 'zones: us-1a is no zone of region eu-1'])
  expect(await detailOf({ zones: [cloud.zone, cloud.zone] })).toEqual([400, 'zones: names a zone twice'])
  expect(await detailOf({ plan: 'huge' })).toEqual([400, expect.stringMatching(/^plan: there is no plan huge; /)])
  expect(await detailOf({ version: 'new' })).toEqual([400, 'version: must be a minor version such as 1.36'])
  expect((await ask({}, 'rene')).status).toBe(403)
})

describe('where the platform makes hosts', () => {
  const FAR = 'ap-1'
  let far: Cloud
  let kubectl: Cloud['admin']

  beforeAll(async () => {
    const hostClusters = await settingsFrom({ region: 'eu-1', publicIpv4: false, manifests: MANIFESTS })
    if (hostClusters === undefined) throw new Error('unreachable')
    far = await openCloud(database.db, { hostClusters })
    await far.grant('olga', [{ resources: ['regions'], verbs: ['get', 'list', 'update'] }])
    kubectl = far.admin
    await kubectl.create(Region, { metadata: { name: FAR }, spec: { displayName: 'Far', country: 'SG' } })
    for (const name of ['ap-1a', 'ap-1b'])
      await kubectl.create(Zone, {
        metadata: { name },
        spec: { displayName: name, region: FAR, isClosed: false, capabilities: [] },
      })
  })
  afterAll(() => far.close())

  const wanted = { region: FAR, zones: ['ap-1a'], plan: 'starter-2c-4g', nodes_per_zone: 1, version: '1.36' }
  const asked = (more: object = {}) => far.operate('olga', 'POST', PATH, { ...wanted, ...more })
  const refusalOf = async (more: object = {}) => {
    const { status, body } = await asked(more)
    return `${status} ${body['detail']}`
  }

  test('what is missing is said', async () => {
    expect((await detailOf({ region: 'us-1' }, cloud))[0]).toBe(400)
    expect(await refusalOf()).toMatch(/^503 The host of region eu-1 only counts/)
    far.controlPlanes.driver = 'pods'
    expect(await refusalOf()).toMatch(/^503 .*in pods.*host runs them as processes/)
    far.controlPlanes.driver = 'process'
    far.controlPlanes.nodesObstacle = 'they have no door'
    expect(await refusalOf()).toBe('503 Nodes cannot join: they have no door.')
    far.controlPlanes.nodesObstacle = ''
    far.controlPlanes.isAway = true
    expect(await refusalOf()).toMatch(/^503/)
    far.controlPlanes.isAway = false
    expect(await refusalOf({ version: '1.12' })).toMatch(/^400 version: is not offered here/)
    expect(await refusalOf({ zones: ['ap-1a', 'ap-1b'] })).toMatch(/^503 .*in one zone/)
    expect(await refusalOf()).toMatch(/^409 The zone ap-1a has no private networks/)
    await kubectl.patch(Zone, { name: 'ap-1a' }, { status: { hasPrivateNetworks: true } }, 'status')
    await until(
      'the zone to be known',
      () => refusalOf(),
      (text) => /^409 .*no image for nodes/.test(text),
    )
    const status = { builtTemplates: [KUBERNETES_NODE_TEMPLATE] }
    await kubectl.patch(Zone, { name: 'ap-1a' }, { status }, 'status')
    await until(
      'its image to be known',
      () => refusalOf(),
      (text) => text.startsWith('503'),
    )
    expect(await kubectl.list(KubernetesHost, {})).toMatchObject({ items: [] })
  })

  test('it is started once, continues after a failure, and is left alone once it is complete', async () => {
    await mirrorNode(database.db, {
      node: 'far-1',
      zone: 'ap-1a',
      rack: 'r1',
      cpuPool: null,
      dedicatedAccountId: null,
      isSchedulable: true,
      total: { cores: 16, memoryMebibytes: 32_768, storageGibibytes: 500 },
    })
    const begun = await asked()
    expect([begun.status, begun.body['detail']]).toEqual([202, undefined])
    const { kubernetes_host: host, operation } = begun.body
    expect(host).toMatchObject({
      region: FAR,
      state: 'bootstrapping',
      node_count: 0,
      version: null,
      clusters_hosted: 0,
    })
    expect(operation).toMatchObject({
      kind: 'kubernetes_host.bootstrap',
      status: 'pending',
      step: 'claimed',
      kubernetes_host_id: host.id,
    })
    expect(await far.staffAuditOf(begun)).toMatchObject([{ action: 'kubernetes_host.bootstrap', resource_id: host.id }])
    expect(await refusalOf()).toBe(`409 Region ${FAR} has a host of control planes.`)

    const ended = async (status: 'failed' | 'succeeded', more: object = {}) => {
      const { spec } = (await kubectl.get(KubernetesHost, { name: host.id })) ?? {}
      const { id, kind, actor, requestedAt: createdAt, deadlineAt } = spec?.operation ?? {}
      const progress = { id, kind, actor, createdAt, deadlineAt, status, step: 'nodes', stepIndex: 3, stepCount: 6 }
      const patch = { status: { operation: { ...progress, error: 'no image' }, ...more } }
      await kubectl.patch(KubernetesHost, { name: host.id }, patch, 'status')
    }
    const stateOf = async () => (await far.operate('olga', 'GET', `${PATH}/${host.id}`)).body['kubernetes_host'].state
    await ended('failed')
    await until('the failure', stateOf, (state) => state === 'error')
    expect(await refusalOf({ nodes_per_zone: 2 })).toMatch(/^409 The attempt that failed had other values/)
    const again = await asked()
    expect([again.status, again.body['kubernetes_host'].id]).toEqual([202, host.id])
    expect(again.body['operation'].id).not.toBe(operation.id)
    expect(again.body['kubernetes_host'].state).toBe('bootstrapping')
    await ended('succeeded', { isMade: true })
    // It is created, and its address is not published: as one that does not answer.
    await until('the success', stateOf, (state) => state === 'error')
    expect(await refusalOf()).toBe(`409 Region ${FAR} has a host of control planes.`)
  })
})
