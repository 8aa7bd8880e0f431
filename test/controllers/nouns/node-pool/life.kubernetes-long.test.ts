/** Nodes of a pool join a real control plane by what their servers were handed, played by a client that does what
 *  kubelets do: with real controllers, from the first to the second and back. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { accountNamespace } from '../../../../resources/index.ts'
import { Zone } from '../../../../resources/catalog/index.ts'
import { KubernetesCluster } from '../../../../resources/kubernetes-cluster/index.ts'
import { Network, type NetworkSpec } from '../../../../resources/network/index.ts'
import { NodePool } from '../../../../resources/node-pool/index.ts'
import { Server } from '../../../../resources/server/index.ts'
import { findCluster } from '../../../../db/kubernetes-cluster/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { adminOf, type Hosted, openHosted } from '../../../hosting/processes/hosted.ts'
import { askFor, joinAsKubelet, type Kubelet } from '../../../hosting/processes/kubelet.ts'
import { until } from '../../../eventually.ts'
import { type Cloud, openCloud, ZONE } from '../../cloud.ts'
import { documentsOf, offerNodes } from './documents.ts'

const database = useDatabase()
const WAIT_MILLISECONDS = 120_000
let hosted: Hosted
let cloud: Cloud
let stop: (() => Promise<void>)[] = []
let accountId: string
let namespace: string
const kubelets = new Map<string, Kubelet>()
/** What each has asked to serve with. */
const asked = new Map<string, string>()

beforeAll(async () => {
  hosted = await openHosted({ memoryBytes: 1024 ** 3 })
  cloud = await openCloud(database.db)
  await offerNodes(cloud)
  const controlPlanes = { regions: ['eu-1'], control: hosted.host }
  stop = [cloud.startControllers(undefined, { controlPlanes }), cloud.startAgent()]
  accountId = await createAccount(database.db)
  await cloud.openAccount(accountId)
  namespace = accountNamespace(accountId)
  await until(
    'private networks and Kubernetes',
    () => cloud.kubectl.get(Zone, { name: ZONE }),
    (zone) => zone?.status?.hasPrivateNetworks === true && zone.status.kubernetesReleases !== undefined,
    WAIT_MILLISECONDS,
  )
})
afterAll(async () => {
  for (const kubelet of kubelets.values()) await kubelet.end()
  for (const each of stop) await each()
  await cloud.close()
  await hosted.end()
})

const key = () => ({ namespace, name: 'web' })
const read = () => cloud.kubectl.get(NodePool, key())
const controlPlaneId = async () =>
  (await findCluster(database.db, { accountId, clusterId: 'shop' }))?.controlPlaneId ?? ''

/** Kubelets join with what their servers were handed, and end with them. */
async function play(): Promise<void> {
  const documents = await documentsOf(cloud, 'web')
  const state = await hosted.host.get(await controlPlaneId())
  if (state === undefined) return
  for (const [name, document] of documents) {
    const { release, nodeAddress: address, bootstrapToken: token } = document
    if (kubelets.has(name) || token === undefined) continue
    const kubelet = await joinAsKubelet({ state, name, address, token, version: `v${release}` })
    kubelets.set(name, kubelet)
    asked.set(name, await kubelet.askToServe())
    await kubelet.report(true)
  }
  for (const [name, kubelet] of kubelets) {
    if (documents.has(name)) continue
    kubelets.delete(name)
    await kubelet.end()
  }
}
const settled = (count: number) =>
  until(
    `${count} nodes`,
    async () => {
      await play()
      return read()
    },
    (pool) =>
      pool?.status?.operation?.status === 'succeeded' &&
      pool.spec.count === count &&
      pool.status.nodes?.length === count &&
      pool.status.nodes.every(({ isReady }) => isReady),
    WAIT_MILLISECONDS,
  )

test('a node becomes ready, another one comes, and it goes again', { timeout: 500_000 }, async () => {
  const back = { zone: ZONE, name: 'back', ipv4Cidr: '10.1.0.0/24' } as NetworkSpec
  await cloud.kubectl.create(Network, { metadata: { namespace, name: 'back' }, spec: back })
  const cluster = { zone: ZONE, name: 'shop', networkId: 'back', version: '1.36' }
  const metadata = { namespace, name: 'shop' }
  await cloud.kubectl.create(KubernetesCluster, { metadata, spec: KubernetesCluster.spec.parse(cluster) })
  const spec = NodePool.spec.parse({
    clusterId: 'shop',
    zone: ZONE,
    name: 'web',
    plan: 'tiny',
    version: '1.36',
    count: 1,
    labels: { tier: 'front' },
    taints: [{ key: 'only', value: 'web', effect: 'NoSchedule' }],
  })
  await cloud.kubectl.create(NodePool, { metadata: key(), spec })
  const made = await settled(1)
  const [first] = made?.status?.nodes ?? []
  const name = first?.hostname ?? ''
  const admin = await adminOf(hosted, await controlPlaneId())
  const node = (await admin.send('GET', `/api/v1/nodes/${name}`)).body
  expect(node).toMatchObject({
    metadata: { labels: { tier: 'front', 'svccloud.dev/node-pool': 'web', 'topology.kubernetes.io/zone': ZONE } },
    spec: { taints: expect.arrayContaining([{ key: 'only', value: 'web', effect: 'NoSchedule' }]) },
  })
  // Its request to serve was approved, and another's that it sent is not.
  const requests = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
  const statusOf = async (request: string) => JSON.stringify((await admin.send('GET', `${requests}/${request}`)).body)
  await until(
    'its certificate',
    () => statusOf(asked.get(name) ?? ''),
    (text) => text.includes('"certificate"'),
  )
  const kubelet = kubelets.get(name)
  if (kubelet === undefined) throw new Error('there is no kubelet')
  const { request } = await askFor(kubelet.client, 'serving', { name, hosts: [name, '10.1.0.250'] })
  // The token of the pool goes once nobody waits for it.
  await until(
    'the token to go',
    () => admin.send('GET', '/api/v1/namespaces/kube-system/secrets?fieldSelector=type=bootstrap.kubernetes.io/token'),
    ({ body }) => (body['items'] as unknown[]).length === 0,
  )

  await cloud.kubectl.patch(NodePool, key(), { spec: { count: 2 } })
  const two = await settled(2)
  const second = two?.status?.nodes?.[1]?.hostname ?? ''
  expect((await hosted.host.nodes(await controlPlaneId())).map((each) => each.name).toSorted()).toEqual(
    [name, second].toSorted(),
  )
  expect(await statusOf(request)).not.toContain('"Approved"')

  await cloud.kubectl.patch(NodePool, key(), { spec: { count: 1 } })
  await settled(1)
  expect((await hosted.host.nodes(await controlPlaneId())).map((each) => each.name)).toEqual([name])
  expect((await cloud.kubectl.list(Server, { namespace })).items.map(({ spec: { hostname } }) => hostname)).toEqual([
    name,
  ])

  await cloud.kubectl.delete(KubernetesCluster, metadata)
  await until(
    'the end of both',
    async () => [await cloud.kubectl.get(KubernetesCluster, metadata), await read()],
    (found) => found.every((each) => each === undefined),
    WAIT_MILLISECONDS,
  )
  expect((await cloud.kubectl.list(Server, { namespace })).items).toEqual([])
})
