import { describe, expect, it } from 'vitest'
import { defined } from '../../../domain/defined.ts'
import type { Action } from '../../../kit/reconcile/action.ts'
import { planVolume, type VolumeObject, type ObservedVolume } from '../../../agents/node/volume/plan.ts'
import type { BytesEntry } from '../../../agents/node/ledger.ts'
import type { VolumeSpec, VolumeStatus } from '../../../resources/instance/index.ts'

const READY: ObservedVolume['image'] = {
  is: 'ready',
  image: { name: 'tiny-linux', version: '1', boot: { kernel: '/k', initialRamdisk: '/i', commandLine: '' } },
}
const held = { name: 'v', sizeGibibytes: 2, source: { name: 'tiny-linux', version: '1' } }
const template = { kind: 'template', name: 'tiny-linux' } as const
const copyFrom = { id: 'op-1', host: 'h', port: 1, secretName: 's' }
const mounted = { isMounted: true, hasVolume: false }

const bytes = (over: Partial<BytesEntry> = {}): BytesEntry => ({
  uid: 'u',
  state: 'made',
  madeFor: 'u',
  at: '2030-01-01T00:00:00Z',
  ...over,
})
const removedBefore = bytes({ state: 'removed' })
const snapshot = { name: 's1', sizeGibibytes: 1, isFrozen: false }

interface Row {
  readonly why: string
  readonly spec?: Partial<VolumeSpec>
  readonly isDeleting?: boolean
  readonly status?: VolumeStatus
  readonly observed?: Partial<ObservedVolume>
  readonly does: readonly string[]
}

function summaryOf(action: Action): string {
  if (action.do === 'effect') return [action.name, ...Object.values(action.input)].join(' ')
  if (action.do === 'status') {
    // as the plan writes it
    const { state, serving, isRemoved, lostSnapshots } = action.status as {
      state: string
      serving?: { id: string; port: number }
      isRemoved?: boolean
      lostSnapshots?: readonly string[]
    }
    if (isRemoved === true) return ['removed', ...(action.conditions ?? []).map(({ type }) => type)].join(' ')
    const parts = ['status', state, ...(serving === undefined ? [] : [serving.id, serving.port])]
    return [...parts, ...(lostSnapshots === undefined ? [] : ['lost', ...lostSnapshots])].join(' ')
  }
  return action.do === 'wait' ? `wait ${action.seconds}` : action.do
}

const rows: readonly Row[] = [
  {
    why: 'a copy of a snapshot that is lost is an error at once',
    spec: { source: { kind: 'snapshot', name: 's1', volume: 'v0' } },
    observed: { copy: { is: 'failed', reason: 'volume v0 has no snapshot s1', isFinal: true } },
    does: ['status error'],
  },
  {
    why: 'and one that failed otherwise is made anew',
    spec: { source: { kind: 'snapshot', name: 's1', volume: 'v0' } },
    observed: { copy: { is: 'failed', reason: 'no room' } },
    does: ['status creating', 'copySnapshot'],
  },
  {
    why: 'one that begins as a template is made of it',
    spec: { source: template },
    observed: { image: READY },
    does: ['create', 'wait 0'],
  },
  {
    why: 'and waits for it',
    spec: { source: template },
    observed: { image: { is: 'absent' } },
    does: ['status creating', 'prepare', 'wait 30'],
  },
  {
    why: 'a template that cannot be had is an error',
    spec: { source: template },
    observed: { image: { is: 'unavailable', reason: 'no apt' } },
    does: ['status error', 'prepare', 'wait 30'],
  },
  {
    why: 'one that begins as a custom image is made when that is on the host',
    spec: { source: { kind: 'image', name: 'acct-1.mine' } },
    observed: { customImage: { name: 'acct-1.mine', sizeGibibytes: 1, path: '/i' } },
    does: ['create', 'wait 0'],
  },
  {
    why: 'and waits until then',
    spec: { source: { kind: 'image', name: 'acct-1.mine' } },
    does: ['status creating', 'wait 30'],
  },
  {
    why: 'one that is filled while its guest moves begins empty',
    spec: { source: { kind: 'mirror', name: 'op-1' }, origin: held.source },
    does: ['create', 'wait 0'],
  },
  { why: 'one that is here is left alone', observed: { held }, does: ['status ready'] },
  { why: 'the ledger learns of it', observed: { held, bytes: undefined }, does: ['noteMade', 'wait 0'] },
  {
    why: 'and of one that was put back',
    observed: { held, bytes: removedBefore },
    status: { state: 'lost' },
    does: ['noteMade', 'wait 0'],
  },
  {
    why: 'one that was made once is lost, and no blank one is made',
    spec: { source: template },
    observed: { image: READY, bytes: bytes() },
    does: ['status lost'],
  },
  {
    why: 'also when only its object knows',
    spec: { source: template },
    observed: { image: READY },
    status: { state: 'ready', sizeGibibytes: 2 },
    does: ['status lost'],
  },
  { why: 'it stays so', observed: {}, status: { state: 'lost' }, does: ['status lost'] },
  {
    why: 'so is one that was deleted, also for another object of its name',
    spec: { source: template },
    observed: { image: READY, bytes: bytes({ uid: 'u0', madeFor: 'u0', state: 'removed' }) },
    does: ['status lost'],
  },
  {
    why: 'but its data may come back from another host',
    spec: { source: { kind: 'mirror', name: 'op-2' }, origin: held.source },
    observed: { bytes: bytes({ uid: 'u0', madeFor: 'u0', state: 'removed' }) },
    does: ['create', 'wait 0'],
  },
  {
    why: 'and once only',
    spec: { source: { kind: 'copy', name: 'op-1' }, copyFrom },
    observed: { bytes: bytes() },
    does: ['status lost'],
  },
  {
    why: 'what was begun and never whole is begun again',
    spec: { source: template },
    observed: { image: READY, bytes: { uid: 'u', state: 'making', at: '2030-01-01T00:00:00Z' } },
    does: ['create', 'wait 0'],
  },
  {
    why: 'one whose server has gone on elsewhere with newer data is lost',
    observed: { held, isSuperseded: true },
    does: ['status lost'],
  },
  {
    why: 'one that another host was given after this state of its object is not used',
    observed: { held, isOlderThanServing: true },
    does: ['status lost'],
  },
  {
    why: 'one that is served no longer, and is still here, counts again',
    observed: { held, bytes: bytes({ served: { id: 'op-1', generation: 2 } }) },
    does: ['keep', 'wait 0'],
  },
  {
    why: 'but not by an object that a cache has of before',
    observed: { held, bytes: bytes({ served: { id: 'op-1', generation: 4 } }) },
    does: ['status ready'],
  },
  {
    why: 'the disk of another object of the name stays',
    spec: { sizeGibibytes: 3 },
    observed: { held, bytes: bytes({ uid: 'u0' }) },
    does: ['status error'],
  },
  {
    why: 'also when this one goes',
    isDeleting: true,
    observed: { held, bytes: bytes({ uid: 'u0' }) },
    does: ['removed'],
  },
  {
    why: 'what a copy in a pool was whole before is taken over, and not copied again',
    spec: { source: { kind: 'copy', name: 'op-1' }, copyFrom, pool: 'p' },
    observed: { pool: { isMounted: true, hasVolume: true } },
    status: { state: 'ready' },
    does: ['adopt p', 'wait 0'],
  },
  {
    why: 'the ledger learns of the points in a disk',
    observed: { held, snapshots: [snapshot] },
    does: ['noteSnapshots s1', 'wait 0'],
  },
  {
    why: 'a point is taken',
    spec: { snapshots: [{ name: 's1', shall: 'be' }] },
    observed: { held },
    does: ['status ready', 'takeSnapshot s1', 'wait 0'],
  },
  {
    why: 'and never a second time, of what the disk has become',
    spec: { snapshots: [{ name: 's1', shall: 'be' }] },
    observed: { held, bytes: bytes({ snapshots: ['s1'] }) },
    does: ['status ready lost s1'],
  },
  {
    why: 'one that is too small grows',
    spec: { sizeGibibytes: 3 },
    observed: { held },
    does: ['status ready', 'grow', 'wait 0'],
  },
  {
    why: 'also under a guest, which sees it',
    spec: { sizeGibibytes: 3 },
    observed: { held, user: 'g' },
    does: ['status ready', 'grow', 'wait 0'],
  },

  {
    why: 'nothing is made in a pool that is not mounted',
    spec: { pool: 'p', source: template },
    observed: { image: READY, pool: { isMounted: false, hasVolume: false } },
    does: ['status creating', 'wait 30'],
  },
  {
    why: 'the first host makes it in the pool',
    spec: { pool: 'p', source: template },
    observed: { image: READY, pool: mounted },
    does: ['create', 'wait 0'],
  },
  {
    why: 'what lies there is taken over',
    spec: { pool: 'p', isRetained: true },
    observed: { pool: { isMounted: true, hasVolume: true } },
    does: ['adopt p', 'wait 0'],
  },
  {
    why: 'also by the host that made it and was interrupted',
    spec: { pool: 'p', source: template },
    observed: { image: READY, pool: { isMounted: true, hasVolume: true } },
    does: ['adopt p', 'wait 0'],
  },
  {
    why: 'what another host made is never made again',
    spec: { pool: 'p', isRetained: true, source: template },
    observed: { image: READY, pool: mounted },
    does: ['status creating', 'wait 30'],
  },
  {
    why: 'nor when it is this host that has it now',
    spec: { pool: 'p', origin: held.source },
    observed: { pool: mounted },
    does: ['status creating', 'wait 30'],
  },

  {
    why: 'a copy waits until it is served',
    spec: { source: { kind: 'copy', name: 'op-1' } },
    does: ['status creating'],
  },
  {
    why: 'a copy of another operation is not meant',
    spec: { source: { kind: 'copy', name: 'op-2' }, copyFrom },
    does: ['status creating'],
  },
  {
    why: 'then it is copied',
    spec: { source: { kind: 'copy', name: 'op-1' }, copyFrom },
    does: ['status creating', 'copy h 1'],
  },
  {
    why: 'and told from where, should that change',
    spec: { source: { kind: 'copy', name: 'op-1' }, copyFrom },
    observed: { copy: { is: 'running' } },
    does: ['status creating', 'copy h 1'],
  },
  {
    why: 'into a pool as well, where an older one is no copy of this move',
    spec: { pool: 'p', source: { kind: 'copy', name: 'op-1' }, copyFrom },
    observed: { pool: { isMounted: true, hasVolume: true } },
    does: ['status creating', 'copy h 1'],
  },
  {
    why: 'nor while it waits',
    spec: { pool: 'p', source: { kind: 'copy', name: 'op-1' } },
    observed: { pool: { isMounted: true, hasVolume: true } },
    does: ['status creating'],
  },
  {
    why: 'a copy that failed is tried again',
    spec: { source: { kind: 'copy', name: 'op-1' }, copyFrom },
    observed: { copy: { is: 'failed', reason: 'no route' } },
    does: ['status creating', 'copy h 1'],
  },

  {
    why: 'a disk is served',
    spec: { serve: { id: 'op-1', secretName: 's' } },
    observed: { held },
    does: ['serve op-1', 'wait 0'],
  },
  {
    why: 'and it is said where',
    spec: { serve: { id: 'op-1', secretName: 's' } },
    observed: { held, serving: { id: 'op-1', host: 'h', port: 7 } },
    does: ['status ready op-1 7'],
  },
  {
    why: 'never under a guest',
    spec: { serve: { id: 'op-1', secretName: 's' } },
    observed: { held, user: 'g' },
    does: ['status ready', 'wait 1'],
  },
  {
    why: 'another operation has another key',
    spec: { serve: { id: 'op-2', secretName: 's' } },
    observed: { held, serving: { id: 'op-1', host: 'h', port: 7 } },
    does: ['serve op-2', 'wait 0'],
  },
  {
    why: 'and no longer than it is asked',
    observed: { held, serving: { id: 'op-1', host: 'h', port: 7 } },
    does: ['stopServing', 'wait 0'],
  },

  { why: 'it goes with its data', isDeleting: true, observed: { held }, does: ['remove', 'removed'] },
  {
    why: 'or without them',
    isDeleting: true,
    spec: { isRetained: true, pool: 'p' },
    observed: { held, pool: { isMounted: true, hasVolume: true } },
    does: ['release', 'removed'],
  },
  {
    why: 'what a move brought and that was in use stays when the move is undone',
    isDeleting: true,
    spec: { source: { kind: 'mirror', name: 'op-1' } },
    observed: { held, isCurrent: true },
    does: ['retain', 'removed RemovalRefused'],
  },
  {
    why: 'and so does a copy, in a pool as well',
    isDeleting: true,
    spec: { source: { kind: 'copy', name: 'op-1' }, pool: 'p' },
    observed: { held, isCurrent: true, pool: { isMounted: true, hasVolume: true } },
    does: ['retain', 'removed RemovalRefused'],
  },
  {
    why: 'it goes when the host has given it to another one since',
    isDeleting: true,
    spec: { source: { kind: 'mirror', name: 'op-1' } },
    observed: { held, isCurrent: true, isSuperseded: true },
    does: ['remove', 'removed'],
  },
  {
    why: 'it goes when it was never in use',
    isDeleting: true,
    spec: { source: { kind: 'mirror', name: 'op-1' } },
    observed: { held },
    does: ['remove', 'removed'],
  },
  {
    why: 'it goes when the platform knows that the move has ended here',
    isDeleting: true,
    spec: { source: { kind: 'mirror', name: 'op-1' }, isCurrent: true },
    observed: { held, isCurrent: true },
    does: ['remove', 'removed'],
  },
  {
    why: 'it leaves the host when another one has it in the pool',
    isDeleting: true,
    spec: { source: { kind: 'copy', name: 'op-1' }, pool: 'p', isRetained: true },
    observed: { held, isCurrent: true, pool: { isMounted: true, hasVolume: true } },
    does: ['release', 'removed'],
  },
  {
    why: 'what no move brought goes although it was in use',
    isDeleting: true,
    spec: { source: template },
    observed: { held, isCurrent: true },
    does: ['remove', 'removed'],
  },
  {
    why: 'it is noted that a move has ended here',
    spec: { source: { kind: 'copy', name: 'op-1' }, isCurrent: true },
    observed: { held },
    does: ['noteCurrent', 'wait 0'],
  },
  {
    why: 'once',
    spec: { source: { kind: 'copy', name: 'op-1' }, isCurrent: true },
    observed: { held, isCurrent: true },
    does: ['status ready'],
  },
  { why: 'but not under a guest', isDeleting: true, observed: { held, user: 'g' }, does: ['wait 1'] },
]

describe('the plan of a Volume', () => {
  it.each(rows)('$why', ({ spec, isDeleting, status, observed, does }) => {
    const volume: VolumeObject = {
      apiVersion: 'svccloud.dev/v1alpha1',
      kind: 'Volume',
      metadata: {
        name: 'v',
        uid: 'u',
        generation: 3,
        namespace: 'node-a',
        ...(isDeleting ? { deletionTimestamp: '2030-01-01T00:00:00Z' } : {}),
      },
      spec: { storage: { namespace: 'acct-1', name: 's', uid: 's' }, sizeGibibytes: 2, ...spec },
      ...defined({ status }),
    }
    const known = observed?.held === undefined ? {} : { bytes: bytes() }
    expect(
      planVolume(volume, { held: undefined, user: undefined, image: undefined, ...known, ...observed }).map(summaryOf),
    ).toEqual(does)
  })
})

it('says which part of building its image is under way', () => {
  const volume = {
    apiVersion: 'svccloud.dev/v1alpha1',
    kind: 'Volume',
    metadata: { name: 'v' },
    spec: { storage: { namespace: 'a', name: 's', uid: 's' }, sizeGibibytes: 2, source: template },
  }
  const detailWith = (image: ObservedVolume['image']) => {
    const status = planVolume(volume, { held: undefined, user: undefined, image }).find(
      ({ do: what }) => what === 'status',
    )
    return status?.do === 'status' ? status.status['detail'] : undefined
  }
  expect(detailWith({ is: 'absent' })).toBe('Template tiny-linux is being built.')
  expect(detailWith({ is: 'absent', step: 'writing the disk' })).toBe(
    'Template tiny-linux is being built: writing the disk.',
  )
})
