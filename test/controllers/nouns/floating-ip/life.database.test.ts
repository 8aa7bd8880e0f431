/** The life of what a server has in the network, with real controllers and a real database, with kubectl, down to the
 *  rows of a simulated OVN: firewall, interfaces, floating IPs. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { floatingIpController } from '../../../../controllers/nouns/floating-ip/index.ts'
import { type FloatingIpObject, type Observed, plan } from '../../../../controllers/nouns/floating-ip/plan.ts'
import { listQuotas } from '../../../../db/account/index.ts'
import { listAudit } from '../../../../db/audit/index.ts'
import { orderRemoval } from '../../../../db/removal/index.ts'
import { systemRandom } from '../../../../kit/sys/random.ts'
import { FloatingIp } from '../../../../resources/floating-ip/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Network, type NetworkSpec } from '../../../../resources/network/index.ts'
import { Router, type RouterSpec } from '../../../../resources/router/index.ts'
import { Server, type ServerSpec } from '../../../../resources/server/index.ts'
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
  ;({ cloud, stop } = await openNetworkedCloud(database.db, {
    pools: { edge: '203.0.113.0/29', floating_ipv4: '203.0.113.64/29', server_ipv4: '198.51.100.0/24' },
  }))
  accountId = await createAccount(database.db)
  await cloud.openAccount(accountId)
  namespace = accountNamespace(accountId)
  const network = { zone: ZONE, name: 'back', ipv4Cidr: '10.1.0.0/24' } as NetworkSpec // has defaults
  await cloud.kubectl.create(Network, { metadata: key('back'), spec: network })
  const router = { zone: ZONE, name: 'out', natEnabled: true, networkIds: ['back'] }
  await cloud.kubectl.create(Router, { metadata: key('out'), spec: router as RouterSpec }) // has defaults
})
afterAll(() => stop())

const key = (name: string) => ({ namespace, name })
const makeServer = (name: string, more: Partial<ServerSpec> = {}) =>
  cloud.kubectl.create(Server, {
    metadata: key(name),
    spec: {
      hostname: name,
      zone: ZONE,
      plan: 'tiny',
      template: 'tiny-linux',
      sshKeys: ['ssh-ed25519 AAAA'],
      publicIpv4: true,
      ...more,
    } as ServerSpec, // has defaults
  })
const server = (name: string) => cloud.kubectl.get(Server, key(name))
const operated = (name: string, kind: string, status = 'succeeded') =>
  until(
    `${name} ${kind} ${status}`,
    () => server(name),
    (found) => found?.status?.operation?.kind === kind && found.status.operation.status === status,
  )
const floating = (name: string, holds: (serverId: string | undefined, isDone: boolean) => boolean) =>
  until(
    `${name} assigned`,
    () => cloud.kubectl.get(FloatingIp, key(name)),
    (found) => holds(found?.status?.serverId, found?.status?.operation?.status === 'succeeded'),
  )
const rowsOf = (owner: string) => cloud.ovn.owners.get(`${ZONE} ${owner}`) ?? []
const tablesOf = (owner: string) => [...new Set(rowsOf(owner).map(({ table }) => table))].sort()
const actions = async (type: string) =>
  (await listAudit(database.db, accountId, { limit: 100 }))
    .filter((entry) => entry.resource_type === type)
    .map(({ action }) => action)
    .toReversed()
const used = async (quota: string) =>
  (await listQuotas(database.db, accountId)).find(({ name }) => name === quota)?.used

test('a server has its firewall, its interfaces and its floating IP, and leaves nothing', async () => {
  const { metadata } = await makeServer('web', {
    networks: [{ networkId: 'back', ipv4Address: '10.1.0.9' }],
    firewall: { enabled: true, defaultInbound: 'drop', defaultOutbound: 'accept', rules: [] },
  })
  const owner = `Server/${metadata.uid}`
  await operated('web', 'server.create')
  const filtered = await until(
    'the firewall applied',
    () => server('web'),
    (found) => found?.status?.firewall?.appliedGeneration === 1,
  )
  expect(filtered?.status?.interfaces).toMatchObject([{ networkId: 'back', ipv4Address: '10.1.0.9' }])
  const [port] = filtered?.status?.interfaces ?? []
  expect(tablesOf(owner)).toEqual(['ACL', 'DNS', 'Logical_Switch_Port', 'Port_Group'])
  expect(JSON.stringify(rowsOf(owner).find(({ table }) => table === 'Port_Group'))).toContain(port?.id)

  const ip = await cloud.kubectl.create(FloatingIp, {
    metadata: key('front'),
    spec: { zone: ZONE, serverId: 'web', target: 'private:back' },
  })
  await floating('front', (serverId, isDone) => serverId === 'web' && isDone)
  const forwarding = `FloatingIP/${ip.metadata.uid}`
  expect(rowsOf(forwarding).find(({ table }) => table === 'NAT')?.columns).toMatchObject({
    type: 'dnat_and_snat',
    logical_ip: '10.1.0.9',
  })

  await cloud.kubectl.patch(FloatingIp, key('front'), { spec: { target: 'public' } })
  await until(
    'the public target',
    () => Promise.resolve(rowsOf(forwarding).find(({ table }) => table === 'NAT')?.columns['type']),
    (type) => type === 'dnat',
  )

  await cloud.kubectl.patch(Server, key('web'), { spec: { networks: [] } })
  await operated('web', 'server.detach_network')
  expect(tablesOf(owner)).toEqual(['ACL', 'Port_Group'])
  expect((await server('web'))?.status).not.toHaveProperty('interfaces')
  await cloud.kubectl.patch(Server, key('web'), { spec: { networks: [{ networkId: 'back' }] } })
  await operated('web', 'server.attach_network')
  expect((await server('web'))?.status?.interfaces).toMatchObject([{ ipv4Address: '10.1.0.2' }])

  const rule = { direction: 'in', action: 'accept', protocol: 'tcp', portStart: 22 }
  await cloud.kubectl.patch(Server, key('web'), { spec: { firewall: { rules: [rule] } } })
  await operated('web', 'server.firewall')
  expect((await server('web'))?.status?.firewall).toMatchObject({ generation: 2, appliedGeneration: 2 })
  expect(JSON.stringify(rowsOf(owner))).toContain('tcp.dst >= 22')

  await makeServer('db')
  await operated('db', 'server.create')
  await cloud.kubectl.patch(FloatingIp, key('front'), { spec: { serverId: 'db' } })
  await floating('front', (serverId, isDone) => serverId === 'db' && isDone)

  for (const name of ['web', 'db']) await cloud.kubectl.delete(Server, key(name))
  await until(
    'it unassigned',
    () => cloud.kubectl.get(FloatingIp, key('front')),
    (found) =>
      found?.spec.serverId === undefined &&
      found?.status?.operation?.id === found?.spec.operation?.id &&
      found?.status?.operation?.status === 'succeeded',
  )
  await until(
    'the servers gone',
    () => Promise.all([server('web'), server('db')]),
    (found) => found.every((each) => each === undefined),
  )
  expect(rowsOf(owner)).toEqual([])
  expect(rowsOf(forwarding)).toEqual([])

  await cloud.kubectl.delete(FloatingIp, key('front'))
  await until(
    'the floating IP gone',
    () => cloud.kubectl.get(FloatingIp, key('front')),
    (found) => found === undefined,
  )
  expect(await used('floating_ips')).toBe(0)
  expect(await database.db.selectFrom('network_interface').selectAll().execute()).toEqual([])
  expect(await database.db.selectFrom('floating_ip').selectAll().execute()).toEqual([])
  expect(await actions('floating_ip')).toEqual([
    'floating_ip.allocate',
    'floating_ip.assign',
    'floating_ip.assign',
    'floating_ip.unassign',
    'floating_ip.release',
  ])
})

test('an assignment that PostgreSQL has forgotten is claimed again, and reaches the server meanwhile', async () => {
  await makeServer('kept')
  await operated('kept', 'server.create')
  const spec = { zone: ZONE, serverId: 'kept', target: 'public' }
  const ip = await cloud.kubectl.create(FloatingIp, { metadata: key('kept'), spec })
  await floating('kept', (serverId, isDone) => serverId === 'kept' && isDone)
  const before = rowsOf(`FloatingIP/${ip.metadata.uid}`)
  expect(before).not.toEqual([])
  await database.db.updateTable('floating_ip').set({ server_id: null }).execute()
  await cloud.kubectl.patch(FloatingIp, key('kept'), { metadata: { labels: { look: 'again' } } })
  await until(
    'the assignment claimed again',
    () => database.db.selectFrom('floating_ip').select('server_id').executeTakeFirst(),
    (row) => row?.server_id === 'kept',
  )
  await floating('kept', (serverId, isDone) => serverId === 'kept' && isDone)
  expect(rowsOf(`FloatingIP/${ip.metadata.uid}`)).toBe(before) // a removal in between would have made others
})

/** What the controller sees, and the names of its actions, when Kubernetes has this floating IP and nothing else. */
async function seenAlone(ip: FloatingIpObject, ovn?: Pick<Cloud['ovn'], 'forwardsTo'>) {
  const nothing = { get: () => undefined, list: () => [], inNamespace: () => [], addIndex() {} }
  const parts = { db: database.db, ovn, caches: { of: () => nothing }, store: { get: async () => undefined } }
  const reconciler = floatingIpController.open(parts as never) // what it opens and observes needs no more
  const observed = (await reconciler?.observe(ip, fastClock.now())) as Observed
  return { observed, actions: plan(ip, observed, fastClock.now()).map((action) => action.do) }
}

async function allocated(name: string): Promise<FloatingIpObject> {
  await cloud.kubectl.create(FloatingIp, { metadata: key(name), spec: { zone: ZONE } })
  const found = await until(
    `${name} allocated`,
    () => cloud.kubectl.get(FloatingIp, key(name)),
    (ip) => ip?.status?.address !== undefined && ip.status.operation?.status !== 'running',
  )
  if (found === undefined) throw new Error('it was there just now')
  return found
}

test('an assignment stays while its server is missing in both stores, until its deletion is ordered', async () => {
  const { spec, status, ...ip } = await allocated('pinned')
  const assigned = {
    ...ip,
    spec: { ...spec, serverId: 'lost', target: 'public' },
    status: { ...status, serverId: 'lost', target: 'public' },
  } as FloatingIpObject // has a status
  const forgotten = await seenAlone(assigned)
  expect(forgotten.observed).toMatchObject({ claim: { serverId: undefined }, server: 'unmade' })
  expect(forgotten.actions).not.toContain('change')
  expect(forgotten.actions).not.toContain('effect')
  const removed = { kind: Server.kind, namespace, name: 'lost', uid: 'lost-uid' }
  await orderRemoval(database.db, removed, { reason: 'deleted', clock: fastClock, random: systemRandom })
  const ordered = await seenAlone(assigned)
  expect(ordered.observed.server).toBe('gone')
  expect(ordered.actions).toContain('change')
})

test('an assignment that both stores have lost forwards to no address that another server holds', async () => {
  const holder = await makeServer('holder')
  await operated('holder', 'server.create')
  const held = (await server('holder'))?.status?.publicIpv4 ?? ''
  const { spec, status, ...ip } = await allocated('astray')
  const assigned = { ...ip, spec: { ...spec, serverId: 'never', target: 'public' }, status } as FloatingIpObject
  const forwarding = (address: string) => seenAlone(assigned, { forwardsTo: async () => [address] })
  expect((await forwarding('198.51.100.250')).observed.isTargetTaken).toBe(false)
  expect((await forwarding(held)).observed.isTargetTaken).toBe(true)
  const owner = { zone: ZONE, owner: `FloatingIP/${holder.metadata.uid}` }
  const columns = { type: 'dnat', external_ip: '203.0.113.70', logical_ip: held }
  const rows = [
    { table: 'Logical_Router_Static_Route', key: 'way', columns: {} },
    { table: 'NAT', key: 'one', columns },
  ]
  await cloud.ovn.apply({ ...owner, rows } as Parameters<Cloud['ovn']['apply']>[0]) // as much as is read
  expect(await cloud.ovn.forwardsTo(owner)).toEqual([held])
})
