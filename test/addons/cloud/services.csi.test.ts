/** Services of a cluster of the running product become load balancers: by the add-on that its host runs, with the
 *  rights and the token that it has, killed again and again. Of nodes there are their objects only, and the guests of
 *  balancers are played. */
import { readdir, readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { createClient, type Schemas, unwrap, waitForOperation } from '../../../client/index.ts'
import { findKubernetes } from '../../../hosting/processes/programs.ts'
import type { ControlPlaneState } from '../../../integrations/control-planes/control.ts'
import { openClient } from '../../../kit/kube/client.ts'
import { openHttpsTransport } from '../../../kit/kube/https-transport.ts'
import { readKubeconfig } from '../../../kit/kube/kubeconfig.ts'
import type { Store } from '../../../kit/kube/store.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { signalProcess } from '../../../kit/sys/process.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { ManagedMachine } from '../../../resources/managed-machine/index.ts'
import { NodePool } from '../../../resources/node-pool/index.ts'
import { Customer } from '../../e2e/customer.ts'
import { clearAway, newFolder, Product } from '../../e2e/product.ts'
import { type KubeClient, kubeClient } from '../../hosting/processes/hosted.ts'
import { eventually, until } from '../../eventually.ts'

const ZONE = 'eu-1a'
const NODE = 'worker'
const PLATFORM = '/apis/svccloud.dev/v1alpha1'
const SERVICES = '/api/v1/namespaces/default/services'
const PROGRAM = 'addons/cloud/main.ts'

let data: string
let product: Product
let customer: Customer
let client: ReturnType<typeof createClient>
let namespace: string
let cluster: Schemas['KubernetesCluster']
let admin: KubeClient
/** The platform's own objects, as its controllers write them. */
let store: Store
let closeStore: () => Promise<void>
async function begin(): Promise<void> {
  data = await newFolder()
  product = await Product.start({
    data,
    flags: ['--hypervisor', 'simulated', '--nodes', `${ZONE}=2`],
    warnings: [],
  })
  customer = await Customer.signUp(() => product, 'services@example.com')
  await customer.addSshKey()
  const { transport, close } = openHttpsTransport(
    await readKubeconfig(join(data, 'access/controllers.kubeconfig'), systemClock),
  )
  store = openClient({ transport, fieldManager: 'test', clock: systemClock, random: systemRandom })
  closeStore = close
  client = createClient({ url: product.endpoints.api_url, token: customer.token })
  for (const [use, family, cidr] of [
    ['server_ipv4', 'ipv4', '198.51.100.0/24'],
    ['server_ipv6_prefix', 'ipv6', '2001:db8::/48'],
  ])
    await create('publicpools', { metadata: { name: family }, spec: { zone: ZONE, family, cidr, use } })
  const { network } = await unwrap(client.POST('/v1/networks', { body: { zone: ZONE, name: 'back' } }))
  const asked = { zone: ZONE, name: 'shop', network_id: network.id, public_ipv4: false }
  const made = await until(
    'Kubernetes',
    slowly(() => client.POST('/v1/kubernetes-clusters', { body: asked })),
    ({ response }) => response.status === 202,
  )
  const { operation, kubernetes_cluster } = await unwrap(Promise.resolve(made))
  await waitForOperation(client, operation.id)
  cluster = kubernetes_cluster
  await joinNode(network.id)
}

/** As often as the platform lets people ask. */
const slowly =
  <Value>(look: () => Promise<Value>) =>
  async () => {
    await sleep(500)
    return look()
  }

const create = (plural: string, body: { metadata: object; spec: object }, path = PLATFORM) =>
  product.kubernetes(`${path}/${plural}`, { method: 'POST', body: { ...kindOf(plural), ...body } })
const kindOf = (plural: string) => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: { publicpools: 'PublicPool', nodepools: 'NodePool' }[plural],
})

/** A server in the network that is said to be the node of a pool; hosts that are simulated have no image of nodes. */
async function joinNode(networkId: string): Promise<void> {
  const { server, operation } = await customer.createServer({
    zone: ZONE,
    hostname: NODE,
    plan: 'tiny',
    template: 'tiny-linux',
    networks: [{ network_id: networkId }],
  })
  await waitForOperation(client, operation.id)
  namespace = (await product.kubernetes(`${PLATFORM}/servers`)).items[0]?.metadata.namespace ?? ''
  const pool = { clusterId: cluster.id, zone: ZONE, name: 'web', plan: 'starter-1c-1g', version: '1.36', count: 1 }
  await eventually(
    'a pool',
    slowly(async () => {
      const status = { builtTemplates: ['debian-13', 'kubernetes-node', 'managed-machine', 'tiny-linux'] }
      await store.patch(Zone, { name: ZONE }, { status }, 'status')
      await create('nodepools', { metadata: { name: 'web' }, spec: pool }, `${PLATFORM}/namespaces/${namespace}`)
      return true
    }),
  )
  const node = { hostname: NODE, serverId: server.id, state: 'started', isReady: true, kubeletVersion: 'v1.36.3' }
  await store.patch(NodePool, { namespace, name: 'web' }, { status: { nodes: [node] } }, 'status')
  const { kubeconfig } = await unwrap(
    client.GET('/v1/kubernetes-clusters/{id}/kubeconfig', { params: { path: { id: cluster.id } } }),
  )
  const { clusters, users } = parse(kubeconfig) as {
    clusters: { cluster: { server: string; 'certificate-authority-data': string } }[]
    users: { user: { token: string } }[]
  }
  const [
    {
      cluster: { server: endpoint, 'certificate-authority-data': authority },
    } = missing(),
  ] = clusters
  const certificateAuthority = Buffer.from(authority, 'base64').toString()
  // what it looks at of a state
  admin = kubeClient({ endpoint, certificateAuthority } as ControlPlaneState, users[0]?.user.token)
  expect((await admin.send('POST', '/api/v1/nodes', { metadata: { name: NODE } })).status).toBe(201)
  const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady', message: '' }
  await patch(`/api/v1/nodes/${NODE}/status`, { status: { conditions: [ready] } })
}
const missing = (): never => {
  throw new Error('it is missing')
}
const patch = (path: string, body: object) => admin.send('PATCH', path, body, 'application/merge-patch+json')

/** Of this product. */
async function processIds(): Promise<readonly number[]> {
  const pids = (await readdir('/proc')).map(Number).filter(Number.isInteger)
  const commandOf = (pid: number) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
  // It runs in the folder of its control plane.
  const folderOf = (pid: number) => readlink(`/proc/${pid}/cwd`).catch(() => '')
  const found = await Promise.all(
    pids.map(async (pid) => {
      const isOurs = (await commandOf(pid)).includes(PROGRAM) && (await folderOf(pid)).startsWith(data)
      return isOurs ? [pid] : []
    }),
  )
  return found.flat()
}

let kills = 0
/** While the work goes on, at moments that nobody chooses. */
async function killing<Value>(work: () => Promise<Value>): Promise<Value> {
  let isOver = false
  const killer = (async () => {
    for (let milliseconds = 300; !isOver; milliseconds = Math.min(15_000, milliseconds * 1.5)) {
      await sleep(milliseconds)
      for (const pid of await processIds()) if (signalProcess(pid, 'SIGKILL')) kills++
    }
  })()
  try {
    return await work()
  } finally {
    isOver = true
    await killer
  }
}

async function end(): Promise<void> {
  await closeStore?.()
  await clearAway(product, data)
}

/** The guests of balancers run what was delivered to them. */
async function play(): Promise<void> {
  for (const { metadata, spec } of (await store.list(ManagedMachine)).items) {
    if (spec.configuration === undefined) continue
    const { generation, fingerprint } = spec.configuration
    const status = { running: { generation, fingerprint }, isHealthy: true, detail: '' }
    await store.patch(
      ManagedMachine,
      { namespace: metadata.namespace ?? '', name: metadata.name },
      { status },
      'status',
    )
  }
}

const balancers = async () => {
  await play()
  const label = [`kubernetes-cluster=${cluster.id}`]
  const { items } = await unwrap(client.GET('/v1/load-balancers', { params: { query: { label } } }))
  const reading = items.map(({ id }) => unwrap(client.GET('/v1/load-balancers/{id}', { params: { path: { id } } })))
  return (await Promise.all(reading)).map(({ load_balancer }) => load_balancer)
}
interface Ingress {
  readonly ip: string
}
/** How often the add-on did so. */
async function countOf(action: string): Promise<number> {
  const { items } = await unwrap(client.GET('/v1/audit'))
  const name = `kubernetes-cluster/${cluster.id}/cloud-controller`
  return items.filter((entry) => entry.action === action && entry.token_name === name).length
}

const service = async () =>
  (await admin.send('GET', `${SERVICES}/web`)).body as unknown as {
    metadata: { finalizers?: string[] }
    spec: { ports: { nodePort: number }[] }
    status: { loadBalancer?: { ingress?: Ingress[] } }
  }
const ingress = async () => {
  await play()
  return (await service()).status.loadBalancer?.ingress ?? []
}

/** Its last words. */
async function logOf(): Promise<string> {
  const files = await readdir(data, { recursive: true })
  const logs = files.filter((name) => name.endsWith('cloud-controller.log'))
  return (await Promise.all(logs.map((name) => readFile(join(data, name), 'utf8')))).join('\n').slice(-4_000)
}

/** With the last words of the program when it does not come. */
const came = async <Value>(what: string, look: () => Promise<Value>, isGood: (value: Value) => boolean) => {
  try {
    return await until(what, slowly(look), isGood)
  } catch (error) {
    throw new Error(await logOf(), { cause: error })
  }
}

describe.runIf((await findKubernetes()) !== undefined)('services', () => {
  beforeAll(begin, 300_000)
  afterAll(end, 120_000)

  test('one becomes a balancer, follows, and leaves nothing, whenever the controller is killed', async () => {
    const spec = { type: 'LoadBalancer', selector: { app: 'web' }, ports: [{ port: 80 }] }
    const body = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' }, spec }
    expect((await admin.send('POST', SERVICES, body)).status).toBe(201)
    const shown = await killing(() => came('addresses', ingress, ({ length }) => length > 0))
    // a node counts while it reports, which a busy machine delays
    const [balancer, ...others] = await came(
      'the member',
      balancers,
      ([found]) => found?.backends[0]?.members.length === 1,
    )
    expect(others).toEqual([])
    expect(shown.map(({ ip }) => ip)).toEqual(
      [balancer?.public_ipv4, balancer?.public_ipv6].filter((address) => typeof address === 'string'),
    )
    const { spec: written, metadata } = await service()
    expect(metadata.finalizers).toEqual(['service.kubernetes.io/load-balancer-cleanup'])
    const { body: node } = await admin.send('GET', `/api/v1/nodes/${NODE}`)
    const { providerID = '' } = node['spec'] as { providerID?: string }
    const [, serverId = ''] = /^svccloud:\/\/eu-1a\/(.+)$/.exec(providerID) ?? []
    const { items } = await unwrap(client.GET('/v1/servers/{id}/interfaces', { params: { path: { id: serverId } } }))
    expect(balancer).toMatchObject({
      network_id: cluster.network_id,
      frontends: [{ port: 80, mode: 'tcp' }],
      backends: [
        {
          members: [
            {
              name: NODE,
              address: items.find(({ network_id }) => network_id === cluster.network_id)?.ipv4_address,
              port: written.ports[0]?.nodePort,
            },
          ],
        },
      ],
    })
    expect(await countOf('load_balancer.create')).toBe(1)

    await patch(`/api/v1/nodes/${NODE}`, {
      metadata: { labels: { 'node.kubernetes.io/exclude-from-external-load-balancers': '' } },
    })
    await came('no member', balancers, ([found]) => found?.backends[0]?.members.length === 0)
    await admin.send('DELETE', `${SERVICES}/web`)
    await killing(() => came('it to be gone', balancers, ({ length }) => length === 0))
    const statusOf = async () => (await admin.send('GET', `${SERVICES}/web`)).status
    await came('its service to be gone', statusOf, (status) => status === 404)
    expect([await countOf('load_balancer.create'), await countOf('load_balancer.delete')]).toEqual([1, 1])
    expect(kills).toBeGreaterThan(2)
    const { body: events } = await admin.send('GET', '/apis/events.k8s.io/v1/namespaces/default/events')
    const reasons = (events['items'] as { reason: string }[]).map(({ reason }) => reason)
    expect(reasons).toContain('EnsuringLoadBalancer')
  }, 600_000)

  test('what cannot be is an event of the service', async () => {
    const spec = { type: 'LoadBalancer', selector: { app: 'dns' }, ports: [{ port: 53, protocol: 'UDP' }] }
    const body = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'dns' }, spec }
    expect((await admin.send('POST', SERVICES, body)).status).toBe(201)
    const notes = async () => {
      const { body: events } = await admin.send('GET', '/apis/events.k8s.io/v1/namespaces/default/events')
      return (events['items'] as { note: string }[]).map(({ note }) => note)
    }
    await came('the event', notes, (all) => all.includes('port 53 is UDP: load balancers take TCP only'))
    expect(await balancers()).toEqual([])
  }, 300_000)
})
