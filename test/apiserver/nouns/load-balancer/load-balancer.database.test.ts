/** Load balancers through the API. No controllers run: tests say what they would. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { mirrorPool } from '../../../../db/public-pool/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { LoadBalancer } from '../../../../resources/load-balancer/index.ts'
import { ManagedMachine } from '../../../../resources/managed-machine/index.ts'
import { nodeNamespace } from '../../../../resources/instance/index.ts'
import { Server, type ServerSpec } from '../../../../resources/server/index.ts'
import { Network } from '../../../../resources/network/index.ts'
import { makeCertificate } from '../../../../kit/sys/certificate.ts'
import { systemRandom } from '../../../../kit/sys/random.ts'
import { Namespace } from '../../../../kit/kube/object.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person } from '../../cloud.ts'
import { setQuotas } from '../../../accounts.ts'

const database = useDatabase()
let cloud: Cloud
let owner: Person
let stranger: Person
let networkId: string
let count = 0

const BACKEND = { name: 'web', members: [{ name: 'one', address: '10.9.0.10', port: 8080 }] }
const FRONTEND = { name: 'web', port: 80, mode: 'http', backend: 'web' }
const CONFIGURATION = { frontends: [FRONTEND], backends: [BACKEND] }

beforeAll(async () => {
  cloud = await openCloud(database.db)
  owner = await cloud.signUp('owner@example.com')
  stranger = await cloud.signUp('stranger@example.com')
  await setQuotas(database.db, 1_000_000)
  const pool = { family: 'ipv4', zone: cloud.zone, state: 'active', use: 'server_ipv4' } as const
  await database.db.transaction().execute((tx) => mirrorPool(tx, { ...pool, id: 'servers', cidr: '198.51.100.0/26' }))
  const body = { zone: cloud.zone, name: 'back', ipv4_cidr: '10.9.0.0/24' }
  const reply = await owner.send('POST', '/v1/networks', { body })
  networkId = reply.body['network'].id
  const key = { namespace: accountNamespace(owner.accountId), name: networkId }
  const status = { ipv4Cidr: '10.9.0.0/24', ipv6Prefix: reply.body['network'].ipv6_prefix }
  await cloud.admin.patch(Network, key, { status }, 'status')
})
afterAll(() => cloud.close())

const creation = (body: object = {}) =>
  owner.send('POST', '/v1/load-balancers', {
    body: { zone: cloud.zone, name: `lb-${++count}`, network_id: networkId, ...body },
  })
const make = async (body: object = CONFIGURATION): Promise<string> => {
  const reply = await creation(body)
  expect(reply.status, JSON.stringify(reply.body)).toBe(202)
  return reply.body['load_balancer'].id
}
const get = async (id: string) => (await owner.send('GET', `/v1/load-balancers/${id}`)).body['load_balancer']
const put = (id: string, body: object) => owner.send('PUT', `/v1/load-balancers/${id}/configuration`, { body })
const members = (id: string) => `/v1/load-balancers/${id}/backends/web/members`
const certificates = (id: string) => `/v1/load-balancers/${id}/certificates`

describe('making one', () => {
  test('claims its addresses and starts an operation', async () => {
    const { status, body } = await creation(CONFIGURATION)
    expect(status).toBe(202)
    expect(body['operation']).toMatchObject({ kind: 'load_balancer.create', status: 'pending' })
    expect(body['load_balancer']).toMatchObject({
      state: 'creating',
      plan: 'starter-1c-1g',
      configuration_generation: 1,
      is_configuration_applied: false,
      frontends: [{ ...FRONTEND, allowed_cidrs: [], idle_timeout_seconds: 60 }],
      backends: [{ name: 'web', health_check: { type: 'tcp' }, members: [{ name: 'one', is_healthy: null }] }],
    })
    const held = await database.db.selectFrom('shared_address').select('holder').execute()
    expect(held).toContainEqual({ holder: `load_balancer/${body['load_balancer'].id}` })
  })

  test('is refused at once where its machines have no capacity, or exceed the quota', async () => {
    const held = () => database.db.selectFrom('quota_holding').select('holder').orderBy('holder').execute()
    const before = await held()
    await database.db.updateTable('node_capacity').set({ cores: 1 }).execute()
    expect(await creation()).toMatchObject({ status: 503, body: { reason: 'no_capacity' } })
    await database.db.updateTable('node_capacity').set({ cores: 64 }).execute()
    const limit = (value: number) => setQuotas(database.db, value, { name: 'servers' })
    await limit(1)
    expect(await creation()).toMatchObject({ status: 422, body: { quota: { name: 'servers' } } })
    await limit(1_000_000)
    expect(await held()).toEqual(before)
  })
})

describe('its metrics', () => {
  const metricsOf = (id: string, person = owner) => person.send('GET', `/v1/load-balancers/${id}/metrics`)
  /** The machine with the addresses says so. */
  async function report(id: string, text: string): Promise<void> {
    const namespace = accountNamespace(owner.accountId)
    const spec = {
      zone: cloud.zone,
      hostname: `machine-${id}`,
      plan: 'tiny',
      template: 'tiny-linux',
      managedBy: `load_balancer:${id}`,
    } as unknown as ServerSpec
    const { metadata } = await cloud.admin.create(Server, { metadata: { name: `${id}-a`, namespace }, spec })
    await cloud.admin.patch(
      Server,
      { namespace, name: `${id}-a` },
      { status: { state: 'started', nodeName: 'n1' } },
      'status',
    )
    const nodes = [{ id: `${id}-a`, role: 'active', isHealthy: true, configurationGeneration: 1, addresses: [] }]
    await cloud.admin.patch(LoadBalancer, { namespace, name: id }, { status: { nodes } }, 'status')
    const key = { namespace: nodeNamespace('n1'), name: metadata.uid ?? '' }
    const server = { namespace, name: `${id}-a`, uid: key.name }
    await cloud.admin.create(Namespace, { metadata: { name: key.namespace }, spec: {} }).catch(() => {})
    await cloud.admin.create(ManagedMachine, { metadata: key, spec: { server, managedBy: `load_balancer:${id}` } })
    const status = { isHealthy: true, detail: '', report: text, reportedAt: '2026-01-01T00:00:00.000Z' }
    await cloud.admin.patch(ManagedMachine, key, { status }, 'status')
  }

  test('are what its active machine counted, of what it has; others do not see them', async () => {
    const id = await make()
    expect(await metricsOf(id)).toMatchObject({
      status: 200,
      body: { node_id: null, observed_at: null, frontends: [], members: [], omitted_members: 0 },
    })
    const [member] = (await get(id)).backends[0].members
    const haproxy = {
      frontends: [
        ['frontend.web', 1, 2, 3, 4, 5],
        ['frontend.of-another', 1, 1, 1, 1, 1],
      ],
      servers: [
        ['backend.web', member.id, 'up', 6, 7, 8, 9],
        ['backend.web', 'of-another', 'up', 1, 1, 1, 1],
      ],
    }
    await report(id, JSON.stringify({ services: {}, haproxy }))
    const counted = { open_connections: 1, connections: 2, received_bytes: 3, transmitted_bytes: 4, requests: 5 }
    const moved = { open_connections: 6, connections: 7, received_bytes: 8, transmitted_bytes: 9 }
    await expect
      .poll(async () => (await metricsOf(id)).body)
      .toEqual({
        node_id: `${id}-a`,
        observed_at: '2026-01-01T00:00:00.000Z',
        omitted_members: 0,
        frontends: [{ name: 'web', ...counted }],
        members: [{ id: member.id, backend: 'web', name: 'one', ...moved }],
      })
    expect((await metricsOf(id, stranger)).status).toBe(404)
  })

  test('are missing where the machine says something else', async () => {
    const id = await make()
    await report(id, '{"services":{},"haproxy":{"frontends":[["frontend.web","many"]]}}')
    const { status, body } = await metricsOf(id)
    expect([status, body['node_id'], body['frontends']]).toEqual([200, null, []])
  })
})

describe('its configuration', () => {
  test('is replaced as a whole, by generation', async () => {
    const id = await make()
    const [
      {
        members: [known],
      },
    ] = (await get(id)).backends
    const two = { name: 'two', address: '10.9.0.11', port: 8080 }
    const body = { ...CONFIGURATION, backends: [{ ...BACKEND, members: [...BACKEND.members, two] }] }
    const reply = await put(id, { ...body, configuration_generation: 1 })
    expect(reply.status, JSON.stringify(reply.body)).toBe(200)
    expect(reply.body['load_balancer']).toMatchObject({ configuration_generation: 2, state: 'creating' })
    expect(reply.body['load_balancer'].backends[0].members[0].id).toBe(known.id)
    const late = await put(id, { ...CONFIGURATION, configuration_generation: 1 })
    expect([late.status, late.body['reason']]).toEqual([409, 'state_not_allowed'])
    expect((await get(id)).configuration_generation).toBe(2)
  })

  test('stays as it is when a part of the new one cannot be', async () => {
    const id = await make()
    const frontends = [FRONTEND, { ...FRONTEND, name: 'other' }]
    expect((await put(id, { ...CONFIGURATION, frontends })).body['errors']).toEqual([
      { field: 'frontends.1.port', detail: '80 is taken by another one' },
    ])
    expect(await get(id)).toMatchObject({ configuration_generation: 1, frontends: [{ name: 'web' }] })
  })

  test('cannot have a member that is the balancer itself', async () => {
    const id = await make()
    const key = { namespace: accountNamespace(owner.accountId), name: id }
    const node = { id: 's', role: 'active', isHealthy: true, configurationGeneration: 1 }
    const status = {
      privateIpv4: '10.9.0.200',
      publicIpv6: '2001:db8:9::1',
      nodes: [{ ...node, addresses: ['10.9.0.201'] }],
    }
    await cloud.admin.patch(LoadBalancer, key, { status }, 'status')
    expect(await get(id)).toMatchObject({ public_ipv4: null, public_ipv6: '2001:db8:9::1' })
    for (const address of ['10.9.0.200', '10.9.0.201', '2001:db8:9::1']) {
      const body = { name: 'loop', address, port: 80 }
      expect((await owner.send('POST', members(id), { body })).body['detail']).toMatch(/load balancer itself/)
    }
  })

  test('is applied when every machine runs it, also after an edit past the API', async () => {
    const id = await make()
    const key = { namespace: accountNamespace(owner.accountId), name: id }
    const { spec } = (await cloud.admin.get(LoadBalancer, key)) ?? {}
    await cloud.admin.patch(LoadBalancer, key, { status: { isMade: true, applied: spec?.numbered } }, 'status')
    expect(await get(id)).toMatchObject({ state: 'running', is_configuration_applied: true })
    await cloud.admin.patch(LoadBalancer, key, { spec: { frontends: [] } })
    expect(await get(id)).toMatchObject({ configuration_generation: 2, is_configuration_applied: false })
    await put(id, { frontends: [], backends: [] })
    expect((await get(id)).configuration_generation).toBe(3)
  })

  test('has members that come, change and go', async () => {
    const id = await make()
    const two = { name: 'two', address: '10.9.0.11', port: 8080 }
    const added = await owner.send('POST', members(id), { body: two })
    expect([added.status, added.body['member']]).toMatchObject([201, { ...two, weight: 100, enabled: true }])
    expect((await owner.send('POST', members(id), { body: two })).body).toMatchObject({
      reason: 'name_taken',
      resource: { type: 'load_balancer_member', id: added.body['member'].id },
    })
    const path = `${members(id)}/${added.body['member'].id}`
    expect((await owner.send('PATCH', path, { body: { weight: 0 } })).body['member']).toMatchObject({ weight: 0 })
    expect((await owner.send('DELETE', path)).status).toBe(204)
    expect((await owner.send('DELETE', path)).status).toBe(404)
    expect(await get(id)).toMatchObject({ configuration_generation: 4, backends: [{ members: [{ name: 'one' }] }] })
    expect((await stranger.send('POST', members(id), { body: two })).status).toBe(404)
  })
})

describe('its certificates', () => {
  test('are checked, sealed, used, and never read back', async () => {
    const id = await make()
    const options = { commonName: 'www', days: 30, now: new Date(), random: systemRandom, hosts: ['www.example'] }
    const { certificate, key: privateKey } = await makeCertificate(options)
    const body = { name: 'www', certificate, private_key: privateKey }
    const added = await owner.send('POST', certificates(id), { body })
    expect([added.status, added.body['certificate']]).toMatchObject([201, { name: 'www', dns_names: ['www.example'] }])
    const certificateId = added.body['certificate'].id
    const stolen = await owner.send('POST', certificates(id), {
      body: { ...body, name: 'b', private_key: (await makeCertificate(options)).key },
    })
    expect([stolen.status, stolen.body['errors']?.[0].field]).toEqual([400, 'private_key'])
    const frontends = [{ ...FRONTEND, mode: 'https', port: 443, certificate_ids: [certificateId] }]
    expect((await put(id, { ...CONFIGURATION, frontends })).status).toBe(200)
    const { items } = (await owner.send('GET', '/v1/load-balancers')).body
    expect(items.find((item: { readonly id: string }) => item.id === id)?.certificates).toMatchObject([
      { id: certificateId },
    ])
    const path = `${certificates(id)}/${certificateId}`
    expect((await owner.send('DELETE', path)).body['reason']).toBe('in_use')
    const secret = privateKey.split('\n')[1] ?? ''
    const rows = await database.db.selectFrom('load_balancer_certificate').selectAll().execute()
    const object = await cloud.admin.get(LoadBalancer, {
      namespace: accountNamespace(owner.accountId),
      name: id,
    })
    expect(rows).toHaveLength(1)
    expect((await owner.send('POST', certificates(id), { body })).body).toMatchObject({
      reason: 'name_taken',
      resource: { type: 'load_balancer_certificate', id: certificateId },
    })
    expect(JSON.stringify([rows, object, await get(id)])).not.toContain(secret)
    await put(id, CONFIGURATION)
    expect((await owner.send('DELETE', path)).status).toBe(204)
  })

  test('and removals of members are not refused for a part that has become invalid since', async () => {
    const id = await make()
    const stored = [
      { name: 'one', id: 'first', address: '10.99.0.1', port: 80 },
      { name: 'two', id: 'second', address: '10.99.0.2', port: 80 },
    ]
    const key = { namespace: accountNamespace(owner.accountId), name: id }
    await cloud.admin.patch(LoadBalancer, key, { spec: { backends: [{ ...BACKEND, members: stored }] } })
    const options = { commonName: 'www', days: 30, now: new Date(), random: systemRandom, hosts: ['www.example'] }
    const { certificate, key: privateKey } = await makeCertificate(options)
    const body = { name: 'www', certificate, private_key: privateKey }
    const added = await owner.send('POST', certificates(id), { body })
    expect(added.status).toBe(201)
    expect((await owner.send('DELETE', `${certificates(id)}/${added.body['certificate'].id}`)).status).toBe(204)
    // what is added must be valid with all the rest
    const three = await owner.send('POST', members(id), { body: { name: 'three', address: '10.9.0.12', port: 80 } })
    expect([three.status, three.body['errors']?.[0].field]).toEqual([400, 'backends.0.members.0.address'])
    for (const { id: member } of stored)
      expect((await owner.send('DELETE', `${members(id)}/${member}`)).status, member).toBe(204)
  })
})

test('one that is protected stays, and one that is there keeps its network', async () => {
  const id = await make({ ...CONFIGURATION, is_protected: true })
  const path = `/v1/load-balancers/${id}`
  const protect = async (is_protected: boolean) =>
    (await owner.send('PATCH', path, { body: { is_protected } })).body['load_balancer'].is_protected
  const refusal = async () => (await owner.send('DELETE', path)).body['reason']
  expect(await refusal()).toBe('protected')
  expect([await protect(false), await protect(true)]).toEqual([false, true])
  expect(await refusal()).toBe('protected')
  await owner.send('PATCH', path, { body: { is_protected: false } })
  const deleted = await owner.send('DELETE', path)
  expect(deleted.body['operation']).toMatchObject({ kind: 'load_balancer.delete' })
  expect((await get(id)).state).toBe('deleting')
  expect((await put(id, CONFIGURATION)).body['reason']).toBe('operation_in_progress')
})
