/** What the controller claims for a snapshot, when its caches are behind what is done to the disk, or to the snapshot.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openSweepRate } from '../../../../controllers/kit/sweep-rate.ts'
import { snapshotController } from '../../../../controllers/nouns/snapshot/index.ts'
import { claimServer } from '../../../../db/server/index.ts'
import { orderRemoval } from '../../../../db/removal/index.ts'
import { hasHold, snapshotHolder } from '../../../../db/storage-hold/index.ts'
import { mirrorNode } from '../../../../db/placement/index.ts'
import { openCaches } from '../../../../kit/kube/caches.ts'
import { silentLog } from '../../../../kit/sys/log.ts'
import { openRegistry } from '../../../../kit/sys/metrics.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Server, type ServerSpec } from '../../../../resources/server/index.ts'
import { Snapshot, type SnapshotSpec } from '../../../../resources/snapshot/index.ts'
import { Storage, type StorageSpec } from '../../../../resources/storage/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, fastClock, openCloud, ZONE } from '../../cloud.ts'

const database = useDatabase()
let cloud: Cloud
let accountId: string
let namespace: string

beforeAll(async () => {
  cloud = await openCloud(database.db)
  accountId = await createAccount(database.db)
  namespace = accountNamespace(accountId)
  await cloud.openAccount(accountId)
  await mirrorNode(database.db, {
    node: 'n1',
    zone: ZONE,
    rack: 'r',
    cpuPool: null,
    dedicatedAccountId: null,
    isSchedulable: true,
    total: { cores: 100, memoryMebibytes: 100_000, storageGibibytes: 1_000 },
  })
})
afterAll(() => cloud.close())

/** As soon as the claim has looked at the snapshot, it is deleted by another process, or lost by Kubernetes. */
type Going = 'deleted' | 'lost'

async function claim(name: string, bootServerId: string | undefined, going?: Going): Promise<string | undefined> {
  const store: Cloud['kubectl'] = going === undefined ? cloud.kubectl : goingOnceRead(cloud.kubectl, going)
  const registry = openRegistry({ isProcessWide: false })
  const clockwork = {
    clock: fastClock,
    random: systemRandom,
    log: silentLog,
    sweepRate: openSweepRate(fastClock),
  }
  const parts = { store, caches: openCaches({ store, ...clockwork, registry }), db: database.db, ...clockwork }
  const snapshot = await store.create(Snapshot, {
    metadata: { namespace, name },
    spec: { storageId: 'web' } as SnapshotSpec, // the API server fills in the defaults
  })
  const demand = { accountId, snapshotId: name, storageId: 'web', bootServerId, isShared: false }
  const report = await snapshotController.open(parts)?.effects?.['claim']?.(demand, snapshot)
  return report?.conditions?.map(({ reason }) => reason).join()
}

const goingOnceRead = (store: Cloud['kubectl'], going: Going): Cloud['kubectl'] =>
  Object.assign(Object.create(store) as Cloud['kubectl'], {
    async get(...[type, key]: Parameters<Cloud['kubectl']['get']>) {
      const found = await store.get(type, key)
      if (type.kind !== Snapshot.kind || found === undefined) return found
      const { name, uid = '' } = found.metadata
      const removed = { kind: Snapshot.kind, namespace, name, uid }
      if (going === 'deleted')
        await orderRemoval(database.db, removed, { reason: 'deleted', clock: fastClock, random: systemRandom })
      await store.delete(type, key)
      return found
    },
  })

test('a claim is refused after the end of the disk, and kept for a snapshot that nobody deleted', async () => {
  const key = { namespace, name: 'web' }
  const server = { hostname: 'web', zone: ZONE, plan: 'tiny', template: 'tiny-linux' } as unknown as ServerSpec
  await cloud.kubectl.create(Server, { metadata: { ...key, finalizers: ['example.com/stays'] }, spec: server })
  const disk = { zone: ZONE, sizeGibibytes: 1, isBoot: true, serverId: 'web' } as StorageSpec // the same
  await cloud.kubectl.create(Storage, { metadata: { ...key, finalizers: ['example.com/stays'] }, spec: disk })
  await database.db.transaction().execute((tx) =>
    claimServer(
      tx,
      {
        accountId,
        serverId: 'web',
        hostname: 'web',
        zone: ZONE,
        cores: 1,
        memoryMebibytes: 192,
        storageGibibytes: 1,
      },
      { now: fastClock.now(), random: systemRandom },
    ),
  )
  expect(await claim('s0', 'web', 'deleted')).toBeUndefined()
  expect(await hasHold(database.db, { accountId, holder: snapshotHolder('s0') })).toBe(false)
  expect(await claim('lost', 'web', 'lost')).toBeUndefined()
  expect(await hasHold(database.db, { accountId, holder: snapshotHolder('lost') })).toBe(true)
  expect(await claim('s1', 'web')).toBe('Claimed')
  expect(await hasHold(database.db, { accountId, holder: snapshotHolder('s1') })).toBe(true)
  const operation = {
    id: newUuid(systemRandom),
    kind: 'server.rebuild',
    actor: 'user:1',
    requestId: 'r',
    requestedAt: '2026-01-01T00:00:00Z',
    deadlineAt: '2026-01-01T01:00:00Z',
  }
  await cloud.kubectl.patch(Server, key, { spec: { operation } })
  expect(await claim('s2', 'web')).toBe('OperationInProgress')
  await cloud.kubectl.patch(Server, key, { spec: { operation: null } })
  await cloud.kubectl.delete(Server, key)
  expect(await claim('s3', 'web')).toBe('StateNotAllowed')
  await cloud.kubectl.delete(Storage, key)
  expect(await claim('s4', undefined)).toBe('StateNotAllowed')
})
