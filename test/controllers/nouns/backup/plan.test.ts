/** The states of a backup, one row each: supplement of the contract, "Backup, custom image, snapshot". */
import { describe, expect, it } from 'vitest'
import {
  type BackupObject,
  isVerificationDue,
  type JobObject,
  type Observed,
  plan,
} from '../../../../controllers/nouns/backup/plan.ts'
import { defined } from '../../../../domain/defined.ts'
import type { OperationKind } from '../../../../domain/operations.ts'
import type { BackupStatus } from '../../../../resources/backup/index.ts'
import type { BackupJobSpec, BackupJobStatus } from '../../../../resources/backup-job/index.ts'
import { planOutcome } from '../../plan-outcome.ts'

const NOW = new Date('2026-11-22T12:00:00Z')
const GIBIBYTE = 1_073_741_824
const OPERATION = '00000000-0000-4000-8000-000000000001'

const stanza = (kind: OperationKind, deadlineAt = '2026-11-23T00:00:00.000Z') => ({
  id: OPERATION,
  kind,
  requestedAt: '2026-11-22T11:00:00.000Z',
  deadlineAt,
  actor: 'user:1',
  requestId: 'r1',
})
const GRANTED = [{ type: 'Claimed', status: 'True', reason: 'Claimed', message: '', lastTransitionTime: '' }] as const

interface Given {
  readonly kind?: OperationKind
  readonly status?: Partial<BackupStatus>
  readonly expiresAt?: string
  readonly isDeleting?: boolean
  readonly deadlineAt?: string
}

const backupOf = ({ kind, status, expiresAt, isDeleting = false, deadlineAt }: Given): BackupObject => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Backup',
  metadata: {
    name: 'b1',
    namespace: 'acct-a',
    uid: 'uid-b1',
    generation: 1,
    ...(isDeleting ? { deletionTimestamp: '2026-11-22T11:30:00Z' } : {}),
  },
  spec: {
    storageId: 's1',
    title: '',
    kind: 'manual',
    ...defined({ expiresAt }),
    ...(kind === undefined ? {} : { operation: stanza(kind, deadlineAt) }),
  },
  // parts of a status are enough for the plan
  ...(status === undefined ? {} : { status: status as BackupStatus }),
})

const jobOf = (work: BackupJobSpec['work'], status?: Partial<BackupJobStatus>, node = 'n1', name = OPERATION) =>
  ({
    metadata: { name, namespace: `node-${node}` },
    spec: { backup: { namespace: 'acct-a', name: 'b1', uid: 'uid-b1' }, work },
    ...defined({ status }),
  }) as JobObject // parts of a job are enough for the plan

const observedOf = (more: Partial<Observed> = {}): Observed => ({
  accountId: 'a',
  zone: 'z1',
  region: 'r1',
  hasStorage: true,
  hasLeftZone: false,
  disk: { volume: 'v1', node: 'n1' },
  isDiskFree: true,
  host: 'n1',
  jobs: [],
  siblings: [],
  complete: [],
  editor: 'user:somebody',
  ...more,
})

/** What the plan makes of it: state, end of the operation, and the jobs that it makes and removes. */
function outcome(given: Given, observed: Partial<Observed> = {}, now = NOW) {
  const actions = plan(backupOf(given), observedOf(observed), now)
  return {
    ...planOutcome(actions),
    made: actions.flatMap((action) => (action.do === 'ensure' ? [action.draft.spec as BackupJobSpec] : []))[0],
    removed: actions.filter((action) => action.do === 'remove').length,
  }
}

const CREATING = { state: 'creating', conditions: [...GRANTED] } satisfies Partial<BackupStatus>
const ONLINE = {
  state: 'online',
  conditions: [...GRANTED],
  completedAt: '2026-11-22T10:00:00Z',
} satisfies Partial<BackupStatus>
const sibling = (name: string, status: Partial<BackupStatus>) => ({
  ...backupOf({ status: { ...ONLINE, ...status } }),
  metadata: { name },
})
const ERROR = { state: 'error', stateDetail: 'why', conditions: [...GRANTED] } satisfies Partial<BackupStatus>

describe('(none) to creating', () => {
  it('by an operation that was accepted: first the quota is taken', () =>
    expect(outcome({ kind: 'storage.backup' })).toMatchObject({
      state: 'creating',
      effects: ['claim'],
      step: 'claimed',
    }))
  it('by kubectl: the operation begins, in the name of the editor', () =>
    expect(outcome({}).started).toBe('storage.backup'))
  it('the host gets the work with the newest backup that verified, or has not been verified', () => {
    const siblings = [sibling('b3', { verificationError: 'x' }), sibling('b2', {})]
    expect(outcome({ kind: 'storage.backup', status: CREATING }, { siblings })).toMatchObject({
      state: 'creating',
      effects: ['shareKey'],
      made: { work: 'write', volume: 'v1', parent: 'b2' },
    })
  })
  it('waits for a storage that comes after it', () =>
    expect(
      outcome({ kind: 'storage.backup', status: CREATING }, { hasStorage: false }, new Date('2026-11-22T11:09:59Z')),
    ).toMatchObject({ made: undefined, outcome: undefined, step: 'placed' }))
  it('has no size before it is complete', () =>
    expect(
      outcome(
        { kind: 'storage.backup', status: CREATING },
        { jobs: [jobOf('write', { state: 'running', sizeBytes: 1 })] },
      ).status,
    ).not.toHaveProperty('sizeGibibytes'))
  it('stays there while the host works', () =>
    expect(
      outcome({ kind: 'storage.backup', status: CREATING }, { jobs: [jobOf('write', { state: 'running' })] }),
    ).toMatchObject({ state: 'creating', outcome: undefined, step: 'written' }))
  it('the work follows the disk to another host', () =>
    expect(
      outcome(
        { kind: 'storage.backup', status: CREATING },
        { jobs: [jobOf('write', { state: 'running' })], disk: { volume: 'v1', node: 'n2' } },
      ),
    ).toMatchObject({ removed: 1, outcome: undefined }))
})

describe('creating to online', () => {
  it('when the manifest was read back', () =>
    expect(
      outcome(
        { kind: 'storage.backup', status: CREATING },
        { jobs: [jobOf('write', { state: 'done', sizeBytes: 3 * GIBIBYTE, target: 'vault', isSameHost: false })] },
      ),
    ).toMatchObject({
      state: 'online',
      outcome: 'succeeded',
      status: { sizeGibibytes: 3, completedAt: NOW.toISOString(), target: 'vault', isSameHost: false },
    }))
  it('which is no verification', () =>
    expect(
      outcome({ kind: 'storage.backup', status: CREATING }, { jobs: [jobOf('write', { state: 'done' })] }).status,
    ).not.toHaveProperty('verifiedAt'))
})

describe('creating to error', () => {
  it.each([
    ['the host failed', { jobs: [jobOf('write', { state: 'failed', detail: 'no store' })] }, 'no store'],
    ['the storage did not come', { hasStorage: false }, 'There is no storage s1.'],
    ['the storage is in another zone', { hasLeftZone: true }, 'Storage s1 is no longer in zone z1.'],
    ['the namespace is no account', { accountId: undefined }, 'The namespace belongs to no account.'],
  ] as const)('because %s', (_why, observed, error) =>
    expect(outcome({ kind: 'storage.backup', status: CREATING }, observed)).toMatchObject({
      state: 'error',
      outcome: 'failed',
      error,
      status: { stateDetail: error },
    }),
  )
  it('because of the deadline', () =>
    expect(outcome({ kind: 'storage.backup', status: CREATING, deadlineAt: NOW.toISOString() })).toMatchObject({
      state: 'error',
      outcome: 'failed',
    }))
})

describe('online stays online', () => {
  it('when verification finds damage, which is kept and mailed', () =>
    expect(
      outcome({ kind: 'backup.verify', status: ONLINE }, { jobs: [jobOf('verify', { state: 'done', damage: 'c/1' })] }),
    ).toMatchObject({ outcome: 'succeeded', status: { verificationError: 'c/1' }, effects: ['reportDamage'] }))
  it('when it verifies, and an earlier error goes', () =>
    expect(
      outcome(
        { kind: 'backup.verify', status: { ...ONLINE, verificationError: 'c/1' } },
        { jobs: [jobOf('verify', { state: 'done' })] },
      ).status,
    ).toMatchObject({ verifiedAt: NOW.toISOString(), verificationError: undefined }))
  it('when its verification is cancelled, once the host reads it no more', () => {
    const cancelled = (jobs: readonly JobObject[]) => {
      const backup = backupOf({ kind: 'backup.verify', status: ONLINE })
      const { operation } = backup.spec
      if (operation === undefined) throw new Error('there is no operation')
      const spec = { ...backup.spec, operation: { ...operation, arguments: { cancel: 'true' } } }
      const actions = plan({ ...backup, spec }, observedOf({ jobs: [...jobs] }), NOW)
      return { ...planOutcome(actions), removed: actions.filter((action) => action.do === 'remove').length }
    }
    expect(cancelled([jobOf('verify', { state: 'running' })])).toMatchObject({ removed: 1, outcome: undefined })
    const over = cancelled([])
    expect(over).toMatchObject({ outcome: 'cancelled' })
    expect(over.status).not.toHaveProperty('verifiedAt')
  })
  it.each(['backup.verify', 'backup.restore'] as const)('when %s fails', (kind) => {
    const jobs = [jobOf(kind === 'backup.verify' ? 'verify' : 'restore', { state: 'failed', detail: 'away' })]
    const { state, outcome: end, error } = outcome({ kind, status: ONLINE }, { jobs })
    expect({ state, end, error }).toEqual({ state: undefined, end: 'failed', error: 'away' })
  })
  it('while it is restored, for which the guest must be off and the storage must have noted it', () => {
    const restoring = (more: Partial<Observed>) => outcome({ kind: 'backup.restore', status: ONLINE }, more)
    const noted = { notedRestore: OPERATION }
    expect(restoring({ ...noted, isDiskFree: false })).toMatchObject({ made: undefined, outcome: undefined })
    expect(restoring({ notedRestore: 'another' })).toMatchObject({ made: undefined, outcome: undefined })
    expect(restoring(noted).made).toMatchObject({ work: 'restore', volume: 'v1' })
  })
  describe('and what the disk held is kept before that', () => {
    const restoring = (more: Partial<Observed>) =>
      plan(
        backupOf({ kind: 'backup.restore', status: ONLINE }),
        observedOf({ notedRestore: OPERATION, isKeepable: true, ...more }),
        NOW,
      )
    const made = (more: Partial<Observed>) =>
      restoring(more).flatMap((action) => (action.do === 'ensure' ? [action.draft] : []))
    const safety = (state: 'creating' | 'online' | 'error') =>
      ({ status: { state, stateDetail: 'no room' } }) as NonNullable<Observed['safety']> // all that is looked at
    it('in a snapshot of a week that names the backup', () =>
      expect(made({})).toMatchObject([
        {
          spec: {
            storageId: 's1',
            title: 'Before the restore of backup b1',
            restoredBackupId: 'b1',
            expiresAt: '2026-11-29T12:00:00.000Z',
            operation: { kind: 'snapshot.create', actor: 'system:backup_restore' },
          },
        },
      ]))
    it('once the guest is off', () => expect(made({ isDiskFree: false })).toEqual([]))
    it('and nothing is written before it is there', () => {
      expect(made({ safety: safety('creating') })).toEqual([])
      expect(made({ safety: safety('online') })).toMatchObject([{ spec: { work: 'restore' } }])
    })
    it('and the end of the restore names it', () => {
      const done = {
        safety: { ...safety('online'), metadata: { name: 'k1' } },
        jobs: [jobOf('restore', { state: 'done' })],
      }
      expect(planOutcome(restoring(done)).events).toEqual(['kept: Snapshot k1 has what the storage held before.'])
    })
    it('or the restore fails and has written nothing', () => {
      const { outcome: end, error, status } = planOutcome(restoring({ safety: safety('error') }))
      expect({ end, error }).toEqual({ end: 'failed', error: 'What the storage holds could not be kept: no room' })
      expect(status['lastRestore']).toMatchObject({ outcome: 'untouched' })
    })
    it('unless it cannot be, or is not worth it', () =>
      expect(made({ isKeepable: false })).toMatchObject([{ spec: { work: 'restore' } }]))
  })
  it.each<readonly [string, Partial<Observed>, BackupStatus['lastRestore'] | undefined]>([
    ['goes on', { jobs: [jobOf('restore', { state: 'running' })] }, undefined],
    [
      'has succeeded',
      { jobs: [jobOf('restore', { state: 'done' })] },
      { operationId: OPERATION, outcome: 'succeeded' },
    ],
    [
      'has failed before it wrote',
      { jobs: [jobOf('restore', { state: 'failed' })] },
      { operationId: OPERATION, outcome: 'untouched' },
    ],
    [
      'has failed half-way',
      { jobs: [jobOf('restore', { state: 'failed', isHalfWritten: true })] },
      { operationId: OPERATION, outcome: 'failed' },
    ],
    ['has lost its storage', { hasStorage: false }, { operationId: OPERATION, outcome: 'untouched' }],
    [
      'was done before its storage went to another zone',
      { jobs: [jobOf('restore', { state: 'done' })], hasLeftZone: true },
      { operationId: OPERATION, outcome: 'succeeded' },
    ],
  ])('and its restore %s', (_name, more, lastRestore) => {
    expect(outcome({ kind: 'backup.restore', status: ONLINE }, more).status?.['lastRestore']).toEqual(lastRestore)
  })
  it('and one that ran out of time may have written', () => {
    const jobs = [jobOf('restore', { state: 'running' })]
    const late = { kind: 'backup.restore', status: ONLINE, deadlineAt: '2026-11-22T11:30:00Z' } as const
    expect(outcome(late, { jobs }).status?.['lastRestore']).toEqual({ operationId: OPERATION, outcome: 'failed' })
  })
  it('and is not deleted while a storage is being made from it', () => {
    const deletion = { kind: 'backup.delete', status: ONLINE, isDeleting: true } as const
    expect(outcome(deletion, { readers: ['s2'] })).toMatchObject({ made: undefined, outcome: undefined })
    expect(outcome(deletion).made).toMatchObject({ work: 'remove' })
  })
})

describe('a copy in another zone', () => {
  const online = { kind: 'storage.backup', status: ONLINE } as const
  const copy = (status: Partial<BackupStatus> | undefined) =>
    ({ metadata: { name: 'c1' }, status }) as NonNullable<Observed['copy']> // all that is looked at
  const made = (observed: Partial<Observed>) =>
    plan(backupOf(online), observedOf({ copyZone: 'z2', ...observed }), NOW).flatMap((action) =>
      action.do === 'ensure' ? [action.draft] : [],
    )
  it('is what a backup waits for that is online by then', () => {
    const jobs = [jobOf('write', { state: 'done', sizeBytes: GIBIBYTE })]
    expect(outcome({ kind: 'storage.backup', status: CREATING }, { jobs, copyZone: 'z2' })).toMatchObject({
      state: 'online',
      step: 'written',
      outcome: undefined,
    })
    expect(outcome(online, { copyZone: 'z2', copy: copy({ state: 'creating' }) })).toMatchObject({
      step: 'copied',
      outcome: undefined,
      made: undefined,
    })
    expect(outcome(online, { copyZone: 'z2', copy: copy({ state: 'online' }) })).toMatchObject({ outcome: 'succeeded' })
  })
  it('is a separate backup', () =>
    expect(made({})).toMatchObject([
      {
        metadata: { namespace: 'acct-a' },
        spec: {
          storageId: 's1',
          zone: 'z2',
          copyOf: { name: 'b1', zone: 'z1' },
          operation: { kind: 'storage.backup', actor: 'system:backup_copy' },
        },
      },
    ]))
  it('that fails leaves the backup as it is', () => {
    const { outcome: end, state, error } = outcome(online, { copyZone: 'z2', copy: copy({ state: 'error' }) })
    expect({ end, state, error }).toEqual({
      end: 'failed',
      state: undefined,
      error: 'It has no copy in zone z2: ',
    })
  })
  it('is none where the storage asks for none by now', () =>
    expect(outcome(online)).toMatchObject({ outcome: 'succeeded' }))
  it('is made by a host that reaches both stores, with what the zone has', () => {
    const copied = { ...backupOf({ kind: 'storage.backup', status: CREATING }) }
    const spec = { ...copied.spec, copyOf: { name: 'b0', zone: 'z0' } }
    const sibling = { ...backupOf({ status: ONLINE }), metadata: { name: 'c0' } }
    const jobs = (more: Partial<Observed>) =>
      plan(
        { ...copied, spec },
        observedOf({ disk: undefined, hasStorage: false, siblings: [sibling], ...more }),
        NOW,
      ).flatMap((action) => (action.do === 'ensure' ? [action.draft] : []))
    expect(jobs({ copyingHost: 'n7' })).toMatchObject([
      { metadata: { namespace: 'node-n7' }, spec: { work: 'copy', copyOf: spec.copyOf, parent: 'c0' } },
    ])
    expect(jobs({})).toEqual([])
  })
})

describe('online and error to deleting', () => {
  it.each([
    ['online', ONLINE],
    ['error', ERROR],
  ] as const)('by kubectl, from %s', (_state, status) =>
    expect(outcome({ status, isDeleting: true }).started).toBe('backup.delete'),
  )
  it('by the API: the object is deleted first', () =>
    expect(outcome({ kind: 'backup.delete', status: ONLINE })).toMatchObject({ removed: 1, isFinalized: false }))
  it('because it has expired', () =>
    expect(outcome({ status: ONLINE, expiresAt: '2026-11-22T11:59:59Z' }).started).toBe('backup.delete'))
  it('not before it has expired', () =>
    expect(outcome({ status: ONLINE, expiresAt: '2026-11-22T12:00:01Z' }).started).toBeUndefined())
  it('a host removes it, with the chunks that the other backups do not name', () =>
    expect(
      outcome({ kind: 'backup.delete', status: ONLINE, isDeleting: true }, { complete: [sibling('b2', {})] }),
    ).toMatchObject({ state: 'deleting', made: { work: 'remove', completeBackups: ['b2'] }, isFinalized: false }))
  it('work that is under way ends first', () =>
    expect(
      outcome(
        { kind: 'backup.delete', status: CREATING, isDeleting: true },
        { jobs: [jobOf('write', { state: 'running' }, 'n1', 'earlier')] },
      ),
    ).toMatchObject({ state: 'deleting', removed: 1, made: undefined, isFinalized: false }))
  it('a deletion goes on behind a failure and its deadline', () =>
    expect(
      outcome(
        { kind: 'backup.delete', status: ONLINE, isDeleting: true, deadlineAt: NOW.toISOString() },
        { jobs: [jobOf('remove', { state: 'failed', detail: 'away' })] },
      ),
    ).toMatchObject({ state: 'deleting', outcome: undefined, removed: 1, isFinalized: false }))
  it('then nothing of it is left, and its quota is given back', () =>
    expect(
      outcome(
        { kind: 'backup.delete', status: ONLINE, isDeleting: true },
        { jobs: [jobOf('remove', { state: 'done' })] },
      ),
    ).toMatchObject({ outcome: 'succeeded', effects: ['release'], isFinalized: true }))
  it('is released when only that was left to do', () => {
    const operation = { id: OPERATION, kind: 'backup.delete', status: 'succeeded' } as BackupStatus['operation']
    const status = { ...ONLINE, state: 'deleting', operation } as const
    expect(outcome({ kind: 'backup.delete', status, isDeleting: true })).toMatchObject({ isFinalized: true })
  })
})

describe('verification by the platform', () => {
  const night = new Date('2026-11-22T02:00:00Z')
  const due = (status: Partial<BackupStatus>, siblings: readonly Partial<BackupStatus>[] = [], now = night) =>
    isVerificationDue({
      backup: backupOf({ status: { ...ONLINE, ...status } }),
      observed: observedOf({ siblings: siblings.map((each) => backupOf({ status: { ...ONLINE, ...each } })) }),
      now,
    })
  const lately = { verifiedAt: '2026-11-20T02:00:00Z', completedAt: '2026-11-19T00:00:00Z' }
  const older = { completedAt: '2026-11-01T00:00:00Z' }
  const failedAt = (finishedAt: string) =>
    ({ id: 'o', kind: 'backup.verify', status: 'failed', finishedAt }) as NonNullable<BackupStatus['operation']>
  it.each([
    ['the first of a chain', due({}), true],
    ['not by day', due({}, [], NOW), false],
    ['not again', due({ verifiedAt: '2026-11-21T02:00:00Z' }), false],
    ['not what was found damaged', due({ verificationError: 'x' }), false],
    ['nor when no other was verified', due({ verificationError: 'x', parent: 'b0' }, [older]), false],
    ['not what could not be read this night', due({ operation: failedAt('2026-11-22T01:10:00Z') }), false],
    ['what could not be read the night before', due({ operation: failedAt('2026-11-21T03:00:00Z') }), true],
    ['the newest, when none was verified for a week', due({ parent: 'b0' }, [older]), true],
    ['not the newest, when another was verified lately', due({ parent: 'b0' }, [lately]), false],
    ['not an older one', due({ parent: 'b0', ...older }, [{ completedAt: '2026-11-21T00:00:00Z' }]), false],
    ['not one that is not online', due({ state: 'error' }), false],
  ] as const)('%s', (_why, isDue, expected) => expect(isDue).toBe(expected))
})

describe('where it is', () => {
  const isObjectStorageUsed = () => true
  const inStorage = { place: 'object-storage' } as const
  const writing = (observed: Partial<Observed>, status: Partial<BackupStatus> = CREATING) =>
    outcome({ kind: 'storage.backup', status }, { isObjectStorageUsed, ...observed })

  it('a new one goes into the object storage of its zone, and says so before anything is there', () => {
    const { made, status } = writing({})
    expect(made?.objectStorageZone).toBe('z1')
    expect(status).toMatchObject({ state: 'creating', place: 'object-storage' })
  })
  it('the first one of an account says what it waits for, and no host is asked before', () => {
    const isPlaceOpen = () => false
    const first = writing({ isPlaceOpen })
    expect([first.made, first.effects]).toEqual([undefined, ['openPlaces']])
    expect(first.status).toMatchObject({ place: 'object-storage' })
    const message = 'Waiting for the object storage of zone z1 to answer.'
    const condition = { type: 'PlacesOpened', status: 'False', reason: 'Unreachable', message } as const
    const conditions = [...GRANTED, { ...condition, lastTransitionTime: NOW.toISOString() }]
    expect(writing({ isPlaceOpen }, { ...CREATING, conditions }).events).toEqual([`waiting: ${message}`])
    expect(writing({ isPlaceOpen, isObjectStorageUsed: () => false }).made).toBeDefined()
  })
  it('without object storage it is written where the host is configured', () => {
    const { made, status } = writing({ isObjectStorageUsed: () => false })
    expect(made).not.toHaveProperty('objectStorageZone')
    expect(status).toMatchObject({ place: 'host' })
  })
  it('what was begun goes on where it was begun', () =>
    expect(writing({}, { ...CREATING, place: 'host' }).made).not.toHaveProperty('objectStorageZone'))
  it('nothing is taken from a backup in another place', () => {
    const siblings = [sibling('b3', {}), sibling('b2', inStorage)]
    expect(writing({ siblings }).made?.parent).toBe('b2')
    expect(writing({ siblings, isObjectStorageUsed: () => false }).made?.parent).toBe('b3')
  })
  it.each(['backup.restore', 'backup.verify', 'backup.delete'] as const)(
    '%s finds what is there from before',
    (kind) => {
      const found = (status: Partial<BackupStatus>) =>
        outcome(
          { kind, status: { ...ONLINE, ...status }, isDeleting: kind === 'backup.delete' },
          { isObjectStorageUsed, notedRestore: OPERATION, isKeepable: false },
        ).made?.objectStorageZone
      expect(found({})).toBeUndefined()
      expect(found(inStorage)).toBe('z1')
    },
  )
  it('chunks stay when there are more backups than a job can name', () => {
    const named = (count: number) => {
      const complete = Array.from({ length: count }, (_, index) => sibling(`b${index + 2}`, {}))
      return outcome({ kind: 'backup.delete', status: ONLINE, isDeleting: true }, { complete }).made
    }
    expect(named(2_000)?.completeBackups).toHaveLength(2_000)
    expect(named(2_001)).toMatchObject({ work: 'remove' })
    expect(named(2_001)).not.toHaveProperty('completeBackups')
  })
  it('chunks are held against the backups of the same place only', () => {
    const complete = [sibling('b2', inStorage), sibling('b3', {})]
    const named = (status: Partial<BackupStatus>) =>
      outcome({ kind: 'backup.delete', status: { ...ONLINE, ...status }, isDeleting: true }, { complete }).made
        ?.completeBackups
    expect(named({})).toEqual(['b3'])
    expect(named(inStorage)).toEqual(['b2'])
  })
})
