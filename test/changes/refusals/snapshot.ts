import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import type { ServerSpec } from '../../../resources/server/index.ts'
import { Snapshot } from '../../../resources/snapshot/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import { busy, disk, MACHINE, readByImage, server, snapshot, UNKNOWN } from '../fixtures.ts'
import { asking, differing, type Given, type Row, type Table, WHY } from '../refusals.ts'

const { create, edit, remove, request, ofPlatform } = asking('/storages/:it/snapshots', { storageId: ':it', title: '' })
const kubectlOnly = { rest: false } as const
/** A snapshot of the storage by both; the storage is in the path of REST. */
const take = (what: string, given: Given = disk(), spec: object = {}): Row => ({
  ...create(what, { ...spec }, { given }),
  rest: { method: 'POST', path: '/storages/:it/snapshots', body: spec },
})
/** A storage is made from it. */
const cloned: Given = async (scene) => {
  const id = await snapshot()(scene)
  const spec = { zone: 'eu-1-a', title: '', sizeGibibytes: 2, tier: 'standard', isBoot: false, labels: {} }
  await scene.put(Storage, newUuid(systemRandom), { ...spec, source: { kind: 'snapshot', id } })
  return id
}
/** What a server boots from; with a spec, or none where it boots from it no longer. */
const booted =
  (spec?: Partial<ServerSpec>): Given =>
  async (scene) => {
    const bootStorageId = newUuid(systemRandom)
    const serverId = await server({ spec: spec === undefined ? {} : { bootStorageId, ...spec } })(scene)
    const full = { zone: 'eu-1-a', title: '', sizeGibibytes: 2, tier: 'standard', isBoot: true, serverId, labels: {} }
    const online = { state: 'online', sizeGibibytes: 2, nodeName: scene.cloud.node }
    return scene.put(Storage, bootStorageId, full, online)
  }
/** The snapshot is in its own path. */
const described = (what: string, body: object, of = 'plain'): Row => ({
  ...edit(what, of, { spec: body }),
  rest: { method: 'PATCH', path: `/snapshots/:${of}`, body },
})
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
    ...differing(
      WHY.pending,
      take('of one that is being deleted', disk({}, { isDeleting: true })),
      ...(['creating', 'restoring', 'error'] as const).map((state) =>
        take(`of one that is ${state}`, disk({ status: { state } })),
      ),
      take('of one that is busy', disk(busy('storage.resize'))),
    ),
    ...differing(
      WHY.hiddenMachine,
      take('of a machine', async () => MACHINE),
    ),
    take('of one that has claimed nothing', disk({}, { isClaimed: false })),
    take('of a tier that has none', disk({ spec: { tier: 'local-nvme' } })),
    take('of what a server boots from no longer', booted()),
    take('of what a server boots from that is being rebuilt', booted(busy('server.rebuild').spec)),
    take('with a title that nobody can read', disk(), { title: 'a\u0007' }),
    take('with labels of no form', disk(), { labels: { 'a b': '' } }),
    { ...take('without room in the quota'), lacks: 'quota' },
    { ...take('without room in the quota of snapshots'), lacks: 'quota', quota: 'snapshots' },
    create('without credit', { storageId: UNKNOWN }, { ...kubectlOnly, lacks: 'credit' }),
    create('that keeps no storage', { restoredBackupId: UNKNOWN }, kubectlOnly),
    create('that goes by itself', { expiresAt: '2026-01-01T00:00:00Z' }, kubectlOnly),
    ...ofPlatform('plain', 'snapshot.create'),
    edit('change storageId', 'plain', { spec: { storageId: 'other' } }),
    described('title it so that nobody can read it', { title: 'a\u0007' }),
    described('label it with what is no label', { labels: { 'a b': '' } }),
    described('describe it', { title: 'b', labels: { a: 'b' } }),
    removed('one that a storage is being made from', cloned),
    removed('one that an image is being made from', readByImage(snapshot(), 'snapshotId')),
    ...differing(WHY.deletionWaits, removed('one that is busy', snapshot(busy('snapshot.delete')))),
    removed('one that is being made', snapshot({ ...busy('snapshot.create'), status: { state: 'creating' } })),
    ...differing(WHY.deletedAgain, removed('one that is being deleted', snapshot({}, { isDeleting: true }))),
    removed('one in state deleting', snapshot({ status: { state: 'deleting' } })),
    removed('one that is not there', async () => UNKNOWN),
    removed('', snapshot()),
  ],
}
