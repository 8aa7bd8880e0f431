/** The life of a Kubernetes cluster with the real programs: with kubectl, with real controllers, and with the
 *  credentials of people. */
import { readdir } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { tokenFor } from '../../../../apiserver/nouns/kubernetes-cluster/access.ts'
import { ensureIssuer, findCluster, listClusterSnapshots } from '../../../../db/kubernetes-cluster/index.ts'
import type { Customer } from '../../../../kit/http/call.ts'
import { createSealing } from '../../../../kit/sys/sealing.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { minorOf } from '../../../../domain/kubernetes-cluster/rules.ts'
import { findKubernetes } from '../../../../hosting/processes/programs.ts'
import { Zone } from '../../../../resources/catalog/index.ts'
import { KubernetesCluster } from '../../../../resources/kubernetes-cluster/index.ts'
import { Network, type NetworkSpec } from '../../../../resources/network/index.ts'
import type { OperationStanza } from '../../../../resources/kit/shapes.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Hosted, kubeClient, openHosted } from '../../../hosting/processes/hosted.ts'
import { type Cloud, openCloud, SEALING_KEYS, ZONE } from '../../cloud.ts'
import { until } from '../../../eventually.ts'

/** The minor before the newest takes minutes to build: where it is not, the cluster is made with the newest one and not
 *  upgraded. `upgrade.kubernetes-long.test.ts` counts what is left out then. */
const releases = ((await findKubernetes())?.releases ?? []).map(({ release }) => release)
const [oldest = '', newest] = releases.length > 1 ? [releases[0], releases.at(-1)] : releases

const database = useDatabase()
let hosted: Hosted
let cloud: Cloud
let stop: (() => Promise<void>)[] = []
let accountId: string
let namespace: string

beforeAll(async () => {
  hosted = await openHosted({ memoryBytes: 1024 ** 3 })
  cloud = await openCloud(database.db)
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
  for (const each of stop) await each()
  await cloud.close()
  await hosted.end()
})

const WAIT_MILLISECONDS = 90_000
const key = () => ({ namespace, name: 'shop' })
const read = () => cloud.kubectl.get(KubernetesCluster, key())
type Found = Awaited<ReturnType<typeof read>>
const when = async (what: string, isGood: (cluster: NonNullable<Found>) => boolean) => {
  const found = await until(what, read, (each) => each !== undefined && isGood(each), WAIT_MILLISECONDS)
  if (found === undefined) throw new Error('unreachable')
  return found
}
async function perform(kind: OperationStanza['kind'], args: Record<string, string> = {}): Promise<string> {
  const operation: OperationStanza = {
    id: newUuid(systemRandom),
    kind,
    actor: 'user:x',
    requestId: 'r',
    arguments: args,
    requestedAt: '2026-01-01T12:00:00Z',
    deadlineAt: '2100-01-01T12:00:00Z',
  }
  await cloud.kubectl.patch(KubernetesCluster, key(), { spec: { operation } })
  const ended = await when(
    kind,
    ({ status }) => status?.operation?.id === operation.id && status.operation.status !== 'running',
  )
  expect(ended.status?.operation).toMatchObject({ id: operation.id, status: 'succeeded', error: '' })
  return operation.id
}

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps'
const configMap = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } })
/** The API of the cluster, for people of that role. */
async function apiFor(role: string, permissions: readonly string[] = ['read', 'operate']) {
  const claim = await findCluster(database.db, { accountId, clusterId: 'shop' })
  const issuer = await ensureIssuer(database.db, createSealing(SEALING_KEYS, systemRandom))
  const caller = { userId: 'ada', role, permissions } as unknown as Customer // what a token says of people
  const state = await hosted.host.get(claim?.controlPlaneId ?? '')
  if (state === undefined) throw new Error('there is no control plane')
  const { token } = tokenFor(issuer, { caller, now: new Date(), audience: state.id })
  return kubeClient(state, token)
}

test('it is made, entered, saved, upgraded, brought back and removed', { timeout: 400_000 }, async () => {
  const back = { zone: ZONE, name: 'back', ipv4Cidr: '10.1.0.0/24' } as NetworkSpec
  await cloud.kubectl.create(Network, { metadata: { namespace, name: 'back' }, spec: back })
  const spec = KubernetesCluster.spec.parse({ zone: ZONE, name: 'shop', networkId: 'back', version: minorOf(oldest) })
  await cloud.kubectl.create(KubernetesCluster, { metadata: key(), spec })
  const made = await when('the cluster', ({ status }) => status?.isMade === true)
  expect(made.status).toMatchObject({ kubernetesVersion: oldest, replicas: 1, health: { apiServer: 'healthy' } })
  expect(made.status?.endpoint).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/)
  expect(made.status?.isSimulated).toBeUndefined()

  const owner = await apiFor('owner')
  await until(
    'the issuer to be known',
    () => owner.send('POST', CONFIG_MAPS, configMap('kept')),
    ({ status }) => status === 201 || status === 409,
    WAIT_MILLISECONDS,
  )
  const viewer = await apiFor('viewer')
  // The roles of a new cluster are put together by its controllers.
  await until(
    'the role of viewers',
    () => viewer.send('GET', `${CONFIG_MAPS}/kept`),
    ({ status }) => status === 200,
  )
  expect((await viewer.send('POST', CONFIG_MAPS, configMap('mine'))).status).toBe(403)
  // A credential that only reads does so in the cluster too.
  expect((await (await apiFor('owner', ['read'])).send('POST', CONFIG_MAPS, configMap('mine'))).status).toBe(403)

  const snapshotId = await perform('kubernetes_cluster.snapshot', { kind: 'manual' })
  if (newest !== undefined) {
    await cloud.kubectl.patch(KubernetesCluster, key(), { spec: { version: minorOf(newest) } })
    await when(
      'the upgrade',
      ({ status }) => status?.kubernetesVersion === newest && status.version === minorOf(newest),
    )
  }
  expect((await owner.send('POST', CONFIG_MAPS, configMap('late'))).status).toBe(201)
  await perform('kubernetes_cluster.restore', { snapshotId })
  expect((await owner.send('GET', `${CONFIG_MAPS}/kept`)).status).toBe(200)
  expect((await owner.send('GET', `${CONFIG_MAPS}/late`)).status).toBe(404)
  const snapshots = await listClusterSnapshots(database.db, { accountId, clusterId: 'shop' })
  expect(snapshots.map(({ kind }) => kind).toSorted()).toEqual([
    'manual',
    'pre_restore',
    ...(newest === undefined ? [] : ['pre_upgrade']),
  ])

  await cloud.kubectl.delete(KubernetesCluster, key())
  await until('its end', read, (found) => found === undefined, WAIT_MILLISECONDS)
  expect(await readdir(hosted.folder)).toEqual(['user-range.json'])
})
