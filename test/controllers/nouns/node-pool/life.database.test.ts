/** The life of a node pool with real controllers and a real PostgreSQL, with kubectl. The host of control planes only
 *  counts, and the test says what kubelets would. */
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { listQuotas } from '../../../../db/account/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Zone } from '../../../../resources/catalog/index.ts'
import { KubernetesCluster } from '../../../../resources/kubernetes-cluster/index.ts'
import { Network, type NetworkSpec } from '../../../../resources/network/index.ts'
import { NodePool } from '../../../../resources/node-pool/index.ts'
import { Server } from '../../../../resources/server/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, ZONE } from '../../cloud.ts'
import { until } from '../../until.ts'
import { documentsOf, offerNodes } from './documents.ts'

const database = useDatabase()
let cloud: Cloud
let stop: (() => Promise<void>)[] = []
let accountId: string
let namespace: string

beforeAll(async () => {
  cloud = await openCloud(database.db)
  await offerNodes(cloud)
  stop = [cloud.startControllers(), cloud.startAgent()]
  accountId = await createAccount(database.db)
  await cloud.openAccount(accountId)
  namespace = accountNamespace(accountId)
  await until(
    'private networks',
    () => cloud.kubectl.get(Zone, { name: ZONE }),
    (zone) => zone?.status?.hasPrivateNetworks === true && zone.status.kubernetesReleases !== undefined,
  )
})
afterAll(async () => {
  for (const each of stop) await each()
  await cloud.close()
})

const key = () => ({ namespace, name: 'shop-web' })
const read = () => cloud.kubectl.get(NodePool, key())
const servers = async () => (await cloud.kubectl.list(Server, { namespace })).items
const plane = () => {
  const [found] = cloud.controlPlanes.planes.values()
  if (found === undefined) throw new Error('there is no control plane')
  return found
}

/** Kubelets join with what their servers were handed, and those of servers that have gone are silent. */
async function play(): Promise<void> {
  const documents = await documentsOf(cloud, 'shop-web')
  const { nodes, tokens } = plane()
  for (const [name, { release, nodeAddress: address, bootstrapToken }] of documents) {
    if (nodes.has(name) || bootstrapToken === undefined || !tokens.has(bootstrapToken)) continue
    const podCidr = `172.20.${nodes.size}.0/24`
    nodes.set(name, { name, address, podCidr, isReady: true, kubeletVersion: `v${release}`, marked: '' })
  }
  for (const name of nodes.keys()) if (!documents.has(name)) nodes.delete(name)
}
const when = (what: string, isGood: (pool: NonNullable<Awaited<ReturnType<typeof read>>>) => boolean) =>
  until(
    what,
    async () => {
      await play()
      return read()
    },
    (found) => found !== undefined && isGood(found),
  )
const isSettled = (version: string, count: number) => (pool: NonNullable<Awaited<ReturnType<typeof read>>>) =>
  pool.status?.operation?.status === 'succeeded' &&
  pool.spec.count === count &&
  pool.status.nodes?.length === count &&
  pool.status.nodes.every(({ isReady, kubeletVersion }) => isReady && kubeletVersion.startsWith(`v${version}.`))

test('nodes are made, joined, added, drained, replaced, and leave nothing', { timeout: 240_000 }, async () => {
  const example = async (name: string) =>
    parse(await readFile(`examples/kubernetes-clusters/${name}.yaml`, 'utf8')) as { spec: object }
  const back = { zone: ZONE, name: 'back', ipv4Cidr: '10.1.0.0/24' } as NetworkSpec
  await cloud.kubectl.create(Network, { metadata: { namespace, name: 'back' }, spec: back })
  const pool = { ...(await example('node-pool')).spec, zone: ZONE, plan: 'tiny', version: '1.35', count: 1 }
  await cloud.kubectl.create(NodePool, { metadata: key(), spec: NodePool.spec.parse(pool) })
  // Its cluster comes later.
  const cluster = { ...(await example('cluster')).spec, zone: ZONE, version: '1.35' }
  const metadata = { namespace, name: 'shop' }
  await cloud.kubectl.create(KubernetesCluster, { metadata, spec: KubernetesCluster.spec.parse(cluster) })
  await until(
    'its control plane',
    async () => cloud.controlPlanes.planes.size,
    (count) => count === 1,
  )
  const made = await when('one node', isSettled('1.35', 1))
  expect(made?.status).toMatchObject({ isMade: true, operation: { kind: 'node_pool.sync' } })
  const [server] = await servers()
  expect(server?.spec).toMatchObject({
    managedBy: 'node_pool:shop-web',
    template: 'kubernetes-node',
    networks: [{ networkId: 'back' }],
    hostname: made?.status?.nodes?.[0]?.hostname,
  })
  // No token stays behind, and the data of the node is sent again with its pods' addresses.
  await when('the token to go', ({ status }) => status?.join === undefined && plane().tokens.size === 0)
  expect(cloud.controlPlanes.calls).toContain('markNode')
  await until(
    'its pods to be let through',
    servers,
    ([first]) => first?.spec.sharedAddresses?.[0]?.address === '172.20.0.0/24',
  )

  await cloud.kubectl.patch(NodePool, key(), { spec: { count: 2 } })
  const two = await when('two nodes', isSettled('1.35', 2))
  const [first = '', second = ''] = (two?.status?.nodes ?? []).map(({ hostname }) => hostname)
  const peers = await until(
    'the way to the pods of the other',
    () => documentsOf(cloud, 'shop-web'),
    (found) => found.get(first)?.routes.length === 1,
  )
  expect(peers.get(first)?.routes).toEqual([{ to: '172.20.1.0/24', via: peers.get(second)?.nodeAddress }])

  // Budgets keep it for a while.
  plane().busy.add(second)
  await cloud.kubectl.patch(NodePool, key(), { spec: { count: 1 } })
  await when('a drain', ({ status }) => status?.drains?.[0]?.hostname === second)
  expect(await servers()).toHaveLength(2)
  plane().busy.delete(second)
  await when('one node again', isSettled('1.35', 1))
  expect([...plane().nodes.keys()]).toEqual([first])

  // A pod waits: the pool grows for it within its bounds, by an operation of the platform.
  const pending = (name: string) => ({
    name,
    node: '',
    isUnschedulable: true,
    requests: { cpu: 10 },
    selector: {},
    affinity: [],
    tolerations: [],
    hostPorts: [],
    apart: ['each its own'],
    isOfNode: false,
    stays: '',
    budgets: [],
    isJudged: true,
  })
  const full = { name: first, isReady: true, isSchedulable: true, isKept: false, labels: {}, taints: [] }
  const allocatable = { cpu: 1_000, memory: 1_000 }
  const pods = ['a', 'b', 'c'].map(pending)
  plane().load = { nodes: [{ ...full, allocatable, isSchedulable: false }], pods, budgets: {} }
  await cloud.kubectl.patch(NodePool, key(), { spec: { autoscaling: { min: 1, max: 2 } } })
  const grown = await when('the pool to grow', isSettled('1.35', 2))
  expect(grown?.spec.operation).toMatchObject({ arguments: { action: 'grow' }, actor: 'system:controllers' })
  plane().load = { nodes: [], pods: [], budgets: {} }
  await cloud.kubectl.patch(NodePool, key(), { spec: { count: 1, autoscaling: null } })
  await when('one node once more', isSettled('1.35', 1))

  // An upgrade of the cluster replaces its nodes, by an operation of the pool.
  const uid = (await servers())[0]?.metadata.uid
  await cloud.kubectl.patch(KubernetesCluster, metadata, { spec: { version: '1.36' } })
  const upgraded = await when('the newer version', isSettled('1.36', 1))
  expect(upgraded?.spec.version).toBe('1.36')
  expect((await servers()).map((each) => each.metadata.uid)).not.toContain(uid)

  await cloud.kubectl.delete(KubernetesCluster, metadata)
  await until(
    'their end',
    async () => [await cloud.kubectl.get(KubernetesCluster, metadata), await read()],
    (found) => found.every((each) => each === undefined),
  )
  expect([await servers(), cloud.controlPlanes.planes.size]).toEqual([[], 0])
  expect(await database.db.selectFrom('node_pool').select('id').execute()).toEqual([])
  const used = (await listQuotas(database.db, accountId)).filter(({ used: count }) => count > 0)
  expect(used.map(({ name }) => name)).toEqual(['networks'])
})
