import { describe, expect, test } from 'vitest'
import { changesBetween, requireUntouched } from '../../changes/kit/judge.ts'
import { placeOfSource, resolveSource } from '../../changes/kit/source.ts'
import { storageChanges } from '../../changes/storage.ts'
import type { StorageFacts } from '../../domain/storage/rules.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import { Snapshot, type SnapshotSpec, type SnapshotStatus } from '../../resources/snapshot/index.ts'
import { Storage, type StorageSpec, type StorageStatus } from '../../resources/storage/index.ts'
import { worldWith } from './world.ts'

const SPEC: StorageSpec = {
  zone: 'z1',
  title: '',
  sizeGibibytes: 10,
  tier: 'standard',
  isBoot: false,
  labels: {},
  isProtected: false,
}
const FACTS: StorageFacts = {
  id: 'disk',
  state: 'online',
  isBoot: false,
  isProtected: false,
  isDeleting: false,
  serverId: undefined,
  sizeGibibytes: 10,
  activeOperation: undefined,
}

describe('the changes between two specs', () => {
  test.each<readonly [string, Partial<StorageSpec>, Partial<StorageSpec>, readonly string[]]>([
    ['nothing', {}, {}, []],
    ['a title and protection', {}, { title: 'b', isProtected: true }, ['describe']],
    ['a schedule and copies', {}, { backupSchedule: '30 3 * * *', backupCopyZone: 'z2' }, ['schedule', 'copy']],
    ['a first server', {}, { serverId: 'web' }, ['attach']],
    ['another server', { serverId: 'web' }, { serverId: 'other' }, ['attach']],
    ['no server', { serverId: 'web' }, {}, ['detach']],
    ['a larger size', {}, { sizeGibibytes: 11 }, ['resize']],
    ['a server and a larger size', {}, { serverId: 'web', sizeGibibytes: 11 }, ['attach', 'resize']],
    ['a larger boot disk', { isBoot: true }, { isBoot: true, sizeGibibytes: 11 }, ['growBoot', 'resize']],
    [
      'what only the platform changes',
      {},
      { isBoot: true, tier: 'local-nvme', zone: 'z2' },
      ['boot', 'move', 'follow'],
    ],
  ])('are, with %s', (_what, before, after, names) => {
    const made = changesBetween(storageChanges, { ...SPEC, ...before }, { ...SPEC, ...after })
    expect(made.map(({ name }) => name)).toEqual(names)
  })
})

/** Asks whether the change of that name is allowed. */
const ask = (name: string, facts: Partial<StorageFacts>, spec: Partial<StorageSpec> = {}, options = {}) => {
  const { allow } = storageChanges.changes.find((change) => change.name === name) ?? expect.fail(name)
  const subject = { accountId: 'acct', id: 'disk', spec: { ...SPEC, ...spec }, facts: { ...FACTS, ...facts }, options }
  return () => allow?.(subject, NOTHING)
}
const NOTHING = worldWith([])
const DETACHING = { serverId: 'web', activeOperation: { id: 'op', kind: 'storage.detach' } } as const

test.each<readonly [string, () => void, string]>([
  ['moved by its owner', ask('move', {}), 'operators move the storage'],
  ['made larger by kubectl when a server boots from it', ask('growBoot', {}), 'A boot storage grows through the API'],
  ['attached while it is attached', ask('attach', { serverId: 'web' }), 'attached to server web'],
  ['detached from nothing', ask('detach', {}), 'attached to no server'],
  ['detached twice', ask('detach', DETACHING), 'Another operation runs'],
  ['made smaller', ask('resize', {}, { sizeGibibytes: 9 }), 'sizeGibibytes: must be larger than 10'],
  ['scheduled where no backups are kept', ask('schedule', {}, { backupSchedule: '0 3 * * *' }), 'no place for backups'],
  ['copied to no zone', ask('copy', {}, { backupCopyZone: 'z9' }), 'backupCopyZone: there is no such zone'],
  [
    'filled from something else',
    () => requireUntouched(storageChanges, SPEC, { ...SPEC, source: { kind: 'backup', id: 'b' } }),
    'source: cannot be changed',
  ],
  [
    'named in signs of no form',
    () => storageChanges.readable?.({ ...SPEC, title: 'a\u0007' }),
    'title: must be printable',
  ],
])('a storage is never %s', (_what, work, sentence) => {
  expect(work).toThrow(sentence)
})

test('a storage can be detached by force while it is being detached', () => {
  expect(ask('detach', DETACHING, {}, { force: 'true' })).not.toThrow()
})

describe('a new storage', () => {
  const disk = (status: Partial<StorageStatus>): KubeObject<StorageSpec, StorageStatus> => ({
    apiVersion: 'svccloud.dev/v1alpha1',
    kind: 'Storage',
    metadata: { namespace: 'acct', name: 'disk' },
    spec: SPEC,
    status: { state: 'online', nodeName: 'n1', ...status },
  })
  const snapshot: KubeObject<SnapshotSpec, SnapshotStatus> = {
    apiVersion: 'svccloud.dev/v1alpha1',
    kind: 'Snapshot',
    metadata: { namespace: 'acct', name: 's1' },
    spec: { storageId: 'disk', title: '', labels: {} },
    status: { state: 'online', sizeGibibytes: 10 },
  }
  const reading = (status: Partial<StorageStatus> = {}) => ({
    namespace: 'acct',
    world: worldWith([
      [Storage, disk(status)],
      [Snapshot, snapshot],
    ]),
  })

  test('has the zone and the size of its source', () => {
    const demand = { source: { kind: 'snapshot', id: 's1' } as const, zone: undefined, sizeGibibytes: undefined }
    expect(resolveSource(reading(), demand)).toEqual({ zone: 'z1', sizeGibibytes: 10 })
  })

  test.each([
    ['anywhere', undefined, {}, {}],
    ['where backups can be read', { kind: 'backup', id: 'b' } as const, {}, { isFromBackup: true }],
    ['on the host of its snapshot', { kind: 'snapshot', id: 's1' } as const, {}, { nodes: ['n1'] }],
    ['anywhere, of a snapshot on shared storage', { kind: 'snapshot', id: 's1' } as const, { pool: 'p' }, {}],
    [
      'beside what it is a copy of',
      { kind: 'storage', id: 'disk' } as const,
      {},
      { nodes: ['n1'], copyOf: { storageId: 'disk', bootServerId: undefined, isShared: false } },
    ],
  ])('is made %s', (_where, source, status, place) => {
    expect(placeOfSource(reading(status), source)).toEqual(place)
  })

  test('waits for no source that is not there', () => {
    expect(() => placeOfSource(reading(), { kind: 'snapshot', id: 'none' })).toThrow('No such snapshot')
  })
})

test('a boot disk is as large as its server says, and its labels may change', () => {
  const large = { ...SPEC, sizeGibibytes: 20_000 }
  expect(() => storageChanges.readable?.(large)).toThrow('sizeGibibytes: must be at most 16384')
  expect(() => storageChanges.readable?.({ ...large, isBoot: true })).not.toThrow()
})
