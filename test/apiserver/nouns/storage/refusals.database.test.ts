/** Every refusal of a change of a storage, by REST and by kubectl: one line each in `test/golden/storage.txt`. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { claimServer } from '../../../../db/server/index.ts'
import { attachStorage, claimStorage } from '../../../../db/storage/index.ts'
import { defined } from '../../../../domain/defined.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import type { OperationKind } from '../../../../domain/operations.ts'
import { Zone } from '../../../../resources/catalog/index.ts'
import { finalizerOf } from '../../../../resources/kit/define.ts'
import { LAST_CHANGE_ANNOTATION } from '../../../../resources/kit/labels.ts'
import type { ServerSpec, ServerStatus } from '../../../../resources/server/index.ts'
import { Storage, type StorageSpec, type StorageStatus } from '../../../../resources/storage/index.ts'
import { useDatabase } from '../../../database.ts'
import { BARE_ZONE, COPY_ZONE, FAR_ZONE, openWorld, stanza, type World } from '../backup/world.ts'
import { type Cloud, openCloud, type Person } from '../../cloud.ts'
import { expectGolden, type Line, wordsOf } from '../../golden-lines.ts'

const database = useDatabase()
const CLOSED_ZONE = 'eu-1-closed'
const ROOM = { cores: 1, memoryMebibytes: 64, storageGibibytes: 1 }
let cloud: Cloud
let ada: Person
let world: World

beforeAll(async () => {
  cloud = await openCloud(database.db)
  ada = await cloud.signUp('ada@example.com')
  world = await openWorld(cloud, ada)
  await cloud.db.updateTable('account_quota').set({ limit: 1_000_000 }).execute()
  const spec = { displayName: 'C', region: 'eu-1', isClosed: true, capabilities: [] }
  cloud.caches.of(Zone).apply(await cloud.admin.create(Zone, { metadata: { name: CLOSED_ZONE }, spec }))
})
afterAll(() => cloud.close())

type Spec = Partial<StorageSpec>
interface Ask {
  readonly id?: string
  readonly method?: 'POST' | 'PATCH' | 'DELETE'
  readonly path?: string
  readonly body?: object
}

const send = async ({ method = 'POST', path = '', body, id }: Ask): Promise<string> => {
  const suffix = id === undefined ? '' : `/${id}`
  return wordsOf(await ada.send(method, `/v1/storages${suffix}${path}`, body === undefined ? {} : { body }))
}

const NEW: Spec = { zone: 'eu-1-a', sizeGibibytes: 2 }
const full = (spec: Spec) => ({ title: '', tier: 'standard', isBoot: false, labels: {}, isProtected: false, ...spec })
const objectOf = (spec: Spec, metadata: object = {}) => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Storage',
  metadata: { name: newUuid(systemRandom), namespace: world.namespace, ...metadata },
  spec: full(spec),
})
const kubectlCreate = async (spec: Spec) =>
  (await world.ask('storages', 'CREATE', { object: objectOf({ ...NEW, ...spec }) })) ?? 'admitted'
const stored = async (id: string) =>
  (await cloud.admin.get(Storage, { namespace: world.namespace, name: id })) ?? expect.fail()
const kubectlUpdate = async (id: string, spec: object, metadata: object = {}) => {
  const oldObject = await stored(id)
  const object = {
    ...oldObject,
    metadata: { ...oldObject.metadata, ...metadata },
    spec: { ...oldObject.spec, ...spec },
  }
  return (
    (await world.ask('storages', 'UPDATE', { object: JSON.parse(JSON.stringify(object)), oldObject })) ?? 'admitted'
  )
}
const kubectlDelete = async (id: string) =>
  (await world.ask('storages', 'DELETE', { oldObject: await stored(id) })) ?? 'admitted'

/** One that is online, with what it holds. */
async function disk(
  { spec = {}, status = {} }: { readonly spec?: Spec; readonly status?: Partial<StorageStatus> } = {},
  server?: string,
): Promise<string> {
  const id = await world.storage({ spec: { ...spec, ...defined({ serverId: server }) }, status })
  const claim = { accountId: ada.accountId, storageId: id, zone: spec.zone ?? cloud.zone, sizeGibibytes: 2 }
  if (spec.isBoot !== true && claim.zone === cloud.zone)
    await cloud.db.transaction().execute(async (tx) => {
      await claimStorage(tx, claim, new Date('2026-01-01'))
      if (server !== undefined) await attachStorage(tx, { ...claim, serverId: server, volume: id })
    })
  return id
}

/** One that has room on a host. */
async function server(spec: Partial<ServerSpec> = {}, status: Partial<ServerStatus> = {}): Promise<string> {
  const id = await world.server('stopped', 'stopped', { spec, status })
  const claim = { accountId: ada.accountId, serverId: id, hostname: `h${id}`.slice(0, 20), zone: cloud.zone }
  await cloud.db
    .transaction()
    .execute((tx) => claimServer(tx, { ...claim, ...ROOM }, { now: new Date('2026-01-01'), random: systemRandom }))
  return id
}

const UNREACHABLE: Partial<ServerStatus> = {
  conditions: [
    {
      type: 'HostReachable',
      status: 'False',
      reason: 'Silent',
      message: '',
      lastTransitionTime: '2026-01-01T00:00:00Z',
      observedGeneration: 1,
    },
  ],
}
const busy = (kind: OperationKind) => ({
  spec: { operation: stanza(kind) },
  status: { operation: undefined },
})

const created = (what: string, body: object | undefined, spec: Spec | undefined): Line => [
  `create ${what}`,
  body === undefined ? undefined : () => send({ body: { zone: 'eu-1-a', size_gibibytes: 2, ...body } }),
  spec === undefined ? undefined : () => kubectlCreate(spec),
]
/** The same of a storage as `arrange` makes it. */
const changed = (
  what: string,
  arrange: () => Promise<string>,
  ask: Ask | undefined,
  spec: object | undefined,
): Line => [
  what,
  ask === undefined ? undefined : async () => send({ id: await arrange(), ...ask }),
  spec === undefined ? undefined : async () => kubectlUpdate(await arrange(), spec),
]
const detached = (what: string, arrange: () => Promise<string>, body: object = {}): Line =>
  changed(`detach ${what}`, arrange, { path: '/detach', body }, { serverId: undefined })
const resized = (what: string, arrange: () => Promise<string>, size = 4): Line =>
  changed(`resize ${what}`, arrange, { path: '/resize', body: { size_gibibytes: size } }, { sizeGibibytes: size })
const attached = (what: string, arrange: () => Promise<string>, to: () => Promise<string>): Line => [
  `attach ${what}`,
  async () => send({ id: await arrange(), path: '/attach', body: { server_id: await to() } }),
  async () => kubectlUpdate(await arrange(), { serverId: await to() }),
]
const updated = (what: string, body: object, spec: object | undefined, of: Spec = {}): Line =>
  changed(`update ${what}`, () => disk({ spec: of }), { method: 'PATCH', body }, spec)
const deleted = (what: string, arrange: () => Promise<string>): Line => [
  `delete ${what}`,
  async () => send({ id: await arrange(), method: 'DELETE' }),
  async () => kubectlDelete(await arrange()),
]

const UNKNOWN = '00000000-0000-4000-8000-000000000000'
const STATES = ['creating', 'restoring', 'error'] as const

const LINES: readonly Line[] = [
  created('', {}, {}),
  created('with another size than has any', { size_gibibytes: 16_385 }, { sizeGibibytes: 16_385 }),
  created('with a title of no form', { title: 'a\u0007' }, { title: 'a\u0007' }),
  created('with labels of no form', { labels: { 'a b': '' } }, { labels: { 'a b': '' } }),
  created('with a schedule of no form', { backup_schedule: 'now' }, { backupSchedule: 'now' }),
  created(
    'with a schedule in a zone without backups',
    { zone: BARE_ZONE, backup_schedule: '30 3 * * *' },
    { zone: BARE_ZONE, backupSchedule: '30 3 * * *' },
  ),
  created('in no zone', { zone: 'eu-9' }, { zone: 'eu-9' }),
  created('in a closed zone', { zone: CLOSED_ZONE }, { zone: CLOSED_ZONE }),
  created('in a zone without room', { zone: COPY_ZONE }, { zone: COPY_ZONE }),
  created('without a zone', { zone: undefined }, undefined),
  created('without a size', { size_gibibytes: undefined }, undefined),
  created('to boot from', undefined, { isBoot: true, serverId: UNKNOWN }),
  created('from a template', undefined, { source: { kind: 'template', id: 'tiny-linux' } }),
  created('from two sources', { source_backup_id: UNKNOWN, source_snapshot_id: UNKNOWN }, undefined),
  ...(['backup', 'snapshot', 'storage'] as const).map((kind) =>
    created(`from no ${kind}`, { [`source_${kind}_id`]: UNKNOWN }, { source: { kind, id: UNKNOWN } }),
  ),
  created('from no image', undefined, { source: { kind: 'image', id: UNKNOWN } }),
  ...[
    ['of another zone', { zone: BARE_ZONE }, { zone: BARE_ZONE }] as const,
    ['of a larger size', { size_gibibytes: 1 }, { sizeGibibytes: 1 }] as const,
  ].map(
    ([what, body, spec]): Line => [
      `create from a storage ${what}`,
      async () => send({ body: { ...body, source_storage_id: await disk() } }),
      async () => kubectlCreate({ ...spec, source: { kind: 'storage', id: await disk() } }),
    ],
  ),
  [
    'create from a storage in error',
    async () => send({ body: { source_storage_id: await disk({ status: { state: 'error' } }) } }),
    async () => kubectlCreate({ source: { kind: 'storage', id: await disk({ status: { state: 'error' } }) } }),
  ],
  created('for a server that is not there', { server_id: UNKNOWN }, { serverId: UNKNOWN }),
  [
    'create for a server of another zone',
    async () => send({ body: { zone: 'eu-1-a', size_gibibytes: 2, server_id: await server({ zone: BARE_ZONE }) } }),
    async () => kubectlCreate({ serverId: await server({ zone: BARE_ZONE }) }),
  ],
  [
    'create for a server whose host does not answer',
    async () => send({ body: { zone: 'eu-1-a', size_gibibytes: 2, server_id: await server({}, UNREACHABLE) } }),
    async () => kubectlCreate({ serverId: await server({}, UNREACHABLE) }),
  ],
  created('with an operation', undefined, { operation: stanza('storage.create') }),
  created('with copies in no zone', undefined, { backupCopyZone: 'eu-9' }),

  attached('', disk, server),
  attached('one that is attached', async () => disk({}, await server()), server),
  attached('one that is busy', () => disk(busy('storage.resize')), server),
  ...STATES.map((state) => attached(`one that is ${state}`, () => disk({ status: { state } }), server)),
  attached('to a server of another zone', disk, () => server({ zone: BARE_ZONE })),
  attached('to a server whose host does not answer', disk, () => server({}, UNREACHABLE)),
  attached('to a server that is not there', disk, async () => UNKNOWN),
  attached('to a server without room', disk, () => world.server('stopped', 'stopped')),
  changed(
    'attach one that is not there',
    async () => UNKNOWN,
    { path: '/attach', body: { server_id: UNKNOWN } },
    undefined,
  ),

  detached('', async () => disk({}, await server())),
  detached('one that is attached to none', disk),
  detached('one that is busy', async () => disk(busy('storage.resize'), await server())),
  detached('by force one that is busy', async () => disk(busy('storage.resize'), await server()), { force: true }),
  detached('one that is being detached', () => disk({ ...busy('storage.detach'), status: { serverId: 'a' } })),
  detached(
    'by force one that is being detached',
    () => disk({ ...busy('storage.detach'), status: { serverId: 'a' } }),
    {
      force: true,
    },
  ),
  detached('a boot storage', async () => disk({ spec: { isBoot: true } }, await server())),

  resized('', disk),
  resized('to the same size', disk, 2),
  resized('to a smaller size', disk, 1),
  resized('to another size than has any', disk, 16_385),
  resized('to a size that its host has no room for', disk, 16_000),
  resized('one that is busy', () => disk(busy('storage.attach'))),
  ...STATES.map((state) => resized(`one that is ${state}`, () => disk({ status: { state } }))),
  resized('a boot storage', async () => disk({ spec: { isBoot: true } }, await server())),
  resized('a boot storage to the same size', async () => disk({ spec: { isBoot: true } }, await server()), 2),

  updated('nothing', {}, {}),
  updated('the title', { title: 'b' }, { title: 'b' }),
  updated('the title, of no form', { title: 'a\u0007' }, { title: 'a\u0007' }),
  updated('labels', { labels: { a: 'b' } }, { labels: { a: 'b' } }),
  updated('labels, of no form', { labels: { 'a b': '' } }, { labels: { 'a b': '' } }),
  updated('protection', { is_protected: true }, { isProtected: true }),
  updated('retention', { backup_retention_days: 3 }, { backupRetentionDays: 3 }),
  updated('the schedule', { backup_schedule: '30 3 * * *' }, { backupSchedule: '30 3 * * *' }),
  updated('the schedule, of no form', { backup_schedule: 'now' }, { backupSchedule: 'now' }),
  updated(
    'the schedule in a zone without backups',
    { backup_schedule: '30 3 * * *' },
    { backupSchedule: '30 3 * * *' },
    {
      zone: BARE_ZONE,
    },
  ),
  updated('copies', { backup_copy_zone: COPY_ZONE }, { backupCopyZone: COPY_ZONE }),
  ...[
    ['in no zone', 'eu-9'],
    ['in its own zone', 'eu-1-a'],
    ['in another region', FAR_ZONE],
    ['in a zone without backups', BARE_ZONE],
  ].map(([what, zone]) => updated(`copies ${what}`, { backup_copy_zone: zone }, { backupCopyZone: zone })),
  changed('update one that is not there', async () => UNKNOWN, { method: 'PATCH', body: { title: 'b' } }, undefined),
  changed('change whether it boots', disk, undefined, { isBoot: true, serverId: 'a' }),
  changed('change the tier', disk, undefined, { tier: 'local-nvme' }),
  changed('change the zone', disk, undefined, { zone: BARE_ZONE }),
  changed('change the operation', disk, undefined, { operation: stanza('storage.attach') }),
  [
    'change the note',
    undefined,
    async () => kubectlUpdate(await disk(), {}, { annotations: { [LAST_CHANGE_ANNOTATION]: 'x' } }),
  ],
  [
    'take away the finalizer',
    undefined,
    async () => {
      const id = await disk()
      const oldObject = await stored(id)
      const finalizers = [finalizerOf(Storage)]
      return (
        (await world.ask('storages', 'UPDATE', {
          object: oldObject,
          oldObject: { ...oldObject, metadata: { ...oldObject.metadata, finalizers } },
        })) ?? 'admitted'
      )
    },
  ],

  deleted('', disk),
  deleted('one that is protected', () => disk({ spec: { isProtected: true } })),
  deleted('one that is attached', async () => disk({}, await server())),
  deleted('a boot storage', async () => disk({ spec: { isBoot: true } }, await server())),
  deleted('one that is busy', () => disk(busy('storage.resize'))),
  deleted('one that is being made', () => disk({ spec: busy('storage.create').spec, status: { state: 'creating' } })),
  deleted('one that is restoring', () => disk({ status: { state: 'restoring' } })),
]

test('every change of a storage is refused in the same words as before', { timeout: 120_000 }, () =>
  expectGolden('storage.txt', LINES),
)
