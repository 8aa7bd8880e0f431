/** The life of a Kubernetes cluster with real controllers and a real PostgreSQL of the platform, through the door of
 *  kubectl. The host of control planes only counts. */
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { listQuotas } from '../../../db/account/index.ts'
import { listClusterSnapshots } from '../../../db/kubernetes-cluster/index.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { accountNamespace } from '../../../resources/index.ts'
import {
  KubernetesCluster,
  type KubernetesClusterSpec,
  type KubernetesClusterStatus,
} from '../../../resources/kubernetes-cluster/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import type { OperationStanza } from '../../../resources/shapes.ts'
import { Network, type NetworkSpec } from '../../../resources/network/index.ts'
import { createAccount } from '../../accounts.ts'
import { useDatabase } from '../../database.ts'
import { type Cloud, openCloud, ZONE } from '../cloud.ts'
import { until } from '../until.ts'

type Cluster = KubeObject<KubernetesClusterSpec, KubernetesClusterStatus>

const database = useDatabase()
let cloud: Cloud
let stop: (() => Promise<void>)[] = []
let accountId: string
let namespace: string

beforeAll(async () => {
  cloud = await openCloud(database.db)
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

const key = () => ({ namespace, name: 'shop' })
const read = () => cloud.kubectl.get(KubernetesCluster, key())
const when = (what: string, isGood: (cluster: Cluster) => boolean) =>
  until(what, read, (found) => found !== undefined && isGood(found))
const ended = (kind: string) => (found: Cluster) =>
  found.status?.operation?.kind === kind && !['pending', 'running'].includes(found.status.operation.status)
const snapshots = () => listClusterSnapshots(database.db, { accountId, clusterId: 'shop' })
/** As a request would write it. */
const begin = async (kind: OperationStanza['kind'], args: Record<string, string> = {}) => {
  const operation: OperationStanza = {
    ...{ id: newUuid(systemRandom), kind, actor: 'user:x', requestId: 'r', arguments: args },
    ...{ requestedAt: '2026-01-01T12:00:00Z', deadlineAt: '2100-01-01T12:00:00Z' },
  }
  await cloud.kubectl.patch(KubernetesCluster, key(), { spec: { operation } })
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
    ...{ version: '1.35', kubernetesVersion: '1.35.4', availableUpgrade: '1.36', replicas: 3, isSimulated: true },
    health: { apiServer: 'healthy', etcdMembersReady: 3, etcdMembersTotal: 3, hasEtcdQuorum: true },
  })
  expect(plane().desired).toMatchObject({
    ...{ release: '1.35.4', replicas: 3, podCidrs: ['172.20.0.0/16'], serviceCidrs: ['172.21.0.0/16'] },
    issuer: { keys: [{ kty: 'EC', alg: 'ES256' }] },
  })

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
  const used = (await listQuotas(database.db, accountId)).filter(({ used: count }) => count > 0)
  expect(used.map(({ name }) => name)).toEqual(['networks'])
})

test('one that its host has lost is in error, and never made again', { timeout: 120_000 }, async () => {
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
  await when('it to run again', ({ status }) => status?.fault === undefined)
  await cloud.kubectl.delete(KubernetesCluster, key())
  await until('its end', read, (found) => found === undefined)
})
