/** Where the network of a zone takes its ports from: what servers have claimed, whatever Instances say. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { publicNetworkController, publicPortController } from '../../../../controllers/network/public-network/index.ts'
import { type Observed, plan } from '../../../../controllers/network/public-network/port.ts'
import { openSimulatedOvn } from '../../../../controllers/network/ovn/simulated-ovn.ts'
import { type PublicNetwork, rowsOf } from '../../../../controllers/network/public-network/topology.ts'
import { forgetPool, mirrorPool } from '../../../../db/public-pool/index.ts'
import { orderRemoval } from '../../../../db/removal/index.ts'
import { findServerClaims } from '../../../../db/server/index.ts'
import { openCaches } from '../../../../kit/kube/caches.ts'
import type { KubeObject } from '../../../../kit/kube/object.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'
import { openRegistry } from '../../../../kit/sys/metrics.ts'
import { systemRandom as random } from '../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Instance, type InstanceSpec, nodeNamespace } from '../../../../resources/instance/index.ts'
import { Server, type ServerSpec } from '../../../../resources/server/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, fastClock as clock, openCloud, ZONE } from '../../cloud.ts'
import { until } from '../../until.ts'

const database = useDatabase()
const NODES = ['n1', 'n2'] as const
const STOLEN: InstanceSpec['interfaces'] = [
  {
    macAddress: '52:54:00:66:66:66',
    kind: 'public',
    ipv4: { address: '203.0.113.66', prefix: 24, gateway: '203.0.113.1' },
  },
]
let cloud: Cloud
let namespace: string
let accountId: string

beforeAll(async () => {
  cloud = await openCloud(database.db, undefined, NODES)
  for (const node of NODES) cloud.startAgent(node)
  accountId = await createAccount(database.db)
  namespace = accountNamespace(accountId)
  await cloud.openAccount(accountId)
})
afterAll(() => cloud.close())

/** The ports that the controller would bring about now. */
async function portsOfServers() {
  const caches = openCaches({
    store: cloud.kubectl,
    clock,
    random,
    log,
    registry: openRegistry({ isProcessWide: false }),
  })
  const ovn = openSimulatedOvn()
  const parts = { store: cloud.kubectl, caches, db: database.db, clock, random, log, ovn }
  const reconciler = publicPortController.open(parts as never) // parts of the network are all that it opens
  const { items } = await cloud.kubectl.list(Server)
  if (reconciler === undefined) throw new Error('there is a northbound database')
  for (const { type } of reconciler.watches) caches.of(type)
  const ending = new AbortController()
  caches.start(ending.signal)
  await caches.ready()
  const observed = await Promise.all(items.map((server) => reconciler.observe(server, clock.now())))
  ending.abort()
  return (observed as readonly Observed[]).flatMap(({ wanted }) => wanted?.port ?? []) // as the controller observes
}

const hasRows = (serverUid: string) => Promise.resolve(cloud.ovn.owners.has(`${ZONE} PublicPort/${serverUid}`))

test('a guest has the port that its server has claimed, for any Instances', async () => {
  for (const uid of ['left', 'missing'])
    await cloud.ovn.apply({
      zone: ZONE,
      owner: `PublicPort/${uid}`,
      rows: [{ table: 'DNS', key: uid, columns: {} }],
    })
  const deleted = { kind: 'Server', namespace, name: 'gone', uid: 'left' }
  await orderRemoval(database.db, deleted, { reason: 'deleted', clock, random })
  const stop = cloud.startControllers()
  // the API server fills in the defaults
  const spec = { hostname: 'web', zone: ZONE, plan: 'tiny', template: 'tiny-linux' } as unknown as ServerSpec
  await cloud.kubectl.create(Server, { metadata: { name: 'web', namespace }, spec })
  const server = await until(
    'started',
    () => cloud.kubectl.get(Server, { namespace, name: 'web' }),
    (observed) => observed?.status?.state === 'started',
  )
  await until('its port in the network', () => hasRows(server?.metadata.uid ?? ''), Boolean)
  await until(
    'what a server has left behind to go',
    () => hasRows('left'),
    (isThere) => !isThere,
  )
  expect(await hasRows('missing')).toBe(true) // nobody deleted that one
  await until(
    'both hosts to be known',
    () => database.db.selectFrom('node_capacity').select('node').execute(),
    (known) => known.length === NODES.length,
  )
  await stop()
  const claims = await findServerClaims(database.db, { accountId, serverId: 'web' })
  const own = {
    name: server?.metadata.uid,
    macAddress: claims?.macAddress,
    ipv6Prefixes: [],
    nodes: [claims?.placement.node],
  }
  expect(await portsOfServers()).toEqual([own])

  const name = server?.metadata.uid ?? ''
  const [home = '', other = ''] = claims?.placement.node === 'n1' ? NODES : NODES.toReversed()
  const known = await cloud.kubectl.get(Instance, { namespace: nodeNamespace(home), name })
  if (known === undefined) throw new Error('a server that has started has an instance')
  const forged = { ...known.spec, interfaces: STOLEN }
  // One of the same name on another host, one of another guest with its address, and its own with another address.
  await cloud.kubectl.create(Instance, { metadata: { namespace: nodeNamespace(other), name }, spec: known.spec })
  await cloud.kubectl.create(Instance, { metadata: { namespace: nodeNamespace(other), name: 'forged' }, spec: forged })
  await cloud.kubectl.patch(Instance, { namespace: nodeNamespace(home), name }, { spec: { interfaces: STOLEN } })
  expect(await portsOfServers()).toEqual([own])
})

test('a server on its way to another node of the zone has both nodes', async () => {
  const [{ node } = { node: '' }] = await database.db.selectFrom('placement').select('node').execute()
  const target = node === 'n1' ? 'n2' : 'n1'
  await database.db
    .insertInto('placement_target')
    .values({
      account_id: accountId,
      server_id: 'web',
      operation_id: 'op-1',
      zone: ZONE,
      node: target,
      cores: 1,
      memory_mebibytes: 192,
      storage_gibibytes: 1,
      reserved_at: clock.now(),
    })
    .execute()
  expect((await portsOfServers()).map(({ nodes }) => nodes)).toEqual([[node, target]])
  await database.db.updateTable('placement_target').set({ zone: 'another' }).execute()
  expect((await portsOfServers()).map(({ nodes }) => nodes)).toEqual([[node]])
})

test('the port goes with its server, however often the network is away', async () => {
  const key = { namespace, name: 'web' }
  const uid = (await cloud.kubectl.get(Server, key))?.metadata.uid ?? ''
  await database.db.deleteFrom('placement_target').execute()
  expect(await hasRows(uid)).toBe(true)
  cloud.ovn.fail('lost', 'unanswered', 'lost')
  const stop = cloud.startControllers()
  await cloud.kubectl.delete(Server, key)
  await until(
    'the server to go',
    () => cloud.kubectl.get(Server, key),
    (server) => server === undefined,
  )
  await stop()
  expect(await hasRows(uid)).toBe(false)
})

/** Part of the port controller over a separate network, for a server that has no claims. */
async function openPorts(uid: string) {
  const ovn = openSimulatedOvn()
  await ovn.apply({ zone: ZONE, owner: 'zone', rows: rowsOf({ zone: ZONE, subnets: [], gatewayNodes: [] }) })
  const reconciler = publicPortController.open({ db: database.db, ovn } as never) // it opens parts of the network only
  if (reconciler === undefined) throw new Error('there is a northbound database')
  const server = { metadata: { namespace, name: uid, uid }, spec: {} } as KubeObject // the rest is not looked at
  const port = { name: uid, macAddress: '52:54:00:00:00:01', ipv6Prefixes: [], nodes: ['n1'] }
  const connect = () => reconciler.effects?.['connect']?.({ zone: ZONE, port }, server)
  return {
    connect,
    async reconcile() {
      const observed = (await reconciler.observe(server as never, clock.now())) as Observed
      for (const action of plan(server as never, observed))
        if (action.do === 'effect') await reconciler.effects?.[action.name]?.(action.input, server)
    },
    order: () =>
      orderRemoval(database.db, { kind: 'Server', namespace, name: uid, uid }, { reason: 'deleted', clock, random }),
    owners: () => ovn.ownersIn(ZONE),
  }
}

test('a port that is brought about while its server gives everything back does not stay', async () => {
  const { connect, order, owners } = await openPorts('gone')
  await order()
  await connect()
  expect(await owners()).toEqual(['zone'])
})

test('a port stays while its claims are missing, until the deletion of its server is ordered', async () => {
  const { connect, reconcile, order, owners } = await openPorts('forgotten')
  await connect()
  expect(await owners()).toEqual(['zone', 'PublicPort/forgotten'])
  await reconcile()
  expect(await owners()).toEqual(['zone', 'PublicPort/forgotten'])
  await order()
  await reconcile()
  expect(await owners()).toEqual(['zone'])
})

test('a pool that is missing stays in the network of its zone until it is deleted', async () => {
  const pool = { id: 'yesterday', zone: ZONE, family: 'ipv4', use: 'server_ipv4', state: 'active' } as const
  await database.db.transaction().execute((tx) => mirrorPool(tx, { ...pool, cidr: '203.0.113.0/24' }))
  const caches = openCaches({
    store: cloud.kubectl,
    clock,
    random,
    log,
    registry: openRegistry({ isProcessWide: false }),
  })
  const parts = { caches, db: database.db, ovn: openSimulatedOvn() }
  const reconciler = publicNetworkController.open(parts as never) // parts of the network are all that it opens
  if (reconciler === undefined) throw new Error('there is a northbound database')
  const subnets = async () => {
    const zone = { metadata: { name: ZONE }, spec: {} } as KubeObject // the rest is not looked at
    const { network } = (await reconciler.observe(zone as never, clock.now())) as { network: PublicNetwork }
    return network.subnets.map(({ cidr }) => cidr)
  }
  expect(await subnets()).toEqual(['203.0.113.0/24'])
  await database.db.transaction().execute((tx) => forgetPool(tx, pool.id))
  expect(await subnets()).toEqual([])
})
