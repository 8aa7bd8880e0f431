/** Managed databases through the API. No controllers run: tests say what they would. */
import { X509Certificate } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  addArchive,
  findArchive,
  findDatabase,
  newServerCertificate,
  openServerKey,
  releaseDatabase,
  retireArchive,
} from '../../../../db/database/index.ts'
import type { DatabaseBackups } from '../../../../domain/database/rules.ts'
import { scramVerifier } from '../../../../domain/database/scram.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { systemRandom } from '../../../../kit/sys/random.ts'
import { createSealing } from '../../../../kit/sys/sealing.ts'
import { databaseAdmission } from '../../../../apiserver/nouns/database/admission.ts'
import { Plan, Zone } from '../../../../resources/catalog/index.ts'
import { Database } from '../../../../resources/database/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Network } from '../../../../resources/network/index.ts'
import { useDatabase } from '../../../database.ts'
import { until } from '../../../eventually.ts'
import { type Cloud, openCloud, type Person } from '../../cloud.ts'

const database = useDatabase()
let cloud: Cloud
let owner: Person
let networkId: string
let count = 0

const PLAN = {
  family: 'cloud_native',
  cores: 1,
  memoryMebibytes: 2048,
  storageGibibytes: 10,
  priceMonthlyCents: 1200,
} as const

beforeAll(async () => {
  cloud = await openCloud(database.db)
  owner = await cloud.signUp('owner@example.com')
  await cloud.admin.apply(Plan, { metadata: { name: 'db-1c-2g' }, spec: PLAN })
  await offer(['managed-machine'])
  const body = { zone: cloud.zone, name: 'back', ipv4_cidr: '10.1.0.0/24' }
  networkId = (await owner.send('POST', '/v1/networks', { body })).body['network'].id
  expect(await make(), 'without the image of databases').toMatchObject({
    status: 409,
    body: { reason: 'zone_capability_missing', detail: expect.stringContaining('npm run image:database') },
  })
  expect(await capabilities()).not.toContain('databases')
  await offer(['managed-machine', 'managed-database'])
  await until('databases to be offered', capabilities, (names) => names.includes('databases'))
})
afterAll(() => cloud.close())

const offer = (builtTemplates: string[]) =>
  cloud.admin.patch(Zone, { name: cloud.zone }, { status: { builtTemplates } }, 'status')
const capabilities = async (): Promise<string[]> =>
  (await owner.send('GET', '/v1/zones')).body['items'].find(({ name }: { name: string }) => name === cloud.zone)
    .capabilities
const keyOf = (id: string) => ({ namespace: accountNamespace(owner.accountId), name: id })

const make = (more: object = {}) =>
  owner.send('POST', '/v1/databases', {
    body: {
      zone: cloud.zone,
      name: `shop-${++count}`,
      network_id: networkId,
      database_name: 'shop',
      owner_name: 'ada',
      ...more,
    },
  })

async function made(more: object = {}): Promise<string> {
  const reply = await make(more)
  expect(reply.status, JSON.stringify(reply.body)).toBe(202)
  return reply.body['database'].id
}

/** What its controller says when it has come about. */
async function finish(id: string, more: object = {}): Promise<void> {
  const operation = (await cloud.admin.get(Database, keyOf(id)))?.spec.operation
  if (operation === undefined) throw new Error(`${id} has no operation`)
  const { requestedAt, deadlineAt, actor } = operation
  const progress = { id: operation.id, kind: operation.kind, actor, deadlineAt, createdAt: requestedAt }
  const ended = { ...progress, status: 'succeeded', step: 'applied', stepIndex: 4, stepCount: 4, error: '' }
  const status = { isMade: true, isHealthy: true, host: '10.1.0.9', passwordGeneration: 1, operation: ended, ...more }
  await cloud.admin.patch(Database, keyOf(id), { status }, 'status')
}
const remove = async (id: string) => {
  expect((await owner.send('DELETE', `/v1/databases/${id}`)).status).toBe(202)
  const own = { accountId: owner.accountId, databaseId: id }
  await database.db.transaction().execute((tx) => releaseDatabase(tx, own))
}

test('is made with a password and the certificate of who signs its own', async () => {
  const reply = await make()
  const { database: view, credentials, operation } = reply.body
  expect(operation).toMatchObject({ kind: 'database.create', database_id: view.id })
  expect(view).toMatchObject({ state: 'creating', host: null, connection_uri: null, engine: 'postgresql-17' })
  expect(view.backups).toMatchObject({ is_enabled: false, retention_days: 7 })
  expect(view).not.toHaveProperty('ca_certificate')
  expect(credentials).toMatchObject({ username: 'ada', database_name: 'shop', host: null })
  expect(credentials.password).toMatch(/^\w{32}$/)
  const read = (await owner.send('GET', `/v1/databases/${view.id}`)).body['database']
  expect(read.ca_certificate).toBe(credentials.ca_certificate)
  expect(new X509Certificate(read.ca_certificate).ca).toBe(true)
  expect(JSON.stringify(await cloud.admin.get(Database, keyOf(view.id)))).not.toContain(credentials.password)
  await remove(view.id)
})

test('shows its password once it runs, with its own host, for clients that verify', async () => {
  const id = await made()
  expect((await owner.send('GET', `/v1/databases/${id}/credentials`)).status).toBe(409)
  await finish(id)
  const reply = await owner.send('GET', `/v1/databases/${id}/credentials`)
  const { password, host, connection_uri: uri } = reply.body['credentials']
  expect(host).toBe((await owner.send('GET', `/v1/databases/${id}`)).body['database'].host)
  expect(uri).toBe(`postgresql://ada:${password}@10.1.0.9:5432/shop?sslmode=verify-full`)
  const audited = database.db.selectFrom('audit_entry').selectAll().where('account_id', '=', owner.accountId)
  expect(JSON.stringify(await audited.execute())).toContain('database.credentials')
  await remove(id)
})

test('replaces its password, and answers when its machine has taken it', async () => {
  const id = await made()
  expect((await owner.send('POST', `/v1/databases/${id}/rotate-credentials`)).status).toBe(409)
  await finish(id)
  const before = (await owner.send('GET', `/v1/databases/${id}/credentials`)).body['credentials'].password
  const rotating = owner.send('POST', `/v1/databases/${id}/rotate-credentials`)
  await expect.poll(async () => (await cloud.admin.get(Database, keyOf(id)))?.spec.passwordGeneration).toBe(2)
  expect(
    await Promise.race([rotating.then(() => 'answered'), new Promise((resolve) => setTimeout(resolve, 600))]),
  ).toBe(undefined)
  await finish(id, { passwordGeneration: 2 })
  const reply = await rotating
  expect(reply.status, JSON.stringify(reply.body)).toBe(200)
  expect(reply.body['credentials'].password).not.toBe(before)
  const row = await findDatabase(database.db, { accountId: owner.accountId, databaseId: id })
  expect(row).toMatchObject({ passwordGeneration: 2, generation: 2 })
  await remove(id)
})

test('a machine that does not take the password in time is a host that does not answer', async () => {
  const id = await made()
  await finish(id)
  const rotating = owner.send('POST', `/v1/databases/${id}/rotate-credentials`)
  await expect.poll(async () => (await cloud.admin.get(Database, keyOf(id)))?.spec.passwordGeneration).toBe(2)
  cloud.pass(60_000)
  expect(await rotating).toMatchObject({ status: 503, body: { reason: 'host_unreachable' } })
  await remove(id)
})

test.each([
  ['a name that PostgreSQL keeps', { database_name: 'postgres' }, 400],
  ['an owner that needs quotes', { owner_name: 'Ada' }, 400],
  ['a plan of servers', { plan: 'tiny' }, 400],
  ['too little storage', { storage_gibibytes: 1 }, 400],
  ['a zone that is not there', { zone: 'nowhere' }, 400],
  ['a network that is not there', { network_id: 'nowhere' }, 404],
  ['two zones where the region has one', { zone_redundant: true }, 400],
])('is refused with %s', async (_name, body, status) => {
  const reply = await make(body)
  expect(reply.status, JSON.stringify(reply.body)).toBe(status)
})

test('is refused with a network of another zone, by the name that the interface has for it', async () => {
  const body = { zone: cloud.zone, name: 'away', ipv4_cidr: '10.2.0.0/24' }
  const { id } = (await owner.send('POST', '/v1/networks', { body })).body['network']
  await database.db.updateTable('network').set({ zone: 'away' }).where('id', '=', id).execute()
  await cloud.admin.patch(Network, keyOf(id), { status: { ipv6Prefix: '2001:db8:9::/64' } }, 'status')
  const refusal = async () => (await make({ network_id: id })).body
  await until('the prefix of the network to be known', refusal, ({ status }) => status === 400)
  const detail = `the network is in zone away, the server in zone ${cloud.zone}`
  expect(await refusal()).toMatchObject({
    detail: `network_id: ${detail}`,
    errors: [{ field: 'network_id', detail }],
  })
})

test('has a unique name, changes what may change, and protects itself', async () => {
  const id = await made()
  const { body } = await owner.send('GET', `/v1/databases/${id}`)
  expect((await make({ name: body['database'].name })).body).toMatchObject({ reason: 'name_taken' })
  const path = `/v1/databases/${id}`
  expect((await owner.send('PATCH', path, { body: { backup_schedule: '0 * * * *' } })).status).toBe(400)
  expect((await owner.send('PATCH', path, { body: { backup_retention_days: 6 } })).status).toBe(400)
  const change = { name: 'other', backup_schedule: '15 4 * * *', backup_retention_days: 30, is_protected: true }
  expect((await owner.send('PATCH', path, { body: change })).body['database']).toMatchObject({
    name: 'other',
    backup_schedule: '15 4 * * *',
    is_protected: true,
    backups: { retention_days: 30 },
  })
  expect((await owner.send('DELETE', path)).body).toMatchObject({ reason: 'protected' })
  expect((await owner.send('DELETE', `/v1/networks/${networkId}`)).body).toMatchObject({
    reason: 'in_use',
    resource: { type: 'database', id },
  })
  await owner.send('PATCH', path, { body: { is_protected: false } })
  await remove(id)
})

test('can be protected from the start', async () => {
  const id = await made({ is_protected: true })
  const path = `/v1/databases/${id}`
  expect((await owner.send('GET', path)).body['database']).toMatchObject({ is_protected: true })
  expect((await owner.send('DELETE', path)).body).toMatchObject({ reason: 'protected' })
  await owner.send('PATCH', path, { body: { is_protected: false } })
  await remove(id)
})

test('without an archive says so', async () => {
  const id = await made()
  const backups = await owner.send('GET', `/v1/databases/${id}/backups`)
  expect(backups.body).toMatchObject({ items: [], window: { earliest_recoverable_at: null, gaps: [] } })
  const restored = await owner.send('POST', `/v1/databases/${id}/restore`, { body: { name: 'again' } })
  expect(restored).toMatchObject({ status: 409, body: { reason: 'state_not_allowed' } })
  await remove(id)
})

const label = (day: number) => `2026010${day}-030000F`
const backupOf = (day: number) => ({
  label: label(day),
  startedAt: `2026-01-0${day}T03:00:00.000Z`,
  completedAt: `2026-01-0${day}T03:05:00.000Z`,
  bytes: 1_000,
  isRestorable: true,
})
const BACKUPS: DatabaseBackups = {
  isOpen: true,
  failure: 'the store is away',
  observedAt: '2026-01-03T00:00:30.000Z',
  earliestAt: '2026-01-01T03:05:01.000Z',
  latestAt: '2026-01-03T00:00:00.000Z',
  gaps: [{ from: '2026-01-01T12:00:00.000Z', to: '2026-01-02T03:05:01.000Z' }],
  backups: [backupOf(1), backupOf(2)],
}
const restore = (id: string, body: object = {}) =>
  owner.send('POST', `/v1/databases/${id}/restore`, { body: { name: `again-${++count}`, ...body } })

/** One that runs and archives. */
async function archived(): Promise<string> {
  const id = await made()
  const keys = { accessKeyId: `KEY${id}`, bucketPrefix: `${id}-`, sealedSecret: '', sealedCipherKey: '' }
  await addArchive(database.db, { accountId: owner.accountId, databaseId: id, zone: cloud.zone, ...keys })
  await finish(id, { backups: BACKUPS })
  return id
}

test('says what it can be restored to, and why what is written now is not archived', async () => {
  const id = await archived()
  const { database: view } = (await owner.send('GET', `/v1/databases/${id}`)).body
  expect(view.backups).toEqual({
    is_enabled: true,
    retention_days: 7,
    earliest_recoverable_at: BACKUPS.earliestAt,
    latest_recoverable_at: BACKUPS.latestAt,
    observed_at: BACKUPS.observedAt,
    archive_failure: 'the store is away',
    shortened_at: null,
  })
  expect(view).toMatchObject({ archive_state: 'failing', archive_pause: null })
  const { body } = await owner.send('GET', `/v1/databases/${id}/backups`)
  expect(body).toMatchObject({
    items: [{ id: label(2), kind: 'full', size_bytes: 1_000, is_restorable: true }, { id: label(1) }],
    next_cursor: null,
    window: { earliest_recoverable_at: BACKUPS.earliestAt, gaps: BACKUPS.gaps },
  })
  await remove(id)
})

test.each([
  ['a moment before all backups', '2026-01-01T03:05:00Z', 400],
  ['a moment that was not archived', '2026-01-03T00:00:01Z', 400],
  ['a moment in a gap', '2026-01-02T00:00:00Z', 409],
  ['the moment before the gap', '2026-01-01T12:00:00Z', 202],
  ['the first moment', BACKUPS.earliestAt, 202],
  ['the last moment', BACKUPS.latestAt, 202],
  ['the latest, whatever it is', null, 202],
])('restores to %s', async (_name, target_time, status) => {
  const id = await archived()
  const reply = await restore(id, { target_time, is_protected: true })
  expect(reply.status, JSON.stringify(reply.body)).toBe(status)
  if (status === 202) {
    const { database: view, operation, credentials } = reply.body
    expect(operation).toMatchObject({ kind: 'database.restore', database_id: view.id })
    expect(view).toMatchObject({
      state: 'creating',
      plan: 'db-1c-2g',
      storage_gibibytes: 10,
      database_name: 'shop',
      owner_name: 'ada',
      is_protected: true,
      restored_from: { database_id: id, target_time },
    })
    expect(credentials.password).toMatch(/^\w{32}$/)
    const held = await findArchive(database.db, { accountId: owner.accountId, databaseId: id })
    expect(held?.keptUntil?.getTime(), 'the archive stays meanwhile').toBeGreaterThan(Date.now())
    await owner.send('PATCH', `/v1/databases/${view.id}`, { body: { is_protected: false } })
    await remove(view.id)
  }
  await remove(id)
})

test('says that archiving is paused, and refuses what the gap holds', async () => {
  const id = await archived()
  const from = BACKUPS.latestAt ?? ''
  const pause = { state: 'paused', reason: 'archive_full', since: '2026-01-03T00:05:00.000Z', from } as const
  await finish(id, { backups: { ...BACKUPS, pause, shortenedAt: from } })
  expect((await owner.send('GET', `/v1/databases/${id}`)).body.database).toMatchObject({
    archive_state: 'paused',
    archive_pause: { paused_at: pause.since, reason: 'archive_full', gap_from: from },
    backups: { latest_recoverable_at: from, shortened_at: from },
  })
  const refused = await restore(id, { target_time: '2026-01-03T00:00:01Z' })
  expect(refused).toMatchObject({ status: 409, body: { reason: 'state_not_allowed' } })
  expect(refused.body.detail).toContain(`nothing after ${from} is archived`)
  const between = await restore(id, { target_time: '2026-01-02T00:00:00Z' })
  expect(between.body.detail).toContain('between 2026-01-01T12:00:00.000Z and 2026-01-02T03:05:01.000Z')
  const last = await restore(id, { target_time: from })
  expect(last.status, 'the moment before the gap').toBe(202)
  await remove(last.body.database.id)
  await remove(id)
})

test('is not restored onto less than it had, nor from what nobody else may see', async () => {
  const id = await archived()
  expect((await restore(id, { storage_gibibytes: 9 })).body).toMatchObject({
    errors: [{ field: 'storage_gibibytes' }],
  })
  expect((await restore(id, { network_id: 'nowhere' })).status).toBe(404)
  const stranger = await cloud.signUp('stranger@example.com')
  const body = { name: 'stolen' }
  expect((await stranger.send('POST', `/v1/databases/${id}/restore`, { body })).status).toBe(404)
  expect((await stranger.send('GET', `/v1/databases/${id}/backups`)).status).toBe(404)
  await finish(id, { backups: { ...BACKUPS, earliestAt: null, latestAt: null } }) // null takes away
  expect((await restore(id)).body, 'without a backup').toMatchObject({ status: 409, reason: 'state_not_allowed' })
  await remove(id)
})

test('that is deleted is restored while its backups are kept', async () => {
  const own = { accountId: owner.accountId, databaseId: 'gone' }
  const keys = { accessKeyId: 'KEYGONE', bucketPrefix: 'gone-', sealedSecret: '', sealedCipherKey: '' }
  await addArchive(database.db, { ...own, zone: cloud.zone, ...keys })
  const retire = (until: Date) =>
    database.db.transaction().execute((tx) =>
      retireArchive(tx, own, {
        until,
        origin: {
          name: 'shop',
          networkId,
          plan: 'db-1c-2g',
          storageGibibytes: 20,
          databaseName: 'shop',
          ownerName: 'eve',
          backups: BACKUPS,
        },
      }),
    )
  expect((await restore('gone')).status, 'never known').toBe(404)
  await retire(new Date(Date.now() + 60_000))
  expect((await owner.send('GET', '/v1/databases/gone')).status).toBe(404)
  expect((await owner.send('GET', '/v1/databases/gone/backups')).body['items']).toHaveLength(2)
  const reply = await restore('gone', { target_time: BACKUPS.latestAt })
  expect(reply.body['database'], JSON.stringify(reply.body)).toMatchObject({ storage_gibibytes: 20, owner_name: 'eve' })
  await remove(reply.body['database'].id)
  await database.db.updateTable('database_archive').set({ kept_until: new Date() }).where('id', '=', 'gone').execute()
  expect((await restore('gone')).status, 'no longer').toBe(404)
  expect((await owner.send('GET', '/v1/databases/gone/backups')).status).toBe(404)
})

test('is restored with kubectl by the same rules', async () => {
  const id = await archived()
  const parts = { ...cloud, clock: systemClock, random: systemRandom }
  const apply = async (more: object) =>
    databaseAdmission.create?.(parts, {
      apiVersion: 'svccloud.dev/v1alpha1',
      kind: 'Database',
      metadata: { namespace: accountNamespace(owner.accountId), name: `restored-${++count}` },
      spec: Database.spec.parse({
        zone: cloud.zone,
        name: `k-${count}`,
        networkId,
        databaseName: 'shop',
        ownerName: 'ada',
        ...more,
      }),
    })
  await expect(apply({ restoredFrom: { databaseId: id, targetTime: '2026-01-02T00:00:00Z' } })).rejects.toThrow(
    'spec.restoredFrom.targetTime',
  )
  await expect(apply({ restoredFrom: { databaseId: id }, ownerName: 'eve' })).rejects.toThrow('spec.ownerName')
  await expect(apply({ restoredFrom: { databaseId: 'nowhere' } })).rejects.toThrow('No such database')
  expect(await apply({ restoredFrom: { databaseId: id } })).toEqual([{ action: 'database.restore', changes: [] }])
  await remove(id)
})

test('an account has five at most', async () => {
  const ids = [await made(), await made(), await made(), await made(), await made()]
  expect((await make()).body).toMatchObject({ reason: 'quota_exceeded', quota: { name: 'databases' } })
  for (const id of ids) await remove(id)
})

test('its certificate is for its address and its name, and signed by the authority', async () => {
  const sealing = createSealing([{ id: 'k', key: Buffer.alloc(32, 7) }], systemRandom)
  const own = { accountId: owner.accountId, databaseId: 'db' }
  await database.db.deleteFrom('database_authority').execute()
  const parts = { sealing, random: systemRandom, now: new Date() }
  const made = await newServerCertificate(database.db, parts, { ...own, host: '10.1.0.9' })
  const row = await database.db.selectFrom('database_authority').selectAll().executeTakeFirstOrThrow()
  const certificate = new X509Certificate(made.certificate)
  expect(certificate.verify(new X509Certificate(row.certificate).publicKey)).toBe(true)
  expect(certificate.checkIP('10.1.0.9')).toBe('10.1.0.9')
  expect(certificate.checkHost('db.database.internal')).toBe('db.database.internal')
  expect(openServerKey({ sealing }, own, made.sealedKey)).toContain('PRIVATE KEY')
  expect(() => openServerKey({ sealing }, { ...own, databaseId: 'other' }, made.sealedKey)).toThrow()
  await database.db.deleteFrom('database_authority').execute()
})

test('PostgreSQL takes the password that a verifier is of, and no other', async () => {
  const role = `verified_${Date.now()}`
  const admin = new pg.Client({ connectionString: database.url })
  await admin.connect()
  await admin.query(`create role ${role} login password '${scramVerifier('the password', 'db/1')}'`)
  const signIn = async (password: string) => {
    const url = new URL(database.url)
    url.username = role
    url.password = password
    const client = new pg.Client({ connectionString: url.href })
    try {
      await client.connect()
      return (await client.query('select current_user')).rows[0].current_user
    } finally {
      await client.end().catch(() => {})
    }
  }
  expect(await signIn('the password')).toBe(role)
  await expect(signIn('another one')).rejects.toThrow('password authentication failed')
  await admin.query(`drop role ${role}`)
  await admin.end()
})
