/** The life of a Kubernetes cluster with real controllers and a real PostgreSQL of the platform, with kubectl. The host
 *  of control planes only counts. */
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { sweepInternalTenants } from '../../../../controllers/kit/internal-tenant.ts'
import { listQuotas } from '../../../../db/account/index.ts'
import { listAudit } from '../../../../db/audit/index.ts'
import { hashSecret } from '../../../../db/identity/index.ts'
import { findClusterTokens, listClusterSnapshots } from '../../../../db/kubernetes-cluster/index.ts'
import { recordKubernetesRequest } from '../../../../db/request/index.ts'
import { Zone } from '../../../../resources/catalog/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import {
  KubernetesCluster,
  type KubernetesClusterSpec,
  type KubernetesClusterStatus,
} from '../../../../resources/kubernetes-cluster/index.ts'
import type { KubeObject } from '../../../../kit/kube/object.ts'
import { openPlatformClient } from '../../../../integrations/organisation-platform/client.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import type { OperationStanza } from '../../../../resources/kit/shapes.ts'
import { Network, type NetworkSpec } from '../../../../resources/network/index.ts'
import { LoadBalancer } from '../../../../resources/load-balancer/index.ts'
import { Storage } from '../../../../resources/storage/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, ZONE } from '../../cloud.ts'
import { type FakePlatform, startFakePlatform } from '../../../organisation-platform.ts'
import { until } from '../../until.ts'

type Cluster = KubeObject<KubernetesClusterSpec, KubernetesClusterStatus>

const database = useDatabase()
let cloud: Cloud
let stop: (() => Promise<void>)[] = []
let accountId: string
let platform: FakePlatform
let namespace: string

beforeAll(async () => {
  cloud = await openCloud(database.db)
  platform = await startFakePlatform()
  const { url, token } = platform
  const organisationPlatform = openPlatformClient({ url, token, clock: systemClock })
  stop = [cloud.startControllers(undefined, { organisationPlatform }), cloud.startAgent()]
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
  await platform.close()
  await cloud.close()
})

const key = () => ({ namespace, name: 'shop' })
const read = () => cloud.kubectl.get(KubernetesCluster, key())
const when = (what: string, isGood: (cluster: Cluster) => boolean) =>
  until(what, read, (found) => found !== undefined && isGood(found))
const ended = (kind: string) => (found: Cluster) =>
  found.status?.operation?.kind === kind && !['pending', 'running'].includes(found.status.operation.status)
const snapshots = () => listClusterSnapshots(database.db, { accountId, clusterId: 'shop' })
/** As a request would write it. */
const begin = async (kind: OperationStanza['kind'], args: Record<string, string> = {}, more = {}) => {
  const operation: OperationStanza = {
    id: newUuid(systemRandom),
    kind,
    actor: 'user:x',
    requestId: 'r',
    arguments: args,
    requestedAt: '2026-01-01T12:00:00Z',
    deadlineAt: '2100-01-01T12:00:00Z',
  }
  await cloud.kubectl.patch(KubernetesCluster, key(), { spec: { ...more, operation } })
  return operation.id
}
const plane = () => {
  const [found] = cloud.controlPlanes.planes.values()
  if (found === undefined) throw new Error('there is no control plane')
  return found
}

test('it is made, saved, upgraded, brought back, and leaves nothing', { timeout: 180_000 }, async () => {
  const example = parse(await readFile('examples/kubernetes-clusters/cluster.yaml', 'utf8'))
  const spec = { ...KubernetesCluster.spec.parse({ ...example.spec, zone: ZONE, version: '1.35' }) }
  await cloud.kubectl.create(KubernetesCluster, { metadata: key(), spec })
  // Its network comes later.
  const back = { zone: ZONE, name: 'back', ipv4Cidr: '10.1.0.0/24' } as NetworkSpec
  await cloud.kubectl.create(Network, { metadata: { namespace, name: 'back' }, spec: back })
  const made = await when('the cluster', ({ status }) => status?.isMade === true)
  expect(made?.status).toMatchObject({
    version: '1.35',
    kubernetesVersion: '1.35.4',
    availableUpgrade: '1.36',
    replicas: 3,
    isSimulated: true,
    health: { apiServer: 'healthy', etcdMembersReady: 3, etcdMembersTotal: 3, hasEtcdQuorum: true },
  })
  expect(plane().desired).toMatchObject({
    release: '1.35.4',
    replicas: 3,
    podCidrs: ['172.20.0.0/16'],
    serviceCidrs: ['172.21.0.0/16'],
    issuer: { keys: [{ kty: 'EC', alg: 'ES256' }] },
  })

  // Its add-on has a token that is good, for what it does, and no other.
  await until(
    'the token of its add-on',
    async () => plane().grants.get('csi-driver'),
    (grant) => grant !== undefined,
  )
  const grant = plane().grants.get('csi-driver')
  expect(grant).toMatchObject({ clusterId: 'shop', zone: ZONE })
  const tokens = await findClusterTokens(database.db, [hashSecret(grant?.token ?? '')], new Date())
  expect(tokens).toMatchObject([
    { token: { id: grant?.tokenId, accountId, clusterId: 'shop', program: 'csi-driver', scopes: ['storages'] } },
  ])
  // The host has lost it: there is a new one, and the old one is none now.
  plane().grants.clear()
  await until(
    'another token',
    async () => plane().grants.get('csi-driver'),
    (found) => found !== undefined && found.tokenId !== grant?.tokenId,
  )
  await until(
    'the end of the first token',
    () => findClusterTokens(database.db, [hashSecret(grant?.token ?? '')], new Date()),
    ({ length }) => length === 0,
  )
  // The host replaces an old one: programs may go on with it for an hour, and no longer.
  const second = plane().grants.get('csi-driver')
  const days = (count: number) => new Date(Date.now() + count * 86_400_000)
  await database.db
    .updateTable('kubernetes_token')
    .set({ created_at: days(-2), expires_at: days(2) })
    .execute()
  await until(
    'a third token',
    async () => plane().grants.get('csi-driver'),
    (found) => found?.tokenId !== second?.tokenId,
  )
  const third = plane().grants.get('csi-driver')
  const rows = () => database.db.selectFrom('kubernetes_token').select(['id', 'created_at', 'expires_at']).execute()
  const idIs = (wanted: string | undefined) => (row: { readonly id: string }) => row.id === wanted
  const end = await until(
    'the end of the second',
    async () => (await rows()).find(idIs(second?.tokenId))?.expires_at,
    (at) => at !== undefined && at < days(1),
  )
  const { created_at: begun } = (await rows()).find(idIs(third?.tokenId)) ?? {}
  expect((end?.getTime() ?? 0) - (begun?.getTime() ?? 0)).toBe(3_600_000)

  const saved = await begin('kubernetes_cluster.snapshot', { kind: 'manual' })
  await when('the snapshot', ended('kubernetes_cluster.snapshot'))
  expect(await snapshots()).toMatchObject([{ id: saved, kind: 'manual', release: '1.35.4', sizeBytes: 1_000 }])

  // An edit of its version upgrades it, with a snapshot first.
  await cloud.kubectl.patch(KubernetesCluster, key(), { spec: { version: '1.36' } })
  await when('the upgrade', ({ status }) => status?.version === '1.36' && status.kubernetesVersion === '1.36.3')
  expect((await snapshots()).map(({ kind }) => kind).toSorted()).toEqual(['manual', 'pre_upgrade'])
  expect(plane().desired.release).toBe('1.36.3')

  // Without quorum nothing can be saved first, and it is brought back all the same.
  plane().hasQuorum = false
  await when('its quorum to be missed', ({ status }) => status?.quorumLostAt !== undefined)
  const restoreId = await begin('kubernetes_cluster.restore', { snapshotId: saved })
  const back2 = await when('the restore', ended('kubernetes_cluster.restore'))
  expect(back2?.status?.operation).toMatchObject({ id: restoreId, status: 'succeeded' })
  expect(plane().restoreId).toBe(restoreId)
  expect((await snapshots()).map(({ kind }) => kind)).not.toContain('pre_restore')
  await begin('kubernetes_cluster.restore', { snapshotId: saved })
  await when('another restore', ended('kubernetes_cluster.restore'))
  await until('the snapshot before it', snapshots, (found) => found.some(({ kind }) => kind === 'pre_restore'))

  await cloud.kubectl.delete(KubernetesCluster, key())
  await until('its end', read, (found) => found === undefined)
  expect(cloud.controlPlanes.planes.size).toBe(0)
  expect(await database.db.selectFrom('kubernetes_cluster').select('id').execute()).toEqual([])
  expect(await database.db.selectFrom('kubernetes_token').select('id').execute()).toEqual([])
  const used = (await listQuotas(database.db, accountId)).filter(({ used: count }) => count > 0)
  expect(used.map(({ name }) => name)).toEqual(['networks'])
})

test('one that its host has lost is in error, and never made again', async () => {
  const spec = KubernetesCluster.spec.parse({ zone: ZONE, name: 'shop', networkId: 'back', version: '1.36' })
  await cloud.kubectl.create(KubernetesCluster, { metadata: key(), spec })
  await when('the cluster', ({ status }) => status?.isMade === true)
  const lost = [...cloud.controlPlanes.planes]
  cloud.controlPlanes.calls.length = 0
  cloud.controlPlanes.planes.clear()
  await when('its loss to be seen', ({ status }) => status?.fault !== undefined)
  expect(cloud.controlPlanes.calls).not.toContain('ensure')
  // Its host has it again: nothing was lost after all.
  for (const [id, found] of lost) cloud.controlPlanes.planes.set(id, found)
  const running = await when('it to run again', ({ status }) => status?.fault === undefined)
  const { uid = '', generation = 0 } = running?.metadata ?? {}
  // As admission records who deletes it.
  await recordKubernetesRequest(database.db, {
    uid,
    action: 'kubernetes_cluster.delete',
    generation: generation + 1,
    username: 'grace@example.com',
    requestedAt: new Date(),
    changes: [],
  })
  await cloud.kubectl.delete(KubernetesCluster, key())
  await until('its end', read, (found) => found === undefined)
  const [entry] = await listAudit(database.db, accountId, { limit: 1 })
  expect(entry).toMatchObject({ action: 'kubernetes_cluster.delete', actor_email: 'user:grace@example.com' })
})

test('its host gets the place of further snapshots, and that place is deleted with it', async () => {
  const stores = [cloud.objectStorage, cloud.gateway]
  for (const store of stores) store.isAway = true
  const spec = KubernetesCluster.spec.parse({ zone: ZONE, name: 'shop', networkId: 'back', version: '1.36' })
  await cloud.kubectl.create(KubernetesCluster, { metadata: key(), spec })
  // It is made and saved all the same.
  await when('the store to be missed', ({ status }) =>
    (status?.conditions ?? []).some(({ type, reason }) => type === 'SnapshotsPlaced' && reason === 'Unreachable'),
  )
  const saved = await begin('kubernetes_cluster.snapshot', { kind: 'manual' })
  await when('the snapshot', ended('kubernetes_cluster.snapshot'))
  expect(plane().place).toBeUndefined()
  for (const store of stores) store.isAway = false
  await when('the place', ({ status }) =>
    (status?.conditions ?? []).some(({ type, status: is }) => type === 'SnapshotsPlaced' && is === 'True'),
  )
  expect(plane().place).toMatchObject({ url: expect.stringMatching(/-clusters$/) })
  const tenants = () =>
    stores.flatMap((store) => [...store.tenants.values()].filter((each) => isOurs(each.accessKeyId)))
  const isOurs = (accessKeyId: string) => accessKeyId === place?.accessKeyId
  const { place, snapshots: held } = plane()
  expect(tenants()).toHaveLength(1)
  const taken = held.get(saved)
  if (taken !== undefined) held.set(saved, { ...taken, isStored: true })
  await when('the snapshot to be there', ({ status }) => status?.storedSnapshots?.includes(saved) === true)
  // Its host loses all of it, and makes it anew of that.
  cloud.controlPlanes.planes.clear()
  await when('its loss to be seen', ({ status }) => (status?.fault ?? '') !== '')
  const restoreId = await begin('kubernetes_cluster.restore', { snapshotId: saved })
  await when('the restore', ended('kubernetes_cluster.restore'))
  await when('it to run again', ({ status }) => (status?.fault ?? '') === '')
  expect(plane()).toMatchObject({ restoreId, place: { accessKeyId: place?.accessKeyId } })
  expect(cloud.controlPlanes.calls).toContain('recover')
  const sweep = () => sweepInternalTenants({ db: database.db, objectStorage: { stores, obstacle: '' } })
  await sweep()
  expect(tenants()).toHaveLength(1)
  await cloud.kubectl.delete(KubernetesCluster, key())
  await until('its end', read, (found) => found === undefined)
  await sweep()
  expect(tenants()).toEqual([])
})

test('what it made goes with it when that is said, and what others made stays', async () => {
  const spec = KubernetesCluster.spec.parse({ zone: ZONE, name: 'shop', networkId: 'back', version: '1.36' })
  await cloud.kubectl.create(KubernetesCluster, { metadata: key(), spec })
  await when('the cluster', ({ status }) => status?.isMade === true)
  const labels = { 'kubernetes-cluster': 'shop', 'csi-name': 'pvc-1' }
  const add = async (name: string, more: object) => {
    const storage = Storage.spec.parse({ zone: ZONE, title: name, sizeGibibytes: 1, ...more })
    await cloud.kubectl.create(Storage, { metadata: { namespace, name }, spec: storage })
  }
  await add('volume', { labels })
  await add('protected', { labels, isProtected: true })
  await add('anothers', { labels: { ...labels, 'kubernetes-cluster': 'other' } })
  await add('by-hand', { labels: { 'kubernetes-cluster': 'shop' } })
  const balancer = LoadBalancer.spec.parse({
    zone: ZONE,
    name: 'web',
    networkId: 'back',
    plan: 'tiny',
    frontends: [],
    backends: [],
    labels: { 'kubernetes-cluster': 'shop', 'kubernetes-service-uid': 'u' },
  })
  await cloud.kubectl.create(LoadBalancer, { metadata: { namespace, name: 'web' }, spec: balancer })
  const left = async () => [
    ...(await cloud.kubectl.list(Storage, { namespace })).items.map(({ metadata }) => metadata.name),
    ...(await cloud.kubectl.list(LoadBalancer, { namespace })).items.map(({ metadata }) => metadata.name),
  ]
  expect((await left()).toSorted()).toEqual(['anothers', 'by-hand', 'protected', 'volume', 'web'])
  await begin('kubernetes_cluster.delete', { associated: 'delete' })
  await until('its end', read, (found) => found === undefined)
  expect((await left()).toSorted()).toEqual(['anothers', 'by-hand', 'protected'])
  expect(cloud.controlPlanes.planes.size).toBe(0)
})

test('the platform of its organisation learns of it, and forgets it', async () => {
  cloud.controlPlanes.driver = 'process'
  platform.agent = [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'agent' } }]
  platform.fault = { status: 503, text: '' }
  const [id, name] = [newUuid(systemRandom), 'Acme']
  await database.db.insertInto('organisation').values({ id, name, account_id: accountId }).execute()
  const spec = KubernetesCluster.spec.parse({ zone: ZONE, name: 'shop', networkId: 'back', version: '1.36' })
  await cloud.kubectl.create(KubernetesCluster, { metadata: key(), spec })
  // It begins by itself, and whoever waits for the cluster does not wait for that.
  const missed = await when('the platform to be missed', ({ status }) => status?.platform?.state === 'pending')
  expect(missed?.status?.platform).toMatchObject({ attempts: 1, nextAttemptAt: expect.any(String) })
  platform.fault = undefined
  await begin('kubernetes_cluster.platform_register')
  const known = await when('its registration', ({ status }) => status?.platform?.state === 'registered')
  const { clusterId, url } = { clusterId: 'c-shop', url: 'https://platform.test/shop' }
  expect(known?.status?.platform).toMatchObject({ organisationId: id, clusterId, url, reason: '', attempts: 0 })
  expect(known?.status?.platform?.nextAttemptAt).toBeUndefined()
  expect(platform.clusters.get('shop')).toMatchObject({ organisation_id: id, name: 'shop', region: 'eu-1' })
  expect(plane().agent).toEqual(platform.agent)

  // By an edit, as by the route.
  await cloud.kubectl.patch(KubernetesCluster, key(), { spec: { registersInPlatform: false } })
  const out = await when('its end there', ({ status }) => status?.platform?.state === 'deregistered')
  expect(out?.status?.platform?.clusterId).toBeUndefined()
  expect([platform.clusters.size, plane().agent]).toEqual([0, []])
  await begin('kubernetes_cluster.platform_register', {}, { registersInPlatform: true })
  await when('it to be back', ({ status }) => status?.platform?.state === 'registered')
  platform.fault = { status: 409, text: '{"detail":"the organisation is closed"}' }
  await begin('kubernetes_cluster.platform_register')
  const refused = await when('the refusal', ({ status }) => status?.platform?.state === 'failed')
  expect(refused?.status?.platform?.reason).toContain('the organisation is closed')
  platform.fault = undefined
  await begin('kubernetes_cluster.platform_register')
  await when('it to be back again', ({ status }) => status?.platform?.state === 'registered')
  await cloud.kubectl.delete(KubernetesCluster, key())
  await until('its end', read, (found) => found === undefined)
  expect(platform.clusters.size).toBe(0)
})
