/** The life of a database with real controllers and a real PostgreSQL of the platform, with kubectl. The guest is
 *  played: no simulated host runs its programs. */
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { sweepArchives } from '../../../../controllers/nouns/database/index.ts'
import { listQuotas } from '../../../../db/account/index.ts'
import { addArchive, archiveTenantOf, findArchive } from '../../../../db/database/index.ts'
import { DATABASE_TEMPLATE } from '../../../../domain/managed-machine/rules.ts'
import { Secret } from '../../../../kit/kube/object.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { silentLog } from '../../../../kit/sys/log.ts'
import { Database, type DatabaseSpec } from '../../../../resources/database/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import {
  type ArchiveReport,
  MACHINE_DOCUMENT_KEY,
  MachineDocument,
  ManagedMachine,
} from '../../../../resources/managed-machine/index.ts'
import { Network, type NetworkSpec } from '../../../../resources/network/index.ts'
import { Server } from '../../../../resources/server/index.ts'
import { Storage } from '../../../../resources/storage/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, ZONE } from '../../cloud.ts'
import { openNetworkedCloud } from '../../networked-cloud.ts'
import { until } from '../../until.ts'

const database = useDatabase()
let cloud: Cloud
let stop: () => Promise<void>
let accountId: string
let namespace: string

beforeAll(async () => {
  ;({ cloud, stop } = await openNetworkedCloud(database.db, {
    templates: [DATABASE_TEMPLATE],
    plans: ['db-1c-2g'],
  }))
  accountId = await createAccount(database.db)
  await cloud.openAccount(accountId)
  namespace = accountNamespace(accountId)
})
afterAll(() => stop())

const key = () => ({ namespace, name: 'shop' })
const read = () => cloud.kubectl.get(Database, key())
const machines = async (owner: string) =>
  (await cloud.kubectl.list(ManagedMachine, {})).items.filter(({ spec }) => spec.managedBy === `database:${owner}`)

const LATEST = '2026-01-03T00:00:00.000Z'
const ARCHIVE: ArchiveReport = {
  isOpen: true,
  failure: '',
  observedAt: LATEST,
  earliestAt: '2026-01-01T03:05:01.000Z',
  latestAt: LATEST,
  gaps: [],
  backups: [
    {
      label: '20260101-030000F',
      startedAt: '2026-01-01T03:00:00.000Z',
      completedAt: '2026-01-01T03:05:00.000Z',
      bytes: 1_000,
      isRestorable: true,
    },
  ],
}

/** What its host is to hand to it. */
async function documentFor(owner: string): Promise<MachineDocument | undefined> {
  const [machine] = await machines(owner)
  const { configuration } = machine?.spec ?? {}
  if (configuration === undefined) return undefined
  const secret = await cloud.kubectl.get(Secret, {
    namespace: machine?.metadata.namespace ?? '',
    name: configuration.secretName,
  })
  const text = Buffer.from(secret?.data?.[MACHINE_DOCUMENT_KEY] ?? '', 'base64').toString()
  return MachineDocument.parse(JSON.parse(text))
}

/** The guest says that it runs what was delivered, and archives. */
async function answer(owner = 'shop', change: Partial<ArchiveReport> = {}): Promise<void> {
  const document = await documentFor(owner)
  const [machine] = await machines(owner)
  if (document === undefined || machine === undefined) return
  const { generation, fingerprint, postgresql } = document
  const passwordGeneration = postgresql?.passwordGeneration ?? 0
  const archive = postgresql?.archive === undefined ? {} : { archive: { ...ARCHIVE, ...change } }
  const report = { services: {}, postgresql: { state: 'running', passwordGeneration, ...archive } }
  const running = { generation, fingerprint }
  const said = { report: JSON.stringify(report), reportedAt: LATEST }
  const at = { namespace: machine.metadata.namespace ?? '', name: machine.metadata.name }
  await cloud.kubectl.patch(ManagedMachine, at, { status: { running, isHealthy: true, detail: '', ...said } }, 'status')
}

test('it is made of a machine with a storage, and leaves nothing', { timeout: 180_000 }, async () => {
  const example = parse(await readFile('examples/databases/database.yaml', 'utf8'))
  const back = { zone: ZONE, name: 'back', ipv4Cidr: '10.1.0.0/24' } as NetworkSpec
  await cloud.kubectl.create(Network, { metadata: { namespace, name: 'back' }, spec: back })
  const spec = { ...Database.spec.parse({ ...example.spec, zone: ZONE }) } as DatabaseSpec
  await cloud.kubectl.create(Database, { metadata: key(), spec })
  const made = await until(
    'the database',
    async () => {
      await answer()
      return read()
    },
    (found) => found?.status?.isMade === true,
  )
  expect(made?.status).toMatchObject({
    host: expect.stringMatching(/^10\.1\.0\./),
    isConfigurationApplied: true,
    passwordGeneration: 1,
    backups: { isOpen: true, latestAt: LATEST },
  })
  // Archiving is paused and goes on. A machine reports again and again: what it reports of a document that has been
  // replaced meanwhile counts for nothing.
  const pause = { state: 'paused', reason: 'archive_full', since: LATEST, from: LATEST } as const
  const reporting = async (state: string, change: Partial<ArchiveReport> = {}) => {
    const look = async () => {
      await answer('shop', change)
      return read()
    }
    return (await until(state, look, (found) => found?.status?.archiveState === state))?.status?.backups
  }
  const full = { pause, failure: 'It is full.', shortenedAt: LATEST }
  expect(await reporting('paused', full)).toMatchObject({ pause, shortenedAt: LATEST })
  const resumed = await reporting('archiving')
  expect([resumed?.pause, resumed?.shortenedAt]).toEqual([undefined, undefined])
  // The store has a tenant for it alone, with the bucket that its machine gets.
  const told = (await documentFor('shop'))?.postgresql?.archive
  const [tenant] = cloud.objectStorage.tenants.values()
  expect(told).toMatchObject({ retentionDays: 7, fullBackupAt: { hour: 3, minute: 0 } })
  expect(told?.repository).toMatchObject({
    bucket: tenant?.buckets?.[0],
    accessKeyId: tenant?.accessKeyId,
    secretAccessKey: tenant?.secretAccessKey,
    authority: cloud.objectStorage.certificateAuthority,
  })
  expect(JSON.stringify(made)).not.toContain(told?.repository.secretAccessKey)
  const [storage] = (await cloud.kubectl.list(Storage, { namespace })).items.filter(({ spec: { isBoot } }) => !isBoot)
  const [server] = (await cloud.kubectl.list(Server, { namespace })).items
  expect(storage).toMatchObject({ spec: { sizeGibibytes: 10, serverId: server?.metadata.name } })
  expect(server?.spec).toMatchObject({ managedBy: 'database:shop', template: DATABASE_TEMPLATE })
  // The machine is exchanged: its data comes back to the new one.
  const before = server?.metadata.uid
  await cloud.kubectl.delete(Server, { namespace, name: server?.metadata.name ?? '' })
  await until(
    'another machine with the same storage',
    async () => {
      await answer()
      const now = (await cloud.kubectl.list(Server, { namespace })).items[0]
      const data = await cloud.kubectl.get(Storage, { namespace, name: storage?.metadata.name ?? '' })
      return { now, data, database: await read() }
    },
    ({ now, data, database: found }) =>
      now !== undefined &&
      now.metadata.uid !== before &&
      data?.status?.serverId === now.metadata.name &&
      found?.status?.isHealthy === true,
  )
  const kept = await cloud.kubectl.get(Storage, { namespace, name: storage?.metadata.name ?? '' })
  expect(kept?.metadata.uid).toBe(storage?.metadata.uid)
  const origin = told?.repository
  await cloud.kubectl.delete(Database, key())
  await until('its end', read, (found) => found === undefined)
  const left = await Promise.all([
    database.db.selectFrom('database').select('id').execute(),
    cloud.kubectl.list(Storage, { namespace }).then(({ items }) => items),
    cloud.kubectl.list(Server, { namespace }).then(({ items }) => items),
  ])
  expect(left).toEqual([[], [], []])
  const quotas = (await listQuotas(database.db, accountId)).filter(({ used }) => used > 0).map(({ name }) => name)
  expect(quotas).toEqual(['networks'])
  // What is left of it is restored while its backups are kept.
  const restoredFrom = { databaseId: 'shop', targetTime: LATEST }
  await cloud.kubectl.create(Database, {
    metadata: { namespace, name: 'again' },
    spec: { ...spec, name: 'again', restoredFrom },
  })
  const beginning = await until(
    'what to restore',
    () => documentFor('again'),
    (document) => document !== undefined,
  )
  expect(beginning?.postgresql?.restore).toEqual({ repository: origin, targetTime: LATEST })
  expect(beginning?.postgresql?.archive?.repository.bucket).not.toBe(origin?.bucket)
  const again = await until(
    'the restored database',
    async () => {
      await answer('again')
      return cloud.kubectl.get(Database, { namespace, name: 'again' })
    },
    (found) => found?.status?.operation?.status === 'succeeded',
  )
  expect(again?.status?.operation?.kind).toBe('database.restore')
  await until(
    'the key of the origin to be taken away',
    () => documentFor('again'),
    (document) => document !== undefined && document.postgresql?.restore === undefined,
  )
  // The archive of the origin stays as long as was said, and for what is being restored from it.
  const archive = await findArchive(database.db, { accountId, databaseId: 'shop' })
  expect(archive?.origin).toMatchObject({ databaseName: spec.databaseName, backups: { latestAt: LATEST } })
  const sweepIn = (days: number) =>
    sweepArchives({
      db: database.db,
      objectStorage: cloud.objectStorage.offer,
      log: silentLog,
      clock: { ...systemClock, now: () => new Date(Date.now() + days * 86_400_000) },
    })
  const buckets = () => [...cloud.objectStorage.tenants.values()].flatMap(({ buckets: names = [] }) => names)
  await sweepIn(6)
  expect(buckets()).toContain(origin?.bucket)
  cloud.objectStorage.isAway = true
  await expect(sweepIn(8), 'without the store').rejects.toThrow()
  cloud.objectStorage.isAway = false
  expect(await findArchive(database.db, { accountId, databaseId: 'shop' })).toBeDefined()
  await sweepIn(8)
  expect(buckets()).toEqual([beginning?.postgresql?.archive?.repository.bucket])
  expect(await findArchive(database.db, { accountId, databaseId: 'shop' })).toBeUndefined()
  // With its account goes the archive of a database that nobody has deleted.
  const gone = await createAccount(database.db)
  const keys = { accessKeyId: 'GONE', bucketPrefix: 'gone-', sealedSecret: '', sealedCipherKey: '' }
  const elsewhere = { ...keys, accessKeyId: 'ELSE', bucketPrefix: 'else-' }
  await addArchive(database.db, { accountId: gone, databaseId: 'elsewhere', zone: 'without-a-store', ...elsewhere })
  await addArchive(database.db, { accountId: gone, databaseId: 'left', zone: ZONE, ...keys })
  await cloud.objectStorage.control.putTenant(archiveTenantOf(keys), {
    ...keys,
    secretAccessKey: '',
    quotaBytes: 1,
    isSuspended: false,
    isFrozen: false,
    buckets: ['gone-archive'],
  })
  await sweepIn(0)
  expect(buckets(), 'while there is its account').toContain('gone-archive')
  await database.db.deleteFrom('account').where('id', '=', gone).execute()
  await expect(sweepIn(0), 'that of the zone without a store').rejects.toThrow('without-a-store')
  expect(buckets()).not.toContain('gone-archive')
  expect(await findArchive(database.db, { accountId: gone, databaseId: 'left' })).toBeUndefined()
})
