/** Each zone keeps its own backups: what is in one is reached in another by copies only. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { KubeObject } from '../../../../kit/kube/object.ts'
import { Backup, type BackupSpec, type BackupStatus } from '../../../../resources/backup/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Server, type ServerSpec } from '../../../../resources/server/index.ts'
import { Storage, type StorageSpec } from '../../../../resources/storage/index.ts'
import { createAccount, setQuotas } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, NODE, openCloud, ZONE } from '../../cloud.ts'
import { until } from '../../until.ts'
import { requestedNow } from '../../requested.ts'

const OTHER_NODE = 'n2'
const OTHER_ZONE = 'zone-2'
const database = useDatabase()
let cloud: Cloud
let namespace: string
let accountId: string

beforeAll(async () => {
  cloud = await openCloud(database.db, undefined, [NODE, OTHER_NODE], { [OTHER_NODE]: OTHER_ZONE })
  cloud.startAgent(NODE)
  cloud.startAgent(OTHER_NODE)
  cloud.startControllers()
})
afterAll(() => cloud.close())
beforeEach(async () => {
  accountId = await createAccount(database.db)
  namespace = accountNamespace(accountId)
  await cloud.openAccount(accountId)
})

const key = (name: string) => ({ namespace, name })

async function startServer(zone: string): Promise<void> {
  const spec = { hostname: 'web', zone, plan: 'tiny', template: 'tiny-linux' } as unknown as ServerSpec
  await cloud.kubectl.create(Server, { metadata: key('web'), spec })
  await until(
    'started',
    () => cloud.kubectl.get(Server, key('web')),
    (server) => server?.status?.state === 'started',
  )
}
async function deleteServer(): Promise<void> {
  await cloud.kubectl.delete(Server, key('web'))
  await until(
    'server gone',
    () => cloud.kubectl.get(Server, key('web')),
    (server) => server === undefined,
  )
}
const ended = (name: string, kind: string) =>
  until(
    `${kind} of ${name}`,
    () => cloud.kubectl.get(Backup, key(name)),
    (backup) => backup?.status?.operation?.kind === kind && backup.status.operation.finishedAt !== undefined,
  ) as Promise<KubeObject<BackupSpec, BackupStatus>>
async function backUp(name: string) {
  // the API server fills in the defaults
  await cloud.kubectl.create(Backup, { metadata: key(name), spec: { storageId: 'web' } as BackupSpec })
  return (await ended(name, 'storage.backup')).status
}

test('a storage that is in another zone now shares nothing with the backups of before', async () => {
  await startServer(ZONE)
  expect(await backUp('b1')).toMatchObject({ state: 'online', zone: ZONE })
  await deleteServer()
  await startServer(OTHER_ZONE)
  // all of it is read: the store of this zone has nothing of the first
  const second = await backUp('b2')
  expect(second).toMatchObject({ state: 'online', zone: OTHER_ZONE })
  expect(second?.parent).toBeUndefined()

  await cloud.kubectl.patch(Backup, key('b1'), {
    spec: {
      operation: requestedNow('backup.restore', { seconds: 43_200 }),
    },
  })
  expect((await ended('b1', 'backup.restore')).status).toMatchObject({
    state: 'online',
    operation: { status: 'failed', error: `Storage web is no longer in zone ${ZONE}.` },
    lastRestore: { outcome: 'untouched' },
  })

  await cloud.kubectl.delete(Backup, key('b1'))
  await until(
    'b1 gone',
    () => cloud.kubectl.get(Backup, key('b1')),
    (backup) => backup === undefined,
  )
  expect([...cloud.backupsIn(ZONE).keys()]).toEqual([])
  expect([...cloud.backupsIn(OTHER_ZONE).keys()]).toEqual(['b2'])
})

test('a backup is copied to the zone that its storage names, and used there when its own is deleted', async () => {
  await startServer(ZONE)
  await cloud.kubectl.patch(Storage, key('web'), { spec: { backupCopyZone: OTHER_ZONE } })
  const first = await backUp('b1')
  expect(first).toMatchObject({ state: 'online', zone: ZONE, operation: { status: 'succeeded', step: 'copied' } })
  const copies = async () =>
    (await cloud.kubectl.list(Backup, { namespace })).items.filter(({ spec }) => spec.copyOf !== undefined)
  const [copy] = await copies()
  expect(copy).toMatchObject({
    spec: { storageId: 'web', zone: OTHER_ZONE, kind: 'manual', copyOf: { name: 'b1', zone: ZONE } },
    status: { state: 'online', zone: OTHER_ZONE, sizeGibibytes: 1, isSameHost: false, origin: first?.origin },
  })
  const name = copy?.metadata.name ?? ''
  expect([...cloud.backupsIn(OTHER_ZONE).keys()]).toContain(name)
  // the next one takes what is there already
  await backUp('b2')
  expect((await copies()).find(({ spec }) => spec.copyOf?.name === 'b2')?.status?.parent).toBe(name)

  await deleteServer()
  cloud.backupsIn(ZONE).clear()
  const spec = { zone: OTHER_ZONE, sizeGibibytes: 1, source: { kind: 'backup', id: name } } as StorageSpec
  await cloud.kubectl.create(Storage, { metadata: key('again'), spec })
  await until(
    'a storage of the copy',
    () => cloud.kubectl.get(Storage, key('again')),
    (storage) => storage?.status?.state === 'online',
  )
  expect([...cloud.filled.values()]).toContain(name)
})

test('a copy that cannot be made leaves the backup online, and is in error', async () => {
  await startServer(ZONE)
  await cloud.kubectl.patch(Storage, key('web'), { spec: { backupCopyZone: OTHER_ZONE } })
  await setQuotas(database.db, 1, { accountId, name: 'backups' })
  expect(await backUp('b1')).toMatchObject({
    state: 'online',
    operation: { status: 'failed', error: expect.stringContaining(`It has no copy in zone ${OTHER_ZONE}: `) },
  })
})
