/** A release of the chart that hosts control planes: a customer asks for a cluster, whose control plane and whose
 *  add-ons run in pods of the very cluster that the platform runs in, behind network policies that are enforced. Hosts
 *  are simulated, and so are the guests of nodes and balancers: of the customer's node there are its server and its
 *  objects, no kubelet. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { parse } from 'yaml'
import { createClient, type Schemas, unwrap, waitForOperation } from '../../client/index.ts'
import { KUBERNETES_NODE_TEMPLATE, MANAGED_TEMPLATE } from '../../domain/managed-machine/rules.ts'
import { namespaceOf } from '../../hosting/pods/names.ts'
import type { ControlPlaneState } from '../../integrations/control-planes/control.ts'
import { openClient } from '../../kit/kube/client.ts'
import { openHttpsTransport } from '../../kit/kube/https-transport.ts'
import { readKubeconfig } from '../../kit/kube/kubeconfig.ts'
import type { Store } from '../../kit/kube/store.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { Zone } from '../../resources/catalog/index.ts'
import { ManagedMachine } from '../../resources/managed-machine/index.ts'
import { NodePool } from '../../resources/node-pool/index.ts'
import { buildTool } from '../../tools/cluster/build.ts'
import { builtReleases, controlPlaneImages, writeControlPlaneImages } from '../../tools/images/control-planes.ts'
import { addNode, reportReady } from '../addons/csi/kube-objects.ts'
import { manifestsOf, TINY_LINUX, TINY_PLAN } from '../catalog.ts'
import { Customer } from '../e2e/customer.ts'
import type { Product } from '../e2e/product.ts'
import { type KubeClient, kubeClient } from '../hosting/processes/hosted.ts'
import { until } from '../eventually.ts'
import { kubectlOf } from './kubectl.ts'
import { importAll, makeVolumes, openPlatformCluster, type PlatformCluster, SYSTEM_NAMESPACE } from './release.ts'

const ROOT = join(import.meta.dirname, '../..')
const START_MILLISECONDS = 1_200_000 // the first time, the tools are built
const PATIENCE_MILLISECONDS = 240_000
const ZONE = 'eu-1a'
const NAMESPACED = '/api/v1/namespaces/default'
const MEBIBYTES = 3_000 // so that it has one replica
const CONTROLLERS = { user: `system:serviceaccount:${SYSTEM_NAMESPACE}:svccloud-controllers`, groups: [] }
const PLAN = {
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Plan',
  metadata: { name: 'starter' },
  spec: { ...TINY_PLAN, memoryMebibytes: 1_024 },
}
/** What nodes and balancers are made of would be other images. */
const TEMPLATES = [KUBERNETES_NODE_TEMPLATE, MANAGED_TEMPLATE].map((name) => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Template',
  metadata: { name },
  spec: TINY_LINUX,
}))
const releases = (await builtReleases()).slice(-1)

let folder: string
let release: PlatformCluster
let customer: Customer
let client: ReturnType<typeof createClient>
let cluster: Schemas['KubernetesCluster']
let admin: KubeClient
let node: string
let serverId: string
let planes: string
/** The platform's own objects, as its controllers write them, and as an administrator does. */
let stores: Readonly<Record<'own' | 'operator', Store>>
const closing: (() => Promise<void>)[] = []

const kubectl = (...flags: readonly string[]) => kubectlOf(release.cluster)(...flags)

async function writeValues(): Promise<string> {
  const values = {
    database: { existingSecret: 'svccloud-database' },
    sealing: { existingSecret: 'svccloud-sealing' },
    catalog: [...manifestsOf('eu-1', ZONE), PLAN, ...TEMPLATES],
    apiserver: { replicas: 1 },
    controllers: { replicas: 1 },
    controlPlanes: {
      enabled: true,
      regions: ['eu-1'],
      images: controlPlaneImages(releases),
      memoryMebibytes: MEBIBYTES,
      storage: { className: 'planes', mebibytesOfOne: 1_024, mebibytes: 1_024 },
      endpoint: { type: 'NodePort', address: release.cluster.machine.address },
      snapshots: { className: 'planes', size: '1Gi' },
      snapshotKinds: await readFile(await buildTool('snapshot-kinds'), 'utf8'),
    },
  }
  const file = join(folder, 'values.json')
  await writeFile(file, JSON.stringify(values))
  return file
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-pods-'))
  release = await openPlatformCluster(folder)
  const access = await readKubeconfig(release.cluster.kubeconfigFile, systemClock)
  const open = (as: object) => {
    const { transport, close } = openHttpsTransport({ ...access, ...as })
    closing.push(close)
    return openClient({ transport, fieldManager: 'test', clock: systemClock, random: systemRandom })
  }
  stores = { own: open({ actsAs: CONTROLLERS }), operator: open({}) }
  await importAll(release.cluster, await writeControlPlaneImages(folder, releases))
  await makeVolumes(release.cluster, folder, 2)
  const keys = `--from-literal=keys=one:${Buffer.alloc(32, 1).toString('base64')}`
  await kubectl('-n', SYSTEM_NAMESPACE, 'create', 'secret', 'generic', 'svccloud-sealing', keys)
}, START_MILLISECONDS)

afterAll(async () => {
  for (const close of closing) await close()
  await release?.end()
  if (folder) await rm(folder, { recursive: true, force: true })
})

const chart = (name: string, ...more: readonly string[]) => [
  join(ROOT, 'charts', name),
  '-n',
  SYSTEM_NAMESPACE,
  '--wait',
  '--timeout',
  '280s',
  ...more,
]

/** As often as the platform lets people ask. With what pods and events say when it does not come. */
async function came<Value>(
  what: string,
  look: () => Promise<Value>,
  isGood: (value: Value) => boolean,
): Promise<Value> {
  const slowly = async () => {
    await sleep(500)
    return look()
  }
  return until(what, slowly, isGood, PATIENCE_MILLISECONDS).catch(async (error: unknown) => {
    const seen = await kubectl('get', 'pods,events', '-A', '-o', 'wide').catch(String)
    const logs = planes === undefined ? '' : await logsOf(planes)
    throw new Error(`${seen}\n${logs}`, { cause: error })
  })
}
const logsOf = (namespace: string) =>
  kubectl('-n', namespace, 'logs', '-l', 'svccloud.dev/part in (cloud-controller,csi-driver)', ...LOG_FLAGS).catch(
    String,
  )
const LOG_FLAGS = ['--all-containers', '--prefix', '--tail=30', '--ignore-errors']

it('the chart installs the host of control planes, and its pods get ready', async () => {
  await release.helm.must('install', 'svccloud', ...chart('svccloud', '-f', await writeValues()))
  const host = `nodes[0].name=n1,nodes[0].host=${release.cluster.machine.name}`
  await release.helm.must('install', 'agents', ...chart('svccloud-node-agent', '--set', `${host},hypervisor=simulated`))
  await kubectl('wait', 'nodes.svccloud.dev', 'n1', '--for=condition=Ready', '--timeout=200s')
}, 600_000)

it('a cluster that a customer asks for runs, with its control plane in pods of this cluster', async () => {
  const address = ['get', 'service', 'svccloud-apiserver', '-o', 'jsonpath={.spec.clusterIP}']
  const url = `http://${await kubectl('-n', SYSTEM_NAMESPACE, ...address)}`
  // signing up needs the addresses only
  customer = await Customer.signUp(() => ({ endpoints: { api_url: url, mail_directory: '' } }) as Product, 'a@b.test')
  client = createClient({ url, token: customer.token })
  const { network } = await unwrap(client.POST('/v1/networks', { body: { zone: ZONE, name: 'back' } }))
  const body = { zone: ZONE, name: 'shop', network_id: network.id, public_ipv4: false }
  const { kubernetes_cluster } = await came(
    'Kubernetes in the zone',
    () => unwrap(client.POST('/v1/kubernetes-clusters', { body })),
    () => true,
  )
  cluster = kubernetes_cluster
  const path = { params: { path: { id: cluster.id } } }
  const { kubernetes_cluster: made } = await came(
    'the cluster',
    () => unwrap(client.GET('/v1/kubernetes-clusters/{id}', path)),
    ({ kubernetes_cluster: { state } }) => state === 'running',
  )
  expect(made).toMatchObject({ kubernetes_version: releases[0] })
  const labels = ['-l', 'svccloud.dev/control-plane', '-o', 'jsonpath={.items[*].metadata.labels}']
  const text = await kubectl('get', 'namespaces', ...labels)
  const { 'svccloud.dev/control-plane': id = '' } = JSON.parse(text) as Readonly<Record<string, string>> // of one
  planes = namespaceOf(id)
  expect(await kubectl('-n', planes, 'get', 'pods', '-o', 'name')).toContain('pod/etcd-0')
  admin = await adminOf()
  expect((await admin.send('GET', '/version')).body).toMatchObject({ gitVersion: `v${releases[0]}` })
}, 600_000)

/** By the kubeconfig that the API gives. */
async function adminOf(): Promise<KubeClient> {
  const { kubeconfig } = await unwrap(
    client.GET('/v1/kubernetes-clusters/{id}/kubeconfig', { params: { path: { id: cluster.id } } }),
  )
  const { clusters, users } = parse(kubeconfig) as {
    readonly clusters: readonly { readonly cluster: Readonly<Record<string, string>> }[]
    readonly users: readonly { readonly user: { readonly token: string } }[]
  }
  const { server: endpoint = '', 'certificate-authority-data': authority = '' } = clusters[0]?.cluster ?? {}
  const certificateAuthority = Buffer.from(authority, 'base64').toString()
  // what it looks at of a state
  return kubeClient({ endpoint, certificateAuthority } as ControlPlaneState, users[0]?.user.token)
}

it('its add-ons run beside it, and its name server is in it', async () => {
  const addons = async () =>
    (
      await unwrap(client.GET('/v1/kubernetes-clusters/{id}', { params: { path: { id: cluster.id } } }))
    ).kubernetes_cluster.addons.map(({ name }) => name)
  await came('all add-ons', addons, (names) => names.length === 3)
  expect((await addons()).toSorted()).toEqual(['cloud-controller', 'coredns', 'csi-driver'])
  for (const path of [
    '/apis/apps/v1/namespaces/kube-system/deployments/coredns',
    '/apis/storage.k8s.io/v1/storageclasses/svccloud',
    '/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses/svccloud',
  ])
    expect((await admin.send('GET', path)).status).toBe(200)
  // The token of none of them is in the cluster, or in what says how its pods are.
  const secrets = JSON.stringify((await admin.send('GET', '/api/v1/secrets')).body)
  const pods = await kubectl('-n', planes, 'get', 'pods', '-o', 'json')
  const token = await kubectl('-n', planes, 'get', 'secret', 'csi-driver', '-o', 'jsonpath={.data.token}')
  const text = Buffer.from(token, 'base64').toString()
  expect(text).toMatch(/^svccloud_c_/)
  for (const seen of [secrets, pods]) expect([seen.includes(text), seen.includes(token)]).toEqual([false, false])
  // The API of the platform and that of the cluster, and nothing else. A new pod may connect anywhere for a moment.
  const places = ['svccloud-apiserver', 'svccloud-postgres'].map((name) => `${name}.${SYSTEM_NAMESPACE}.svc`)
  const asked = [`${places[0]} 80`, `${places[1]} 5432`, 'kube-apiserver 6443', 'etcd-client 2379']
  const connect = ['exec', 'deployment/cloud-controller', '--', 'node', '-e', CONNECT, ...asked]
  await came(
    'the policies to be enforced',
    async () => (await kubectl('-n', planes, ...connect)).trim().split('\n').toSorted(),
    (said) => said.join() === `kube-apiserver 6443,${places[0]} 80`,
  )
}, 400_000)
/** Says where it got a connection to. */
const CONNECT = `
  const { connect } = require('node:net')
  for (const place of process.argv.slice(1)) {
    const [host, port] = place.split(' ')
    const socket = connect({ host, port, timeout: 3000 }, () => socket.destroy() && console.log(place))
    socket.once('timeout', () => socket.destroy()).once('error', () => {})
  }
`

/** The server of a node of a pool runs what no image of nodes is in; its kubelet is played. */
async function joinNode(): Promise<void> {
  const offering = new AbortController()
  const offered = offerNodes(offering.signal)
  const params = { path: { id: cluster.id } }
  const body = { name: 'web', plan: 'starter', count: 1 }
  const { node_pool: made } = await came(
    'a pool',
    () => unwrap(client.POST('/v1/kubernetes-clusters/{id}/node-pools', { params, body })),
    () => true,
  )
  offering.abort()
  await offered
  const [pool, ...others] = (await stores.operator.list(NodePool)).items
  expect([pool?.metadata.name, others]).toEqual([made.id, []])
  const nodes = async () => {
    await play()
    return (await stores.operator.list(NodePool)).items[0]?.status?.nodes ?? []
  }
  const [found] = await came('the server of its node', nodes, ([first]) => first?.state === 'started')
  ;({ hostname: node = '', serverId = '' } = found ?? {})
  await addNode(admin, node, serverId, ZONE)
}

/** Again and again: the controllers take it back. */
async function offerNodes(signal: AbortSignal): Promise<void> {
  const builtTemplates = ['debian-13', 'kubernetes-node', 'managed-machine', 'tiny-linux']
  while (!signal.aborted) await stores.own.patch(Zone, { name: ZONE }, { status: { builtTemplates } }, 'status')
}
/** Guests run what was delivered to them. */
async function play(): Promise<void> {
  for (const { metadata, spec } of (await stores.own.list(ManagedMachine)).items) {
    if (spec.configuration === undefined) continue
    const { generation, fingerprint } = spec.configuration
    const status = { running: { generation, fingerprint }, isHealthy: true, detail: '' }
    const key = { namespace: metadata.namespace ?? '', name: metadata.name }
    await stores.own.patch(ManagedMachine, key, { status }, 'status')
  }
}

const label = () => [`kubernetes-cluster=${cluster.id}`]
const balancers = async () =>
  (await unwrap(client.GET('/v1/load-balancers', { params: { query: { label: label() } } }))).items

it('the cloud controller says which server a node is, and a service gets a balancer and its address', async () => {
  await joinNode()
  const providerOf = async () =>
    ((await admin.send('GET', `/api/v1/nodes/${node}`)).body['spec'] as { readonly providerID?: string }).providerID
  expect(await came('the server of the node', providerOf, (id) => id !== undefined)).toBe(
    `svccloud://${ZONE}/${serverId}`,
  )
  const annotations = { 'svccloud.dev/load-balancer-internal': 'true' }
  const spec = { type: 'LoadBalancer', selector: { app: 'web' }, ports: [{ port: 80 }] }
  const body = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', annotations }, spec }
  expect((await admin.send('POST', `${NAMESPACED}/services`, body)).status).toBe(201)
  const ingress = async () => {
    await reportReady(admin, node)
    await play()
    const { status } = (await admin.send('GET', `${NAMESPACED}/services/web`)).body as {
      readonly status?: { readonly loadBalancer?: { readonly ingress?: readonly { readonly ip: string }[] } }
    }
    return status?.loadBalancer?.ingress ?? []
  }
  const shown = await came('the address of the service', ingress, ({ length }) => length > 0)
  expect(await balancers()).toMatchObject([{ network_id: cluster.network_id }])
  expect(shown[0]?.ip).toMatch(/^\d+\./)
}, 600_000)

it('a claim becomes a storage that is attached to the server of the node, and a snapshot one of it', async () => {
  const claim = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'data' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  }
  expect((await admin.send('POST', `${NAMESPACED}/persistentvolumeclaims`, claim)).status).toBe(201)
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'writer' },
    spec: {
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'c', image: 'none', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
    },
  }
  expect((await admin.send('POST', `${NAMESPACED}/pods`, pod)).status).toBe(201)
  const storages = async () => {
    await reportReady(admin, node)
    return (await unwrap(client.GET('/v1/storages', { params: { query: { label: label() } } }))).items
  }
  const [made] = await came(
    'the storage to be attached',
    storages,
    ([storage]) => storage?.server_id === serverId && storage.active_operation === null,
  )
  expect(made).toMatchObject({ title: 'default/data', zone: ZONE, size_gibibytes: 1 })
  const kept = {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: { name: 'kept' },
    spec: { source: { persistentVolumeClaimName: 'data' } },
  }
  const snapshots = '/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots'
  expect((await admin.send('POST', snapshots, kept)).status).toBe(201)
  const isReady = async () =>
    ((await admin.send('GET', `${snapshots}/kept`)).body['status'] as { readonly readyToUse?: boolean } | undefined)
      ?.readyToUse
  await came('the snapshot', isReady, (is) => is === true)
  expect((await unwrap(client.GET('/v1/snapshots'))).items).toMatchObject([{ storage_id: made?.id }])
}, 600_000)

it('a new token is used by programs that run on', async () => {
  const digestOf = async () =>
    kubectl('-n', planes, 'get', 'secret', 'cloud-controller', '-o', 'jsonpath={.data.token}')
  const before = await digestOf()
  const podsOf = async () =>
    kubectl('-n', planes, 'get', 'pods', '-l', 'svccloud.dev/part=cloud-controller', '-o', 'name')
  const pods = await podsOf()
  // Nobody knows the one that it has: the platform makes another at once.
  const sql = `delete from kubernetes_token where program = 'cloud-controller'`
  const client = ['node', '-e', SQL, sql]
  await kubectl('-n', SYSTEM_NAMESPACE, 'exec', 'deployment/svccloud-controllers', '--', ...client)
  await came('another token', digestOf, (found) => found !== before)
  const body = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'other' } }
  const spec = { type: 'LoadBalancer', selector: { app: 'web' }, ports: [{ port: 81 }] }
  const annotations = { 'svccloud.dev/load-balancer-internal': 'true' }
  await admin.send('POST', `${NAMESPACED}/services`, { ...body, metadata: { ...body.metadata, annotations }, spec })
  // Whatever changes of a service has it tried again at once.
  const again = async () => {
    const metadata = { annotations: { turn: String(performance.now()) } }
    await admin.send('PATCH', `${NAMESPACED}/services/other`, { metadata }, 'application/merge-patch+json')
    return balancers()
  }
  await came('another balancer', again, ({ length }) => length === 2)
  expect(await podsOf()).toBe(pods)
}, 400_000)
const SQL = `
  const { Client } = require('pg')
  const client = new Client({ connectionString: process.env.SVCCLOUD_DATABASE_URL })
  client.connect().then(() => client.query(process.argv[1])).then(() => client.end())
`

it('nothing is left of a cluster that is deleted with what it made', async () => {
  const { operation } = await unwrap(
    client.DELETE('/v1/kubernetes-clusters/{id}', {
      params: { path: { id: cluster.id }, query: { associated: 'delete' } },
    }),
  )
  await waitForOperation(client, operation.id)
  await came(
    'the namespace to be gone',
    () => kubectl('get', 'namespaces', '-l', 'svccloud.dev/control-plane', '-o', 'name'),
    (names) => names === '',
  )
  expect(await release.cluster.machine.run('pidof', 'csi-provisioner', 'snapshot-controller').catch(() => '')).toBe('')
  await came('the storages to be gone', async () => (await unwrap(client.GET('/v1/storages'))).items, isEmpty)
  await came('the balancers to be gone', balancers, isEmpty)
  const files = ['exec', 'svccloud-control-planes-0', '--', 'ls', '/data/clusters']
  expect(await kubectl('-n', SYSTEM_NAMESPACE, ...files)).toBe('')
}, 600_000)
const isEmpty = ({ length }: readonly unknown[]): boolean => length === 0
