/** What the controller of object storage decides, fact by fact. */
import { describe, expect, test } from 'vitest'
import { type Observed, plan } from '../../../../controllers/nouns/object-storage/plan.ts'
import type { ObjectStorageRow } from '../../../../db/object-storage/index.ts'
import type { ObjectStorageMove } from '../../../../db/tables.ts'
import type { TenantState } from '../../../../integrations/object-storage/control.ts'
import type { KubeObject } from '../../../../kit/kube/object.ts'
import type { ObjectStorageSpec, ObjectStorageStatus } from '../../../../resources/object-storage/index.ts'
import type { OperationStanza } from '../../../../resources/kit/shapes.ts'

const NOW = new Date('2026-01-01T00:00:00Z')
const FACTS = {
  accessKeyId: 'KEY',
  bucketPrefix: 'abcd-',
  quotaBytes: 1_000,
  isSuspended: false,
  isFrozen: false,
  secretFingerprint: 'f',
}
const TENANT: TenantState = {
  ...FACTS,
  bucketCount: 1,
  usedBytes: 10,
  objectCount: 2,
  measuredAt: '2026-01-01T00:00:00.000Z',
}
const ROW: ObjectStorageRow = {
  id: 'mine',
  accountId: 'a',
  zone: 'z',
  accessKeyId: 'KEY',
  sealedSecret: '',
  bucketPrefix: 'abcd-',
  backend: 'svc-s3-single',
  move: null,
  movedAt: null,
  usedBytes: 10,
  objectCount: 2,
  usageMeasuredAt: new Date(TENANT.measuredAt),
  generation: 1,
  createdAt: new Date(0),
}
const SERVED: Observed = {
  accountId: 'a',
  isZone: true,
  row: ROW,
  endpoint: 'https://localhost:9000',
  tenant: TENANT,
  wanted: FACTS,
  requests: [],
}
const OBJECT: KubeObject<ObjectStorageSpec, ObjectStorageStatus> = {
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'ObjectStorage',
  metadata: { name: 'mine', namespace: 'acct-a', generation: 1 },
  spec: { zone: 'z' },
}
const GOING = { ...OBJECT, metadata: { ...OBJECT.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }

const effectsOf = (observed: Partial<Observed>, object = OBJECT) =>
  plan(object, { ...SERVED, ...observed }, NOW).flatMap((action) => (action.do === 'effect' ? [action.name] : []))
const reasonOf = (observed: Partial<Observed>, object = OBJECT) =>
  plan(object, { ...SERVED, ...observed }, NOW).flatMap((action) =>
    action.do === 'status' ? [action.conditions?.find(({ type }) => type === 'Ready')?.reason] : [],
  )[0]

describe('object storage', () => {
  test.each<[string, Partial<Observed>, readonly string[], string | undefined]>([
    ['that is served is left alone', {}, [], 'Served'],
    ['without an account is nobody’s', { accountId: undefined }, [], 'NoAccount'],
    ['in no zone waits for one', { isZone: false }, [], 'NoZone'],
    ['without a row gets one', { row: undefined }, ['open'], undefined],
    ['without a row where nothing serves it waits', { row: undefined, obstacle: 'no engine' }, [], 'NotOffered'],
    ['that nothing serves says why', { obstacle: 'no engine' }, [], 'NotOffered'],
    ['that the store does not know is told', { tenant: undefined }, ['bringUp'], undefined],
    [
      'whose store keeps it apart without a prefix is left alone',
      { tenant: { ...TENANT, bucketPrefix: undefined } },
      [],
      'Served',
    ],
    ['with another secret is told', { wanted: { ...FACTS, secretFingerprint: 'g' } }, ['bringUp'], undefined],
    ['with another quota is told', { wanted: { ...FACTS, quotaBytes: 5 } }, ['bringUp'], undefined],
    ['of a suspended account is told', { wanted: { ...FACTS, isSuspended: true } }, ['bringUp'], undefined],
    ['that was frozen and is not any more is told', { tenant: { ...TENANT, isFrozen: true } }, ['bringUp'], undefined],
    [
      'that is suspended there says so',
      { tenant: { ...TENANT, isSuspended: true }, wanted: { ...FACTS, isSuspended: true } },
      [],
      'Suspended',
    ],
    ['whose store does not answer says so', { tenant: undefined, isAway: true }, [], 'Unreachable'],
    ['that holds more is written down', { tenant: { ...TENANT, usedBytes: 11 } }, ['record'], 'Served'],
  ])('%s', (_what, observed, effects, reason) => {
    expect([effectsOf(observed), reasonOf(observed)]).toEqual([effects, reason])
  })

  test.each<[string, Partial<Observed>, readonly string[], string | undefined]>([
    ['has gone without a row', { row: undefined }, [], undefined],
    ['stays while it has buckets', {}, [], 'InUse'],
    ['is told another secret meanwhile', { wanted: { ...FACTS, secretFingerprint: 'g' } }, ['bringUp'], undefined],
    ['is suspended meanwhile', { wanted: { ...FACTS, isSuspended: true } }, ['bringUp'], undefined],
    ['is paid for meanwhile', { tenant: { ...TENANT, usedBytes: 11 } }, ['record'], 'InUse'],
    ['stays while its store does not answer', { isAway: true, tenant: undefined }, [], 'Unreachable'],
    ['stays while nobody can look into it', { obstacle: 'no engine', tenant: undefined }, [], 'NotOffered'],
    ['goes when it is empty', { tenant: { ...TENANT, bucketCount: 0 } }, ['remove'], undefined],
    ['goes when the store does not know it', { tenant: undefined }, ['remove'], undefined],
  ])('that is deleted %s', (_what, observed, effects, reason) => {
    expect([effectsOf(observed, GOING), reasonOf(observed, GOING)]).toEqual([effects, reason])
  })

  test('of a gateway has no prefix in its status', () => {
    const [status] = plan(OBJECT, { ...SERVED, row: { ...ROW, backend: 'rgw' } }, NOW).flatMap((action) =>
      action.do === 'status' ? [action.status] : [],
    )
    expect(status).toMatchObject({ backend: 'rgw', bucketPrefix: undefined })
  })

  test('that is deleted and has no row is released', () =>
    expect(plan(GOING, { ...SERVED, row: undefined }, NOW)).toEqual([{ do: 'finalized' }]))
})

describe('a move to the gateway', () => {
  const STANZA: OperationStanza = {
    id: 'op',
    kind: 'object_storage.migrate',
    requestedAt: '2026-01-01T00:00:00Z',
    deadlineAt: '2026-01-08T00:00:00Z',
    actor: 'user:ada',
    requestId: 'r',
  }
  const MOVING = { ...OBJECT, spec: { ...OBJECT.spec, operation: STANZA } }
  const MOVE: ObjectStorageMove = {
    operationId: 'op',
    phase: 'live',
    pass: 1,
    place: { bucket: '', after: '' },
    since: null,
    begunAt: '',
    changed: 0,
    objects: 0,
    bytes: 0,
    frozenAt: null,
    version: 1,
  }
  const at = (phase: ObjectStorageMove['phase']) => ({ row: { ...ROW, move: { ...MOVE, phase } } })
  const summary = (observed: Partial<Observed>, object: typeof MOVING = MOVING, now = NOW) => {
    const actions = plan(object, { ...SERVED, ...observed }, now)
    const effects = actions.flatMap((action) =>
      action.do === 'effect' && action.name !== 'audit' ? [action.name] : [],
    )
    const [operation] = actions.flatMap((action) => (action.do === 'operation' ? [action] : []))
    return [effects, operation?.step, operation?.outcome]
  }
  const refused = {
    ...MOVING,
    metadata: { ...MOVING.metadata, generation: 1 },
    status: {
      observedGeneration: 1,
      conditions: [
        {
          type: 'Moved',
          status: 'False' as const,
          reason: 'StateNotAllowed',
          message: 'Versions.',
          lastTransitionTime: '',
          observedGeneration: 1,
        },
      ],
    },
  }

  test.each<[string, Partial<Observed>, readonly string[], string, string | undefined]>([
    ['begins', {}, ['prepareMove'], 'prepared', undefined],
    ['copies while clients write', at('live'), ['goOnMoving'], 'copied', undefined],
    [
      'waits for the store to be told that it is frozen',
      { ...at('frozen'), wanted: { ...FACTS, isFrozen: true } },
      ['bringUp'],
      'frozen',
      undefined,
    ],
    ['compares', at('exact'), ['goOnMoving'], 'verified', undefined],
    ['takes away what has gone', at('prune'), ['goOnMoving'], 'verified', undefined],
    ['verifies', at('check'), ['goOnMoving'], 'verified', undefined],
    ['switches', at('verified'), ['switchOver'], 'switched', undefined],
    ['is over', { row: { ...ROW, backend: 'rgw', movedAt: NOW } }, [], 'switched', 'succeeded'],
    [
      'waits while a store does not answer',
      { ...at('live'), isAway: true, tenant: undefined },
      [],
      'copied',
      undefined,
    ],
    ['waits while a store is not there', { ...at('live'), obstacle: 'away' }, [], 'copied', undefined],
    [
      'undoes what another one has left',
      { row: { ...ROW, move: { ...MOVE, operationId: 'other' } } },
      ['abandonMove'],
      'prepared',
      undefined,
    ],
  ])('%s', (_what, observed, effects, step, outcome) => {
    expect(summary(observed)).toEqual([effects, step, outcome])
  })

  test('that is cancelled ends and is undone, but not when it is over', () => {
    const cancelled = { ...MOVING, spec: { ...MOVING.spec, operation: { ...STANZA, arguments: { cancel: 'true' } } } }
    expect(summary(at('exact'), cancelled)).toEqual([[], 'verified', 'cancelled'])
    expect(summary({ row: { ...ROW, backend: 'rgw' } }, cancelled)[2]).toBe('succeeded')
    expect(summary(at('exact'), OBJECT as typeof MOVING)[0], 'without an operation').toEqual(['abandonMove'])
  })

  test('that was refused fails, and one that takes too long', () => {
    expect(summary(at('check'), refused)).toEqual([[], 'verified', 'failed'])
    expect(summary(at('live'), MOVING, new Date('2026-01-08T00:00:01Z'))[2]).toBe('failed')
  })

  test('that waits says why, and is not tried again at once', () => {
    const why = (observed: Partial<Observed>, object: typeof MOVING) => {
      const actions = plan(object, { ...SERVED, ...observed }, NOW)
      const seconds = actions.flatMap((action) => (action.do === 'wait' ? [action.seconds] : []))
      const events = actions.flatMap((action) => (action.do === 'operation' ? (action.events ?? []) : []))
      return [events.map(({ message }) => message).join(), ...seconds]
    }
    const condition = { type: 'Moving', reason: 'Waiting', lastTransitionTime: '', message: 'PUT 403.' }
    const withCondition = (status: 'True' | 'False') => ({
      ...MOVING,
      status: { observedGeneration: 1, conditions: [{ ...condition, status }] },
    })
    expect(why(at('live'), withCondition('False'))).toEqual(['PUT 403.', 10])
    expect(why(at('live'), withCondition('True'))).toEqual(['', 0])
    const away = { ...at('live'), isAway: true, tenant: undefined }
    expect(why(away, MOVING)).toEqual([expect.stringContaining('does not answer'), 15])
    expect(why({ ...at('live'), obstacle: 'no engine' }, MOVING)[0]).toContain('no engine')
  })

  test('of one that is deleted is undone', () => {
    expect(summary(at('live'), { ...MOVING, metadata: GOING.metadata })).toEqual([
      ['abandonMove'],
      'prepared',
      'cancelled',
    ])
  })

  test('keeps a proxy that must forward its requests', () => {
    const upstream = { url: 'https://rgw', authority: null, isSourceKept: true }
    const moved: Partial<Observed> = { row: { ...ROW, backend: 'rgw', movedAt: NOW } }
    const door = (tenant: TenantState | undefined) => effectsOf({ ...moved, entrance: { tenant, upstream } })
    expect(door({ ...TENANT, upstream })).toEqual([])
    expect(door(TENANT), 'does not pass it on').toEqual(['bringUp'])
    expect(door({ ...TENANT, upstream: { ...upstream, isSourceKept: false } }), 'has another').toEqual(['bringUp'])
    expect(door({ ...TENANT, upstream, isFrozen: true }), 'is frozen still').toEqual(['bringUp'])
    expect(door(undefined), 'knows nobody').toEqual(['bringUp'])
  })
})
