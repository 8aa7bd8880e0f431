/** The life of network edges with real controllers, a real database and simulated hosts, with kubectl, down to the rows
 *  of a simulated OVN. */
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { parse } from 'yaml'
import { readMachineDocument } from '../../../../agents/node/secrets.ts'
import { storedOf } from '../../../../resources/kit/shapes.ts'
import { listQuotas } from '../../../../db/account/index.ts'
import { findEdgeOf } from '../../../../db/edge/index.ts'
import { SYSTEM_ACTOR } from '../../../../controllers/kit/operation/direct-edit.ts'
import { nodeNamespace } from '../../../../resources/instance/index.ts'
import { edgeConfiguration, Edge, toEdgeItem } from '../../../../resources/edge/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { LoadBalancer } from '../../../../resources/load-balancer/index.ts'
import { MachineDocument, ManagedMachine } from '../../../../resources/managed-machine/index.ts'
import { Network } from '../../../../resources/network/index.ts'
import { Router, type RouterSpec } from '../../../../resources/router/index.ts'
import { Server } from '../../../../resources/server/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, NODE, ZONE } from '../../cloud.ts'
import { openNetworkedCloud } from '../../networked-cloud.ts'
import { until } from '../../until.ts'

const database = useDatabase()
let cloud: Cloud
let stop: () => Promise<void>
let accountId: string
let namespace: string

beforeAll(async () => {
  ;({ cloud, stop } = await openNetworkedCloud(database.db, {
    templates: ['managed-machine'],
    pools: { server_ipv4: '203.0.113.0/28', server_ipv6_prefix: '2001:db8::/48' },
  }))
})
afterAll(() => stop())
beforeEach(async () => {
  accountId = await createAccount(database.db)
  await cloud.openAccount(accountId)
  namespace = accountNamespace(accountId)
})

const key = (name: string) => ({ namespace, name })
const example = async (file: string) => {
  const { metadata, spec } = parse(await readFile(`examples/networks/${file}.yaml`, 'utf8'))
  // machines of the only plan that there is here
  return { metadata: { ...metadata, namespace }, spec: { ...spec, zone: ZONE, ...(spec.plan && { plan: 'tiny' }) } }
}
const edge = () => cloud.kubectl.get(Edge, key('back-edge'))
const rowsOf = (owner: string) => cloud.ovn.owners.get(`${ZONE} ${owner}`) ?? []
const used = async (quota: string) =>
  (await listQuotas(database.db, accountId)).find(({ name }) => name === quota)?.used
const machines = async () =>
  (await cloud.kubectl.list(Server, { namespace })).items.filter(({ spec }) => spec.managedBy !== undefined)

const deliveredHostKey = async (uid = ''): Promise<string | undefined> => {
  const text = await readMachineDocument(cloud.kubectl, nodeNamespace(NODE), `machine-${uid}`)
  return MachineDocument.parse(JSON.parse(text)).bastion?.hostKey
}

/** Guests that run what they get, as their hosts report it. */
function startGuests(): () => Promise<void> {
  let isStopped = false
  const work = (async () => {
    while (!isStopped) {
      const { items } = await cloud.kubectl.list(ManagedMachine, { namespace: nodeNamespace(NODE) })
      for (const { metadata, spec, status } of items) {
        if (spec.configuration === undefined || status?.running?.fingerprint === spec.configuration.fingerprint)
          continue
        const { generation, fingerprint } = spec.configuration
        const report = { running: { generation, fingerprint }, isHealthy: true, detail: '' }
        const at = { namespace: nodeNamespace(NODE), name: metadata.name }
        await cloud.kubectl.patch(ManagedMachine, at, { status: report }, 'status').catch(() => {}) // gone meanwhile
      }
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  })()
  return async () => {
    isStopped = true
    await work
  }
}

const succeeded = (what: string) =>
  until(
    what,
    edge,
    (found) =>
      found?.status?.operation?.status === 'succeeded' &&
      found.spec.operation?.id === found.status.operation.id &&
      found.status.asked === edgeConfiguration(found).fingerprint,
  )

test('an edge comes after its network, leads it out, changes, and leaves nothing', async () => {
  const stopGuests = startGuests()
  const before = { servers: await used('servers') }
  await cloud.kubectl.create(Edge, (await example('edge')) as never)
  await until('a wait', edge, (found) => found?.status?.state === 'creating')
  const network = await cloud.kubectl.create(Network, (await example('network')) as never)
  const made = await succeeded('a whole edge')
  expect(made?.status).toMatchObject({ state: 'running', machines: [{ name: 'combined', isHealthy: true }] })
  const [machine] = made?.status?.machines ?? []
  expect(machine?.publicIpv4).toMatch(/^203\.0\.113\./)
  expect(machine?.privateIpv4).toMatch(/^10\.1\.0\./)
  expect(await used('edges')).toBe(1)

  const gateway = { ipv4: machine?.privateIpv4, ipv6: machine?.privateIpv6 }
  const id = { accountId, networkId: 'back' }
  expect((await findEdgeOf(database.db, id))?.gateway).toEqual(gateway)
  const own = `Edge/${made?.metadata.uid}`
  const routesOf = (owner: string) =>
    Object.fromEntries(
      rowsOf(owner)
        .filter(({ table }) => table === 'Logical_Router_Static_Route')
        .map(({ columns }) => [columns['ip_prefix'], columns['nexthop']]),
    )
  expect(routesOf(own)).toEqual({ '0.0.0.0/0': gateway.ipv4, '64:ff9b::/96': gateway.ipv6 })
  const told = () => JSON.stringify(rowsOf(`Network/${network.metadata.uid}`))
  expect(told()).toContain(`0.0.0.0/0,10.1.0.1`)
  expect(told()).toContain(`{${gateway.ipv6}}`)

  // A router of the customer takes the routes over.
  const router = {
    metadata: key('out'),
    spec: { zone: ZONE, name: 'out', networkIds: ['back'] } as never as RouterSpec,
  }
  const { metadata } = await cloud.kubectl.create(Router, router)
  await until(
    'routes at the router',
    async () => routesOf(`Router/${metadata.uid}`),
    (routes) => routes['64:ff9b::/96'] === gateway.ipv6,
  )
  await until(
    'none at the edge',
    async () => rowsOf(own).length,
    (count) => count === 0,
  )

  await cloud.kubectl.patch(Edge, key('back-edge'), { spec: { roles: ['bastion'], members: [] } })
  const changed = await succeeded('another edge')
  expect(changed?.status?.configuration?.generation).toBe(2)
  expect((await findEdgeOf(database.db, id))?.gateway).toBeUndefined()
  await until(
    'no routes',
    async () => Object.keys(routesOf(`Router/${metadata.uid}`)),
    (routes) => routes.length === 0,
  )
  expect(told()).not.toContain(String(gateway.ipv6))

  await cloud.kubectl.delete(Edge, key('back-edge'))
  await until('nothing', edge, (found) => found === undefined)
  expect(await machines()).toEqual([])
  expect(rowsOf(own)).toEqual([])
  expect([await used('edges'), await used('servers')]).toEqual([0, before.servers])
  expect(await findEdgeOf(database.db, id)).toBeUndefined()
  await stopGuests()
})

test('a missing machine is created again by the platform', async () => {
  const stopGuests = startGuests()
  await cloud.kubectl.create(Network, (await example('network')) as never)
  await cloud.kubectl.create(Edge, (await example('edge')) as never)
  const made = await succeeded('a whole edge')
  const [lost] = await machines()
  const hostKey = await deliveredHostKey(lost?.metadata.uid)
  expect(made && toEdgeItem(storedOf(made)).bastion_host_keys).toEqual([expect.stringMatching(/^ssh-ed25519 /)])
  expect(hostKey).toMatch(/^-----BEGIN OPENSSH PRIVATE KEY-----/)
  await cloud.kubectl.delete(Server, { namespace, name: lost?.metadata.name ?? '' })
  const repaired = await until(
    'another machine',
    async () => ({ machine: (await machines())[0], found: await edge() }),
    ({ machine, found }) =>
      machine !== undefined &&
      machine.metadata.uid !== lost?.metadata.uid &&
      found?.status?.operation?.status === 'succeeded' &&
      found.spec.operation?.arguments?.['action'] === 'repair' &&
      found.status.machines?.[0]?.isHealthy === true,
  )
  expect(repaired.found).toMatchObject({
    status: { state: 'running' },
    spec: { operation: { actor: 'system:controllers' } },
  })
  // Clients of the bastion see no difference.
  expect(repaired.found?.status?.hostKey).toBe(made?.status?.hostKey)
  expect(await deliveredHostKey(repaired.machine?.metadata.uid)).toBe(hostKey)
  const { sealed_host_key: sealed } = await database.db.selectFrom('edge').selectAll().executeTakeFirstOrThrow()
  expect(sealed).toMatch(/^test\.[\w-]+$/)
  await cloud.kubectl.delete(Edge, key('back-edge'))
  await until('nothing', edge, (found) => found === undefined)
  await stopGuests()
})

test('one with separate placement has a managed load balancer, which follows it and goes with it', async () => {
  const stopGuests = startGuests()
  const before = { servers: await used('servers') }
  const balancers = async () => (await cloud.kubectl.list(LoadBalancer, { namespace })).items
  const member = { name: 'web', frontendPort: 80, address: '10.1.0.9', port: 8080 }
  const { metadata, spec } = await example('edge')
  await cloud.kubectl.create(Network, (await example('network')) as never)
  const separate = { ...spec, roles: ['nat_gateway', 'load_balancer'], placement: 'separate', members: [member] }
  await cloud.kubectl.create(Edge, { metadata, spec: separate } as never)
  const made = await succeeded('a whole edge')
  expect(made?.status).toMatchObject({ state: 'running', machines: [{ name: 'nat', isHealthy: true }] })
  const [balancer] = await balancers()
  expect(balancer).toMatchObject({
    spec: { managedBy: `edge:${made?.metadata.name}`, frontends: [{ port: 80 }], operation: { actor: SYSTEM_ACTOR } },
    status: { isMade: true, isHealthy: true },
  })
  expect(made?.status?.balancer).toMatchObject({ id: balancer?.metadata.name, isHealthy: true })
  expect(made?.status?.balancer?.publicIpv4).toMatch(/^203\.0\.113\./)
  expect(await machines()).toHaveLength(3)
  expect([await used('edges'), await used('load_balancers')]).toEqual([1, 1])

  await cloud.kubectl.patch(Edge, key('back-edge'), { spec: { members: [{ ...member, frontendPort: 81 }] } })
  await succeeded('other members')
  expect((await balancers())[0]?.spec.frontends).toMatchObject([{ port: 81 }])
  await cloud.kubectl.delete(LoadBalancer, key(balancer?.metadata.name ?? ''))
  await until(
    'another one',
    balancers,
    ([again]) => again?.status?.isMade === true && again.metadata.uid !== balancer?.metadata.uid,
  )
  await succeeded('a whole edge again')

  await cloud.kubectl.patch(Edge, key('back-edge'), { spec: { roles: ['nat_gateway'], members: [] } })
  await succeeded('an edge without load balancer')
  expect([await balancers(), await machines()]).toMatchObject([[], [{}]])
  expect(await used('load_balancers')).toBe(0)
  await cloud.kubectl.patch(Edge, key('back-edge'), { spec: { roles: ['load_balancer'], members: [member] } })
  await until(
    'a load balancer again',
    async () => ({ balancer: (await balancers())[0], status: (await edge())?.status }),
    ({ balancer: again }) => again !== undefined,
  )

  await cloud.kubectl.delete(Edge, key('back-edge'))
  await until('nothing', edge, (found) => found === undefined)
  expect([await balancers(), await machines()]).toEqual([[], []])
  expect([await used('edges'), await used('load_balancers'), await used('servers')]).toEqual([0, 0, before.servers])
  await stopGuests()
})
