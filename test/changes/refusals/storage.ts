import { Storage } from '../../../resources/storage/index.ts'
import type { ServerStatus } from '../../../resources/server/index.ts'
import { backup, busy, disk, type Disk, server, UNKNOWN } from '../fixtures.ts'
import { asking, differing, type Given, type Row, type Table, WHY } from '../refusals.ts'

const zone = 'eu-1-a'
const SCHEDULE = '30 3 * * *'
const { create, change, remove, edit, request, ofPlatform, creationNeeds } = asking('/storages', {
  zone,
  sizeGibibytes: 2,
})
/** Both, the server under the name `server`. */
const both =
  (storage: Given, made: Given): Given =>
  async (scene) => {
    scene.ids['server'] = await made(scene)
    return storage(scene)
  }
const DETACHING: Disk = { ...busy('storage.detach'), status: { serverId: 'a' } }
const SILENT: Partial<ServerStatus> = {
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
/** Of four fields, more than hourly, at no hour, on a day that never comes. */
const SCHEDULES = ['3 * * *', '*/30 * * * *', '0 24 * * *', '0 3 30 2 *']
const STATES = ['creating', 'restoring', 'error'] as const

const attach = (what: string, storage: Given = disk(), made = server()): Row =>
  change(
    `attach ${what}`.trim(),
    'it',
    { serverId: ':server' },
    { method: 'POST', suffix: '/attach', rest: { server_id: ':server' }, given: both(storage, made) },
  )
const detach = (what: string, given: Given, rest: object = {}): Row =>
  change(
    `detach ${what}`.trim(),
    'it',
    { serverId: undefined },
    { method: 'POST', suffix: '/detach', rest: { ...rest }, given },
  )
const resize = (what: string, given: Given, sizeGibibytes = 4): Row => {
  const rest = { size_gibibytes: sizeGibibytes }
  return change(`resize ${what}`.trim(), 'it', { sizeGibibytes }, { method: 'POST', suffix: '/resize', rest, given })
}
const update = (what: string, spec: object, given = disk()): Row =>
  change(`update ${what}`, 'it', { ...spec }, { given })
/** REST names what it is made from by kind. */
const from = (what: string, kind: string, id: string, given: Given | undefined, spec: object = {}): Row =>
  create(
    `from ${what}`,
    { ...spec },
    {
      rest: { [`source_${kind}_id`]: id, ...('zone' in spec ? {} : { zone: undefined }) },
      kubectl: { source: { kind, id } },
      given,
    },
  )
const forServer = (what: string, made: Given): Row =>
  create(`for ${what}`, { serverId: ':server' }, { given: both(disk(), made) })
const removed = (what: string, given: Given): Row => remove(what, 'it', { given })

export const TABLE: Table = {
  resource: Storage,
  async arrange(scene) {
    scene.ids['plain'] = await disk()(scene)
    scene.ids['ready'] = await server()(scene)
  },
  rows: [
    create(''),
    create('with another size than has any', { sizeGibibytes: 16_385 }),
    create('with a title of no form', { title: 'a\u0007' }),
    create('with labels of no form', { labels: { 'a b': '' } }),
    create('with a schedule of no form', { backupSchedule: 'now' }),
    create('with a schedule in a zone without backups', { zone: 'bare', backupSchedule: SCHEDULE }),
    create('in no zone', { zone: 'nowhere' }),
    create('in a closed zone', { zone: 'closed' }),
    create('in a zone without room', { zone: 'copies' }),
    create('without a zone', { zone: undefined }),
    create('without a size', { sizeGibibytes: undefined }),
    create('to boot from', { isBoot: true, serverId: UNKNOWN }, { rest: false }),
    create('from a template', { source: { kind: 'template', id: 'tiny-linux' } }, { rest: false }),
    create(
      'from two sources',
      {},
      { rest: { source_backup_id: UNKNOWN, source_snapshot_id: UNKNOWN }, kubectl: false },
    ),
    ...['backup', 'snapshot', 'storage'].map((kind) => from(`no ${kind}`, kind, UNKNOWN, undefined, { zone })),
    create('from no image', { source: { kind: 'image', id: UNKNOWN } }, { rest: false }),
    from('a storage of another zone', 'storage', ':it', disk(), { zone: 'bare' }),
    from('a storage of a larger size', 'storage', ':it', disk(), { sizeGibibytes: 1 }),
    from('a storage in error', 'storage', ':it', disk({ status: { state: 'error' } })),
    ...[
      ['one that is being deleted', {}, { isDeleting: true }] as const,
      ['one that is being made', { status: { state: 'creating' } }] as const,
      ['one in error', { status: { state: 'error' } }] as const,
      ['one that did not verify', { status: { verificationError: 'm/b is missing.' } }] as const,
      ['one of a zone without a place for backups', { status: { zone: 'bare' } }] as const,
    ].map(([what, made, more]) => from(`a backup, ${what}`, 'backup', ':it', backup(made, more))),
    from('a backup, in another zone', 'backup', ':it', backup(), { zone: 'bare' }),
    from('a backup, smaller than it', 'backup', ':it', backup(), { sizeGibibytes: 1 }),
    from('a backup', 'backup', ':it', backup()),
    ...SCHEDULES.map((backupSchedule) => create(`with the schedule ${backupSchedule}`, { backupSchedule })),
    ...[0, 366, 1.5].map((backupRetentionDays) =>
      create(`kept for ${backupRetentionDays} days`, { backupRetentionDays }),
    ),
    create('for a server that is not there', { serverId: UNKNOWN }, { differs: WHY.pending }),
    forServer('a server of another zone', server({ spec: { zone: 'bare' } })),
    forServer('a server whose host does not answer', server({ status: SILENT })),
    create('with copies in no zone', { backupCopyZone: 'nowhere' }, { rest: false }),
    ...creationNeeds('address', 'credit', 'quota'),
    ...ofPlatform('plain', 'storage.attach'),

    attach(''),
    attach('one that is attached', disk({}, { isAttached: true })),
    attach('one that is busy', disk(busy('storage.resize'))),
    ...STATES.map((state) => attach(`one that is ${state}`, disk({ status: { state } }))),
    attach('to a server of another zone', disk(), server({ spec: { zone: 'bare' } })),
    attach('to a server whose host does not answer', disk(), server({ status: SILENT })),
    ...differing(
      'the webhook leaves an unknown server to the claim, which finds no room for it',
      attach('to a server that is not there', disk(), async () => UNKNOWN),
    ),
    attach('to a server without room', disk(), server({ hasRoom: false })),
    request('attach one that is not there', 'POST', `/${UNKNOWN}/attach`, { server_id: UNKNOWN }),

    detach('', disk({}, { isAttached: true })),
    ...differing(
      WHY.unchanged,
      detach('one that is attached to none', disk()),
      detach('one that is being detached', disk(DETACHING)),
      resize('to the same size', disk(), 2),
      resize('a boot storage to the same size', disk({ spec: { isBoot: true } }, { isAttached: true }), 2),
    ),
    detach('one that is busy', disk(busy('storage.resize'), { isAttached: true })),
    detach('by force one that is busy', disk(busy('storage.resize'), { isAttached: true }), { force: true }),
    detach('by force one that is being detached', disk(DETACHING), { force: true }),
    ...differing(
      'the schema of the kind requires the server of a boot storage',
      detach('a boot storage', disk({ spec: { isBoot: true } }, { isAttached: true })),
    ),

    resize('', disk()),
    resize('to a smaller size', disk(), 1),
    resize('to another size than has any', disk(), 16_385),
    resize('to a size that its host has no room for', disk(), 16_000),
    resize('one that is busy', disk(busy('storage.attach'))),
    ...STATES.map((state) => resize(`one that is ${state}`, disk({ status: { state } }))),
    ...differing(
      'the spec of its server has the size of a boot storage too: only the API writes both',
      resize('a boot storage', disk({ spec: { isBoot: true } }, { isAttached: true })),
    ),

    update('nothing', {}),
    update('the title', { title: 'b' }),
    update('the title, of no form', { title: 'a\u0007' }),
    update('labels', { labels: { a: 'b' } }),
    update('labels, of no form', { labels: { 'a b': '' } }),
    update('protection', { isProtected: true }),
    update('retention', { backupRetentionDays: 3 }),
    update('the schedule', { backupSchedule: SCHEDULE }),
    update('the schedule, of no form', { backupSchedule: 'now' }),
    update('the schedule in a zone without backups', { backupSchedule: SCHEDULE }, disk({ spec: { zone: 'bare' } })),
    ...SCHEDULES.map((backupSchedule) => update(`the schedule to ${backupSchedule}`, { backupSchedule })),
    ...[0, 366, 1.5].map((backupRetentionDays) =>
      update(`retention to ${backupRetentionDays} days`, { backupRetentionDays }),
    ),
    update('copies of a zone without backups', { backupCopyZone: 'copies' }, disk({ spec: { zone: 'bare' } })),
    update(
      'no schedule and days in a zone without backups',
      { backupSchedule: undefined, backupRetentionDays: 365 },
      disk({ spec: { zone: 'bare' } }),
    ),
    update('copies', { backupCopyZone: 'copies' }),
    update('copies in no zone', { backupCopyZone: 'nowhere' }),
    update('copies in its own zone', { backupCopyZone: zone }),
    update('copies in another region', { backupCopyZone: 'far' }),
    update('copies in a zone without backups', { backupCopyZone: 'bare' }),
    request('update one that is not there', 'PATCH', `/${UNKNOWN}`, { title: 'b' }),
    edit('attach and resize', 'plain', { spec: { serverId: ':ready', sizeGibibytes: 3 } }),
    { ...edit('attach without credit', 'plain', { spec: { serverId: ':ready' } }), lacks: 'credit' },
    { ...edit('resize without credit', 'plain', { spec: { sizeGibibytes: 3 } }), lacks: 'credit' },
    edit('change whether it boots', 'plain', { spec: { isBoot: true, serverId: 'a' } }),
    edit('change the tier', 'plain', { spec: { tier: 'local-nvme' } }),
    edit('change the zone', 'plain', { spec: { zone: 'bare' } }),

    removed('', disk()),
    removed('one that is protected', disk({ spec: { isProtected: true } })),
    removed('one that is attached', disk({}, { isAttached: true })),
    removed('a boot storage', disk({ spec: { isBoot: true } }, { isAttached: true })),
    ...differing(WHY.deletionWaits, removed('one that is busy', disk(busy('storage.resize')))),
    removed('one that is being made', disk({ ...busy('storage.create'), status: { state: 'creating' } })),
    removed('one that is restoring', disk({ status: { state: 'restoring' } })),
  ],
}
