/** The whole life of backups with real controllers, a real agent and a real database, with kubectl. */
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { parse } from 'yaml'
import { listQuotas } from '../../../../db/account/index.ts'
import { listAudit } from '../../../../db/audit/index.ts'
import { recordKubernetesRequest } from '../../../../db/request/index.ts'
import { findOperation } from '../../../../db/operation/index.ts'
import { type KubeObject, Secret } from '../../../../kit/kube/object.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { Backup, type BackupSpec, type BackupStatus } from '../../../../resources/backup/index.ts'
import { BackupJob, BackupPlace, backupPlaceSecret } from '../../../../resources/backup-job/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Instance, nodeNamespace } from '../../../../resources/instance/index.ts'
import { Operation } from '../../../../resources/operation/index.ts'
import { Server, type ServerSpec } from '../../../../resources/server/index.ts'
import type { OperationStanza } from '../../../../resources/kit/shapes.ts'
import { Snapshot } from '../../../../resources/snapshot/index.ts'
import { Storage, type StorageSpec, type StorageStatus } from '../../../../resources/storage/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, fastClock, NODE, openCloud, ZONE } from '../../cloud.ts'
import { until } from '../../until.ts'
import { requestedNow } from '../../requested.ts'

const database = useDatabase()
let cloud: Cloud
let accountId: string
let namespace: string

beforeAll(async () => {
  cloud = await openCloud(database.db)
  cloud.startAgent()
  cloud.startControllers()
})
afterAll(() => cloud.close())
beforeEach(async () => {
  accountId = await createAccount(database.db)
  namespace = accountNamespace(accountId)
  await cloud.openAccount(accountId)
})

type BackupObject = KubeObject<BackupSpec, BackupStatus>
const key = (name: string) => ({ namespace, name })
const read = (name: string) => cloud.kubectl.get(Backup, key(name))
const create = (name: string, spec: Partial<BackupSpec> = {}) =>
  // the API server fills in the defaults
  cloud.kubectl.create(Backup, { metadata: key(name), spec: { storageId: 'web', ...spec } as BackupSpec })
const inState = (name: string, state: BackupStatus['state']) =>
  until(
    `${name} ${state}`,
    () => read(name),
    (backup) => backup?.status?.state === state && backup.status.operation?.finishedAt !== undefined,
  ) as Promise<BackupObject>
const gone = (name: string) =>
  until(
    `${name} gone`,
    () => read(name),
    (backup) => backup === undefined,
  )
/** At night, in UTC, the platform verifies a backup as soon as it is complete. */
const operations = async () =>
  (await cloud.kubectl.list(Operation, { namespace })).items.map(({ spec, status }) => `${spec.kind} ${status?.status}`)
const used = async () => (await listQuotas(database.db, accountId)).find(({ name }) => name === 'backups')?.used
const jobs = async () => (await cloud.kubectl.list(BackupJob, { namespace: nodeNamespace(NODE) })).items
const stanza = (kind: OperationStanza['kind']): OperationStanza => requestedNow(kind, { seconds: 43_200 })
const begin = (name: string, operation: OperationStanza) =>
  cloud.kubectl.patch(Backup, key(name), { spec: { operation } })
const ended = (name: string, { id }: OperationStanza) =>
  until(
    `${name} ended`,
    () => read(name),
    (backup) => backup?.status?.operation?.id === id && backup.status.operation.finishedAt !== undefined,
  ) as Promise<BackupObject>

async function startServer(): Promise<void> {
  const spec = { hostname: 'web', zone: ZONE, plan: 'tiny', template: 'tiny-linux' } as unknown as ServerSpec
  await cloud.kubectl.create(Server, { metadata: key('web'), spec })
  await serverIs('started')
}
const serverIs = (state: string) =>
  until(
    state,
    () => cloud.kubectl.get(Server, key('web')),
    (server) => server?.status?.state === state,
  )

test('a backup is made once, holds its quota, and leaves nothing when it is deleted', async () => {
  await startServer()
  await create('b1')
  const first = await inState('b1', 'online')
  expect(first.status).toMatchObject({
    sizeGibibytes: 1,
    zone: ZONE,
    region: 'eu-1',
    target: 'zone-object-store',
    isSameHost: true,
  })
  await until('its operation', operations, (all) => all.includes('storage.backup succeeded'))
  expect(first.status?.parent).toBeUndefined()
  await create('b2')
  expect((await inState('b2', 'online')).status?.parent).toBe('b1')
  expect(await used()).toBe(2)
  const secret = await cloud.kubectl.get(Secret, { namespace: nodeNamespace(NODE), name: `backup-key-${accountId}` })
  expect(Buffer.from(secret?.data?.['key'] ?? '', 'base64').toString()).toMatch(/^[0-9a-f]{64}$/)
  expect([...cloud.backups.keys()].sort()).toEqual(['b1', 'b2'])
  expect(first.status?.place).toBe('object-storage')
  const beside = { namespace: nodeNamespace(NODE), name: backupPlaceSecret(accountId, ZONE) }
  const place = Buffer.from((await cloud.kubectl.get(Secret, beside))?.data?.['place'] ?? '', 'base64').toString()
  const { url, accessKeyId } = BackupPlace.parse(JSON.parse(place))
  const tenant = [...cloud.objectStorage.tenants.values()].find((each) => each.accessKeyId === accessKeyId)
  expect(tenant?.buckets).toEqual([new URL(url).pathname.slice(1)])

  await cloud.kubectl.delete(Server, key('web'))
  await until(
    'server gone',
    () => cloud.kubectl.get(Server, key('web')),
    (server) => server === undefined,
  )
  expect((await read('b2'))?.status?.state).toBe('online')
  const asked = async (action: string) => {
    const { metadata } = (await read('b1')) ?? expect.fail('there is no b1')
    // A verification that the platform starts meanwhile is a generation too.
    for (const later of [1, 2, 3]) {
      const request = { uid: metadata.uid ?? '', action, generation: (metadata.generation ?? 0) + later }
      const by = { username: 'grace@example.com', requestedAt: fastClock.now(), changes: [] }
      await recordKubernetesRequest(database.db, { ...request, ...by })
    }
  }
  await asked('backup.update')
  await cloud.kubectl.patch(Backup, key('b1'), { spec: { title: 'Renamed' } })
  await asked('backup.delete')
  for (const name of ['b1', 'b2']) await cloud.kubectl.delete(Backup, key(name))
  for (const name of ['b1', 'b2']) await gone(name)
  expect(cloud.backups.size).toBe(0)
  expect(await used()).toBe(0)
  await until('jobs gone', jobs, (left) => left.length === 0)
  const audit = await listAudit(database.db, accountId, { limit: 100 })
  expect(audit.filter(({ action }) => action === 'storage.backup')).toHaveLength(2)
  const deleted = audit.filter(({ action }) => action === 'backup.delete')
  expect(deleted.map(({ resource_id, actor_email }) => `${resource_id} ${actor_email}`).sort()).toEqual([
    'b1 user:grace@example.com',
    'b2 user:kubernetes',
  ])
  expect(audit.find(({ action }) => action === 'backup.update')).toMatchObject({
    resource_id: 'b1',
    actor_email: 'user:grace@example.com',
  })
})

test('the first backup of an account waits for a store that is away, and says so', async () => {
  await startServer()
  cloud.objectStorage.isAway = true
  await create('b1')
  const events = async () =>
    (await cloud.kubectl.list(Operation, { namespace })).items
      .filter(({ spec }) => spec.kind === 'storage.backup')
      .flatMap(({ status }) => status?.events?.map(({ kind, message }) => `${kind}: ${message}`) ?? [])
  const told = await until('its operation to say so', events, (all) => all.some((each) => each.startsWith('waiting')))
  expect(told.filter((each) => each.startsWith('waiting'))).toEqual([
    expect.stringContaining(`object storage of zone ${ZONE}`),
  ])
  expect(await jobs()).toEqual([])
  cloud.objectStorage.isAway = false
  await inState('b1', 'online')
})

test('a restore waits for a stopped server, and tells its progress in bytes', async () => {
  await startServer()
  await create('b1')
  await inState('b1', 'online')
  const restore = stanza('backup.restore')
  await begin('b1', restore)
  await until(
    'waiting',
    () => read('b1'),
    (backup) => backup?.status?.operation?.id === restore.id && backup.status.operation.step === 'placed',
  )
  expect((await jobs()).filter(({ spec }) => spec.work === 'restore')).toEqual([])
  await cloud.kubectl.patch(Server, key('web'), { spec: { desiredPower: 'stopped' } })
  const restored = await ended('b1', restore)
  expect(restored.status).toMatchObject({ state: 'online', operation: { status: 'succeeded' } })
  const snapshots = async () => (await cloud.kubectl.list(Snapshot, { namespace })).items
  expect(await snapshots()).toMatchObject([
    {
      spec: { storageId: 'web', title: 'Before the restore of backup b1', restoredBackupId: 'b1' },
      status: { state: 'online', sizeGibibytes: 1 },
    },
  ])
  const creation = await until(
    'history',
    async () => {
      const [entry] = (await listAudit(database.db, accountId, { limit: 100 })).filter(
        ({ action }) => action === 'storage.backup',
      )
      return entry === undefined ? undefined : findOperation(database.db, accountId, entry.request_id)
    },
    (operation) => operation !== undefined,
  )
  const events = creation?.events ?? []
  expect(events.find(({ kind, message }) => kind === 'progress' && message.startsWith('100 %'))?.data).toMatchObject({
    bytes_done: 1_073_741_824,
    bytes_total: 1_073_741_824,
  })
  expect(events.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['crash_consistent', 'full']))

  // It keeps nobody from anything, and goes with its storage.
  await cloud.kubectl.delete(Server, key('web'))
  await until('snapshots gone', snapshots, (left) => left.length === 0)
})

test('a restore does not wait for ever for a guest that crashed before it was stopped', async () => {
  await startServer()
  await create('b1')
  await inState('b1', 'online')
  const [
    {
      metadata: { namespace: node = '', name: guest },
    } = { metadata: { name: '' } },
  ] = (await cloud.kubectl.list(Instance, { namespace: nodeNamespace(NODE) })).items
  const instance = () => cloud.kubectl.get(Instance, { namespace: node, name: guest })
  /** Whether it did not start again after it had crashed, nor does when it is tried once more. */
  const hasCrashed = (found: Awaited<ReturnType<typeof instance>>) => {
    cloud.host.failNextStart('no memory left')
    return found?.status?.state === 'error'
  }
  hasCrashed(undefined)
  cloud.host.crashGuest(guest)
  await until('crashed', instance, hasCrashed)
  await cloud.kubectl.patch(Server, key('web'), { spec: { desiredPower: 'stopped' } })
  await until('stopped', instance, (found) => hasCrashed(found) && found?.spec.power === 'stopped')
  const restore = stanza('backup.restore')
  await begin('b1', restore)
  expect((await ended('b1', restore)).status?.operation).toMatchObject({ status: 'succeeded' })
  expect((await instance())?.status?.state).toBe('error')
  cloud.host.failNextStart(undefined)
})

/** Answers the address. */
async function addOwner(): Promise<string> {
  const [userId, email, at] = [newUuid(systemRandom), `${accountId}@example.com`, new Date('2026-01-01T00:00:00Z')]
  await database.db
    .insertInto('app_user')
    .values({
      id: userId,
      email,
      name: null,
      password_hash: null,
      email_verified_at: at,
      own_account_id: accountId,
      active_account_id: accountId,
      created_at: at,
    })
    .execute()
  await database.db
    .insertInto('membership')
    .values({ account_id: accountId, user_id: userId, role: 'owner', joined_at: at })
    .execute()
  return email
}

test('verification says what it found, to the owners by mail, and the backup stays online', async () => {
  const owner = await addOwner()
  const mails = () =>
    database.db.selectFrom('email_outbox').select(['subject', 'body']).where('recipient', '=', owner).execute()
  await startServer()
  await create('b1')
  await inState('b1', 'online')
  const first = stanza('backup.verify')
  await begin('b1', first)
  const verified = await ended('b1', first)
  expect(verified.status?.verifiedAt).toBeDefined()
  expect(await mails()).toEqual([])
  cloud.backups.delete('b1')
  const second = stanza('backup.verify')
  await begin('b1', second)
  expect((await ended('b1', second)).status).toMatchObject({
    state: 'online',
    verificationError: 'm/b1 is missing',
    operation: { status: 'succeeded' },
  })
  expect(await mails()).toEqual([
    { subject: 'A backup cannot be restored completely', body: expect.stringContaining('m/b1 is missing') },
  ])
})

test('a restore ends the verification that is under way, and is whole', async () => {
  await startServer()
  await create('b1')
  await inState('b1', 'online')
  await cloud.kubectl.patch(Server, key('web'), { spec: { desiredPower: 'stopped' } })
  await serverIs('stopped')
  await begin('b1', stanza('backup.verify'))
  await until('the work', jobs, (all) => all.length > 0)
  const restore = stanza('backup.restore')
  await begin('b1', restore)
  expect((await ended('b1', restore)).status).toMatchObject({
    state: 'online',
    operation: { status: 'succeeded' },
    lastRestore: { outcome: 'succeeded' },
  })
  await until('the verification to be over', operations, (all) => !all.includes('backup.verify running'))
  expect(await operations()).not.toContain('backup.verify failed')
})

test('a backup of nothing waits for it, ends in error, and can be deleted', async () => {
  const operation = { ...stanza('storage.backup'), requestedAt: new Date(0).toISOString() }
  await create('b1', { storageId: 'none', operation })
  expect((await inState('b1', 'error')).status?.stateDetail).toBe('There is no storage none.')
  await create('b2', { storageId: 'none' })
  await until(
    'waiting',
    () => read('b2'),
    (backup) => backup?.status?.operation?.step === 'placed',
  )
  for (const name of ['b1', 'b2']) await cloud.kubectl.delete(Backup, key(name))
  for (const name of ['b1', 'b2']) await gone(name)
  expect(await used()).toBe(0)
})

const example = async <Spec>(file: string) =>
  parse(await readFile(`examples/${file}`, 'utf8')) as {
    readonly metadata: { readonly name: string }
    readonly spec: Spec
  }

test('the example is made once, of a server that is applied after it', async () => {
  const { metadata, spec } = await example<BackupSpec>('backup.yaml')
  const apply = () => cloud.kubectl.apply(Backup, { metadata: key(metadata.name), spec })
  await apply()
  const server = await example<ServerSpec>('server.yaml')
  await cloud.kubectl.create(Server, {
    metadata: key(server.metadata.name),
    spec: { ...server.spec, zone: ZONE },
  })
  const made = await inState(metadata.name, 'online')
  expect(made.status).toMatchObject({ sizeGibibytes: 1, operation: { kind: 'storage.backup', status: 'succeeded' } })
  await apply()
  expect((await read(metadata.name))?.metadata.generation).toBe(made.metadata.generation)
  await cloud.kubectl.delete(Backup, key(metadata.name))
  await gone(metadata.name)
})

test('a backup that has expired is deleted by the platform', async () => {
  await startServer()
  await create('b1', { expiresAt: new Date(fastClock.now().getTime() + 60_000).toISOString() })
  await inState('b1', 'online')
  await gone('b1')
  expect(cloud.backups.size).toBe(0)
  const entries = await listAudit(database.db, accountId, { limit: 100 })
  expect(entries.find(({ action }) => action === 'backup.delete')?.actor_email).toBe('system:backup_expiry')
})

const createStorage = (name: string, backup: string, spec: Partial<StorageSpec> = {}) =>
  cloud.kubectl.create(Storage, {
    metadata: key(name),
    spec: { zone: ZONE, sizeGibibytes: 1, source: { kind: 'backup', id: backup }, ...spec } as StorageSpec,
  })
const storageIs = (name: string, state: StorageStatus['state']) =>
  until(
    `${name} ${state}`,
    () => cloud.kubectl.get(Storage, key(name)),
    (storage) => storage?.status?.state === state,
  ) as Promise<KubeObject<StorageSpec, StorageStatus>>

test('a storage is made from a backup whose own storage is deleted', async () => {
  await startServer()
  await create('b1')
  await inState('b1', 'online')
  await cloud.kubectl.delete(Server, key('web'))
  await until(
    'server gone',
    () => cloud.kubectl.get(Server, key('web')),
    (server) => server === undefined,
  )
  await createStorage('copy', 'b1')
  const made = await storageIs('copy', 'online')
  expect(cloud.filled.get(made.metadata.uid ?? '')).toBe('b1')
  expect(cloud.volumes.get(made.metadata.uid ?? '')).toMatchObject({ sizeGibibytes: 1 })
  await cloud.kubectl.delete(Storage, key('copy'))
  await cloud.kubectl.delete(Backup, key('b1'))
  await gone('b1')
  await until(
    'storage gone',
    () => cloud.kubectl.get(Storage, key('copy')),
    (storage) => storage === undefined,
  )
})

test('no storage is made from a backup whose data are not there', async () => {
  await startServer()
  await create('b1')
  await inState('b1', 'online')
  cloud.backups.delete('b1')
  await createStorage('copy', 'b1')
  expect((await storageIs('copy', 'error')).status?.stateDetail).toBe('backup b1: m/b1 is missing')
  await createStorage('none', 'b2')
  expect((await storageIs('none', 'error')).status?.stateDetail).toContain('no backup b2')
})

test('a storage shows that a backup is being restored to it, and that one has ended half-way', async () => {
  await startServer()
  await create('b1')
  await inState('b1', 'online')
  await cloud.kubectl.patch(Server, key('web'), { spec: { desiredPower: 'stopped' } })
  await serverIs('stopped')
  const [boot] = (await cloud.kubectl.list(Storage, { namespace })).items
  const name = boot?.metadata.name ?? ''
  cloud.backups.delete('b1')
  const broken = stanza('backup.restore')
  await begin('b1', broken)
  await storageIs(name, 'restoring')
  expect((await ended('b1', broken)).status).toMatchObject({
    state: 'online',
    operation: { status: 'failed' },
    lastRestore: { operationId: broken.id, outcome: 'untouched' },
  })
  await storageIs(name, 'online')
})
