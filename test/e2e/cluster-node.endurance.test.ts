/** A cluster with one node, which is a guest: what a customer does with it, from the outside and from inside a pod. It
 *  takes the image of nodes, and for services that of managed machines, in the folder that SVCCLOUD_IMAGE_CACHE names;
 *  most of an hour where guests are emulated. The tests build on each other. */
import { type AddressInfo, createServer, type Server } from 'node:net'
import { networkInterfaces } from 'node:os'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Schemas, unwrap, waitForOperation } from '../../client/index.ts'
import { KUBERNETES_NODE_TEMPLATE, MANAGED_TEMPLATE } from '../../domain/managed-machine/rules.ts'
import { findKubernetes } from '../../hosting/processes/programs.ts'
import type { ControlPlaneState } from '../../integrations/control-planes/control.ts'
import { BUSYBOX_IMAGE } from '../../domain/kubernetes-cluster/versions.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { readKubeconfig } from '../../kit/kube/kubeconfig.ts'
import { whileWriting } from '../hosting/processes/config-map-writer.ts'
import { reachedFrom } from '../hosting/processes/guests/reach.ts'
import { kubeClient } from '../hosting/processes/hosted.ts'
import {
  answerOf,
  application,
  apply,
  type Cloud,
  came,
  hasImage,
  type Kubectl,
  kubeconfigFileOf,
  kubectlIn,
  MINUTES,
  startCloud,
  ZONE,
} from './cluster-of-guests.ts'
import { clearAway } from './product.ts'

/** Of nodes, to this machine: its address in the network of the cloud. */
const DOOR = '2001:2:0:ffff::1'
/** Ports of it that belong to no cluster here. */
const DOORS_OF_NOBODY = [20_002, 20_003, 20_127]
/** Of writes of a client, while a node is exchanged: that takes many minutes. */
const BETWEEN_MILLISECONDS = 100
const minors = ((await findKubernetes())?.releases ?? []).map(({ release }) => release.split('.', 2).join('.'))
const [FROM = '', TO = FROM] = minors
const isThere = (await hasImage(KUBERNETES_NODE_TEMPLATE)) && FROM !== ''
const title = isThere ? 'a cluster' : 'a cluster (SVCCLOUD_IMAGE_CACHE names no image of nodes as it is now)'
const hasBalancers = await hasImage(MANAGED_TEMPLATE)

describe.skipIf(!isThere)(title, () => {
  let cloud: Cloud
  let kubectl: Kubectl
  let cluster: Schemas['KubernetesCluster']
  let path: { readonly path: { readonly id: string } }
  let poolId: string
  /** Of this machine, at all of its addresses. */
  let listener: Server

  const inPod: Kubectl = (...words) => kubectl('exec', 'deployment/web', '--', ...words)
  const rolledOut = () => kubectl('rollout', 'status', 'deployment/web', '--timeout=600s')
  const read = async () =>
    (await unwrap(cloud.client.GET('/v1/kubernetes-clusters/{id}', { params: path }))).kubernetes_cluster
  const done = async (answer: Promise<{ readonly operation: { readonly id: string } }>) =>
    waitForOperation(cloud.client, (await answer).operation.id)
  const pool = async () => {
    const found = (await read()).node_pools?.find(({ id }) => id === poolId)
    if (found === undefined) throw new Error('there is no pool')
    return found
  }
  const poolRuns = (version: string) =>
    came(
      'the pool to run',
      pool,
      ({ state, nodes: [node] }) =>
        state === 'running' && node?.is_ready === true && node.kubelet_version.startsWith(`v${version}.`),
      25,
    )

  beforeAll(async () => {
    listener = createServer((socket) => void socket.end('the machine'))
    await new Promise<void>((resolve) => listener.listen(0, '::', resolve))
    cloud = await startCloud('nodes@example.com')
    const { client, data } = cloud
    const { network } = await unwrap(client.POST('/v1/networks', { body: { zone: ZONE, name: 'back' } }))
    const asked = { zone: ZONE, name: 'shop', network_id: network.id, public_ipv4: false, version: FROM }
    const made = await came(
      'Kubernetes to be offered',
      () => client.POST('/v1/kubernetes-clusters', { body: asked }),
      ({ response }) => response.status === 202,
      3,
    )
    const { operation, kubernetes_cluster } = await unwrap(Promise.resolve(made))
    await waitForOperation(client, operation.id)
    cluster = kubernetes_cluster
    path = { path: { id: cluster.id } }
    const { kubeconfig } = await unwrap(client.GET('/v1/kubernetes-clusters/{id}/kubeconfig', { params: path }))
    kubectl = await kubectlIn(data, 'shop', kubeconfig)
    const body = { name: 'web', plan: 'starter-2c-4g', count: 1 }
    const pools = await came(
      'pools to be offered',
      () => client.POST('/v1/kubernetes-clusters/{id}/node-pools', { params: path, body }),
      ({ response }) => response.status === 202,
      3,
    )
    poolId = (await unwrap(Promise.resolve(pools))).node_pool.id
    await poolRuns(FROM)
  }, 35 * MINUTES)

  afterAll(async () => {
    listener?.close()
    if (cloud !== undefined) await clearAway(cloud.product, cloud.data)
  }, 2 * MINUTES)

  /** Any server of the API, and tries another one. */
  async function client() {
    const { url: endpoint, ca, authorization } = await readKubeconfig(kubeconfigFileOf(cloud.data, 'shop'), systemClock)
    const token = (await authorization?.())?.replace(/^Bearer /, '')
    // what it looks at of a state
    return kubeClient({ endpoint, certificateAuthority: ca ?? null } as ControlPlaneState, token)
  }

  test(
    'its node is ready, what runs there is read and entered, and has a volume',
    async () => {
      const [node] = (await pool()).nodes
      expect(await kubectl('get', 'nodes', '--no-headers')).toMatch(new RegExp(`^${node?.hostname} +Ready`))
      await apply(kubectl, cloud.data, application('ClusterIP'))
      await rolledOut()
      expect(await kubectl('logs', 'deployment/web')).toBe('serving\n')
      expect(await inPod('cat', '/tmp/index.html')).toBe('hello\n')
      await kubectl('-n', 'kube-system', 'rollout', 'status', 'deployment/coredns', '--timeout=300s')
      const address = await kubectl('get', 'service/web', '-o', 'jsonpath={.spec.clusterIP}')
      expect(await inPod('sh', '-c', 'nslookup -type=a web.default.svc.cluster.local 2>&1; true')).toContain(
        `Address: ${address}\n`,
      )
      await inPod('sh', '-c', 'echo kept > /data/file && sync')
    },
    20 * MINUTES,
  )

  test(
    'its volume is a storage of the account, and outlives its pod',
    async () => {
      const label = [`kubernetes-cluster=${cluster.id}`]
      const storages = async () =>
        (await unwrap(cloud.client.GET('/v1/storages', { params: { query: { label } } }))).items
      expect(await storages()).toMatchObject([{ title: 'default/web', size_gibibytes: 1 }])
      const name = await kubectl('get', 'pods', '-l', 'app=web', '-o', 'name')
      await kubectl('delete', name.trim())
      await rolledOut()
      expect(await kubectl('get', 'pods', '-l', 'app=web', '-o', 'name')).not.toBe(name)
      expect(await inPod('cat', '/data/file')).toBe('kept\n')
      expect(await storages()).toHaveLength(1)
    },
    15 * MINUTES,
  )

  test(
    'from a pod, and from its node, nothing of this machine is reached, nor of others',
    async () => {
      const address = await kubectl('get', 'service/kubernetes', '-o', 'jsonpath={.spec.clusterIP}')
      const { port } = listener.address() as AddressInfo // it listens on TCP
      const { endpoints } = cloud.product
      const ports = [
        port,
        ...[endpoints.api_url, endpoints.operator_url, endpoints.kubernetes_url, endpoints.postgres_url].map(portOf),
      ]
      const hosts = [
        ...Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map((each) => each.address)),
        '198.19.255.2',
        '198.19.0.1',
        '198.19.1.1',
        '198.19.3.1',
        '10.0.2.2',
        '127.0.0.1',
        '::1',
        DOOR,
      ].filter((host) => !host.startsWith('fe80'))
      const here = hosts.flatMap((host) => ports.map((at) => ({ host, port: at })))
      const doors = [20_000, ...DOORS_OF_NOBODY].map((at) => ({ host: DOOR, port: at }))
      const places = [...here, { host: '169.254.169.254', port: 80 }]
      expect(await reachedFrom(inPod, [{ host: address, port: 443 }])).toEqual([`${address} 443`])
      expect(await reachedFrom(inPod, [...places, ...doors])).toEqual([])
      await apply(kubectl, cloud.data, [ON_THE_NODE])
      await kubectl('wait', 'pod/node', '--for=condition=Ready', '--timeout=300s')
      const onNode: Kubectl = (...words) => kubectl('exec', 'node', '--', ...words)
      // A server that speaks TLS says so; one without a cluster takes a connection, and ends it.
      const saidAt = (at: number) =>
        onNode('sh', '-c', `(printf 'GET / HTTP/1.0\\r\\n\\r\\n'; sleep 3) | nc -w 5 ${DOOR} ${at} || true`)
      expect(await saidAt(20_000)).toContain('HTTPS server')
      expect(await Promise.all(DOORS_OF_NOBODY.map(saidAt))).toEqual(DOORS_OF_NOBODY.map(() => ''))
      // Programs of the node itself listen there.
      const others = places.filter(({ host }) => !['127.0.0.1', '::1', '169.254.169.254'].includes(host))
      expect(await reachedFrom(onNode, others)).toEqual([])
      await kubectl('delete', 'pod/node')
    },
    15 * MINUTES,
  )

  test.runIf(hasBalancers)(
    'a service is answered from outside, by the pod behind it',
    async () => {
      await kubectl('patch', 'service/web', '--patch', JSON.stringify({ spec: { type: 'LoadBalancer' } }))
      const addresses = await came(
        'its addresses',
        async () =>
          (await kubectl('get', 'service/web', '-o', 'jsonpath={.status.loadBalancer.ingress[*].ip}')).split(' '),
        ([first = '']) => first !== '',
        25,
      )
      for (const address of addresses)
        await came(
          `an answer at ${address}`,
          () => answerOf(address),
          (said) => said === 'hello\n200',
          25,
        )
    },
    60 * MINUTES,
  )

  test.runIf(TO !== FROM)(
    'control plane and node go to the next minor while a client writes',
    async () => {
      const { client: api } = cloud
      const upgrade = async () => {
        await done(unwrap(api.POST('/v1/kubernetes-clusters/{id}/upgrade', { params: path, body: { version: TO } })))
        // Its pools follow by themselves.
        await poolRuns(TO)
      }
      const written = await whileWriting(await client(), upgrade, { betweenMilliseconds: BETWEEN_MILLISECONDS })
      expect(written).toMatchObject({ failed: [], lost: [] })
      expect(written.count).toBeGreaterThan(100)
      await rolledOut()
      expect(await inPod('cat', '/data/file')).toBe('kept\n')
    },
    45 * MINUTES,
  )

  test(
    'a snapshot is restored, and its node continues',
    async () => {
      const { client: api } = cloud
      await kubectl('create', 'configmap', 'kept')
      await done(unwrap(api.POST('/v1/kubernetes-clusters/{id}/snapshots', { params: path, body: { title: 'kept' } })))
      const { items } = await unwrap(api.GET('/v1/kubernetes-clusters/{id}/snapshots', { params: path }))
      await kubectl('delete', 'configmap/kept')
      await kubectl('create', 'configmap', 'late')
      const body = { snapshot_id: items[0]?.id ?? '' }
      await done(unwrap(api.POST('/v1/kubernetes-clusters/{id}/restore', { params: path, body })))
      const names = await came(
        'its API',
        () => kubectl('get', 'configmaps', 'kept', 'late', '--ignore-not-found', '-o', 'name'),
        () => true,
        3,
      )
      expect([names.includes('/kept'), names.includes('/late')]).toEqual([true, false])
      expect((await read()).state).toBe('running')
      await rolledOut()
      // Its node hears of what is asked of it after the restore.
      await kubectl('delete', 'pod', '-l', 'app=web')
      await rolledOut()
      expect(await inPod('cat', '/data/file')).toBe('kept\n')
    },
    20 * MINUTES,
  )

  test(
    'its deletion leaves nothing',
    async () => {
      const { client: api, product } = cloud
      await done(
        unwrap(api.DELETE('/v1/kubernetes-clusters/{id}', { params: { ...path, query: { associated: 'delete' } } })),
      )
      await done(unwrap(api.DELETE('/v1/networks/{id}', { params: { path: { id: cluster.network_id } } })))
      await came(
        'the end of all of it',
        () => product.leftovers(),
        (left) => left.length === 0,
        5,
      )
      expect((await unwrap(api.GET('/v1/load-balancers'))).items).toEqual([])
    },
    20 * MINUTES,
  )
})

const portOf = (url: string | undefined): number => Number(new URL(url ?? 'http://none:1').port)

/** In the network of its node. */
const ON_THE_NODE = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'node' },
  spec: {
    hostNetwork: true,
    terminationGracePeriodSeconds: 0,
    containers: [{ name: 'c', image: BUSYBOX_IMAGE, command: ['sleep', '86400'] }],
  },
}
