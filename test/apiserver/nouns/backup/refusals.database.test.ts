/** Every refusal of what has to do with backups, in both interfaces: one row each. A refusal changes nothing. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { Backup, type BackupSpec } from '../../../../resources/backup/index.ts'
import { finalizerOf } from '../../../../resources/kit/define.ts'
import type { SnapshotSpec } from '../../../../resources/snapshot/index.ts'
import { Storage, type StorageSpec } from '../../../../resources/storage/index.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person } from '../../cloud.ts'
import { AT, BARE_ZONE, COPY_ZONE, FAR_ZONE, openWorld, stanza, type World } from './world.ts'

const database = useDatabase()
let cloud: Cloud
let ada: Person
let world: World

beforeAll(async () => {
  cloud = await openCloud(database.db)
  ada = await cloud.signUp('ada@example.com')
  world = await openWorld(cloud, ada)
})
afterAll(() => cloud.close())

const FUTURE = '2099-01-01T00:00:00Z'
const UNKNOWN = newUuid(systemRandom)
/** While the work goes on the account may make no more of them. */
async function withLimit(name: string, limit: number, work: () => Promise<void>): Promise<void> {
  const change = (to: number) =>
    cloud.db
      .updateTable('account_quota')
      .set({ limit: to })
      .where('account_id', '=', ada.accountId)
      .where('name', '=', name)
      .execute()
  const { limit: before } = await cloud.db
    .selectFrom('account_quota')
    .select('limit')
    .where('account_id', '=', ada.accountId)
    .where('name', '=', name)
    .executeTakeFirstOrThrow()
  await change(limit)
  await work().finally(() => change(before))
}
async function withoutCredit(work: () => Promise<void>): Promise<void> {
  const spend = (spent_cents: number) =>
    cloud.db.updateTable('credit').set({ spent_cents }).where('account_id', '=', ada.accountId).execute()
  const { amount_cents } = await cloud.db
    .selectFrom('credit')
    .select('amount_cents')
    .where('account_id', '=', ada.accountId)
    .executeTakeFirstOrThrow()
  await spend(amount_cents)
  await work().finally(() => spend(0))
}

interface Request {
  readonly method: 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly body?: object
}
/** What is asked, and the status with the reason or a part of what is said. */
type Row = readonly [why: string, arrange: () => Promise<Request>, expected: readonly [status: number, said: string]]

async function expectRefused(arrange: () => Promise<Request>, [status, said]: readonly [number, string]) {
  const { method, path, body } = await arrange()
  const before = await world.contents()
  const reply = await ada.send(method, path, body === undefined ? {} : { body })
  expect(`${reply.status} ${reply.body['reason'] ?? ''} ${reply.body['detail']}`).toMatch(new RegExp(`^${status} `))
  expect(
    `${reply.body['reason'] ?? ''} ${reply.body['detail']} ${JSON.stringify(reply.body['errors'] ?? [])}`,
  ).toContain(said)
  expect(await world.contents()).toEqual(before)
}

const post = async (path: string, body: object = {}): Promise<Request> => ({ method: 'POST', path, body })
const backUp = async (storage: Promise<string> | string, body: object = {}) =>
  post(`/v1/storages/${await storage}/backups`, body)

describe('create_backup', () => {
  test.each<Row>([
    ['a storage that is not there', () => backUp(UNKNOWN), [404, 'No such storage.']],
    ['one that goes', () => backUp(world.storage({}, { isDeleting: true })), [404, 'No such storage.']],
    ['one that is made', () => backUp(world.storage({ status: { state: 'creating' } })), [409, 'state_not_allowed']],
    ['one in error', () => backUp(world.storage({ status: { state: 'error' } })), [409, 'state_not_allowed']],
    [
      'one that a backup is restored to',
      () => backUp(world.storage({ status: { state: 'restoring' } })),
      [409, 'state_not_allowed'],
    ],
    [
      'one of a zone without a place for backups',
      () => backUp(world.storage({ spec: { zone: BARE_ZONE } })),
      [409, 'zone_capability_missing'],
    ],
    [
      'one that is being backed up',
      async () => {
        const storageId = await world.storage()
        await world.backup({ spec: { storageId, operation: stanza('storage.backup') }, status: { state: 'creating' } })
        return backUp(storageId)
      },
      [409, 'operation_in_progress'],
    ],
    ['an expiry that is over', () => backUp(world.storage(), { expires_at: AT }), [400, 'expires_at']],
    ['an expiry that is no instant', () => backUp(world.storage(), { expires_at: 'soon' }), [400, 'expires_at']],
    ['a title that is too long', () => backUp(world.storage(), { title: 'x'.repeat(256) }), [400, 'title']],
    ['a title with control characters', () => backUp(world.storage(), { title: 'a\u0007b' }), [400, 'title']],
    ['a field that is none', () => backUp(world.storage(), { full: true }), [400, 'full']],
  ])('%s', (_why, arrange, expected) => expectRefused(arrange, expected))

  test('more than the account may have', () =>
    withLimit('backups', 0, () => expectRefused(() => backUp(world.storage()), [422, 'quota_exceeded'])))
  test('an account without credit', () =>
    withoutCredit(async () => {
      const storage = await world.storage()
      expect((await ada.send('POST', `/v1/storages/${storage}/backups`, { body: {} })).status).toBe(402)
    }))
  test('what is not refused is made', async () => {
    const { path, body } = await backUp(world.storage(), { title: 'before', expires_at: FUTURE })
    expect((await ada.send('POST', path, { body })).status).toBe(202)
  })
})

const VERIFYING = stanza('backup.verify')
const BUSY = { operation: stanza('backup.restore') }

describe.each(['restore', 'verify'] as const)('%s_backup', (verb) => {
  const ask = async (backup: Promise<string> | string) => post(`/v1/backups/${await backup}/${verb}`)
  test.each<Row>([
    ['one that is not there', () => ask(UNKNOWN), [404, 'No such backup.']],
    ['one that is being made', () => ask(world.backup({ status: { state: 'creating' } })), [409, 'state_not_allowed']],
    ['one in error', () => ask(world.backup({ status: { state: 'error' } })), [409, 'state_not_allowed']],
    ['one that goes', () => ask(world.backup({}, { isDeleting: true })), [409, 'state_not_allowed']],
    ['one that is at work', () => ask(world.backup({ spec: BUSY })), [409, 'operation_in_progress']],
  ])('%s', (_why, arrange, expected) => expectRefused(arrange, expected))
})

describe('restore_backup', () => {
  const of = async (storage: Promise<string> | string, body: object = {}) =>
    post(`/v1/backups/${await world.backup({ spec: { storageId: await storage } })}/restore`, body)
  const damaged = () => world.backup({ status: { verificationError: 'm/b is missing.' } })
  test.each<Row>([
    ['to a storage that is not there', () => of(UNKNOWN), [404, 'No such storage.']],
    ['to one that goes', () => of(world.storage({}, { isDeleting: true })), [404, 'No such storage.']],
    ['to one that is made', () => of(world.storage({ status: { state: 'creating' } })), [409, 'state_not_allowed']],
    [
      'to one in error, whose content no restore broke',
      () => of(world.storage({ status: { state: 'error' } })),
      [409, 'state_not_allowed'],
    ],
    [
      'to one that another backup is restored to',
      () => of(world.storage({ status: { state: 'restoring' } })),
      [409, 'state_not_allowed'],
    ],
    [
      'to one that is at work',
      () => of(world.storage({ spec: { operation: stanza('storage.resize') } })),
      [409, 'operation_in_progress'],
    ],
    [
      'to one that has gone to another zone',
      () => of(world.storage({ spec: { zone: BARE_ZONE } })),
      [409, `is in zone ${BARE_ZONE} now`],
    ],
    [
      'while its server runs',
      async () => of(world.storage({ spec: { serverId: await world.server('started', 'running') } })),
      [409, 'server_not_stopped'],
    ],
    [
      'while its server is about to run',
      async () => of(world.storage({ spec: { serverId: await world.server('stopped', 'running') } })),
      [409, 'server_not_stopped'],
    ],
    [
      'one that did not verify, without force',
      async () => post(`/v1/backups/${await damaged()}/restore`),
      [409, 'Restore it with force.'],
    ],
    ['a force that is none', () => of(world.storage(), { force: 'yes' }), [400, 'force']],
  ])('%s', (_why, arrange, expected) => expectRefused(arrange, expected))

  test.each<readonly [string, () => Promise<Request>]>([
    ['one that did not verify, by force', async () => post(`/v1/backups/${await damaged()}/restore`, { force: true })],
    [
      'to a storage that a restore left half-way',
      () => of(world.storage({ status: { state: 'error', restore: { backup: 'b', operationId: 'o' } } })),
    ],
    [
      'while it is being verified',
      async () => {
        const spec = { storageId: await world.storage(), operation: VERIFYING }
        return post(`/v1/backups/${await world.backup({ spec })}/restore`)
      },
    ],
    [
      'while its server is off',
      async () => of(world.storage({ spec: { serverId: await world.server('stopped', 'stopped') } })),
    ],
  ])('is not refused: %s', async (_why, arrange) => {
    const { path, body } = await arrange()
    expect(await ada.send('POST', path, { body })).toMatchObject({ status: 202 })
  })
})

const remove = async (backup: Promise<string> | string): Promise<Request> => ({
  method: 'DELETE',
  path: `/v1/backups/${await backup}`,
})

describe('delete_backup', () => {
  const read = async (status: object) => {
    const id = await world.backup()
    await world.storage({ spec: { source: { kind: 'backup', id } }, status })
    return id
  }
  test.each<Row>([
    ['one that is not there', () => remove(UNKNOWN), [404, 'No such backup.']],
    ['one that goes', () => remove(world.backup({}, { isDeleting: true })), [409, 'state_not_allowed']],
    ['one that is being restored', () => remove(world.backup({ spec: BUSY })), [409, 'operation_in_progress']],
    ['one that a storage is made from', () => remove(read({ state: 'creating' })), [409, 'in_use']],
  ])('%s', (_why, arrange, expected) => expectRefused(arrange, expected))

  test.each<readonly [string, () => Promise<Request>]>([
    ['one in error', () => remove(world.backup({ status: { state: 'error' } }))],
    ['one that is being verified', () => remove(world.backup({ spec: { operation: stanza('backup.verify') } }))],
    [
      'one that is being made',
      () => remove(world.backup({ spec: { operation: stanza('storage.backup') }, status: { state: 'creating' } })),
    ],
    ['one that a storage was made from', () => remove(read({ state: 'online' }))],
  ])('is not refused: %s', async (_why, arrange) => {
    const { path } = await arrange()
    expect(await ada.send('DELETE', path)).toMatchObject({ status: 202 })
  })
})

const from = async (backup: Promise<string> | string, body: object = {}) =>
  post('/v1/storages', { source_backup_id: await backup, ...body })
const blank = (body: object) => post('/v1/storages', { zone: cloud.zone, size_gibibytes: 1, ...body })

/** What has to do with backups. */
describe('create_storage', () => {
  test.each<Row>([
    ['from one that is not there', () => from(UNKNOWN), [404, 'No such backup.']],
    ['from one that goes', () => from(world.backup({}, { isDeleting: true })), [404, 'No such backup.']],
    ['from one that is made', () => from(world.backup({ status: { state: 'creating' } })), [409, 'state_not_allowed']],
    ['from one in error', () => from(world.backup({ status: { state: 'error' } })), [409, 'state_not_allowed']],
    [
      'from one that did not verify',
      () => from(world.backup({ status: { verificationError: 'm/b is missing.' } })),
      [409, 'did not verify'],
    ],
    [
      'from one of a zone whose place for backups is gone',
      () => from(world.backup({ status: { zone: BARE_ZONE } })),
      [409, 'zone_capability_missing'],
    ],
    ['in another zone', () => from(world.backup(), { zone: BARE_ZONE }), [400, 'the source is in zone']],
    ['smaller than the backup', () => from(world.backup(), { size_gibibytes: 1 }), [400, 'must be at least 2']],
    [
      'from two sources',
      async () => from(world.backup(), { source_storage_id: await world.storage() }),
      [400, 'one source only'],
    ],
    ['from what is no id', () => from('no id'), [400, 'source_backup_id']],
    ['with a schedule of four fields', () => blank({ backup_schedule: '3 * * *' }), [400, 'must be five fields']],
    ['more than hourly', () => blank({ backup_schedule: '*/30 * * * *' }), [400, 'at most once in an hour']],
    ['at an hour that is none', () => blank({ backup_schedule: '0 24 * * *' }), [400, 'has no hour']],
    [
      'on a day that never comes',
      () => blank({ backup_schedule: '0 3 30 2 *' }),
      [400, 'names a day that never comes'],
    ],
    [
      'with too long a schedule',
      () => blank({ backup_schedule: `0 3 * * ${' '.repeat(64)}*` }),
      [400, 'backup_schedule'],
    ],
    [
      'with a schedule where no host has a place',
      () => blank({ zone: BARE_ZONE, backup_schedule: '0 3 * * *' }),
      [409, 'zone_capability_missing'],
    ],
    ['kept for no day', () => blank({ backup_retention_days: 0 }), [400, 'backup_retention_days']],
    ['kept for more than a year', () => blank({ backup_retention_days: 366 }), [400, 'backup_retention_days']],
    ['kept for parts of days', () => blank({ backup_retention_days: 1.5 }), [400, 'backup_retention_days']],
  ])('%s', (_why, arrange, expected) => expectRefused(arrange, expected))

  test('where no host with room reaches the backups', async () => {
    const reach = (has_backups: boolean) => cloud.db.updateTable('node_capacity').set({ has_backups }).execute()
    await reach(false)
    await expectRefused(() => from(world.backup()), [503, 'no_capacity']).finally(() => reach(true))
  })
  test('what is not refused is made, as large as the backup', async () => {
    const { path, body } = await from(world.backup())
    expect(await ada.send('POST', path, { body })).toMatchObject({
      status: 202,
      body: { storage: { zone: cloud.zone, size_gibibytes: 2, source: { kind: 'backup' } } },
    })
  })
})

describe('update_storage', () => {
  const change = async (body: object, spec: Partial<StorageSpec> = {}): Promise<Request> => ({
    method: 'PATCH',
    path: `/v1/storages/${await world.storage({ spec })}`,
    body,
  })
  test.each<Row>([
    ['a schedule of four fields', () => change({ backup_schedule: '3 * * *' }), [400, 'must be five fields']],
    ['more than hourly', () => change({ backup_schedule: '0,30 * * * *' }), [400, 'at most once in an hour']],
    ['a day that never comes', () => change({ backup_schedule: '0 3 31 4 *' }), [400, 'names a day that never comes']],
    [
      'a schedule where no host has a place',
      () => change({ backup_schedule: '0 3 * * *' }, { zone: BARE_ZONE }),
      [409, 'zone_capability_missing'],
    ],
    ['kept for no day', () => change({ backup_retention_days: 0 }), [400, 'backup_retention_days']],
    ['kept for more than a year', () => change({ backup_retention_days: 366 }), [400, 'backup_retention_days']],
    ['copies in its own zone', () => change({ backup_copy_zone: cloud.zone }), [400, 'must be another zone']],
    ['copies in no zone', () => change({ backup_copy_zone: 'nowhere' }), [400, 'there is no such zone']],
    [
      'copies where no host has a place',
      () => change({ backup_copy_zone: BARE_ZONE }),
      [409, 'zone_capability_missing'],
    ],
    [
      'copies where no host reaches the backups',
      () => change({ backup_copy_zone: COPY_ZONE }, { zone: BARE_ZONE }),
      [409, 'zone_capability_missing'],
    ],
    [
      'copies in another region',
      () => change({ backup_copy_zone: cloud.zone }, { zone: FAR_ZONE }),
      [400, 'must be another zone of the region'],
    ],
  ])('%s', (_why, arrange, expected) => expectRefused(arrange, expected))

  test('copies where a host reaches the backups, and none again', async () => {
    const { path } = await change({})
    const set = async (zone: string | null) =>
      (await ada.send('PATCH', path, { body: { backup_copy_zone: zone } })).body['storage'].backup_copy_zone
    expect([await set(COPY_ZONE), await set(null)]).toEqual([COPY_ZONE, null])
  })

  test('a schedule is taken away, and days are set, where no host has a place', async () => {
    const { path, body } = await change({ backup_schedule: null, backup_retention_days: 365 }, { zone: BARE_ZONE })
    expect((await ada.send('PATCH', path, { body })).status).toBe(200)
  })
})

const object = <Spec>(spec: Spec, metadata: object = {}) => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Any',
  metadata: { name: newUuid(systemRandom), namespace: world.namespace, uid: newUuid(systemRandom), ...metadata },
  spec,
})
/** As the API server fills it in. */
const newBackup = (spec: Partial<BackupSpec>, metadata: object = {}) =>
  object({ storageId: UNKNOWN, title: '', kind: 'manual', ...spec }, metadata)
type KubectlRow = readonly [why: string, arrange: () => Promise<string | undefined>, said: string | undefined]

describe('kubectl, of a Backup', () => {
  const create = (spec: Partial<BackupSpec>, metadata: object = {}) =>
    world.ask('backups', 'CREATE', { object: newBackup(spec, metadata) })
  const stored = async (name: Promise<string>) =>
    cloud.admin.get(Backup, { namespace: world.namespace, name: await name })
  const change = async (name: Promise<string>, spec: object, metadata: object = {}) => {
    const before = await stored(name)
    return world.ask('backups', 'UPDATE', {
      oldObject: before,
      object: { ...before, metadata: { ...before?.metadata, ...metadata }, spec: { ...before?.spec, ...spec } },
    })
  }
  const drop = async (name: Promise<string>) => world.ask('backups', 'DELETE', { oldObject: await stored(name) })

  test.each<KubectlRow>([
    [
      'made as a copy',
      () => create({ copyOf: { name: UNKNOWN, zone: BARE_ZONE } }),
      '403 Copies are made by the platform only',
    ],
    ['made as a scheduled one', () => create({ kind: 'scheduled' }), '403 Scheduled backups are made by the platform'],
    ['made with an operation', () => create({ operation: stanza('storage.backup') }), '403 spec.operation is written'],
    ['made with an expiry that is over', () => create({ expiresAt: AT }), '400 spec.expiresAt: must be in the future'],
    ['made with an expiry that is none', () => create({ expiresAt: 'soon' }), '400 spec.expiresAt: must be an instant'],
    ['made with a title with control characters', () => create({ title: 'a\u0007' }), '400 spec.title: '],
    [
      'made of a storage of a zone without a place',
      async () => create({ storageId: await world.storage({ spec: { zone: BARE_ZONE } }) }),
      '409 zone_capability_missing: ',
    ],
    ['made in a namespace of nobody', () => create({}, { namespace: 'default' }), '400 The namespace belongs to no'],
    ['given an operation', () => change(world.backup(), BUSY), '403 spec.operation is written'],
    [
      'given another zone',
      () => change(world.backup({ spec: { zone: cloud.zone } }), { zone: BARE_ZONE }),
      '400 spec.zone',
    ],
    ['given a title with control characters', () => change(world.backup(), { title: '\u0000' }), '400 spec.title: '],
    ['given an expiry that is none', () => change(world.backup(), { expiresAt: 'soon' }), '400 spec.expiresAt: '],
    [
      'robbed of its finalizer',
      async () => {
        const before = newBackup({}, { finalizers: [finalizerOf(Backup)] })
        return world.ask('backups', 'UPDATE', {
          oldObject: before,
          object: { ...before, metadata: { ...before.metadata, finalizers: [] } },
        })
      },
      '403 The finalizer goes when',
    ],
    ['deleted while it is restored: it waits', () => drop(world.backup({ spec: BUSY })), undefined],
    [
      'deleted while a storage is made from it',
      () => {
        const backup = world.backup()
        return drop(
          backup.then(async (id) => {
            await world.storage({ spec: { source: { kind: 'backup', id } }, status: { state: 'creating' } })
            return id
          }),
        )
      },
      '409 in_use: ',
    ],
    ['made before its storage', () => create({ expiresAt: FUTURE }), undefined],
    [
      'deleted while it is verified',
      () => drop(world.backup({ spec: { operation: stanza('backup.verify') } })),
      undefined,
    ],
    [
      'deleted while it is made',
      () => drop(world.backup({ spec: { operation: stanza('storage.backup') } })),
      undefined,
    ],
    ['renamed, and expires', () => change(world.backup(), { title: 'new', expiresAt: FUTURE }), undefined],
  ])('%s', async (_why, arrange, said) => {
    const answer = await arrange()
    if (said === undefined) expect(answer).toBeUndefined()
    else expect(answer).toContain(said)
  })

  test('more than the account may have', () =>
    withLimit('backups', 0, async () => expect(await create({})).toContain('422 quota_exceeded: ')))
  test('an account without credit', () => withoutCredit(async () => expect(await create({})).toMatch(/^402 /)))

  test.each<readonly [string, object, string]>([
    ['another storage', { storageId: 'other' }, 'storageId'],
    ['another kind', { kind: 'scheduled' }, 'kind'],
  ])('its kind refuses %s', async (_why, spec, said) => {
    const key = { namespace: world.namespace, name: await world.backup() }
    await expect(cloud.admin.patch(Backup, key, { spec })).rejects.toThrow(said)
  })
})

describe('kubectl, of a Snapshot', () => {
  const create = (spec: Partial<SnapshotSpec>) =>
    world.ask('snapshots', 'CREATE', { object: object({ storageId: UNKNOWN, title: '', labels: {}, ...spec }) })
  test.each<[string, Partial<SnapshotSpec>]>([
    ['that would keep no storage', { restoredBackupId: UNKNOWN }],
    ['that would go by itself', { expiresAt: AT }],
  ])('refuses one %s', async (_which, spec) => {
    expect(await create(spec)).toContain(`403 spec.${Object.keys(spec)[0]} is written by the platform`)
    expect(await create({})).toBeUndefined()
  })
})

describe('kubectl, of a Storage', () => {
  const full = (spec: Partial<StorageSpec>) =>
    object({
      zone: cloud.zone,
      title: '',
      sizeGibibytes: 2,
      tier: 'standard',
      isBoot: false,
      labels: {},
      isProtected: false,
      ...spec,
    })
  const create = (spec: Partial<StorageSpec>) => world.ask('storages', 'CREATE', { object: full(spec) })
  const from = async (backup: Promise<string> | string, spec: Partial<StorageSpec> = {}) =>
    create({ source: { kind: 'backup', id: await backup }, ...spec })
  const change = async (spec: Partial<StorageSpec>, before: Partial<StorageSpec> = {}) => {
    const oldObject = full(before)
    return world.ask('storages', 'UPDATE', {
      oldObject,
      object: { ...oldObject, spec: { ...oldObject.spec, ...spec } },
    })
  }

  test.each<KubectlRow>([
    ['made from a backup that is not there', () => from(UNKNOWN), '404 No such backup.'],
    ['made from one that goes', () => from(world.backup({}, { isDeleting: true })), '404 No such backup.'],
    [
      'made from one that is made',
      () => from(world.backup({ status: { state: 'creating' } })),
      '409 state_not_allowed',
    ],
    [
      'made from one that did not verify',
      () => from(world.backup({ status: { verificationError: 'm/b is missing.' } })),
      '409 state_not_allowed',
    ],
    [
      'made from one of a zone whose place is gone',
      () => from(world.backup({ status: { zone: BARE_ZONE } }), { zone: BARE_ZONE }),
      '409 zone_capability_missing: ',
    ],
    ['made in another zone', () => from(world.backup(), { zone: BARE_ZONE }), '400 spec.zone: the source is in zone'],
    ['made smaller', () => from(world.backup(), { sizeGibibytes: 1 }), '400 spec.sizeGibibytes: must be at least 2'],
    ['made with a bad schedule', () => create({ backupSchedule: '3 * * *' }), '400 spec.backupSchedule: must be five'],
    [
      'made with a schedule where no host has a place',
      () => create({ zone: BARE_ZONE, backupSchedule: '0 3 * * *' }),
      '409 zone_capability_missing: ',
    ],
    ['given a bad schedule', () => change({ backupSchedule: '*/5 * * * *' }), '400 spec.backupSchedule: must name one'],
    [
      'given a schedule where no host has a place',
      () => change({ backupSchedule: '0 3 * * *' }, { zone: BARE_ZONE }),
      '409 zone_capability_missing: ',
    ],
    ['made from a backup', () => from(world.backup()), undefined],
    ['given a schedule', () => change({ backupSchedule: '0 3 * * *', backupRetentionDays: 365 }), undefined],
  ])('%s', async (_why, arrange, said) => {
    const answer = await arrange()
    if (said === undefined) expect(answer).toBeUndefined()
    else expect(answer).toContain(said)
  })

  test.each([0, 366, 1.5])('its kind refuses %d days', async (backupRetentionDays) => {
    const key = { namespace: world.namespace, name: await world.storage() }
    await expect(cloud.admin.patch(Storage, key, { spec: { backupRetentionDays } })).rejects.toThrow(
      'backupRetentionDays',
    )
  })
})
