/** The life of private networks and routers with real controllers and a real database, with kubectl, down to the rows
 *  of a simulated OVN. */
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { parse } from 'yaml'
import type { UnsealedAuditEntry } from '../../../../domain/audit/entry.ts'
import { listQuotas } from '../../../../db/account/index.ts'
import { listAudit } from '../../../../db/audit/index.ts'
import { recordIntent } from '../../../../db/change/index.ts'
import { networkController } from '../../../../controllers/nouns/network/index.ts'
import type { NetworkObject, Observed as NetworkObserved } from '../../../../controllers/nouns/network/plan.ts'
import { routerController } from '../../../../controllers/nouns/router/index.ts'
import { type Observed, plan, type RouterObject } from '../../../../controllers/nouns/router/plan.ts'
import { confirmRemoval, orderRemoval } from '../../../../db/removal/index.ts'
import { findRouter } from '../../../../db/router/index.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { LAST_CHANGE_ANNOTATION } from '../../../../resources/kit/labels.ts'
import { Zone } from '../../../../resources/catalog/index.ts'
import { Network, type NetworkSpec } from '../../../../resources/network/index.ts'
import { Router, type RouterSpec } from '../../../../resources/router/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, fastClock, ZONE } from '../../cloud.ts'
import { openNetworkedCloud } from '../../networked-cloud.ts'
import { until } from '../../until.ts'

const database = useDatabase()
let cloud: Cloud
let stop: () => Promise<void>
let accountId: string
let namespace: string

beforeAll(async () => {
  ;({ cloud, stop } = await openNetworkedCloud(database.db, { pools: { edge: '203.0.113.0/29' } }))
})
afterAll(() => stop())
beforeEach(async () => {
  accountId = await createAccount(database.db)
  await cloud.openAccount(accountId)
  namespace = accountNamespace(accountId)
})

const key = (name: string) => ({ namespace, name })
const makeNetwork = (name: string, spec: Partial<NetworkSpec> = {}) =>
  cloud.kubectl.create(Network, { metadata: key(name), spec: { zone: ZONE, name, ...spec } as NetworkSpec })
const makeRouter = (name: string, spec: Partial<RouterSpec> = {}) =>
  cloud.kubectl.create(Router, { metadata: key(name), spec: { zone: ZONE, name, ...spec } as RouterSpec })
const ended = (type: typeof Network | typeof Router, name: string, status = 'succeeded') =>
  until(
    `${name} ${status}`,
    () => cloud.kubectl.get<unknown, { operation?: { id: string; status: string } }>(type as never, key(name)),
    (found) =>
      found?.status?.operation?.status === status &&
      (found.spec as NetworkSpec).operation?.id === found.status.operation.id,
  )
const gone = (type: typeof Network | typeof Router, name: string) =>
  until(
    `${name} gone`,
    () => cloud.kubectl.get(type as never, key(name)),
    (found) => found === undefined,
  )
const used = async (quota: string) =>
  (await listQuotas(database.db, accountId)).find(({ name }) => name === quota)?.used
const rowsOf = (owner: string) => cloud.ovn.owners.get(`${ZONE} ${owner}`) ?? []
const tablesOf = (owner: string) => [...new Set(rowsOf(owner).map(({ table }) => table))].sort()
const routes = (owner: string) =>
  rowsOf(owner)
    .filter(({ table }) => table === 'Logical_Router_Static_Route')
    .map(({ columns }) => columns['ip_prefix'])
    .sort()
const actions = async () =>
  (await listAudit(database.db, accountId, { limit: 50 })).map(({ action }) => action).toReversed()

test('a network and its router come, change and go, and leave nothing', async () => {
  const network = await makeNetwork('back', { ipv4Cidr: '10.1.0.0/24' })
  const owner = `Network/${network.metadata.uid}`
  await ended(Network, 'back')
  const made = await cloud.kubectl.get(Network, key('back'))
  expect(made?.status).toMatchObject({ ipv4Cidr: '10.1.0.0/24', region: 'eu-1' })
  expect(made?.status?.ipv6Prefix).toMatch(/^fd/)
  expect(made?.status?.conditions?.find(({ type }) => type === 'Ready')?.status).toBe('True')
  expect(tablesOf(owner)).toContain('Logical_Switch')
  expect(await used('networks')).toBe(1)

  await makeNetwork('front')
  await ended(Network, 'front')
  const router = await makeRouter('out', {
    natEnabled: true,
    networkIds: ['back', 'front'],
    staticRoutes: [
      { destination: '10.9.0.0/16', nextHop: '10.1.0.9', comment: '' },
      { destination: '10.8.0.0/16', nextHop: '10.77.0.9', comment: '' },
    ],
  })
  const routerOwner = `Router/${router.metadata.uid}`
  await ended(Router, 'out')
  const joined = await cloud.kubectl.get(Router, key('out'))
  expect(joined?.status).toMatchObject({
    publicIpv4: '203.0.113.2',
    networks: [
      { networkId: 'back', ipv4Address: '10.1.0.1' },
      { networkId: 'front', ipv4Address: '10.0.0.1' },
    ],
    isHealthy: false,
    healthDetail: 'The route to 10.8.0.0/16 leads nowhere: 10.77.0.9 is in none of its networks.',
  })
  expect(rowsOf(routerOwner).filter(({ table }) => table === 'NAT')).toHaveLength(2)
  // Of its two routers one leads on to the other, which leads outside and back to the networks.
  expect(routes(routerOwner)).toEqual(['0.0.0.0/0', '0.0.0.0/0', '10.0.0.0/24', '10.1.0.0/24', '10.9.0.0/16'])
  // What guests of a network learn of it follows its router, and is written when that has succeeded.
  const options = () => rowsOf(owner).find(({ columns }) => columns['cidr'] === '10.1.0.0/24')?.columns['options']
  expect(options()).toMatchObject({
    router: '10.1.0.1',
    classless_static_route: expect.stringContaining('10.9.0.0/16'),
  })

  await cloud.kubectl.patch(Router, key('out'), {
    spec: { natEnabled: false, networkIds: ['back'], staticRoutes: [] },
  })
  await until(
    'parted',
    async () => ({
      claim: await findRouter(database.db, { accountId, routerId: 'out' }),
      status: (await cloud.kubectl.get(Router, key('out')))?.status,
    }),
    ({ claim, status }) =>
      claim?.networks.length === 1 &&
      claim.publicAddress === undefined &&
      status?.isHealthy === true &&
      status.operation?.status === 'succeeded',
  )
  expect(tablesOf(routerOwner)).not.toContain('NAT')
  expect(options()).not.toHaveProperty('router')

  await cloud.kubectl.patch(Network, key('back'), { spec: { dhcpEnabled: false, name: 'renamed' } })
  await until(
    'DHCP off',
    async () => options(),
    (now) => JSON.stringify(now) === '{}',
  )
  await until(
    'the name',
    () => database.db.selectFrom('network').select('name').where('id', '=', 'back').executeTakeFirst(),
    (row) => row?.name === 'renamed',
  )

  // Without admission in front of it a network that is in use waits until it is not.
  await cloud.kubectl.delete(Network, key('back'))
  await until(
    'the reason',
    () => cloud.kubectl.get(Network, key('back')),
    (found) => found?.status?.conditions?.some(({ type, status }) => type === 'Ended' && status === 'False') === true,
  )
  await cloud.kubectl.patch(Router, key('out'), { spec: { networkIds: [] } })
  await gone(Network, 'back')
  await cloud.kubectl.delete(Router, key('out'))
  await gone(Router, 'out')
  await cloud.kubectl.delete(Network, key('front'))
  await gone(Network, 'front')
  expect([await used('networks'), await used('routers')]).toEqual([0, 0])
  expect([rowsOf(owner), rowsOf(routerOwner)]).toEqual([[], []])
  for (const table of ['network', 'router', 'router_network', 'public_address'] as const)
    expect(
      await database.db.selectFrom(table).selectAll().where('account_id', '=', accountId).execute(),
      table,
    ).toEqual([])
  expect(await actions()).toEqual([
    'network.create',
    'network.create',
    'router.create',
    'router.detach_network',
    'network.update',
    'network.delete',
    'router.detach_network',
    'router.delete',
    'network.delete',
  ])
})

test('a router waits for networks of the same manifest', async () => {
  const example = async (file: string) => parse(await readFile(`examples/networks/${file}.yaml`, 'utf8'))
  const router = await example('router')
  await makeRouter(router.metadata.name, { ...router.spec, zone: ZONE })
  await until(
    'what it waits for',
    () => cloud.kubectl.get(Router, key('out')),
    (found) => found?.status?.healthDetail?.startsWith('There is no network back.') === true,
  )
  const network = await example('network')
  await makeNetwork(network.metadata.name, { ...network.spec, zone: ZONE })
  await ended(Router, 'out')
  expect((await cloud.kubectl.get(Router, key('out')))?.status).toMatchObject({ isHealthy: true, healthDetail: '' })
})

test('a router keeps its rows while Kubernetes has lost one of its networks', async () => {
  await makeNetwork('kept')
  await makeRouter('lasting', { networkIds: ['kept'] })
  await ended(Router, 'lasting')
  const router = (await cloud.kubectl.get(Router, key('lasting'))) as RouterObject // it was there just now
  const zone = await cloud.kubectl.get(Zone, { name: ZONE })
  const nothing = { get: () => undefined, list: () => [], addIndex() {} }
  const caches = { of: (type: { readonly kind: string }) => (type.kind === Zone.kind ? { get: () => zone } : nothing) }
  const parts = { db: database.db, caches, store: cloud.kubectl }
  const reconciler = routerController.open(parts as never) // what it opens and observes needs no more
  const observed = (await reconciler?.observe(router, fastClock.now())) as Observed
  expect(observed).toMatchObject({ missing: ['kept'], hasNetworks: true, claim: { networks: [{ networkId: 'kept' }] } })
  expect(plan(router, observed, fastClock.now()).map((action) => action.do)).not.toContain('effect')
})

test('a network keeps its rows while Kubernetes has lost its router, until its deletion was ordered', async () => {
  await makeNetwork('routed')
  const staticRoutes = [{ destination: '10.9.0.0/16', nextHop: '10.77.0.9', comment: '' }]
  await makeRouter('away', { networkIds: ['routed'], staticRoutes })
  await ended(Router, 'away')
  const network = (await cloud.kubectl.get(Network, key('routed'))) as NetworkObject // it was there just now
  const nothing = { get: () => undefined, list: () => [], by: () => [], addIndex() {} }
  const parts = { db: database.db, caches: { of: () => nothing }, store: cloud.kubectl }
  const reconciler = networkController.open(parts as never) // what it opens and observes needs no more
  const factsOf = async () =>
    ((await reconciler?.observe(network, fastClock.now())) as NetworkObserved | undefined)?.facts
  expect(await factsOf()).toBeUndefined()
  const removed = { kind: Router.kind, namespace, name: 'away', uid: 'an earlier one' }
  const by = { reason: 'deleted', clock: fastClock, random: systemRandom } as const
  await orderRemoval(database.db, removed, by)
  await confirmRemoval(database.db, removed, fastClock.now())
  expect(await factsOf()).toBeUndefined()
  await orderRemoval(database.db, { ...removed, uid: 'this one' }, by)
  expect(await factsOf()).toMatchObject({ router: { staticRoutes: [] } })
})

test('what PostgreSQL refuses fails with the reason', async () => {
  await makeNetwork('one', { name: 'twin' })
  await ended(Network, 'one')
  await makeNetwork('two', { name: 'twin' })
  await ended(Network, 'two', 'failed')
  const refused = await cloud.kubectl.get(Network, key('two'))
  expect(refused?.status?.operation?.error).toMatch(/network of this name/)
  await makeRouter('a', { networkIds: ['one'] })
  await ended(Router, 'a')
  await makeRouter('b', { networkIds: ['one'] })
  await ended(Router, 'b', 'failed')
  for (const name of ['two']) {
    await cloud.kubectl.delete(Network, key(name))
    await gone(Network, name)
  }
  expect(await used('networks')).toBe(1)
})

test('an operation succeeds once OVN has the rows, even if answers are lost', async () => {
  cloud.ovn.fail('lost', 'unanswered', 'lost')
  const network = await makeNetwork('shaken')
  await ended(Network, 'shaken')
  expect(tablesOf(`Network/${network.metadata.uid}`)).toContain('Logical_Switch')
})

test('a change whose audit entry is owed when its object goes is audited as made', async () => {
  await makeNetwork('late')
  await ended(Network, 'late')
  const operationId = newUuid(systemRandom)
  const audit: UnsealedAuditEntry = {
    account_id: accountId,
    actor_email: 'ada@example.com',
    actor_kind: 'user',
    user_id: null,
    staff_id: null,
    token_id: null,
    token_name: null,
    action: 'network.update',
    resource_type: 'network',
    resource_id: 'late',
    detail: {},
    outcome: 'success',
    source_ip: '',
    user_agent: '',
    request_id: operationId,
    changes: [],
  }
  const resource = { type: 'network', id: 'late' }
  await database.db
    .transaction()
    .execute((tx) => recordIntent(tx, { operationId, accountId, resource, createdAt: fastClock.now(), audit }))
  await cloud.kubectl.patch(Network, key('late'), {
    metadata: { annotations: { [LAST_CHANGE_ANNOTATION]: operationId } },
  })
  await cloud.kubectl.delete(Network, key('late'))
  await gone(Network, 'late')
  const entries = await listAudit(database.db, accountId, { limit: 50 })
  expect(entries.find(({ request_id }) => request_id === operationId)).toMatchObject({ outcome: 'success' })
})
