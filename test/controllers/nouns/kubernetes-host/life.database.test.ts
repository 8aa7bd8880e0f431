/** The life of a host of control planes that the platform makes, with real controllers and a real PostgreSQL: from what
 *  the API writes to a host that answers, with the controllers killed between their writes. Its own control plane and
 *  its guests only count, and its cluster keeps what is applied: the tier `pods` has real ones. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PLATFORM_ACCOUNT_ID } from '../../../../domain/account/platform-account.ts'
import { listQuotas, requireStanding } from '../../../../db/account/index.ts'
import { ensureKubernetesHosts, listRegisteredHosts } from '../../../../db/kubernetes-host/index.ts'
import type { ResourceType } from '../../../../kit/kube/object.ts'
import { createSealing } from '../../../../kit/sys/sealing.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { Zone } from '../../../../resources/catalog/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { KubernetesCluster } from '../../../../resources/kubernetes-cluster/index.ts'
import { KubernetesHost, type KubernetesHostSpec } from '../../../../resources/kubernetes-host/index.ts'
import { Network } from '../../../../resources/network/index.ts'
import { NodePool } from '../../../../resources/node-pool/index.ts'
import { Server } from '../../../../resources/server/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { openSimulatedControlPlanes } from '../../../control-planes.ts'
import { type Cloud, type ControllersStart, fastClock, openCloud, SEALING_KEYS, ZONE } from '../../cloud.ts'
import { documentsOf, offerNodes } from '../node-pool/documents.ts'
import { until } from '../../../eventually.ts'
import { type HostCluster, openHostCluster, REGION } from './host-cluster.ts'

const KINDS: readonly ResourceType[] = [Network, KubernetesCluster, NodePool, Server]
const WAIT_MILLISECONDS = 240_000
const database = useDatabase()
const namespace = accountNamespace(PLATFORM_ACCOUNT_ID)
let cloud: Cloud
let cluster: HostCluster
let options: ControllersStart
let id: string
let stopAgent: () => Promise<void>

beforeAll(async () => {
  cloud = await openCloud(database.db)
  await offerNodes(cloud)
  cluster = await openHostCluster(openSimulatedControlPlanes(['eu-1']).control)
  const { controlPlanes } = cloud
  controlPlanes.driver = 'process'
  controlPlanes.addons = [
    { name: 'csi-driver', version: '1' },
    { name: 'cloud-controller', version: '1' },
  ]
  const parent = { regions: [REGION], control: controlPlanes.control }
  options = { controlPlanes: parent, hostClusters: cluster.hostClusters }
  stopAgent = cloud.startAgent()
  const stopControllers = cloud.startControllers(undefined, options)
  await until(
    'the zone to have networks',
    () => cloud.kubectl.get(Zone, { name: ZONE }),
    (zone) => zone?.status?.hasPrivateNetworks === true,
  )
  await stopControllers()
  const now = fastClock.now()
  const [row] = await ensureKubernetesHosts(database.db, ['eu-1'], { now, newId: () => newUuid(systemRandom) })
  id = row?.id ?? ''
})
afterAll(async () => {
  await stopAgent()
  await cloud.close()
})

const read = () => cloud.kubectl.get(KubernetesHost, { name: id })
const registered = () => listRegisteredHosts(database.db, createSealing(SEALING_KEYS, systemRandom))
const stanza = (minutes: number) => ({
  id: newUuid(systemRandom),
  kind: 'kubernetes_host.bootstrap' as const,
  actor: 'operator',
  requestId: 'r',
  requestedAt: fastClock.now().toISOString(),
  deadlineAt: new Date(fastClock.now().getTime() + minutes * 60_000).toISOString(),
})
const spec: KubernetesHostSpec = {
  region: 'eu-1',
  zones: [ZONE],
  plan: 'tiny',
  nodesPerZone: 1,
  version: '1.36',
  controlPlaneRegion: REGION,
}

/** Kubelets join with what their servers were handed. */
async function play(): Promise<void> {
  const [pool] = (await cloud.kubectl.list(NodePool, { namespace })).items
  const [plane] = cloud.controlPlanes.planes.values()
  if (pool === undefined || plane === undefined) return
  for (const [name, document] of await documentsOf(cloud, pool.metadata.name)) {
    const { release, nodeAddress: address, bootstrapToken } = document
    if (plane.nodes.has(name) || bootstrapToken === undefined || !plane.tokens.has(bootstrapToken)) continue
    const kubeletVersion = `v${release}`
    plane.nodes.set(name, { name, address, podCidr: '172.20.0.0/24', isReady: true, kubeletVersion, marked: '' })
  }
}
const when = (what: string, isGood: (host: NonNullable<Awaited<ReturnType<typeof read>>>) => boolean) =>
  until(
    what,
    async () => {
      await play()
      return read()
    },
    (host) => host !== undefined && isGood(host),
    WAIT_MILLISECONDS,
  )

test('it is made although controllers die between any two writes, and answers by its token only', async () => {
  const mortals = cloud.startMortals(6, 12, options)
  try {
    await cloud.kubectl.create(KubernetesHost, { metadata: { name: id }, spec: { ...spec, operation: stanza(600) } })
    // Its host process is refused at first, then not ready.
    cluster.refusal = 'the roles are not there yet'
    await when('its host process to be refused', ({ status }) =>
      (status?.process?.detail ?? '').includes('the roles are not there yet'),
    )
    expect(await registered()).toEqual([])
    cluster.refusal = ''
    await when('its pod to be waited for', ({ status }) =>
      (status?.process?.detail ?? '').includes('its pod is not there yet'),
    )
    cluster.address = '2001:db8::7'
    const made = await when('the host', ({ status }) => status?.isMade === true)
    expect(made?.status).toMatchObject({ nodesReady: 1, operation: { status: 'succeeded', step: 'registered' } })
    expect(mortals.deaths()).toBe(12)
  } finally {
    await mortals.stop()
  }
  const [host, another] = await registered()
  expect(another).toBeUndefined()
  expect(host).toMatchObject({ region: 'eu-1', url: 'https://[2001:db8::7]' })
  expect(host).toMatchObject({ serverName: 'svccloud-control-planes.svccloud.svc' })
  const data = cluster.applied.get('Secret svccloud/svccloud-control-planes')?.data ?? {}
  expect(Buffer.from(data['token'] ?? '', 'base64').toString()).toBe(host?.token)
  expect([...cluster.applied.keys()]).toEqual(
    expect.arrayContaining(['Namespace svccloud', 'StatefulSet svccloud/svccloud-control-planes']),
  )
  expect([...cluster.tokens]).toEqual(['Bearer of an administrator'])
  // One of each was made, which nobody pays for, and no secret is where people read.
  const found = await Promise.all(KINDS.map(async (kind) => (await cloud.kubectl.list(kind, { namespace })).items))
  expect(found.map(({ length }) => length)).toEqual([1, 1, 1, 1])
  const text = JSON.stringify([found, await read()])
  expect(text).not.toContain(host?.token)
  expect(text).not.toContain('PRIVATE KEY')
  expect(cloud.controlPlanes.planes.size).toBe(1)
}, 600_000)

test('what others take away in its cluster is put back, and another address is followed', async () => {
  const stop = cloud.startControllers(undefined, options)
  try {
    cluster.applied.delete('ConfigMap svccloud/svccloud-control-planes')
    cluster.address = '2001:db8::8'
    // As if it was applied an hour ago.
    const appliedAt = new Date(fastClock.now().getTime() - 3_700_000).toISOString()
    const status = { process: { ...(await read())?.status?.process, appliedAt } }
    await cloud.kubectl.patch(KubernetesHost, { name: id }, { status }, 'status')
    await until('its address', registered, ([host]) => host?.url === 'https://[2001:db8::8]', WAIT_MILLISECONDS)
    expect(cluster.applied.has('ConfigMap svccloud/svccloud-control-planes')).toBe(true)
  } finally {
    await stop()
  }
}, 200_000)

test('what it is made of costs nobody, and no quota or standing holds it up', async () => {
  const billed = await database.db.selectFrom('billed_resource').select('resource_id').execute()
  expect(billed).toEqual([])
  const now = { now: fastClock.now() }
  await requireStanding(database.db, PLATFORM_ACCOUNT_ID, now)
  await expect(requireStanding(database.db, await createAccount(database.db), now)).rejects.toThrow()
  const limits = (await listQuotas(database.db, PLATFORM_ACCOUNT_ID)).map(({ limit }) => limit)
  expect([new Set(limits), limits.length > 5]).toEqual([new Set([2 ** 40]), true])
})

test('it leaves nothing', async () => {
  const stop = cloud.startControllers(undefined, options)
  try {
    await cloud.kubectl.delete(KubernetesHost, { name: id })
    await until('its end', read, (host) => host === undefined, WAIT_MILLISECONDS)
  } finally {
    await stop()
  }
  expect(await registered()).toEqual([])
  for (const kind of KINDS) expect((await cloud.kubectl.list(kind, { namespace })).items).toEqual([])
  expect(cloud.controlPlanes.planes.size).toBe(0)
}, 200_000)
