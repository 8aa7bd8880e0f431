import { Backup } from '../../../resources/backup/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { backup, busy, disk, MACHINE, readByImage, server, UNKNOWN } from '../fixtures.ts'
import { asking, differing, type Given, type Row, type Table, WHY } from '../refusals.ts'

const OVER = '2026-01-01T00:00:00Z'
const FUTURE = '2099-01-01T00:00:00Z'
const { create, change, remove, request, ofPlatform } = asking('/storages/:it/backups', {
  storageId: ':it',
  title: '',
  kind: 'manual',
})
/** A backup of the storage by both; the storage is in the path of REST. */
const backUp = (what: string, given: Given = disk(), spec: object = {}, body: object = spec): Row => {
  const row = create(what, { ...spec }, { given })
  return { ...row, rest: { method: 'POST', path: '/storages/:it/backups', body: snakeOf(body) } }
}
const snakeOf = ({ expiresAt, ...body }: { readonly expiresAt?: unknown }) =>
  expiresAt === undefined ? body : { ...body, expires_at: expiresAt }
const kubectlOnly = { rest: false } as const
const verb = (name: 'restore' | 'verify', what: string, given: Given, body: object = {}): Row => ({
  what: `${name} ${what}`.trim(),
  given,
  rest: { method: 'POST', path: `/backups/:it/${name}`, body },
})
/** Of a storage that is made for it. */
const ofDisk =
  (storage: Given, spec: object = {}): Given =>
  async (scene) =>
    backup({ spec: { ...spec, storageId: await storage(scene) } })(scene)
const atServer =
  (state: 'started' | 'stopped', desiredPower: 'running' | 'stopped'): Given =>
  async (scene) =>
    disk({ spec: { serverId: await server({ spec: { desiredPower }, status: { state } })(scene) } })(scene)
const readBy =
  (state: 'creating' | 'online'): Given =>
  async (scene) => {
    const id = await backup()(scene)
    const spec = { zone: 'eu-1-a', title: '', sizeGibibytes: 2, tier: 'standard', isBoot: false, labels: {} }
    await scene.put(Storage, newUuid(systemRandom), { ...spec, source: { kind: 'backup', id } }, { state })
    return id
  }
const edited = (what: string, spec: object, given: Given = backup()): Row => ({
  ...change(what, 'it', { ...spec }, kubectlOnly),
  given,
})
const removed = (what: string, given: Given): Row => ({
  ...remove(what, 'it'),
  given,
  rest: { method: 'DELETE', path: '/backups/:it' },
})
const DAMAGED = { status: { verificationError: 'm/b is missing.' } }

export const TABLE: Table = {
  resource: Backup,
  async arrange(scene) {
    scene.ids['plain'] = await backup()(scene)
    scene.ids['it'] = await disk()(scene)
  },
  rows: [
    backUp(''),
    { ...request('create of one that is not there', 'POST', '', {}), given: async () => UNKNOWN },
    create('before its storage', { storageId: UNKNOWN, expiresAt: FUTURE }, kubectlOnly),
    ...differing(
      WHY.pending,
      backUp('of one that is being deleted', disk({}, { isDeleting: true })),
      ...(['creating', 'error', 'restoring'] as const).map((state) =>
        backUp(`of one that is ${state}`, disk({ status: { state } })),
      ),
    ),
    backUp('of one in a zone without a place for backups', disk({ spec: { zone: 'bare' } })),
    ...differing(
      WHY.pending,
      backUp('of one that is being backed up', async (scene) => {
        const storageId = await disk()(scene)
        await backup({ spec: { storageId, ...busy('storage.backup').spec }, status: { state: 'creating' } })(scene)
        return storageId
      }),
    ),
    ...differing(
      WHY.hiddenMachine,
      backUp('of a machine', async () => MACHINE),
    ),
    create('in another zone', { storageId: UNKNOWN, zone: 'bare' }, kubectlOnly),
    backUp('that expires in the past', disk(), { expiresAt: OVER }),
    backUp('that expires at no instant', disk(), { expiresAt: 'soon' }),
    backUp('with a title that is too long', disk(), { title: 'x'.repeat(256) }),
    backUp('with a title that nobody can read', disk(), { title: 'a\u0007b' }),
    ...differing(
      'only the body of REST has the field',
      backUp('with a field that is none', disk(), {}, { full: true }),
    ),
    { ...backUp('without room in the quota'), lacks: 'quota' },
    { ...backUp('without room in the quota of backups'), lacks: 'quota', quota: 'backups' },
    create('without credit', { storageId: UNKNOWN }, { ...kubectlOnly, lacks: 'credit' }),
    create('as a copy', { copyOf: { name: UNKNOWN, zone: 'bare' } }, kubectlOnly),
    create('as a scheduled one', { kind: 'scheduled' }, kubectlOnly),
    ...ofPlatform('plain', 'storage.backup'),

    ...(['restore', 'verify'] as const).flatMap((name) => [
      verb(name, 'one that is being made', backup({ status: { state: 'creating' } })),
      verb(name, 'one in error', backup({ status: { state: 'error' } })),
      verb(name, 'one that is being deleted', backup({}, { isDeleting: true })),
      verb(name, 'one that is busy', backup(busy('backup.restore'))),
      verb(name, 'one that is not there', async () => UNKNOWN),
      verb(name, '', backup()),
    ]),
    verb('restore', 'to a storage that is not there', backup({ spec: { storageId: UNKNOWN } })),
    verb('restore', 'to one that is being deleted', ofDisk(disk({}, { isDeleting: true }))),
    ...(['creating', 'error', 'restoring'] as const).map((state) =>
      verb('restore', `to one that is ${state}`, ofDisk(disk({ status: { state } }))),
    ),
    verb('restore', 'to one that is busy', ofDisk(disk(busy('storage.resize')))),
    verb('restore', 'to one in another zone', ofDisk(disk({ spec: { zone: 'bare' } }))),
    verb('restore', 'while its server runs', ofDisk(atServer('started', 'running'))),
    verb('restore', 'while its server is about to run', ofDisk(atServer('stopped', 'running'))),
    verb('restore', 'while its server is off', ofDisk(atServer('stopped', 'stopped'))),
    verb('restore', 'one that did not verify', backup(DAMAGED)),
    verb('restore', 'one that did not verify, by force', backup(DAMAGED), { force: true }),
    verb('restore', 'by a force that is none', backup(), { force: 'yes' }),
    verb(
      'restore',
      'to a storage that a restore left half-way',
      ofDisk(disk({ status: { state: 'error', restore: { backup: 'b', operationId: 'o' } } })),
    ),
    verb('restore', 'one that is being verified', ofDisk(disk(), busy('backup.verify').spec)),

    edited('describe', { title: 'new', expiresAt: FUTURE }),
    edited('describe with a title that nobody can read', { title: '\u0000' }),
    edited('describe with an expiry that is none', { expiresAt: 'soon' }),
    edited('change nothing', {}),
    edited('describe with an expiry that is over', { expiresAt: OVER }),
    edited('move', { zone: 'bare' }, backup({ spec: { zone: 'eu-1-a' } })),
    edited('change the storage', { storageId: 'other' }),
    edited('change the kind', { kind: 'scheduled' }),

    ...differing(WHY.deletedAgain, removed('one that is being deleted', backup({}, { isDeleting: true }))),
    ...differing(WHY.deletionWaits, removed('one that is being restored', backup(busy('backup.restore')))),
    removed('one that a storage is being made from', readBy('creating')),
    removed('one that a storage was made from', readBy('online')),
    removed('one that an image is being made from', readByImage(backup(), 'backupId')),
    removed('one in state deleting', backup({ status: { state: 'deleting' } })),
    removed('one in error', backup({ status: { state: 'error' } })),
    removed('one that is being verified', backup(busy('backup.verify'))),
    removed('one that is being made', backup({ ...busy('storage.backup'), status: { state: 'creating' } })),
    removed('one that is not there', async () => UNKNOWN),
  ],
}
