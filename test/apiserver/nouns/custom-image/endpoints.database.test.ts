/** Custom images, and servers that are made from them, as their callers see them: one row for each refusal. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { listQuotas } from '../../../../db/account/index.ts'
import type { KubeObject, ResourceType } from '../../../../kit/kube/object.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { Zone } from '../../../../resources/catalog/index.ts'
import { CustomImage, type CustomImageStatus } from '../../../../resources/custom-image/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Backup, type BackupStatus } from '../../../../resources/backup/index.ts'
import { finalizerOf } from '../../../../resources/kit/define.ts'
import { Server, type ServerState, type ServerStatus } from '../../../../resources/server/index.ts'
import { Snapshot, type SnapshotStatus } from '../../../../resources/snapshot/index.ts'
import { Storage, type StorageSpec, type StorageStatus } from '../../../../resources/storage/index.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person, PUBLIC_KEY } from '../../cloud.ts'
import { progressOf } from '../../../progress.ts'
import { setQuotas } from '../../../accounts.ts'

const OTHER_ZONE = 'eu-1-b'
const CHECKSUM = 'a'.repeat(64)
const FILE = { source_url: 'https://images.example.com/disk.qcow2', checksum_sha256: CHECKSUM }
const database = useDatabase()
let cloud: Cloud
let ada: Person
let bob: Person

beforeAll(async () => {
  cloud = await openCloud(database.db)
  ada = await cloud.signUp('ada@example.com')
  bob = await cloud.signUp('bob@example.com')
  for (const name of ['servers', 'custom_images', 'custom_image_gibibytes'])
    await setQuotas(cloud.db, 100_000, { name })
  cloud.caches.of(Zone).apply(
    await cloud.admin.create(Zone, {
      metadata: { name: OTHER_ZONE },
      spec: { displayName: 'B', region: 'eu-1', isClosed: false, capabilities: [] },
    }),
  )
  const stored = { status: { hasBackups: true } }
  cloud.caches.of(Zone).apply(await cloud.admin.patch(Zone, { name: cloud.zone }, stored, 'status'))
  // Brings their namespaces about.
  for (const person of [ada, bob])
    expect((await make({ zone: cloud.zone, title: 'First', ...FILE }, person)).status).toBe(202)
})
afterAll(() => cloud.close())

const make = (body: object, by = ada) => by.send('POST', '/v1/custom-images', { body })
const keyOf = (name: string, by = ada) => ({ namespace: accountNamespace(by.accountId), name })

/** As controllers would leave it, in Kubernetes and in the cache of the API. */
async function put<Spec, Status>(
  type: ResourceType<Spec, Status>,
  draft: { readonly spec: Spec; readonly finalizers?: readonly string[] },
  status: Status,
  by: Person,
): Promise<string> {
  const key = keyOf(newUuid(systemRandom), by)
  await cloud.admin.create(type, { metadata: { ...key, finalizers: draft.finalizers ?? [] }, spec: draft.spec })
  await reported(type, key, status)
  return key.name
}
async function reported<Spec, Status>(
  type: ResourceType<Spec, Status>,
  key: ReturnType<typeof keyOf>,
  status: Status,
): Promise<void> {
  // a merge patch of the status alone
  const patch = { status } as object
  cloud.caches.of<Spec, Status>(type).apply(await cloud.admin.patch(type, key, patch, 'status'))
}
const image = (
  { zone = cloud.zone, ...status }: Partial<CustomImageStatus> & { readonly zone?: string } = {},
  by = ada,
): Promise<string> =>
  put(
    CustomImage,
    {
      spec: { zone, title: 'Mine', labels: {}, source: { url: FILE.source_url, checksum: CHECKSUM } },
      finalizers: [finalizerOf(CustomImage)],
    },
    { state: 'online', observedGeneration: 1, sizeGibibytes: 1, ...status },
    by,
  )
const storage = (
  { sizeGibibytes = 1, ...spec }: Partial<StorageSpec> = {},
  status: Partial<StorageStatus> = {},
  by = ada,
): Promise<string> =>
  put(
    Storage,
    { spec: Storage.spec.parse({ zone: cloud.zone, title: '', sizeGibibytes, ...spec }) },
    { state: 'online', observedGeneration: 1, sizeGibibytes, ...status },
    by,
  )

async function snapshot(
  status: Partial<SnapshotStatus> = {},
  spec: Partial<StorageSpec> = {},
  by = ada,
): Promise<string> {
  const storageId = await storage(spec, {}, by)
  const whole = { state: 'online', observedGeneration: 1, sizeGibibytes: 1, zone: cloud.zone, ...status } as const
  return put(Snapshot, { spec: Snapshot.spec.parse({ storageId }) }, whole, by)
}
const backup = (status: Partial<BackupStatus> = {}, by = ada): Promise<string> =>
  put(
    Backup,
    { spec: Backup.spec.parse({ storageId: 'gone' }) },
    { state: 'online', observedGeneration: 1, sizeGibibytes: 1, zone: cloud.zone, ...status },
    by,
  )

let made = 0
const createServer = (system: object, more: object = {}, by = ada) =>
  by.send('POST', '/v1/servers', {
    body: {
      zone: cloud.zone,
      hostname: `web-${(made += 1)}`,
      plan: 'tiny',
      ssh_keys: [PUBLIC_KEY],
      ...system,
      ...more,
    },
  })
async function server(state: ServerState, system: object = { template: 'tiny-linux' }): Promise<string> {
  const { body } = await createServer(system, { start: state !== 'stopped' })
  const { id } = body['server']
  const operation = (await cloud.admin.get(Server, keyOf(id)))?.spec.operation
  if (operation === undefined) throw new Error('it was made without an operation')
  const status: ServerStatus = {
    observedGeneration: 1,
    state,
    cores: 1,
    memoryMebibytes: 192,
    storageGibibytes: 1,
    operation: progressOf(operation),
  }
  await reported(Server, keyOf(id), status)
  return id
}
const problem = (status: number, reason: string) => ({ status, reason })
const badField = (field: string) => ({ status: 400, errors: [{ field }] })

/** What no server can be made from, as the body names it: whichever route takes it. */
const UNFIT: readonly (readonly [string, () => Promise<object>, object])[] = [
  ['that another account has', async () => ({ custom_image_id: await image({}, bob) }), { status: 404 }],
  ['that nobody has', async () => ({ custom_image_id: 'nothing' }), { status: 404 }],
  [
    'of another zone',
    async () => ({ custom_image_id: await image({ zone: OTHER_ZONE }) }),
    badField('custom_image_id'),
  ],
  ...(['creating', 'error', 'deleting'] as const).map(
    (state) =>
      [
        `in state ${state}`,
        async () => ({ custom_image_id: await image({ state }) }),
        problem(409, 'state_not_allowed'),
      ] as const,
  ),
  [
    'together with a template',
    async () => ({ custom_image_id: await image(), template: 'tiny-linux' }),
    badField('custom_image_id'),
  ],
]

describe('create_server', () => {
  test('takes an image instead of a template', async () => {
    const id = await image()
    const { status, body, text } = await createServer({ custom_image_id: id })
    expect(status, text).toBe(202)
    const { spec } = (await cloud.admin.get(Server, keyOf(body['server'].id))) ?? {}
    expect([spec?.customImageId, spec?.template]).toEqual([id, undefined])
  })

  test.each([
    ...UNFIT,
    [
      'that is larger than the disk of the plan',
      async () => ({ custom_image_id: await image({ sizeGibibytes: 2 }) }),
      badField('storage_gibibytes'),
    ],
    [
      'that needs more memory than the plan has',
      async () => ({ custom_image_id: await image({ minMemoryMebibytes: 193 }) }),
      badField('plan'),
    ],
  ] as const)('refuses an image %s, and holds nothing', async (_why, system, expected) => {
    const named = await system()
    const before = await listQuotas(cloud.db, ada.accountId)
    expect((await createServer(named)).body).toMatchObject(expected)
    expect(await listQuotas(cloud.db, ada.accountId)).toEqual(before)
  })

  test('takes a larger image with a larger disk', async () => {
    const id = await image({ sizeGibibytes: 2 })
    expect((await createServer({ custom_image_id: id }, { storage_gibibytes: 2 })).status).toBe(202)
  })
})

describe('rebuild_server', () => {
  const rebuild = (id: string, body: object) => ada.send('POST', `/v1/servers/${id}/rebuild`, { body })

  test('takes an image instead of the template, and the template again', async () => {
    const [id, imageId] = [await server('stopped'), await image()]
    expect((await rebuild(id, { custom_image_id: imageId })).status).toBe(202)
    const { spec } = (await cloud.admin.get(Server, keyOf(id))) ?? {}
    expect([spec?.customImageId, spec?.template]).toEqual([imageId, undefined])
    expect(spec?.operation?.arguments).toMatchObject({ previous_template: 'tiny-linux' })
    const other = await server('stopped', { custom_image_id: imageId })
    expect((await rebuild(other, { template: 'tiny-linux' })).status).toBe(202)
    const again = (await cloud.admin.get(Server, keyOf(other)))?.spec
    expect([again?.customImageId, again?.template]).toEqual([undefined, 'tiny-linux'])
    expect(again?.operation?.arguments).toMatchObject({ previous_custom_image: imageId })
  })

  test.each([
    ...UNFIT,
    [
      'that is larger than the disk of the server',
      async () => ({ custom_image_id: await image({ sizeGibibytes: 2 }) }),
      badField('custom_image_id'),
    ],
    [
      'that needs more memory than the server has',
      async () => ({ custom_image_id: await image({ minMemoryMebibytes: 193 }) }),
      badField('custom_image_id'),
    ],
  ] as const)('refuses an image %s, and changes nothing', async (_why, system, expected) => {
    const [id, named] = [await server('stopped'), await system()]
    const before = (await cloud.admin.get(Server, keyOf(id)))?.spec
    expect((await rebuild(id, named)).body).toMatchObject(expected)
    expect((await cloud.admin.get(Server, keyOf(id)))?.spec).toEqual(before)
  })

  test('a rebuild from an image that was deleted in between is refused', async () => {
    const imageId = await image()
    const id = await server('stopped', { custom_image_id: imageId })
    await reported(CustomImage, keyOf(imageId), { state: 'deleting', observedGeneration: 1 })
    expect((await rebuild(id, {})).body).toMatchObject(problem(409, 'state_not_allowed'))
  })
})

test('change_server_plan refuses less memory than the image of the server needs', async () => {
  const imageId = await image()
  const id = await server('stopped', { custom_image_id: imageId })
  await reported(CustomImage, keyOf(imageId), {
    state: 'online',
    observedGeneration: 1,
    sizeGibibytes: 1,
    minMemoryMebibytes: 1_025,
  })
  const change = (plan: string) => ada.send('POST', `/v1/servers/${id}/change-plan`, { body: { plan } })
  expect((await change('starter-1c-1g')).body).toMatchObject(badField('plan'))
  expect((await change('starter-2c-4g')).status).toBe(202)
})

describe('create_custom_image', () => {
  test('makes one of the storage of a stopped server, and holds its part of the quota', async () => {
    const serverId = await server('stopped')
    const storageId = await storage({ serverId }, { serverId })
    const before = await used()
    const { status, body, text } = await make({ zone: cloud.zone, title: 'Of it', source_storage_id: storageId })
    expect(status, text).toBe(202)
    expect(body['custom_image']).toMatchObject({ state: 'creating', source: { kind: 'storage', id: storageId } })
    expect(await used()).toBe(before + 1)
  })

  test('makes one of a snapshot and of a backup, which stay until it is made', async () => {
    const kinds = [
      ['snapshot', await snapshot(), 'snapshots'],
      ['backup', await backup(), 'backups'],
    ] as const
    for (const [kind, id, path] of kinds) {
      const source = { [`source_${kind}_id`]: id }
      const { status, body, text } = await make({ zone: cloud.zone, title: `Of a ${kind}`, ...source })
      expect(status, text).toBe(202)
      expect(body['custom_image']).toMatchObject({ state: 'creating', source: { kind, id, url: null } })
      const refusal = await ada.send('DELETE', `/v1/${path}/${id}`)
      expect([refusal.status, refusal.body.reason], refusal.text).toEqual([409, 'in_use'])
      await reported(CustomImage, keyOf(body['custom_image'].id), { state: 'online', observedGeneration: 1 })
      expect((await ada.send('DELETE', `/v1/${path}/${id}`)).status).toBe(202)
    }
  })

  test.each<readonly [string, () => Promise<object>, object]>([
    [
      'the storage of another account',
      async () => ({ source_storage_id: await storage({}, {}, bob) }),
      { status: 404 },
    ],
    [
      'the snapshot of another account',
      async () => ({ source_snapshot_id: await snapshot({}, {}, bob) }),
      { status: 404 },
    ],
    ['the backup of another account', async () => ({ source_backup_id: await backup({}, bob) }), { status: 404 }],
    [
      'a backup that is not complete',
      async () => ({ source_backup_id: await backup({ state: 'creating' }) }),
      problem(409, 'state_not_allowed'),
    ],
    [
      'a snapshot and a backup',
      async () => ({ source_snapshot_id: await snapshot(), source_backup_id: await backup() }),
      { status: 400 },
    ],
    [
      'a snapshot with a checksum',
      async () => ({ checksum_sha256: CHECKSUM, source_snapshot_id: await snapshot() }),
      badField('checksum_sha256'),
    ],
  ])('refuses %s, and holds nothing', async (_what, source, expected) => {
    const body = { zone: cloud.zone, title: 'Never', ...(await source()) }
    const [before, listed] = [await used(), await count()]
    expect((await make(body)).body).toMatchObject(expected)
    expect([await used(), await count()]).toEqual([before, listed])
  })

  test('beyond the quota is refused', async () => {
    const limit = (value: number) => setQuotas(cloud.db, value, { accountId: ada.accountId, name: 'custom_images' })
    await limit(await used())
    const { body } = await make({ zone: cloud.zone, title: 'Never', ...FILE })
    await limit(100_000)
    expect(body).toMatchObject({ status: 422, reason: 'quota_exceeded', quota: { name: 'custom_images' } })
  })

  test('beyond the GiB of the quota is refused; an unknown disk counts as one of 64', async () => {
    const name = 'custom_image_gibibytes'
    const quota = async () => (await listQuotas(cloud.db, ada.accountId)).find((each) => each.name === name)
    const before = (await quota())?.used ?? 0
    const ofAda = cloud.db.updateTable('account_quota').where('account_id', '=', ada.accountId).where('name', '=', name)
    await ofAda.set({ limit: before + 64 }).execute()
    expect((await make({ zone: cloud.zone, title: 'Fits', ...FILE })).status).toBe(202)
    expect((await quota())?.used).toBe(before + 64)
    const { body } = await make({ zone: cloud.zone, title: 'Never', ...FILE })
    expect((await ada.send('GET', '/v1/account/quotas')).body['items']).toContainEqual(
      expect.objectContaining({ name, used: before + 64 }),
    )
    await ofAda.set({ limit: 100_000 }).execute()
    expect(body).toMatchObject({ status: 422, reason: 'quota_exceeded', quota: { name, requested: 64 } })
  })

  const used = async () =>
    (await listQuotas(cloud.db, ada.accountId)).find(({ name }) => name === 'custom_images')?.used ?? 0
  const count = async () => (await ada.send('GET', '/v1/custom-images')).body['items'].length
})

describe('one that is there', () => {
  const path = (id: string) => `/v1/custom-images/${id}`
  const read = async (id: string): Promise<KubeObject> => {
    const object = await cloud.admin.get(CustomImage, keyOf(id))
    if (object === undefined) throw new Error('there is no such image')
    return object
  }

  test('is read, alone and among others, by its account only', async () => {
    const id = await image({ sizeGibibytes: 3 })
    const { body, headers } = await ada.send('GET', path(id))
    expect(body['custom_image']).toMatchObject({ id, zone: cloud.zone, state: 'online', size_gibibytes: 3 })
    expect(headers['etag']).toMatch(/^"\d+"$/)
    const idsOf = async (person: Person) =>
      (await person.send('GET', '/v1/custom-images')).body['items'].map((one: { id: string }) => one.id)
    expect([(await idsOf(ada)).includes(id), (await idsOf(bob)).includes(id)]).toEqual([true, false])
    expect((await bob.send('GET', path(id))).status).toBe(404)
  })

  test('gets another title and other labels, which its audit entry names', async () => {
    const id = await image()
    const reply = await ada.send('PATCH', path(id), { body: { title: 'Golden', labels: { tier: 'base' } } })
    expect(reply.status, reply.text).toBe(200)
    expect(reply.body['custom_image']).toMatchObject({ title: 'Golden', labels: { tier: 'base' } })
    expect(await cloud.auditOf(reply)).toMatchObject([{ action: 'custom_image.update', outcome: 'success' }])
  })

  test.each<readonly [string, object, object, Readonly<Record<string, string>>]>([
    ['with another zone', { zone: OTHER_ZONE }, badField('zone'), {}],
    ['of a version that it does not have', { title: 'Late' }, { status: 409 }, { 'if-match': '"99"' }],
  ])('is not changed %s', async (_why, body, expected, headers) => {
    const id = await image()
    const before = (await read(id)).spec
    expect((await ada.send('PATCH', path(id), { body, headers })).body).toMatchObject(expected)
    expect((await read(id)).spec).toEqual(before)
  })

  test('is copied to another zone, with its title and labels', async () => {
    const id = await image()
    const { status, body } = await ada.send('POST', `${path(id)}/copy`, { body: { zone: OTHER_ZONE } })
    expect([status, body['operation']?.kind]).toEqual([202, 'template.copy'])
    expect(body['custom_image']).toMatchObject({ zone: OTHER_ZONE, title: 'Mine', source: { kind: 'image', id } })
  })

  test('is not copied by another account', async () => {
    const reply = await ada.send('POST', `${path(await image({}, bob))}/copy`, { body: { zone: OTHER_ZONE } })
    expect(reply.status).toBe(404)
  })

  test('is deleted once, by its account only, and not while it is made', async () => {
    const id = await image()
    expect((await bob.send('DELETE', path(id))).status).toBe(404)
    const { status, body } = await ada.send('DELETE', path(id))
    expect([status, body['operation']?.kind]).toEqual([202, 'template.delete'])
    expect((await ada.send('DELETE', path(id))).body).toMatchObject(problem(409, 'operation_in_progress'))
    expect((await createServer({ custom_image_id: id })).body).toMatchObject(problem(409, 'state_not_allowed'))
    const young = (await make({ zone: cloud.zone, title: 'Young', ...FILE })).body['custom_image'].id
    expect((await ada.send('DELETE', path(young))).body).toMatchObject(problem(409, 'operation_in_progress'))
    const waiting = await image({ state: 'creating' })
    expect((await ada.send('DELETE', path(waiting))).body).toMatchObject(problem(409, 'state_not_allowed'))
  })
})
