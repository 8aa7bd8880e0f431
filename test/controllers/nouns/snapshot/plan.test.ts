/** The states of a snapshot, one row each: supplement of the contract, "Backup, custom image, snapshot". */
import { describe, expect, it } from 'vitest'
import type { Observed, SnapshotObject } from '../../../../controllers/nouns/snapshot/observed.ts'
import { plan } from '../../../../controllers/nouns/snapshot/plan.ts'
import { defined } from '../../../../domain/defined.ts'
import type { OperationKind } from '../../../../domain/operations.ts'
import type { VolumeSpec, VolumeStatus } from '../../../../resources/instance/index.ts'
import type { SnapshotSpec, SnapshotStatus } from '../../../../resources/snapshot/index.ts'
import { planOutcome } from '../../plan-outcome.ts'

const NOW = new Date('2026-11-22T12:00:00Z')
const CLAIMED = [{ type: 'Claimed', status: 'True', reason: 'Claimed', message: '', lastTransitionTime: '' }] as const
const refusedFor = (reason: string) => [
  {
    type: 'Claimed',
    status: 'False',
    reason,
    message: 'why not',
    lastTransitionTime: '',
    observedGeneration: 1,
  } as const,
]

interface Given {
  readonly kind?: OperationKind
  readonly status?: Partial<SnapshotStatus>
  readonly isDeleting?: boolean
  readonly deadlineAt?: string
  readonly spec?: Partial<SnapshotSpec>
}

const snapshotOf = ({ kind, status, isDeleting = false, deadlineAt = '2026-11-23T00:00:00Z', spec = {} }: Given) =>
  ({
    apiVersion: 'svccloud.dev/v1alpha1',
    kind: 'Snapshot',
    metadata: {
      name: 's1',
      namespace: 'acct-a',
      uid: 'uid-s1',
      generation: 1,
      ...(isDeleting ? { deletionTimestamp: '2026-11-22T11:30:00Z' } : {}),
    },
    spec: {
      storageId: 'data',
      title: '',
      labels: {},
      ...spec,
      ...(kind === undefined
        ? {}
        : {
            operation: {
              id: '00000000-0000-4000-8000-000000000001',
              kind,
              requestedAt: '2026-11-22T11:00:00Z',
              deadlineAt,
              actor: 'user:1',
              requestId: 'r1',
            },
          }),
    },
    ...defined({ status }),
  }) as SnapshotObject // parts of a status are enough for the plan

const volumeOf = (wanted: VolumeSpec['snapshots'], there: VolumeStatus['snapshots'], observedGeneration = 1) =>
  ({
    metadata: { name: 'v1', namespace: 'node-n1', generation: 1 },
    spec: { snapshots: wanted },
    status: { state: 'ready', snapshots: there, observedGeneration },
  }) as Observed['volumes'][number] // the same

const storageOf = (more: { readonly tier?: string; readonly state?: string; readonly isDeleting?: boolean } = {}) =>
  ({
    metadata: { name: 'data', ...(more.isDeleting === true ? { deletionTimestamp: '2026-11-22T11:00:00Z' } : {}) },
    spec: { zone: 'z1', tier: more.tier ?? 'standard', isBoot: false },
    status: { state: more.state ?? 'online', pool: 'p1' },
  }) as NonNullable<Observed['storage']> // the same

const POINT = { name: 'uid-s1', sizeGibibytes: 7, isFrozen: false }
const shall = (what: 'be' | 'go') => [{ name: 'uid-s1', shall: what }] as const

const outcome = (given: Given, observed: Partial<Observed> = {}) =>
  planOutcome(
    plan(
      snapshotOf(given),
      {
        accountId: 'a',
        storage: storageOf(),
        region: 'r1',
        volumes: [],
        isCloned: false,
        editor: 'user:somebody',
        ...observed,
      },
      NOW,
    ),
  )

const CREATING = { state: 'creating', conditions: [...CLAIMED] } satisfies Partial<SnapshotStatus>
const ONLINE = { state: 'online', conditions: [...CLAIMED], sizeGibibytes: 7 } satisfies Partial<SnapshotStatus>
const create = (status?: Partial<SnapshotStatus>): Given => ({
  kind: 'snapshot.create',
  ...defined({ status }),
})
const remove: Given = { kind: 'snapshot.delete', status: { ...ONLINE, state: 'deleting' }, isDeleting: true }

describe('the room of one that is online', () => {
  const told = (usedBytes?: number) => ({
    volumes: [volumeOf([...shall('be')], [{ ...POINT, ...defined({ usedBytes }) }])],
  })
  it('is what the host says', () => expect(outcome({ status: ONLINE }, told(5)).status).toMatchObject({ usedBytes: 5 }))
  it('is what it was while the host does not say', () =>
    expect(outcome({ status: { ...ONLINE, usedBytes: 5 } }, told()).status).not.toHaveProperty('usedBytes'))
})

describe('one that is online', () => {
  const gone = { ...volumeOf([...shall('be')], []), status: { state: 'ready', lostSnapshots: ['uid-s1'] } }
  const volumes = [gone as Observed['volumes'][number]]
  const detail = expect.stringContaining('no longer in the disk') as string
  it('says so when its disk has lost it', () =>
    expect(outcome({ status: ONLINE }, { volumes }).status).toMatchObject({ state: 'error', stateDetail: detail }))
  it('keeps its storage then, and is online again when it is back', () => {
    const stateDetail = String(outcome({ status: ONLINE }, { volumes }).status?.['stateDetail'])
    const lost = { ...ONLINE, state: 'error', stateDetail } as const
    expect(outcome({ status: lost }, { volumes, holdsForNothing: true }).effects).toEqual([])
    const back = outcome({ status: lost }, { volumes: [volumeOf([...shall('be')], [POINT])] })
    expect(back.status).toMatchObject({ state: 'online' })
  })
})

describe('(none) to creating', () => {
  it('by an operation that was accepted: first what it holds is taken', () =>
    expect(outcome(create())).toMatchObject({ state: 'creating', step: 'claimed', effects: ['claim'] }))
  it('by kubectl: the operation begins, in the name of the editor', () =>
    expect(outcome({}).started).toBe('snapshot.create'))
  it.each<[string, Partial<Observed>]>([
    ['is not there yet', { storage: undefined }],
    ['is not online yet', { storage: storageOf({ state: 'creating' }) }],
  ])('waits for a storage that %s, and takes nothing', (_which, observed) =>
    expect(outcome(create(), observed)).toMatchObject({
      state: 'creating',
      step: 'claimed',
      outcome: undefined,
      effects: [],
    }),
  )
  it.each([
    ['a move of the server', 'StateNotAllowed'],
    ['a rebuild of the server', 'OperationInProgress'],
  ])('asks again for what %s refuses', (_what, reason) =>
    expect(outcome(create({ state: 'creating', conditions: refusedFor(reason) }))).toMatchObject({
      outcome: undefined,
      effects: ['claim'],
    }),
  )
  it('stays there while the host takes it, and says nothing of backups', () =>
    expect(outcome(create(CREATING))).toMatchObject({ step: 'taken', outcome: undefined, events: [] }))
  it('says that a backup is read from the disk', () =>
    expect(outcome(create(CREATING), { runningBackup: 'b7' })).toMatchObject({
      step: 'taken',
      outcome: undefined,
      events: ['waiting: Backup b7 of the storage is being made: the snapshot is taken after that.'],
    }))
  it('is lost when the disk had it before and has it no more', () => {
    const volume = volumeOf([], [])
    const lost = { ...volume, status: { state: 'ready' as const, ...volume.status, lostSnapshots: ['uid-s1'] } }
    expect(outcome(create(CREATING), { volumes: [lost] })).toMatchObject({ step: 'taken', outcome: 'failed' })
  })
  it('is not taken by a host that has others', () =>
    expect(
      outcome(create(CREATING), { volumes: [volumeOf([], [{ ...POINT, name: 'uid-other' }])] }).outcome,
    ).toBeUndefined())
})

describe('creating to online', () => {
  it.each<[string, boolean]>([
    ['guest_frozen: The file systems of the guest were frozen at the point.', true],
    ['crash_consistent: The point is as a disk after a loss of power.', false],
  ])('with event %s', (event, isFrozen) => {
    const volumes = [volumeOf([...shall('be')], [{ ...POINT, isFrozen }])]
    const found = outcome(create(CREATING), { volumes, runningBackup: 'b7' })
    expect(found).toMatchObject({ state: 'online', step: 'taken', outcome: 'succeeded', events: [event] })
    expect(found.status).toMatchObject({ sizeGibibytes: 7, isFrozen, zone: 'z1', region: 'r1' })
  })
  it('and stays there', () => expect(outcome({ status: ONLINE }).effects).toEqual([]))
})

describe('creating to error', () => {
  it.each<[string, Given, Partial<Observed>]>([
    ['the namespace is no account', create(), { accountId: undefined }],
    ['the tier has no snapshots', create(), { storage: storageOf({ tier: 'local-nvme' }) }],
    ['the storage goes', create(), { storage: storageOf({ isDeleting: true }) }],
    ['the server that boots from it goes', create(CREATING), { isServerLeaving: true }],
    ['the quota is used up', create({ state: 'creating', conditions: refusedFor('QuotaExceeded') }), {}],
    ['the deadline passes', { ...create(CREATING), deadlineAt: '2026-11-22T11:59:00Z' }, {}],
  ])('when %s', (_why, given, observed) => {
    const found = outcome(given, observed)
    expect(found).toMatchObject({ state: 'error', outcome: 'failed', effects: [] })
    expect(found.status['stateDetail']).toBe(found.error)
  })
})

describe('error', () => {
  const ERROR: Given = { status: { ...CREATING, state: 'error' } }
  it('keeps the storage no longer, and stays', () => {
    const found = outcome(ERROR, { holdsForNothing: true })
    expect(found).toMatchObject({ effects: ['releaseHold'], isFinalized: false })
    expect(outcome(ERROR).effects).toEqual([])
  })
})

describe('online, error to deleting', () => {
  it('by the API: the object goes first', () =>
    expect(
      plan(
        snapshotOf({ kind: 'snapshot.delete', status: ONLINE }),
        {
          accountId: 'a',
          storage: storageOf(),
          region: 'r1',
          volumes: [],
          isCloned: false,
          editor: 'user:somebody',
        },
        NOW,
      ).map((action) => action.do),
    ).toEqual(['remove']))
  it('by kubectl: the operation begins', () =>
    expect(outcome({ status: ONLINE, isDeleting: true }).started).toBe('snapshot.delete'))
  it.each<[string, Partial<Observed>]>([
    ['a storage is being made from it', { isCloned: true }],
    ['the host has not removed it', { volumes: [volumeOf([...shall('go')], [POINT])] }],
    ['the host may still take it', { volumes: [volumeOf([...shall('be')], undefined)] }],
    ['the host was not asked yet', { volumes: [volumeOf(undefined, undefined)] }],
    ['the host has not seen what it is asked', { volumes: [volumeOf([...shall('go')], undefined, 0)] }],
  ])('stays while %s', (_why, observed) => {
    const found = outcome(remove, observed)
    expect(found).toMatchObject({ state: 'deleting', outcome: undefined, effects: [], isFinalized: false })
  })
  it('says that a backup is read from the disk', () =>
    expect(outcome(remove, { runningBackup: 'b7', volumes: [volumeOf([...shall('go')], [POINT])] }).events).toEqual([
      'waiting: Backup b7 of the storage is being made: the snapshot is removed after that.',
    ]))
  it('goes on past its deadline', () =>
    expect(
      outcome({ ...remove, deadlineAt: '2026-11-22T11:59:00Z' }, { volumes: [volumeOf([...shall('go')], [POINT])] })
        .outcome,
    ).toBeUndefined())
})

describe('one that is taken before a restore', () => {
  const spec = { restoredBackupId: 'b1', expiresAt: '2026-11-22T12:00:01Z' }
  const restoring = { storage: storageOf({ state: 'restoring' }) }
  it('is taken of a storage that waits for it, and needs no quota', () => {
    expect(outcome({ ...create(), spec }, restoring).effects).toEqual(['holdForSafety'])
    expect(outcome(create(), restoring).effects).toEqual([])
  })
  it.each<[string, Partial<Observed>, string | undefined]>([
    ['stays with its storage', {}, undefined],
    ['goes with it', { storage: storageOf({ isDeleting: true }) }, 'snapshot.delete'],
    ['goes when it is gone', { storage: undefined }, 'snapshot.delete'],
    ['goes with the server that boots from it', { isServerLeaving: true }, 'snapshot.delete'],
  ])('%s', (_what, observed, started) => expect(outcome({ status: ONLINE, spec }, observed).started).toBe(started))
  it('goes when its time is over', () => {
    const due = { ...spec, expiresAt: '2026-11-22T12:00:00Z' }
    expect(outcome({ status: ONLINE, spec: due }).started).toBe('snapshot.delete')
    expect(outcome({ status: ONLINE }, { storage: undefined }).started).toBeUndefined()
  })
})

describe('deleting to (gone)', () => {
  it.each<[string, Partial<Observed>]>([
    ['the host has removed it', { volumes: [volumeOf([...shall('go')], undefined)] }],
    ['the storage is gone', { storage: undefined }],
  ])('gives back what it holds when %s', (_when, observed) =>
    expect(outcome(remove, observed)).toMatchObject({
      step: 'released',
      outcome: 'succeeded',
      effects: ['release'],
      isFinalized: true,
    }),
  )
})
