/** The life of snapshots, and of storages that are made from them, with real controllers, a real agent and a real
 *  database, with kubectl. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { listQuotas } from '../../../../db/account/index.ts'
import { listAudit } from '../../../../db/audit/index.ts'
import type { Resource } from '../../../../resources/kit/define.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { nodeNamespace, Volume } from '../../../../resources/instance/index.ts'
import { Server, type ServerSpec } from '../../../../resources/server/index.ts'
import { Snapshot, type SnapshotSpec } from '../../../../resources/snapshot/index.ts'
import { Storage, type StorageSpec } from '../../../../resources/storage/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, NODE, openCloud, ZONE } from '../../cloud.ts'
import { until } from '../../until.ts'

const database = useDatabase()
let cloud: Cloud
let accountId: string
let namespace: string

const key = (name: string) => ({ namespace, name })
const makeStorage = (name: string, spec: Partial<StorageSpec> = {}) =>
  cloud.kubectl.create(Storage, {
    metadata: key(name),
    spec: { zone: ZONE, sizeGibibytes: 1, ...spec } as StorageSpec, // the API server fills in the defaults
  })
const snap = (name: string, storageId = 'data') =>
  cloud.kubectl.create(Snapshot, { metadata: key(name), spec: { storageId } as SnapshotSpec })
const reaches = async (type: typeof Storage | typeof Snapshot, name: string, state: string) =>
  until(
    `${name} ${state}`,
    () => cloud.kubectl.get<unknown, { state?: string; operation?: { finishedAt?: string } }>(type as never, key(name)),
    (found) => found?.status?.state === state && found.status.operation?.finishedAt !== undefined,
  )
const gone = (type: Resource, name: string) =>
  until(
    `${name} gone`,
    () => cloud.kubectl.get(type as never, key(name)),
    (found) => found === undefined,
  )
const used = async (quota: string) =>
  (await listQuotas(database.db, accountId)).find(({ name }) => name === quota)?.used
const holds = async () =>
  (await database.db.selectFrom('storage_hold').select('holder').where('account_id', '=', accountId).execute())
    .map(({ holder }) => holder)
    .sort()
const inDisk = async (storage: string) => {
  const found = await cloud.kubectl.get(Storage, key(storage))
  const volume = await cloud.kubectl.get(Volume, {
    namespace: nodeNamespace(NODE),
    name: found?.metadata.uid ?? '',
  })
  return (volume?.status?.snapshots ?? []).map(({ sizeGibibytes }) => sizeGibibytes)
}

async function life(): Promise<void> {
  await makeStorage('data')
  await reaches(Storage, 'data', 'online')
  await snap('s1')
  const s1 = await reaches(Snapshot, 's1', 'online')
  expect(s1?.status).toMatchObject({
    zone: ZONE,
    region: 'eu-1',
    sizeGibibytes: 1,
    isFrozen: false,
    operation: { kind: 'snapshot.create', status: 'succeeded' },
  })
  await cloud.kubectl.patch(Storage, key('data'), { spec: { sizeGibibytes: 2 } })
  await until(
    'grown',
    () => cloud.kubectl.get(Storage, key('data')),
    (found) => found?.status?.sizeGibibytes === 2,
  )
  await snap('s2')
  await reaches(Snapshot, 's2', 'online')
  expect([await inDisk('data'), await used('snapshots'), await holds()]).toEqual([
    [1, 2],
    2,
    ['snapshot/s1', 'snapshot/s2'],
  ])

  await makeStorage('of-s1', { source: { kind: 'snapshot', id: 's1' } })
  await reaches(Storage, 'of-s1', 'online')
  await makeStorage('copy', { sizeGibibytes: 3, source: { kind: 'storage', id: 'data' } })
  await reaches(Storage, 'copy', 'online')
  await until(
    'the point of the copy gone',
    () => inDisk('data'),
    (points) => points.length === 2,
  )
  expect(await holds()).toEqual(['snapshot/s1', 'snapshot/s2'])

  // The storage stays as long as it has snapshots, even when its deletion was requested past every interface.
  await cloud.kubectl.delete(Storage, key('data'))
  await until(
    'held',
    () => cloud.kubectl.get(Storage, key('data')),
    (found) => found?.status?.conditions?.some(({ reason }) => reason === 'Held') === true,
  )
  expect(await inDisk('data')).toEqual([1, 2])
  await cloud.kubectl.delete(Snapshot, key('s1'))
  await gone(Snapshot, 's1')
  expect(await inDisk('data')).toEqual([2])
  await cloud.kubectl.delete(Snapshot, key('s2'))
  await gone(Snapshot, 's2')
  await gone(Storage, 'data')
  for (const name of ['of-s1', 'copy']) await cloud.kubectl.delete(Storage, key(name))
  for (const name of ['of-s1', 'copy']) await gone(Storage, name)
  expect([await used('snapshots'), await used('storages'), await holds()]).toEqual([0, 0, []])
  expect((await cloud.kubectl.list(Volume, { namespace: nodeNamespace(NODE) })).items).toEqual([])
}

beforeEach(async () => {
  cloud = await openCloud(database.db)
  cloud.startAgent()
  accountId = await createAccount(database.db)
  namespace = accountNamespace(accountId)
  await cloud.openAccount(accountId)
})

describe('snapshots', () => {
  let isStarted = false
  beforeAll(() => void (isStarted = false))
  afterAll(() => expect(isStarted).toBe(true))
  beforeEach(() => {
    cloud.startControllers()
    isStarted = true
  })

  test('are taken once, are cloned, and leave nothing', async () => {
    await life()
    const audit = (await listAudit(database.db, accountId, { limit: 100 })).map(({ action }) => action)
    expect(audit.filter((action) => action === 'snapshot.create')).toHaveLength(2)
    expect(audit.filter((action) => action === 'snapshot.delete')).toHaveLength(2)
    await cloud.close()
  })

  test('keep a server with local disks where it is, and its boot storage too', async () => {
    const spec = { hostname: 'web', zone: ZONE, plan: 'tiny', template: 'tiny-linux' } as unknown as ServerSpec
    await cloud.kubectl.create(Server, { metadata: key('web'), spec })
    await until(
      'started',
      () => cloud.kubectl.get(Server, key('web')),
      (server) => server?.status?.state === 'started',
    )
    await snap('s1', 'web')
    await reaches(Snapshot, 's1', 'online')
    expect(await inDisk('web')).toEqual([1])
    await cloud.kubectl.delete(Server, key('web'))
    await until(
      'held',
      () => cloud.kubectl.get(Storage, key('web')),
      (found) => found?.status?.conditions?.some(({ reason }) => reason === 'Held') === true,
    )
    await cloud.kubectl.delete(Snapshot, key('s1'))
    await gone(Snapshot, 's1')
    await gone(Server, 'web')
    await cloud.close()
  })

  test('are refused where there are none, and wait for a storage that is to come', async () => {
    await makeStorage('local', { tier: 'local-nvme' })
    await reaches(Storage, 'local', 'online')
    await snap('s1', 'local')
    const refused = await reaches(Snapshot, 's1', 'error')
    expect(refused?.status).toMatchObject({ stateDetail: 'Storages of tier local-nvme have no snapshots.' })
    await snap('s2', 'later')
    await makeStorage('later')
    await reaches(Snapshot, 's2', 'online')
    for (const name of ['s1', 's2']) await cloud.kubectl.delete(Snapshot, key(name))
    for (const name of ['s1', 's2']) await gone(Snapshot, name)
    expect([await used('snapshots'), await holds()]).toEqual([0, []])
    await cloud.close()
  })
})

test('come through controllers that die at every write', async () => {
  const mortals = cloud.startMortals(3)
  await life()
  expect(mortals.deaths()).toBeGreaterThan(5)
  await mortals.stop()
  await cloud.close()
}, 300_000)
