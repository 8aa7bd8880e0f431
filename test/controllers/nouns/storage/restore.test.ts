/** What a restore makes of its storage, and what is remembered of one that ended half-way. */
import { expect, test } from 'vitest'
import type { Observed } from '../../../../controllers/nouns/storage/observed.ts'
import { plan } from '../../../../controllers/nouns/storage/plan.ts'
import type { RestoreObserved } from '../../../../controllers/nouns/storage/restore.ts'
import type { StorageObject } from '../../../../controllers/nouns/storage/volumes.ts'
import { defined } from '../../../../domain/defined.ts'
import type { StorageStatus } from '../../../../resources/storage/index.ts'

type Noted = StorageStatus['restore']
const storage = (restore: Noted): StorageObject => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Storage',
  metadata: { name: 'data', namespace: 'acct-1', uid: 's1' },
  spec: {
    zone: 'z1',
    title: '',
    sizeGibibytes: 3,
    tier: 'standard',
    isBoot: false,
    labels: {},
    isProtected: false,
    operation: { id: 'o0', kind: 'storage.create', requestedAt: '', deadlineAt: '', actor: '', requestId: '' },
  },
  status: {
    state: restore === undefined ? 'online' : 'error',
    operation: {
      id: 'o0',
      kind: 'storage.create',
      status: 'succeeded',
      step: 'attached',
      stepIndex: 2,
      stepCount: 3,
      createdAt: '2026-01-01T00:00:00Z',
      deadlineAt: '2026-01-01T00:00:00Z',
      actor: 'user:1',
      requestId: 'r0',
    },
    ...defined({ restore }),
  } as unknown as StorageStatus,
})
const world = (restore: RestoreObserved): Observed => ({
  accountId: '1',
  claim: { node: 'n1', zone: 'z1', sizeGibibytes: 3, phase: 'detached', isForced: false } as never,
  heldGibibytes: 3,
  node: 'n1',
  zone: 'z1',
  region: 'eu',
  volumes: [
    {
      apiVersion: 'svccloud.dev/v1alpha1',
      kind: 'Volume',
      metadata: { name: 's1', namespace: 'node-n1' },
      spec: { storage: { namespace: 'acct-1', name: 'data', uid: 's1' }, sizeGibibytes: 3 },
      status: { state: 'ready', sizeGibibytes: 3 },
    },
  ],
  usedOn: [],
  isGuestOff: true,
  pools: [],
  isInUse: false,
  restore,
})
const [first, second] = [
  { backup: 'b1', operationId: 'o1' },
  { backup: 'b2', operationId: 'o2' },
]

test.each<readonly [string, Noted, RestoreObserved, string, Noted]>([
  ['is online when nothing is restored', undefined, {}, 'online', undefined],
  ['notes a restore before it begins', undefined, { requested: first }, 'restoring', first],
  ['goes on restoring', first, { requested: first }, 'restoring', first],
  ['is online again when all of it was written', first, { outcome: 'succeeded' }, 'online', undefined],
  ['is online again when nothing was written', first, { outcome: 'untouched' }, 'online', undefined],
  ['is broken when a part was written', first, { outcome: 'failed' }, 'error', first],
  ['is broken when nobody knows any more', first, {}, 'error', first],
  ['is restored again', first, { requested: second, outcome: 'failed' }, 'restoring', { ...second, wasBroken: true }],
  ['was not broken by one that wrote nothing', first, { requested: second, outcome: 'untouched' }, 'restoring', second],
  [
    'stays broken when the next restore writes nothing',
    { ...second, wasBroken: true },
    { outcome: 'untouched' },
    'error',
    { ...second, wasBroken: true },
  ],
  ['is whole after the next restore', { ...second, wasBroken: true }, { outcome: 'succeeded' }, 'online', undefined],
])('%s', (_name, noted, observed, state, expected) => {
  const status = plan(storage(noted), world(observed), new Date(0)).find((action) => action.do === 'status')
  expect(status?.status).toMatchObject({ state })
  expect(status?.status['restore']).toEqual(expected)
})
