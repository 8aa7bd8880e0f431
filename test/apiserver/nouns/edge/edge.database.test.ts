/** Network edges through the API. No controllers run: tests say what they would. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { mirrorPool } from '../../../../db/public-pool/index.ts'
import { Zone } from '../../../../resources/catalog/index.ts'
import { Edge } from '../../../../resources/edge/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Network } from '../../../../resources/network/index.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person } from '../../cloud.ts'
import { setQuotas } from '../../../accounts.ts'

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0r9gGhxlu2wlyDS0RLbIbtcPQzFXvoXr1hTnTbMjLg ada@example.com'
const database = useDatabase()
let cloud: Cloud
let owner: Person
let count = 0

beforeAll(async () => {
  cloud = await openCloud(database.db)
  owner = await cloud.signUp('owner@example.com')
  await setQuotas(database.db, 1_000_000)
  expect(await make({ roles: ['nat_gateway'] })).toMatchObject({ status: 503, body: { reason: 'no_free_address' } })
  const pool = { family: 'ipv4', zone: cloud.zone, state: 'active', use: 'server_ipv4' } as const
  await database.db.transaction().execute((tx) => mirrorPool(tx, { ...pool, id: 'servers', cidr: '198.51.100.0/26' }))
  expect((await owner.send('POST', '/v1/ssh-keys', { body: { name: 'a', public_key: KEY } })).status).toBe(201)
})
afterAll(() => cloud.close())

const offer = (status: object) => cloud.admin.patch(Zone, { name: cloud.zone }, { status }, 'status')

async function network(): Promise<string> {
  await offer({ builtTemplates: ['managed-machine'] })
  const body = { zone: cloud.zone, name: `network-${++count}`, ipv4_cidr: '10.1.0.0/24' }
  const reply = await owner.send('POST', '/v1/networks', { body })
  expect(reply.status, JSON.stringify(reply.body)).toBe(202)
  return reply.body['network'].id
}

const make = async (body: object, network_id?: string) =>
  owner.send('POST', '/v1/edges', { body: { network_id: network_id ?? (await network()), ...body } })

/** What its controller says when it has come about. */
async function finish(id: string): Promise<void> {
  const key = { namespace: accountNamespace(owner.accountId), name: id }
  const operation = (await cloud.admin.get(Edge, key))?.spec.operation
  if (operation === undefined) throw new Error(`${id} has no operation`)
  const { requestedAt, deadlineAt, actor } = operation
  const progress = { id: operation.id, kind: operation.kind, actor, deadlineAt, createdAt: requestedAt }
  const ended = { ...progress, status: 'succeeded', step: 'announced', stepIndex: 3, stepCount: 3, error: '' }
  await cloud.admin.patch(Edge, key, { status: { state: 'running', operation: ended } }, 'status')
}

const member = (more: object = {}) => ({ name: 'web', frontend_port: 80, address: '10.1.0.10', port: 8080, ...more })

test('is made for a network, which shows it, and lists show it without machines and members', async () => {
  const networkId = await network()
  const made = await make({ roles: ['load_balancer', 'bastion'], members: [member()] }, networkId)
  expect(made.status, JSON.stringify(made.body)).toBe(202)
  expect(made.body['operation']).toMatchObject({ kind: 'edge.sync', edge_id: made.body['edge'].id })
  expect(made.body['edge']).toMatchObject({
    name: `network-${count}-edge`,
    roles: ['bastion', 'load_balancer'],
    placement: 'combined',
    plan: 'starter-1c-1g',
    state: 'creating',
    production_recommended: false,
    public_ipv4: null,
    ssh_key_count: 1,
    configuration_generation: 1,
    machines: [],
    members: [{ name: 'web', frontend_port: 80, weight: 100, enabled: true }],
  })
  expect((await owner.send('GET', `/v1/networks/${networkId}`)).body['network'].edge_id).toBe(made.body['edge'].id)
  const [item] = (await owner.send('GET', '/v1/edges')).body['items'] as object[]
  expect(item).toMatchObject({ id: made.body['edge'].id })
  expect(Object.keys(item ?? {})).not.toContain('machines')
  expect(Object.keys(item ?? {})).not.toContain('members')
})

test('is separate where the zone has servers enough: a managed load balancer has the role', async () => {
  const networkId = await network()
  await offer({ hasPrivateNetworks: true, hasSeparateEdges: true })
  const body = { roles: ['bastion', 'load_balancer'], members: [member()] }
  const quota = (limit: number) =>
    database.db.updateTable('account_quota').set({ limit }).where('name', '=', 'load_balancers').execute()
  await quota(0)
  await expect
    .poll(() => make(body, networkId))
    .toMatchObject({ status: 422, body: { quota: { name: 'load_balancers' } } })
  await quota(1_000_000)
  const made = await make(body, networkId)
  expect(made.body['edge']).toMatchObject({
    placement: 'separate',
    production_recommended: true,
    production_recommendation_reason: null,
    public_ipv4: null,
    load_balancer_id: null,
  })
  const key = { namespace: accountNamespace(owner.accountId), name: made.body['edge'].id }
  const balancer = { id: 'pair', isHealthy: true, healthDetail: '', publicIpv4: '198.51.100.9' }
  const addresses = ['198.51.100.9', '10.1.0.8']
  await cloud.admin.patch(Edge, key, { status: { balancer: { ...balancer, addresses } } }, 'status')
  await finish(key.name)
  const read = async () => (await owner.send('GET', `/v1/edges/${key.name}`)).body['edge']
  await expect.poll(read).toMatchObject({ public_ipv4: '198.51.100.9', load_balancer_id: 'pair', state: 'running' })
  const looping = { members: [member({ address: '10.1.0.8' })] }
  expect(await owner.send('PATCH', `/v1/edges/${key.name}`, { body: looping })).toMatchObject({
    status: 400,
    body: { errors: [{ field: 'members.0.address', detail: 'is an address of the edge itself' }] },
  })
  await offer({ hasSeparateEdges: false })
})

test('a network has one edge, and is in use by it', async () => {
  const networkId = await network()
  const first = await make({ roles: ['nat_gateway'] }, networkId)
  const second = await make({ roles: ['nat_gateway'] }, networkId)
  const resource = { type: 'edge', id: first.body['edge'].id }
  expect(second).toMatchObject({ status: 409, body: { reason: 'in_use', resource } })
  await cloud.admin.patch(
    Network,
    { namespace: accountNamespace(owner.accountId), name: networkId },
    { spec: { operation: null } },
  )
  expect(await owner.send('DELETE', `/v1/networks/${networkId}`)).toMatchObject({
    status: 409,
    body: { reason: 'in_use', resource },
  })
})

test('holds quotas: of edges, and of servers for its machines', async () => {
  const limit = (name: string, value: number) => setQuotas(database.db, value, { accountId: owner.accountId, name })
  const [one, other] = [await network(), await network()]
  await limit('edges', 0)
  expect(await make({ roles: ['nat_gateway'] }, one)).toMatchObject({ status: 422, body: { quota: { name: 'edges' } } })
  await limit('edges', 1_000)
  await limit('servers', 0)
  expect(await make({ roles: ['nat_gateway'] }, other)).toMatchObject({
    status: 422,
    body: { quota: { name: 'servers' } },
  })
  await limit('servers', 1_000)
})

test('a name changes at once, the rest by an operation that raises the generation', async () => {
  const id = (await make({ roles: ['nat_gateway'] })).body['edge'].id
  const change = (body: object) => owner.send('PATCH', `/v1/edges/${id}`, { body })
  expect(await change({ name: 'front' })).toMatchObject({ status: 200, body: { edge: { name: 'front' } } })
  expect(await change({ roles: ['nat_gateway'] })).toMatchObject({ status: 200 })
  expect(await change({ roles: ['bastion'] })).toMatchObject({ status: 409, body: { reason: 'operation_in_progress' } })
  await finish(id)
  expect((await change({ roles: [] })).status).toBe(400)
  expect((await change({ members: [member()] })).status).toBe(400)
  const changed = await change({ roles: ['bastion', 'load_balancer'], members: [member()] })
  expect(changed).toMatchObject({
    status: 202,
    body: { operation: { kind: 'edge.sync' }, edge: { roles: ['bastion', 'load_balancer'], ssh_key_count: 1 } },
  })
  const entry = (await owner.send('GET', '/v1/audit')).body['items'][0]
  expect(entry).toMatchObject({ action: 'edge.update', resource_id: id })
  expect(JSON.stringify(entry)).not.toContain('AAAAC3')
})

test('is deleted while it is being made, once', async () => {
  const id = (await make({ roles: ['nat_gateway'] })).body['edge'].id
  const deleted = await owner.send('DELETE', `/v1/edges/${id}`)
  expect(deleted).toMatchObject({ status: 202, body: { operation: { kind: 'edge.delete', edge_id: id } } })
  expect((await owner.send('GET', `/v1/edges/${id}`)).body['edge'].state).toBe('deleting')
  expect((await owner.send('DELETE', `/v1/edges/${id}`)).status).toBe(409)
})
