/** Pools and the servers that have addresses of them, with real controllers, a real agent and a real database, with
 *  kubectl. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { findOperation } from '../../../../db/operation/index.ts'
import { listStaffAudit } from '../../../../db/staff/index.ts'
import type { KubeObject } from '../../../../kit/kube/object.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Instance, nodeNamespace } from '../../../../resources/instance/index.ts'
import { PublicPool, type PublicPoolSpec, type PublicPoolStatus } from '../../../../resources/public-pool/index.ts'
import { Server, type ServerSpec, type ServerStatus } from '../../../../resources/server/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, NODE, openCloud, ZONE } from '../../cloud.ts'
import { until } from '../../until.ts'

const database = useDatabase()
let cloud: Cloud
let accountId: string
let namespace: string

beforeAll(async () => {
  cloud = await openCloud(database.db)
  cloud.startAgent()
  accountId = await createAccount(database.db)
  namespace = accountNamespace(accountId)
  await cloud.openAccount(accountId)
})
afterAll(() => cloud.close())

type PoolObject = KubeObject<PublicPoolSpec, PublicPoolStatus>
type ServerObject = KubeObject<ServerSpec, ServerStatus>
const makePool = (name: string, spec: Partial<PublicPoolSpec>) =>
  cloud.kubectl.create(PublicPool, {
    metadata: { name },
    spec: {
      zone: ZONE,
      family: 'ipv6',
      use: 'server_ipv6_prefix',
      announce: 'static',
      state: 'active',
      cidr: '2001:db8::/48',
      ...spec,
    },
  })
const pool = (name: string) => cloud.kubectl.get(PublicPool, { name })
const poolIs = (name: string, state: PublicPoolStatus['state']) =>
  until(
    `${name} ${state ?? ''}`,
    () => pool(name),
    (object) => object !== undefined && object.status?.state === state && isIdle(object),
  ) as Promise<PoolObject>
const isIdle = ({ spec, status }: PoolObject | ServerObject) =>
  spec.operation !== undefined &&
  status?.operation?.id === spec.operation.id &&
  status.operation.finishedAt !== undefined
// the API server fills in the defaults
const bare = { hostname: 'web', zone: ZONE, plan: 'tiny', template: 'tiny-linux' } as unknown as ServerSpec
const makeServer = (name: string, spec: Partial<ServerSpec> = {}) =>
  cloud.kubectl.create(Server, { metadata: { name, namespace }, spec: { ...bare, hostname: name, ...spec } })
const server = (name: string, isSo: (server: ServerObject) => boolean) =>
  until(
    name,
    () => cloud.kubectl.get(Server, { namespace, name }),
    (object) => object !== undefined && isSo(object),
  ) as Promise<ServerObject>
const interfaceOf = async ({ metadata: { uid = '' } }: KubeObject) =>
  (await cloud.kubectl.get(Instance, { namespace: nodeNamespace(NODE), name: uid }))?.spec.interfaces[0]
const audited = async () =>
  (await listStaffAudit(database.db, { limit: 100 }))
    .map(({ action, resource_id, actor_email }) => `${action} ${resource_id} ${actor_email}`)
    .sort()

let stopControllers: () => Promise<void>
afterEach(() => stopControllers())

/** From the first pool to the last server, over a renumbering. */
async function story(prefix: string): Promise<void> {
  const [old, fresh, ipv4] = [`${prefix}-old`, `${prefix}-new`, `${prefix}-v4`]
  await makePool(old, { cidr: '2001:db8:1::/48' })
  await makePool(ipv4, { family: 'ipv4', use: 'server_ipv4', cidr: '203.0.113.0/29' })
  expect((await poolIs(old, 'active')).status).toMatchObject({ total: 65_536 })
  expect((await poolIs(ipv4, 'active')).status).toMatchObject({ total: 5 })

  await makeServer(`${prefix}-a`, { publicIpv4: true })
  const first = await server(`${prefix}-a`, ({ status }) => status?.state === 'started')
  expect(first.status).toMatchObject({
    publicIpv4: '203.0.113.2',
    publicIpv6: '2001:db8:1::1',
    publicIpv6Prefix: '2001:db8:1::/64',
  })
  expect(await interfaceOf(first)).toEqual({
    macAddress: first.status?.macAddress,
    kind: 'public',
    ipv4: { address: '203.0.113.2', prefix: 29, gateway: '203.0.113.1' },
    ipv6: { address: '2001:db8:1::1', prefix: 64, gateway: 'fe80::1' },
    routedPrefixes: ['2001:db8:1::/64'],
  })

  await makePool(fresh, { cidr: '2001:db8:2::/48' })
  await poolIs(fresh, 'active')
  await cloud.kubectl.patch(PublicPool, { name: old }, { spec: { state: 'draining' } })
  await poolIs(old, 'draining')
  const movable = await server(`${prefix}-a`, ({ status }) => status?.ipv6RenumberAvailable === true)
  expect(movable.status?.publicIpv6).toBe('2001:db8:1::1')

  // As the API writes it.
  const at = movable.status?.startedAt ?? ''
  const operation = {
    id: `${prefix}00000-0000-4000-8000-000000000000`,
    kind: 'server.renumber_ipv6' as const,
    requestedAt: at,
    deadlineAt: '2999-01-01T00:00:00Z',
    actor: 'token:t',
    requestId: prefix,
  }
  await cloud.kubectl.patch(
    Server,
    { namespace, name: `${prefix}-a` },
    { spec: { operation: { ...operation, arguments: null } } },
  )
  const moved = await server(`${prefix}-a`, (object) => object.status?.operation?.id === operation.id && isIdle(object))
  expect(moved.status).toMatchObject({
    state: 'started',
    startedAt: at,
    publicIpv4: '203.0.113.2',
    publicIpv6: '2001:db8:2::1',
    publicIpv6Prefix: '2001:db8:2::/64',
    operation: { status: 'succeeded' },
  })
  expect(moved.status?.ipv6RenumberAvailable).toBeUndefined()
  expect(await interfaceOf(moved)).toMatchObject({
    ipv6: { address: '2001:db8:2::1' },
    routedPrefixes: ['2001:db8:2::/64', '2001:db8:1::/64'],
  })
  expect(cloud.host.running()).toMatchObject([{ incarnation: 1 }])

  await cloud.kubectl.delete(PublicPool, { name: old })
  await until(
    'the old pool to be gone',
    () => pool(old),
    (object) => object === undefined,
  )
  await until(
    'the old prefix to lead nowhere',
    () => interfaceOf(moved),
    (one) => JSON.stringify(one?.routedPrefixes) === JSON.stringify(['2001:db8:2::/64']),
  )
  await cloud.kubectl.delete(PublicPool, { name: fresh })
  await until(
    'the pool in use to stay',
    () => pool(fresh),
    (object) => object?.status?.state === 'draining',
  )
  await cloud.kubectl.delete(Server, { namespace, name: `${prefix}-a` })
  await until(
    'the server to be gone',
    () => cloud.kubectl.get(Server, { namespace, name: `${prefix}-a` }),
    (object) => object === undefined,
  )
  for (const name of [fresh, ipv4]) await cloud.kubectl.delete(PublicPool, { name })
  for (const name of [fresh, ipv4])
    await until(
      `${name} to be gone`,
      () => pool(name),
      (object) => object === undefined,
    )
  expect(await database.db.selectFrom('public_address').select('address').execute()).toEqual([])
  expect((await audited()).filter((entry) => entry.includes(` ${prefix}-`))).toEqual(
    [
      `public_pool.create ${fresh} user:kubectl-edit`,
      `public_pool.create ${old} user:kubectl-edit`,
      `public_pool.create ${ipv4} user:kubectl-edit`,
      `public_pool.delete ${fresh} user:kubernetes`,
      `public_pool.delete ${old} user:kubernetes`,
      `public_pool.delete ${ipv4} user:kubernetes`,
      `public_pool.update ${old} user:kubectl-edit`,
    ].sort(),
  )
}

test('pools give addresses, drain and go', async () => {
  stopControllers = cloud.startControllers()
  await story('aaa')
  const mails = await database.db.selectFrom('email_outbox').select('subject').execute()
  // To the only owner.
  expect(mails).toEqual([{ subject: 'IPv6 addresses of your servers will change' }])
})

test('the same while the controllers die after every second write', async () => {
  const { deaths, stop } = cloud.startMortals(2)
  stopControllers = stop
  await story('bbb')
  expect(deaths()).toBeGreaterThan(5)
  expect((await database.db.selectFrom('email_outbox').select('recipient').execute()).length).toBe(2)
})

test('the operations of pools are kept, with the pool in their first event', async () => {
  stopControllers = cloud.startControllers()
  await makePool('ccc-one', { cidr: '2001:db8:3::/48' })
  const { spec } = await poolIs('ccc-one', 'active')
  const kept = await findOperation(database.db, null, spec.operation?.id ?? '')
  expect(kept).toMatchObject({ kind: 'public_pool.sync', status: 'succeeded' })
  expect(kept?.events[0]).toMatchObject({ kind: 'started', data: { public_pool_id: 'ccc-one' } })
})

test('a pool that overlaps another says so and gives nothing', async () => {
  stopControllers = cloud.startControllers()
  await makePool('ddd-two', { cidr: '2001:db8:3:8000::/49' })
  const refused = await until(
    'a refusal',
    () => pool('ddd-two'),
    (object) => object !== undefined && isIdle(object),
  )
  expect(refused?.status).toMatchObject({
    operation: { status: 'failed', error: 'The network 2001:db8:3:8000::/49 overlaps that of another pool.' },
  })
  expect(refused?.status?.state).toBeUndefined()
  expect(refused?.status?.conditions?.find(({ type }) => type === 'Stalled')).toMatchObject({ status: 'True' })
  await cloud.kubectl.delete(PublicPool, { name: 'ddd-two' })
  await until(
    'it to be gone',
    () => pool('ddd-two'),
    (object) => object === undefined,
  )
})

test('a server waits for an address, and has it when there is one', async () => {
  stopControllers = cloud.startControllers()
  await makeServer('eee-a', { publicIpv4: true })
  await until(
    'the refusal',
    () => cloud.kubectl.get(Server, { namespace, name: 'eee-a' }),
    (object) =>
      object?.status?.conditions?.some(({ type, reason }) => type === 'Claimed' && reason === 'NoFreeAddress') === true,
  )
  await makePool('eee-v4', { family: 'ipv4', use: 'server_ipv4', cidr: '198.51.100.0/30' })
  expect((await server('eee-a', ({ status }) => status?.state === 'started')).status?.publicIpv4).toBe('198.51.100.2')
})
