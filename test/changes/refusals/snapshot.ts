import { claimSnapshot } from '../../../db/snapshot/index.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { Snapshot } from '../../../resources/snapshot/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import { busy, disk, server, UNKNOWN } from '../fixtures.ts'
import { asking, type Given, type Row, type Table } from '../refusals.ts'

const { create, edit, remove, request, ofPlatform } = asking('/storages/:it/snapshots', { storageId: ':it', title: '' })
const kubectlOnly = { rest: false } as const
/** A snapshot of the storage by both; the storage is in the path of REST. */
const take = (what: string, given: Given = disk(), spec: object = {}): Row => ({
  ...create(what, { ...spec }, { given }),
  rest: { method: 'POST', path: '/storages/:it/snapshots', body: spec },
})
/** A snapshot of a storage that is there. */
const snapshot =
  (spec: object = {}): Given =>
  async (scene) => {
    const [snapshotId, storageId] = [newUuid(systemRandom), await disk()(scene)]
    const claimed = { accountId: scene.accountId, snapshotId, storageId, bootServerId: undefined, isShared: false }
    await scene.claim((tx) => claimSnapshot(tx, { ...claimed, sizeGibibytes: 2 }))
    const status = { state: 'online', sizeGibibytes: 2, isFrozen: false }
    return scene.put(Snapshot, snapshotId, { storageId, title: '', labels: {}, ...spec }, status)
  }
/** A storage is made from it. */
const cloned: Given = async (scene) => {
  const id = await snapshot()(scene)
  const spec = { zone: 'eu-1-a', title: '', sizeGibibytes: 2, tier: 'standard', isBoot: false, labels: {} }
  await scene.put(Storage, newUuid(systemRandom), { ...spec, source: { kind: 'snapshot', id } })
  return id
}
/** What a server booted from before it was rebuilt. */
const left: Given = async (scene) => {
  const serverId = await server()(scene)
  return disk({ spec: { isBoot: true, serverId } })(scene)
}
const removed = (what: string, given: Given): Row => ({
  ...remove(what, 'it'),
  given,
  rest: { method: 'DELETE', path: '/snapshots/:it' },
})

export const TABLE: Table = {
  resource: Snapshot,
  async arrange(scene) {
    scene.ids['plain'] = await snapshot()(scene)
    scene.ids['it'] = await disk()(scene)
  },
  rows: [
    take(''),
    create('before its storage', { storageId: UNKNOWN }, kubectlOnly),
    { ...request('create of one that is not there', 'POST', '', {}), given: async () => UNKNOWN },
    take('of one that is being deleted', disk({}, { isDeleting: true })),
    take('of one in error', disk({ status: { state: 'error' } })),
    take('of one that is busy', disk(busy('storage.resize'))),
    take('of a tier that has none', disk({ spec: { tier: 'local-nvme' } })),
    take('of what a server boots from no longer', left),
    take('with a title that nobody can read', disk(), { title: 'a\u0007' }),
    take('with labels of no form', disk(), { labels: { 'a b': '' } }),
    { ...take('without room in the quota'), lacks: 'quota' },
    create('without credit', { storageId: UNKNOWN }, { ...kubectlOnly, lacks: 'credit' }),
    create('that keeps no storage', { restoredBackupId: UNKNOWN }, kubectlOnly),
    create('that goes by itself', { expiresAt: '2026-01-01T00:00:00Z' }, kubectlOnly),
    ...ofPlatform('plain', 'snapshot.create'),
    ...Object.entries({ storageId: 'other', title: 'b', labels: { a: 'b' } }).map(([field, value]) =>
      edit(`change ${field}`, 'plain', { spec: { [field]: value } }),
    ),
    removed('one that a storage is being made from', cloned),
    removed('one that is busy', snapshot(busy('snapshot.delete').spec)),
    removed('one that is not there', async () => UNKNOWN),
    removed('', snapshot()),
  ],
}
