/** Every refusal of a change of a snapshot, a backup or a custom image, by REST and by kubectl: one line each in
 *  `test/golden/copies.txt`. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { claimStorage } from '../../db/storage/index.ts'
import type { OperationKind } from '../../domain/operations.ts'
import type { ResourceType } from '../../kit/kube/object.ts'
import { newUuid, systemRandom } from '../../kit/sys/random.ts'
import { Backup } from '../../resources/backup/index.ts'
import { CustomImage, type CustomImageSpec } from '../../resources/custom-image/index.ts'
import { finalizerOf } from '../../resources/kit/define.ts'
import { LAST_CHANGE_ANNOTATION } from '../../resources/kit/labels.ts'
import { Snapshot } from '../../resources/snapshot/index.ts'
import { Storage, type StorageSpec, type StorageStatus } from '../../resources/storage/index.ts'
import { type Cloud, openCloud, type Person } from '../apiserver/cloud.ts'
import { expectGolden, type Line, wordsOf } from '../apiserver/golden-lines.ts'
import { AT, BARE_ZONE, openWorld, stanza, type World } from '../apiserver/nouns/backup/world.ts'
import { useDatabase } from '../database.ts'

const database = useDatabase()
let cloud: Cloud
let ada: Person
let world: World

beforeAll(async () => {
  cloud = await openCloud(database.db)
  ada = await cloud.signUp('ada@example.com')
  world = await openWorld(cloud, ada)
  await cloud.db.updateTable('account_quota').set({ limit: 1_000_000 }).execute()
})
afterAll(() => cloud.close())

const UNKNOWN = '00000000-0000-4000-8000-000000000000'
const MACHINE = 'machine-00000000-0000-4000-8000-000000000000'
const URL_SOURCE = { url: 'https://images.example.com/disk.qcow2', checksum: 'a'.repeat(64) }

type Plural = 'snapshots' | 'backups' | 'customimages'
const TYPES: Readonly<Record<Plural, ResourceType>> = {
  snapshots: Snapshot,
  backups: Backup,
  customimages: CustomImage,
}
const DEFAULTS: Readonly<Record<Plural, object>> = {
  snapshots: { title: '', labels: {} },
  backups: { title: '', kind: 'manual' },
  customimages: { title: 'Mine', labels: {} },
}
type Id = string | Promise<string>

const send = async (method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: object): Promise<string> =>
  wordsOf(await ada.send(method, path, body === undefined ? {} : { body }))
const written = async (
  plural: Plural,
  operation: 'CREATE' | 'UPDATE' | 'DELETE',
  objects: { readonly object?: unknown; readonly oldObject?: unknown },
): Promise<string> => (await world.ask(plural, operation, objects)) ?? 'admitted'
const draft = (plural: Plural, spec: object, metadata: object = {}) => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Any',
  metadata: { name: newUuid(systemRandom), namespace: world.namespace, uid: newUuid(systemRandom), ...metadata },
  spec: { ...DEFAULTS[plural], ...spec },
})
const made = async (plural: Plural, spec: object, metadata: object = {}): Promise<string> =>
  written(plural, 'CREATE', { object: JSON.parse(JSON.stringify(draft(plural, spec, metadata))) })
const stored = async (plural: Plural, id: Id) =>
  (await cloud.admin.get(TYPES[plural], { namespace: world.namespace, name: await id })) ?? expect.fail()
const edited = async (plural: Plural, id: Id, spec: object, metadata: object = {}): Promise<string> => {
  const oldObject = await stored(plural, id)
  const object = {
    ...oldObject,
    metadata: { ...oldObject.metadata, ...metadata },
    spec: { ...(oldObject.spec as object), ...spec }, // of any of the kinds
  }
  return written(plural, 'UPDATE', { object: JSON.parse(JSON.stringify(object)), oldObject })
}
const dropped = async (plural: Plural, id: Id): Promise<string> =>
  written(plural, 'DELETE', { oldObject: await stored(plural, id) })
const withoutFinalizer = async (plural: Plural, id: Id): Promise<string> => {
  const object = await stored(plural, id)
  const finalizers = [finalizerOf(TYPES[plural] as never)] // they are kinds of the product
  return written(plural, 'UPDATE', {
    object,
    oldObject: { ...object, metadata: { ...object.metadata, finalizers } },
  })
}

interface Given {
  readonly spec?: object
  readonly status?: object
  readonly isDeleting?: boolean
}
const busy = (kind: OperationKind) => ({ spec: { operation: stanza(kind) }, status: { operation: undefined } })

const disk = async (spec: Partial<StorageSpec> = {}, status: Partial<StorageStatus> = {}): Promise<string> => {
  const id = await world.storage({ spec, status })
  const claim = { accountId: ada.accountId, storageId: id, zone: cloud.zone, sizeGibibytes: 2 }
  if (spec.zone === undefined)
    await cloud.db.transaction().execute((tx) => claimStorage(tx, claim, new Date('2026-01-01')))
  return id
}
/** The boot disk of a server, with the server in a state. */
const bootDisk = async (server: { readonly spec?: object; readonly isDeleting?: boolean }): Promise<string> => {
  const id = newUuid(systemRandom)
  const { isDeleting = false, spec = {} } = server
  const name = await world.server('stopped', 'stopped', { spec: { bootStorageId: id, ...spec } }, { isDeleting })
  await world.put(
    Storage as ResourceType,
    { zone: cloud.zone, title: '', sizeGibibytes: 2, tier: 'standard', isBoot: true, serverId: name, labels: {} },
    { state: 'online', sizeGibibytes: 2, nodeName: cloud.node },
    { name: id },
  )
  return id
}
const snapshot = async ({ spec, status, isDeleting = false }: Given = {}): Promise<string> =>
  world.put(
    Snapshot,
    { storageId: await disk(), title: '', labels: {}, ...spec },
    { state: 'online', sizeGibibytes: 2, zone: cloud.zone, ...status },
    { isDeleting },
  )
const backup = ({ spec = {}, status = {}, isDeleting = false }: Given = {}): Promise<string> =>
  world.backup({ spec, status }, { isDeleting })
const image = ({ spec = {}, status, isDeleting = false }: Given = {}): Promise<string> =>
  world.put(
    CustomImage,
    { zone: cloud.zone, title: 'Mine', labels: {}, source: URL_SOURCE, ...spec } as CustomImageSpec,
    { state: 'online', sizeGibibytes: 2, ...status },
    { isDeleting },
  )
/** Something is being created from it. */
const read = async (id: Promise<string>, field: 'snapshotId' | 'backupId'): Promise<string> => {
  await image({ spec: { source: { [field]: await id } }, status: { state: 'creating' } })
  return id
}

/** The account may have no more of them meanwhile. */
const beyond = (quota: string, work: () => Promise<string>) => async (): Promise<string> => {
  const limit = (value: number) =>
    cloud.db
      .updateTable('account_quota')
      .set({ limit: value })
      .where('account_id', '=', ada.accountId)
      .where('name', '=', quota)
      .execute()
  await limit(0)
  return work().finally(() => limit(1_000_000))
}
/** The account has spent its credit meanwhile. */
const owing = (work: () => Promise<string>) => async (): Promise<string> => {
  const credit = cloud.db.updateTable('credit').where('account_id', '=', ada.accountId)
  await credit.set(({ ref }) => ({ spent_cents: ref('amount_cents') })).execute()
  return work().finally(() => credit.set({ spent_cents: 0 }).execute())
}

/** The same of a storage by both interfaces. */
const ofStorage =
  (plural: 'snapshots' | 'backups') =>
  (what: string, storage: () => Id, body: object = {}, spec: object | undefined = body): Line => [
    `create ${plural} ${what}`,
    async () => send('POST', `/v1/storages/${await storage()}/${plural}`, body),
    spec && (async () => made(plural, { storageId: await storage(), ...spec })),
  ]
const taken = ofStorage('snapshots')
const backedUp = ofStorage('backups')
const deleted = (plural: Plural, what: string, arrange: () => Promise<string>): Line => [
  `delete ${plural} ${what}`,
  async () => send('DELETE', `/v1/${plural === 'customimages' ? 'custom-images' : plural}/${await arrange()}`),
  async () => dropped(plural, arrange()),
]
const changed = (plural: Plural, what: string, arrange: () => Promise<string>, spec: object): Line => [
  `change ${plural} ${what}`,
  undefined,
  async () => edited(plural, arrange(), spec),
]
const imaged = (what: string, body: object, spec: object | undefined): Line => [
  `create customimages ${what}`,
  () => send('POST', '/v1/custom-images', { zone: cloud.zone, title: 'Mine', ...body }),
  spec && (() => made('customimages', { zone: cloud.zone, ...spec })),
]
const imagedFrom = (
  what: string,
  kind: 'storage' | 'snapshot' | 'backup',
  id: () => Id,
  zone: () => string = () => cloud.zone,
): Line => [
  `create customimages from a ${kind} ${what}`,
  async () => send('POST', '/v1/custom-images', { zone: zone(), title: 'Mine', [`source_${kind}_id`]: await id() }),
  async () => made('customimages', { zone: zone(), source: { [`${kind}Id`]: await id() } }),
]
const copied = (what: string, id: () => Id, zone: () => string = () => BARE_ZONE): Line => [
  `copy customimages ${what}`,
  async () => send('POST', `/v1/custom-images/${await id()}/copy`, { zone: zone() }),
  async () => made('customimages', { zone: zone(), source: { imageId: await id() } }),
]
const imageEdited = (what: string, body: object): Line => [
  `update customimages ${what}`,
  async () => send('PATCH', `/v1/custom-images/${await image()}`, body),
  async () => edited('customimages', image(), body),
]
const ofPlatform = (plural: Plural, arrange: () => Promise<string>, kind: OperationKind): readonly Line[] => [
  changed(plural, 'the operation', arrange, { operation: stanza(kind) }),
  [
    `change ${plural} the note`,
    undefined,
    async () => edited(plural, arrange(), {}, { annotations: { [LAST_CHANGE_ANNOTATION]: 'x' } }),
  ],
  [`change ${plural} the finalizer`, undefined, async () => withoutFinalizer(plural, arrange())],
]
const ALL_STATES = ['creating', 'error', 'deleting'] as const

const LINES: readonly Line[] = [
  taken('', disk),
  taken('with a title of no form', disk, { title: 'a\u0007' }),
  taken('with labels of no form', disk, { labels: { 'a b': '' } }),
  taken('of no storage', () => UNKNOWN),
  taken('of a machine', () => MACHINE),
  taken('of a storage of tier local-nvme', () => disk({ tier: 'local-nvme' })),
  ...(['creating', 'restoring', 'error'] as const).map((state) =>
    taken(`of a storage that is ${state}`, () => disk({}, { state })),
  ),
  taken('of a storage that is busy', () => disk({ operation: stanza('storage.resize') })),
  taken('of a storage of tier local-nvme that is busy', () =>
    disk({ tier: 'local-nvme', operation: stanza('storage.resize') }),
  ),
  taken('of a storage that is being deleted', () => world.storage({}, { isDeleting: true })),
  taken('of a boot disk whose server is being deleted', () => bootDisk({ isDeleting: true })),
  taken('of a boot disk whose server is rebuilt', () => bootDisk({ spec: { operation: stanza('server.rebuild') } })),
  taken('of a boot disk that its server boots from no longer', () => bootDisk({ spec: { bootStorageId: UNKNOWN } })),
  taken('of a storage that has claimed nothing', () => world.storage()),
  [
    'create snapshots beyond the quota',
    beyond('snapshots', async () => send('POST', `/v1/storages/${await disk()}/snapshots`, {})),
    beyond('snapshots', async () => made('snapshots', { storageId: await disk() })),
  ],
  [
    'create snapshots without credit',
    owing(async () => send('POST', `/v1/storages/${await disk()}/snapshots`, {})),
    owing(async () => made('snapshots', { storageId: await disk() })),
  ],
  ...(
    [
      ['with an operation', { operation: stanza('snapshot.create') }],
      ['with a restored backup', { restoredBackupId: UNKNOWN }],
      ['with an expiry', { expiresAt: AT }],
    ] as const
  ).map(
    ([what, spec]): Line => [
      `create snapshots ${what}`,
      undefined,
      async () => made('snapshots', { storageId: await disk(), ...spec }),
    ],
  ),
  [
    'create snapshots in a namespace of nobody',
    undefined,
    async () => made('snapshots', { storageId: await disk() }, { namespace: 'default' }),
  ],
  ...ofPlatform('snapshots', snapshot, 'snapshot.create'),
  changed('snapshots', 'nothing', snapshot, {}),
  deleted('snapshots', '', snapshot),
  deleted('snapshots', 'that is busy', () => snapshot(busy('snapshot.delete'))),
  deleted('snapshots', 'that is being created', () =>
    snapshot({ spec: { operation: stanza('snapshot.create') }, status: { state: 'creating' } }),
  ),
  deleted('snapshots', 'that is read', () => read(snapshot(), 'snapshotId')),
  deleted('snapshots', 'twice', () => snapshot({ isDeleting: true })),
  ...ALL_STATES.map((state) => deleted('snapshots', `in state ${state}`, () => snapshot({ status: { state } }))),
  ['delete snapshots that is not there', () => send('DELETE', `/v1/snapshots/${UNKNOWN}`), undefined],

  backedUp('', disk),
  backedUp('with a title of no form', disk, { title: 'a\u0007' }),
  backedUp('of no storage', () => UNKNOWN),
  backedUp('of a machine', () => MACHINE),
  backedUp('of a storage in a zone without backups', () => disk({ zone: BARE_ZONE })),
  ...(['creating', 'restoring', 'error'] as const).map((state) =>
    backedUp(`of a storage that is ${state}`, () => disk({}, { state })),
  ),
  backedUp('of a storage that is being deleted', () => world.storage({}, { isDeleting: true })),
  backedUp('of a storage that is being backed up', async () => {
    const storageId = await disk()
    await backup({ spec: { storageId, operation: stanza('storage.backup') }, status: { state: 'creating' } })
    return storageId
  }),
  backedUp('with an expiry that is over', disk, { expires_at: AT }, { expiresAt: AT }),
  backedUp('with an expiry that is none', disk, { expires_at: 'soon' }, { expiresAt: 'soon' }),
  [
    'create backups beyond the quota',
    beyond('backups', async () => send('POST', `/v1/storages/${await disk()}/backups`, {})),
    beyond('backups', async () => made('backups', { storageId: await disk() })),
  ],
  [
    'create backups without credit',
    owing(async () => send('POST', `/v1/storages/${await disk()}/backups`, {})),
    owing(async () => made('backups', { storageId: await disk() })),
  ],
  ...(
    [
      ['with an operation', { operation: stanza('storage.backup') }],
      ['as a copy', { copyOf: { name: UNKNOWN, zone: BARE_ZONE } }],
      ['as a scheduled one', { kind: 'scheduled' }],
      ['in another zone', { zone: BARE_ZONE }],
    ] as const
  ).map(
    ([what, spec]): Line => [
      `create backups ${what}`,
      undefined,
      async () => made('backups', { storageId: await disk(), ...spec }),
    ],
  ),
  [
    'create backups in a namespace of nobody',
    undefined,
    async () => made('backups', { storageId: await disk() }, { namespace: 'default' }),
  ],
  ...ofPlatform('backups', backup, 'storage.backup'),
  changed('backups', 'nothing', backup, {}),
  changed('backups', 'the title', backup, { title: 'b' }),
  changed('backups', 'the title, of no form', backup, { title: 'a\u0007' }),
  changed('backups', 'the expiry', backup, { expiresAt: '2099-01-01T00:00:00Z' }),
  changed('backups', 'the expiry, of no form', backup, { expiresAt: 'soon' }),
  changed('backups', 'the expiry, to one that is over', backup, { expiresAt: AT }),
  changed('backups', 'the zone', () => backup({ spec: { zone: 'eu-1-a' } }), { zone: BARE_ZONE }),
  deleted('backups', '', backup),
  deleted('backups', 'that is restored', () => backup(busy('backup.restore'))),
  deleted('backups', 'that is verified', () => backup(busy('backup.verify'))),
  deleted('backups', 'that is being created', () =>
    backup({ spec: { operation: stanza('storage.backup') }, status: { state: 'creating' } }),
  ),
  deleted('backups', 'that is read', () => read(backup(), 'backupId')),
  deleted('backups', 'twice', () => backup({ isDeleting: true })),
  ...ALL_STATES.map((state) => deleted('backups', `in state ${state}`, () => backup({ status: { state } }))),
  ['delete backups that is not there', () => send('DELETE', `/v1/backups/${UNKNOWN}`), undefined],

  imaged('', { source_url: URL_SOURCE.url, checksum_sha256: URL_SOURCE.checksum }, { source: URL_SOURCE }),
  imaged(
    'with a title of no form',
    { title: 'a\u0007', source_storage_id: UNKNOWN },
    { title: 'a\u0007', source: { storageId: UNKNOWN } },
  ),
  imaged('without a title', { title: '', source_storage_id: UNKNOWN }, { title: '', source: { storageId: UNKNOWN } }),
  imaged(
    'with labels of no form',
    { labels: { 'a b': '' }, source_storage_id: UNKNOWN },
    { labels: { 'a b': '' }, source: { storageId: UNKNOWN } },
  ),
  imaged('in no zone', { zone: 'eu-9', source_storage_id: UNKNOWN }, { zone: 'eu-9', source: { storageId: UNKNOWN } }),
  imaged(
    'of a file by http',
    { source_url: 'http://x.example/a', checksum_sha256: URL_SOURCE.checksum },
    { source: { ...URL_SOURCE, url: 'http://x.example/a' } },
  ),
  imaged('of a file without a checksum', { source_url: URL_SOURCE.url }, undefined),
  imaged(
    'of a storage with a checksum',
    { source_storage_id: UNKNOWN, checksum_sha256: URL_SOURCE.checksum },
    undefined,
  ),
  imaged(
    'of a file with a checksum of no form',
    { source_url: URL_SOURCE.url, checksum_sha256: 'x' },
    { source: { ...URL_SOURCE, checksum: 'x' } },
  ),
  imagedFrom('', 'storage', disk),
  imagedFrom('that is not there', 'storage', () => UNKNOWN),
  imagedFrom('that is a machine', 'storage', () => MACHINE),
  imagedFrom('of another zone', 'storage', disk, () => BARE_ZONE),
  imagedFrom('that is too large', 'storage', () => disk({ sizeGibibytes: 1_025 })),
  imagedFrom('that is in error', 'storage', () => disk({}, { state: 'error' })),
  imagedFrom('that is being deleted', 'storage', () => world.storage({}, { isDeleting: true })),
  imagedFrom('of a server that runs', 'storage', async () =>
    disk({ serverId: await world.server('started', 'running') }),
  ),
  imagedFrom('', 'snapshot', snapshot),
  imagedFrom('that is not there', 'snapshot', () => UNKNOWN),
  imagedFrom('of another zone', 'snapshot', snapshot, () => BARE_ZONE),
  imagedFrom('that is being taken', 'snapshot', () => snapshot({ status: { state: 'creating' } })),
  imagedFrom('that is too large', 'snapshot', () => snapshot({ status: { sizeGibibytes: 1_025 } })),
  imagedFrom('', 'backup', backup),
  imagedFrom('that is not there', 'backup', () => UNKNOWN),
  imagedFrom('of another zone', 'backup', backup, () => BARE_ZONE),
  imagedFrom('that did not verify', 'backup', () => backup({ status: { verificationError: 'A part is missing.' } })),
  imagedFrom('that is too large', 'backup', () => backup({ status: { sizeGibibytes: 1_025 } })),
  copied('', image),
  copied('that is not there', () => UNKNOWN),
  copied('to its own zone', image, () => cloud.zone),
  copied('to no zone', image, () => 'eu-9'),
  ...ALL_STATES.map((state) => copied(`in state ${state}`, () => image({ status: { state } }))),
  [
    'create customimages beyond the quota',
    beyond('custom_images', async () =>
      send('POST', '/v1/custom-images', { zone: cloud.zone, title: 'Mine', source_storage_id: await disk() }),
    ),
    beyond('custom_images', async () =>
      made('customimages', { zone: cloud.zone, source: { storageId: await disk() } }),
    ),
  ],
  [
    'create customimages without credit',
    owing(async () =>
      send('POST', '/v1/custom-images', { zone: cloud.zone, title: 'Mine', source_storage_id: await disk() }),
    ),
    owing(async () => made('customimages', { zone: cloud.zone, source: { storageId: await disk() } })),
  ],
  [
    'create customimages with an operation',
    undefined,
    () => made('customimages', { zone: cloud.zone, source: URL_SOURCE, operation: stanza('template.create') }),
  ],
  [
    'create customimages in a namespace of nobody',
    undefined,
    () => made('customimages', { zone: cloud.zone, source: URL_SOURCE }, { namespace: 'default' }),
  ],
  ...ofPlatform('customimages', image, 'template.create'),
  imageEdited('nothing', {}),
  imageEdited('the title', { title: 'b' }),
  imageEdited('the title, of no form', { title: 'a\u0007' }),
  imageEdited('the title, to none', { title: '' }),
  imageEdited('labels', { labels: { a: 'b' } }),
  imageEdited('labels, of no form', { labels: { 'a b': '' } }),
  [
    'update customimages while busy',
    async () => send('PATCH', `/v1/custom-images/${await image(busy('template.create'))}`, { title: 'b' }),
    async () => edited('customimages', image(busy('template.create')), { title: 'b' }),
  ],
  [
    'update customimages that is being deleted',
    async () => send('PATCH', `/v1/custom-images/${await image({ isDeleting: true })}`, { title: 'b' }),
    async () => edited('customimages', image({ isDeleting: true }), { title: 'b' }),
  ],
  [
    'update customimages that is not there',
    () => send('PATCH', `/v1/custom-images/${UNKNOWN}`, { title: 'b' }),
    undefined,
  ],
  deleted('customimages', '', image),
  deleted('customimages', 'that is being created', () =>
    image({ spec: { operation: stanza('template.create') }, status: { state: 'creating' } }),
  ),
  deleted('customimages', 'twice', () => image({ isDeleting: true })),
  ...ALL_STATES.map((state) => deleted('customimages', `in state ${state}`, () => image({ status: { state } }))),
  ['delete customimages that is not there', () => send('DELETE', `/v1/custom-images/${UNKNOWN}`), undefined],
]

test('every change of a copy of a disk is refused in the same words as before', { timeout: 120_000 }, () =>
  expectGolden('copies.txt', LINES),
)
