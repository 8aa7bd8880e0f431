/** A host of control planes that the platform makes, from the operation to a customer's cluster on it, with real
 *  controllers, a real control plane, what the chart renders, and pods that really run. A kubelet of this machine
 *  stands in for the guest of the node, and the test for the add-ons that guests' volumes and balancers come from. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { parse } from 'yaml'
import { PLATFORM_ACCOUNT_ID } from '../../domain/account/platform-account.ts'
import { ensureKubernetesHosts, listRegisteredHosts } from '../../db/kubernetes-host/index.ts'
import { namespaceOf } from '../../hosting/pods/names.ts'
import { findCluster } from '../../db/kubernetes-cluster/index.ts'
import { openControlPlanesClient } from '../../integrations/control-planes/client.ts'
import type { HostedControlPlanes } from '../../integrations/control-planes/configuration.ts'
import type { ControlPlanes } from '../../integrations/control-planes/control.ts'
import { readHostClusters } from '../../integrations/control-planes/host-clusters.ts'
import { type MadeHosts, openMadeHosts } from '../../integrations/control-planes/made-hosts.ts'
import { openClient } from '../../kit/kube/client.ts'
import { openHttpsTransport } from '../../kit/kube/https-transport.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { silentLog } from '../../kit/sys/log.ts'
import { newUuid, systemRandom } from '../../kit/sys/random.ts'
import { createSealing } from '../../kit/sys/sealing.ts'
import { Zone } from '../../resources/catalog/index.ts'
import { accountNamespace } from '../../resources/index.ts'
import { KubernetesCluster } from '../../resources/kubernetes-cluster/index.ts'
import { KubernetesHost } from '../../resources/kubernetes-host/index.ts'
import { Network, type NetworkSpec } from '../../resources/network/index.ts'
import { NodePool } from '../../resources/node-pool/index.ts'
import { VERSION } from '../../domain/version.ts'
import { buildTool } from '../../tools/cluster/build.ts'
import { builtReleases, controlPlaneImages, writeControlPlaneImages } from '../../tools/images/control-planes.ts'
import { writeImages } from '../../tools/images/write.ts'
import { createAccount } from '../accounts.ts'
import { openHelm } from '../charts/helm.ts'
import { type Cloud, NODE, openCloud, SEALING_KEYS, ZONE } from '../controllers/cloud.ts'
import { documentsOf, offerNodes } from '../controllers/nouns/node-pool/documents.ts'
import { useDatabase } from '../database.ts'
import { type Hosted, kubeClient, openHosted, untilState } from '../hosting/processes/hosted.ts'
import { until } from '../eventually.ts'
import { kubectlOf } from './kubectl.ts'
import { type Machine, startMachine } from './machine.ts'
import { enforcePolicies, importImage, joinNode, relayTunnel, writeKubeconfig } from './node.ts'
import { makeVolumes } from './release.ts'

const START_MILLISECONDS = 900_000 // the first time, the tools are built
const WAIT_MILLISECONDS = 400_000
const HOME = 'home'
const ADDONS = ['csi-driver', 'cloud-controller'].map((name) => ({ name, version: VERSION }))
/** So that the customer's control plane has one replica. */
const MEMORY_BYTES = 2 * 1024 ** 3
const releases = await builtReleases()
const NEWEST = releases.at(-1) ?? ''

const database = useDatabase()
let folder: string
let machine: Machine
let hosted: Hosted
let cloud: Cloud
let made: MadeHosts
let stop: (() => Promise<void>)[] = []
let kubeconfigFile: string
let archives: readonly string[]
const ending = new AbortController()

const kubectl = (...flags: readonly string[]) => kubectlOf({ kubeconfigFile })(...flags)
const namespace = accountNamespace(PLATFORM_ACCOUNT_ID)

/** As the host of this machine is, for clusters whose pods and services are where this machine finds them. */
const parentOf = (): ControlPlanes =>
  new Proxy(hosted.host as ControlPlanes, {
    get(host, name: keyof ControlPlanes) {
      if (name === 'ensure')
        return (desired: Parameters<ControlPlanes['ensure']>[0]) =>
          host.ensure({ ...desired, podCidrs: [machine.podCidr], serviceCidrs: [machine.serviceCidr] })
      if (name === 'get')
        return async (id: string) => {
          const state = await host.get(id)
          return state && { ...state, addons: [...state.addons, ...ADDONS] }
        }
      return (host[name] as (...values: never[]) => unknown).bind(host) // each takes what its caller hands it
    },
  })

/** As the chart tells it. */
async function settingsFile(): Promise<string> {
  const values = {
    image: { repository: 'docker.io/svccloud/svccloud', tag: VERSION },
    database: { existingSecret: 'none' },
    controlPlanes: {
      images: controlPlaneImages(releases),
      snapshotKinds: await readFile(await buildTool('snapshot-kinds'), 'utf8'),
      hostClusters: {
        region: HOME,
        publicIpv4: false,
        storage: { mebibytesOfOne: 1_024, mebibytes: 2_048, snapshots: '1Gi' },
      },
    },
  }
  const file = join(folder, 'values.json')
  await writeFile(file, JSON.stringify(values))
  await buildTool('helm')
  const helm = await openHelm('')
  const chart = join(import.meta.dirname, '../../charts/svccloud')
  const shown = ['--show-only', 'templates/host-clusters.yaml']
  const text = await helm.must('template', 'svccloud', chart, '-f', file, ...shown)
  await helm.close()
  const { data } = parse(text) as { readonly data: Readonly<Record<string, string>> }
  const settings = join(folder, 'host-clusters.yaml')
  await writeFile(settings, data['host-clusters.yaml'] ?? '')
  return settings
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-pods-'))
  machine = await startMachine('host-1', join(folder, 'machine'))
  const { hostAddress: host } = machine
  hosted = await openHosted({ host, addresses: [host], nodes: { address: host } })
  archives = [...(await writeControlPlaneImages(folder, releases)), ...(await writeImages(folder, VERSION)).slice(0, 1)]
  cloud = await openCloud(database.db, silentLog, [NODE], {}, systemClock)
  await offerNodes(cloud)
  const sealing = createSealing(SEALING_KEYS, systemRandom)
  made = openMadeHosts({
    read: () => listRegisteredHosts(database.db, sealing),
    clock: systemClock,
    log: silentLog,
  })
  void made.run(ending.signal)
  const settings = await readHostClusters({ hostClustersFile: await settingsFile() })
  if (settings === undefined) throw new Error('unreachable')
  const hostClusters = {
    settings,
    open(access: Parameters<typeof openHttpsTransport>[0]) {
      const { transport, close } = openHttpsTransport(access)
      const own = { fieldManager: 'svccloud', clock: systemClock, random: systemRandom }
      return { store: openClient({ transport, ...own }), close }
    },
    connect: (access: Omit<Parameters<typeof openControlPlanesClient>[0], 'clock'>) =>
      openControlPlanesClient({ ...access, clock: systemClock }),
  }
  const controlPlanes = { regions: [HOME], control: parentOf(), made: () => made.hosts().map(small) }
  stop = [cloud.startControllers(undefined, { controlPlanes, hostClusters }), cloud.startAgent()]
  await until(
    'private networks',
    () => cloud.kubectl.get(Zone, { name: ZONE }),
    (zone) => zone?.status?.hasPrivateNetworks === true,
    WAIT_MILLISECONDS,
  )
}, START_MILLISECONDS)

afterAll(async () => {
  ending.abort()
  for (const each of stop) await each()
  await cloud?.close()
  await hosted?.end()
  await machine?.end()
  if (folder) await rm(folder, { recursive: true, force: true })
})

/** With memory for control planes of one replica. */
const small = ({ control, ...host }: HostedControlPlanes): HostedControlPlanes => ({
  ...host,
  control: { ...control, offer: async () => ({ ...(await control.offer()), memoryBytes: MEMORY_BYTES }) },
})

/** The class that claims have by default. */
const PLANES = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  provisioner: 'kubernetes.io/no-provisioner',
  metadata: { name: 'planes', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
}

/** Each service that wants a balancer has an address that is routed to the node. */
async function giveAddresses(): Promise<void> {
  const range = machine.serviceCidr.replace(/^10\.215\./, '10.216.')
  await promisify(execFile)('ip', ['route', 'replace', range, 'via', machine.address])
  const [prefix] = range.split('0/24')
  let number = 10
  while (!ending.signal.aborted) {
    const text = await kubectl('get', 'services', '-A', '-o', 'json').catch(() => '{"items":[]}')
    const { items } = JSON.parse(text) as {
      readonly items: readonly {
        readonly metadata: { readonly namespace: string; readonly name: string }
        readonly spec: { readonly type: string }
        readonly status: { readonly loadBalancer?: { readonly ingress?: unknown } }
      }[]
    }
    for (const { metadata, spec, status } of items) {
      if (spec.type !== 'LoadBalancer' || status.loadBalancer?.ingress !== undefined) continue
      const patch = { status: { loadBalancer: { ingress: [{ ip: `${prefix}${number++}` }] } } }
      const on = ['-n', metadata.namespace, 'patch', 'service', metadata.name, '--subresource=status']
      await kubectl(...on, '--type=merge', '-p', JSON.stringify(patch))
    }
    await new Promise((resolve) => setTimeout(resolve, 1_000))
  }
}

const readHost = async (id: string) => cloud.kubectl.get(KubernetesHost, { name: id })

it(
  'a bootstrap makes a host that answers, of a real control plane and a kubelet that replaces the guest',
  async () => {
    const now = systemClock.now()
    const [row] = await ensureKubernetesHosts(database.db, ['eu-1'], { now, newId: () => newUuid(systemRandom) })
    const id = row?.id ?? ''
    const operation = {
      id: newUuid(systemRandom),
      kind: 'kubernetes_host.bootstrap' as const,
      actor: 'operator',
      requestId: 'r',
      requestedAt: now.toISOString(),
      deadlineAt: new Date(now.getTime() + 86_400_000).toISOString(),
    }
    const spec = { region: 'eu-1', zones: [ZONE], plan: 'tiny', nodesPerZone: 1, controlPlaneRegion: HOME }
    const version = NEWEST.split('.').slice(0, 2).join('.')
    await cloud.kubectl.create(KubernetesHost, { metadata: { name: id }, spec: { ...spec, version, operation } })

    // The guest of the node would join with what its server is handed.
    const [pool] = await until(
      'its node pool',
      async () => (await cloud.kubectl.list(NodePool, { namespace })).items,
      ({ length }) => length === 1,
      WAIT_MILLISECONDS,
    )
    const [name = '', document] = await until(
      'what its node joins with',
      async () => [...(await documentsOf(cloud, pool?.metadata.name ?? ''))][0] ?? [],
      (found) => found[1]?.bootstrapToken !== undefined,
      WAIT_MILLISECONDS,
    )
    const [cluster] = (await cloud.kubectl.list(KubernetesCluster, { namespace })).items
    const claim = await findCluster(database.db, {
      accountId: PLATFORM_ACCOUNT_ID,
      clusterId: cluster?.metadata.name ?? '',
    })
    const planeId = claim?.controlPlaneId ?? ''
    const state = await untilState(hosted, planeId, ({ forNodes }) => forNodes !== null)
    const relay = await relayTunnel(state)
    stop.push(async () => {
      relay.close()
    })
    const node = { ...machine, name }
    await joinNode(node, hosted, state, document?.bootstrapToken)
    kubeconfigFile = join(folder, 'kubeconfig')
    await writeKubeconfig(kubeconfigFile, state, (await hosted.host.userToken(planeId, 'admin', 7_200)).token)
    await enforcePolicies(node, kubeconfigFile)
    for (const file of archives) await importImage(machine, file)
    await makeVolumes({ machine, kubeconfigFile }, folder, 3, [PLANES])
    void giveAddresses()

    const host = await until(
      'the host to be made',
      () => readHost(id),
      (found) => found?.status?.operation?.status === 'succeeded' || found?.status?.operation?.status === 'failed',
      WAIT_MILLISECONDS,
    ).catch(async (error: unknown) => {
      throw new Error(await kubectl('get', 'pods,events,services', '-A', '-o', 'wide').catch(String), { cause: error })
    })
    expect(host?.status).toMatchObject({ isMade: true, nodesReady: 1, operation: { status: 'succeeded', error: '' } })
    await made.read()
    const [found] = made.hosts()
    expect(await found?.control.offer()).toMatchObject({ driver: 'pods', nodeCount: 1, reservedBytes: 0 })
  },
  START_MILLISECONDS,
)

it(
  'a customer’s cluster has its control plane there',
  async () => {
    const accountId = await createAccount(database.db)
    await cloud.openAccount(accountId)
    const own = accountNamespace(accountId)
    const back = { zone: ZONE, name: 'back', ipv4Cidr: '10.1.0.0/24' } as NetworkSpec
    await cloud.kubectl.create(Network, { metadata: { namespace: own, name: 'back' }, spec: back })
    const version = NEWEST.split('.').slice(0, 2).join('.')
    const spec = KubernetesCluster.spec.parse({ zone: ZONE, name: 'shop', networkId: 'back', version })
    await cloud.kubectl.create(KubernetesCluster, { metadata: { namespace: own, name: 'shop' }, spec })
    const cluster = await until(
      'the cluster',
      () => cloud.kubectl.get(KubernetesCluster, { namespace: own, name: 'shop' }),
      (found) => found?.status?.isMade === true,
      WAIT_MILLISECONDS,
    ).catch(async (error: unknown) => {
      throw new Error(await kubectl('get', 'pods,events', '-A', '-o', 'wide').catch(String), { cause: error })
    })
    expect(cluster?.status).toMatchObject({ kubernetesVersion: NEWEST, health: { apiServer: 'healthy' } })
    const claim = await findCluster(database.db, { accountId, clusterId: 'shop' })
    expect(claim?.region).toBe('eu-1')
    const planeId = claim?.controlPlaneId ?? ''
    expect(await kubectl('-n', namespaceOf(planeId), 'get', 'pods', '-o', 'name')).toContain('pod/etcd-0')
    const [host] = made.hosts()
    const state = await host?.control.get(planeId)
    const admin = await host?.control.userToken(planeId, 'admin', 3_600)
    if (state === undefined || admin === undefined) throw new Error('there is no control plane')
    expect(state.endpoint).toBe(cluster?.status?.endpoint)
    const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'own' } }
    const answer = await kubeClient(state, admin.token).send('POST', '/api/v1/namespaces/default/configmaps', configMap)
    expect(answer.status).toBe(201)
  },
  START_MILLISECONDS,
)
