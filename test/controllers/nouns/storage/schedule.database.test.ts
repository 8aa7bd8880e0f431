/** Scheduled backups with real controllers, and storages from backups where nobody has the key. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { KubeObject } from '../../../../kit/kube/object.ts'
import { Backup, type BackupSpec } from '../../../../resources/backup/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Server, type ServerSpec } from '../../../../resources/server/index.ts'
import { Storage, type StorageSpec } from '../../../../resources/storage/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, fastClock, openCloud, ZONE } from '../../cloud.ts'
import { until } from '../../until.ts'

const HOUR_MILLISECONDS = 3_600_000
const database = useDatabase()
let cloud: Cloud
let namespace: string
let stopControllers: () => Promise<void>

beforeAll(async () => {
  cloud = await openCloud(database.db)
  cloud.startAgent()
  stopControllers = cloud.startControllers()
})
afterAll(() => cloud.close())
beforeEach(async () => {
  const accountId = await createAccount(database.db)
  namespace = accountNamespace(accountId)
  await cloud.openAccount(accountId)
})

const key = (name: string) => ({ namespace, name })
const backups = async () => (await cloud.kubectl.list(Backup, { namespace })).items

test('a backup that was deleted before its storage noted it is not made again', async () => {
  const spec = { hostname: 'web', zone: ZONE, plan: 'tiny', template: 'tiny-linux' } as unknown as ServerSpec
  await cloud.kubectl.create(Server, { metadata: key('web'), spec })
  await until(
    'online',
    () => cloud.kubectl.get(Storage, key('web')),
    (storage) => storage?.status?.state === 'online',
  )
  // The next slot is far away.
  const slot = new Date(fastClock.now().getTime() - HOUR_MILLISECONDS)
  const text = `${slot.getUTCMinutes()} ${slot.getUTCHours()} * * *`
  await cloud.kubectl.patch(Storage, key('web'), { spec: { backupSchedule: text } })
  await until(
    'noted',
    () => cloud.kubectl.get(Storage, key('web')),
    (storage) => storage?.status?.schedule !== undefined,
  )
  const before = new Date(slot.getTime() - HOUR_MILLISECONDS).toISOString()
  /** As a controller leaves it that dies before it notes the slot. */
  const forget = () =>
    cloud.kubectl.patch(Storage, key('web'), { status: { schedule: { text, doneUntil: before } } }, 'status')
  const dealtWith = () =>
    until(
      'the slot dealt with',
      () => cloud.kubectl.get(Storage, key('web')),
      (storage) => (storage?.status?.schedule?.doneUntil ?? '') > before,
    )
  await forget()
  await dealtWith()
  const [made] = (await until('online', backups, ([backup]) => backup?.status?.state === 'online')) as [
    KubeObject<BackupSpec>,
  ]
  expect(made.spec.kind).toBe('scheduled')
  await cloud.kubectl.delete(Backup, key(made.metadata.name))
  await until('gone', backups, (left) => left.length === 0)

  await forget()
  await dealtWith()
  expect(await backups()).toEqual([])
})

test('without sealing keys no storage is made from a backup, and the reason is said at once', async () => {
  await stopControllers()
  // the API server fills in the defaults
  await cloud.kubectl.create(Backup, { metadata: key('b1'), spec: { storageId: 'gone' } as BackupSpec })
  await cloud.kubectl.patch(
    Backup,
    key('b1'),
    { status: { state: 'online', zone: ZONE, sizeGibibytes: 1, completedAt: fastClock.now().toISOString() } },
    'status',
  )
  const stop = cloud.startControllers(undefined, { hasSealing: false })
  await cloud.kubectl.create(Storage, {
    metadata: key('copy'),
    spec: { zone: ZONE, sizeGibibytes: 1, source: { kind: 'backup', id: 'b1' } } as StorageSpec,
  })
  const failed = await until(
    'in error',
    () => cloud.kubectl.get(Storage, key('copy')),
    (storage) => storage?.status?.state === 'error',
  )
  expect(failed?.status).toMatchObject({
    stateDetail: 'Backups need sealing keys, which this deployment does not have.',
    operation: { kind: 'storage.create', status: 'failed' },
  })
  await stop()
})
