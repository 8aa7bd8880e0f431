/** How the operation that changes the policy of shared storage goes on, table by table over the zone's plan. */
import { describe, expect, test } from 'vitest'
import { pendingProgress } from '../../../../controllers/kit/operation/progress.ts'
import type { ZoneObject } from '../../../../controllers/nouns/zone/observed.ts'
import { plan } from '../../../../controllers/nouns/zone/plan.ts'
import { POLICY_SET } from '../../../../controllers/nouns/zone/storage-policy.ts'
import type { StoragePolicy, ZoneSpec, ZoneStatus } from '../../../../resources/catalog/index.ts'
import type { OperationStanza } from '../../../../resources/kit/shapes.ts'
import { planOutcome } from '../../plan-outcome.ts'

const ASKED = '2026-01-01T00:00:00.000Z'
const NOW = new Date('2026-01-01T00:01:00Z')
const ago = (seconds: number) => new Date(NOW.getTime() - seconds * 1_000).toISOString()
const POLICY: StoragePolicy = { replicas: 3, failureDomain: 'host' }
const OPERATION: OperationStanza = {
  id: 'op-1',
  kind: 'storage.rebalance_policy',
  requestedAt: ASKED,
  deadlineAt: '2026-01-08T00:00:00Z',
  actor: 'operator',
  requestId: 'request-1',
}
const POOL = { name: 'cluster.disks', replicas: 3, failureDomain: 'host', hosts: 3, racks: 1, misplacedGroups: 0 }
type Answer = NonNullable<ZoneStatus['sharedStorage']>
const answer = (changes: Partial<typeof POOL> = {}, more: Partial<Answer> = {}): Answer => ({
  readAt: ago(10),
  detail: '',
  pools: [{ ...POOL, ...changes }],
  ...more,
})

interface Changes {
  readonly spec?: Partial<ZoneSpec>
  readonly status?: Partial<ZoneStatus>
  readonly now?: Date
}

function outcome({ spec, status, now = NOW }: Changes) {
  const zone: ZoneObject = {
    apiVersion: 'svccloud.dev/v1alpha1',
    kind: 'Zone',
    metadata: { name: 'z1', uid: 'uid-1', generation: 2 },
    spec: {
      displayName: 'Z',
      region: 'r',
      isClosed: false,
      capabilities: [],
      sharedStorage: { protocol: 'ceph', secretName: 'policy', policy: POLICY },
      operation: OPERATION,
      ...spec,
    },
    status: { operation: { ...pendingProgress(OPERATION), status: 'running' }, ...status },
  }
  const observed = {
    nodes: [],
    plans: [],
    hosts: [],
    guests: [],
    hasBackups: false,
    builtTemplates: [],
    pools: ['cluster.disks'],
    editor: 'user:olga',
  }
  return planOutcome(plan(zone, observed, now))
}
const refused: Partial<ZoneStatus> = {
  conditions: [
    {
      type: POLICY_SET,
      status: 'False' as const,
      reason: 'StateNotAllowed',
      message: 'too few hosts',
      observedGeneration: 2,
      lastTransitionTime: ASKED,
    },
  ],
}

describe('while the policy is changed', () => {
  test.each<readonly [string, Changes, object]>([
    ['a storage that was never asked is', {}, { step: 'applied', effects: ['setStoragePolicy'] }],
    [
      'what it said before the request counts for nothing',
      { status: { sharedStorage: answer({}, { readAt: '2025-12-31T00:00:00.000Z' }) } },
      { step: 'applied', effects: ['setStoragePolicy'] },
    ],
    [
      'fewer copies than wanted are set again',
      { status: { sharedStorage: answer({ replicas: 2 }) } },
      { step: 'applied', effects: ['setStoragePolicy'] },
    ],
    [
      'another failure domain too',
      { status: { sharedStorage: answer({ failureDomain: 'osd' }) } },
      { step: 'applied', effects: ['setStoragePolicy'] },
    ],
    [
      'one that does not answer is not pressed',
      { status: { sharedStorage: answer({}, { readAt: ago(1), detail: 'silent' }) } },
      { step: 'applied', effects: [], outcome: undefined },
    ],
    [
      'copies that are on their way are waited for',
      { status: { sharedStorage: answer({ misplacedGroups: 4 }) } },
      { step: 'rebalanced', effects: ['readSharedStorage'], outcome: undefined },
    ],
    [
      'and not looked at all the time',
      { status: { sharedStorage: answer({ misplacedGroups: 4 }, { readAt: ago(1) }) } },
      { step: 'rebalanced', effects: [] },
    ],
    [
      'it is over when every copy is in its place',
      { status: { sharedStorage: answer() } },
      { step: 'rebalanced', outcome: 'succeeded', status: { storagePolicy: POLICY } },
    ],
    [
      'a refusal ends it, and is not tried again',
      { status: refused },
      { outcome: 'failed', error: 'too few hosts', status: { storagePolicy: POLICY }, effects: [] },
    ],
    [
      'a pool that the cluster has not is no success',
      { status: { sharedStorage: answer({}, { pools: [] }) } },
      { step: 'applied', outcome: undefined },
    ],
    [
      'of another pool it does not depend',
      {
        spec: { sharedStorage: { protocol: 'ceph', secretName: 's', policy: { ...POLICY, pools: ['cluster.disks'] } } },
        status: {
          sharedStorage: answer({}, { pools: [POOL, { ...POOL, name: 'cluster.others', replicas: 1 }] }),
        },
      },
      { outcome: 'succeeded' },
    ],
    [
      'what the platform began by itself is set too',
      {
        spec: {
          sharedStorage: { protocol: 'ceph', secretName: 's' },
          operation: { ...OPERATION, arguments: { replicas: '2', failure_domain: 'rack' } },
        },
        status: { sharedStorage: answer({ replicas: 1 }) },
      },
      { step: 'applied', effects: ['setStoragePolicy'] },
    ],
    [
      'and is over as others are',
      {
        spec: {
          sharedStorage: { protocol: 'ceph', secretName: 's' },
          operation: { ...OPERATION, arguments: { replicas: '3', failure_domain: 'host' } },
        },
        status: { sharedStorage: answer() },
      },
      { outcome: 'succeeded', status: { storagePolicy: undefined } },
    ],
    [
      'it fails after its deadline, with what it waited for',
      { status: { sharedStorage: answer({ misplacedGroups: 4 }) }, now: new Date('2026-01-09T00:00:00Z') },
      {
        outcome: 'failed',
        error: expect.stringContaining('4 parts of the storage'),
        status: { storagePolicy: POLICY },
      },
    ],
  ])('%s', (_why, changes, expected) => expect(outcome(changes)).toMatchObject(expected))
})

describe('while nothing is changed', () => {
  const unnamed = { spec: { sharedStorage: { protocol: 'ceph' as const, secretName: 's' } } }
  const over = { operation: { ...pendingProgress(OPERATION), status: 'succeeded' as const, finishedAt: ASKED } }
  test.each<readonly [string, Changes, object]>([
    [
      'an edit with kubectl becomes an operation',
      { status: { ...over, storagePolicy: { replicas: 2, failureDomain: 'host' } } },
      { started: 'storage.rebalance_policy' },
    ],
    [
      'what an operation was about is no edit, however it ended',
      { status: { ...over, storagePolicy: POLICY, sharedStorage: answer() } },
      { started: undefined, effects: [] },
    ],
    [
      'the storage is looked at now and then',
      { status: { ...over, storagePolicy: POLICY, sharedStorage: answer({}, { readAt: ago(61) }) } },
      { started: undefined, effects: ['readSharedStorage'] },
    ],
    [
      'fewer copies than there are hosts become an operation where the zone names no policy',
      { ...unnamed, status: { ...over, sharedStorage: answer({ replicas: 1, failureDomain: 'osd', hosts: 2 }) } },
      { started: 'storage.rebalance_policy' },
    ],
    [
      'a third host brings a third copy',
      { ...unnamed, status: { ...over, sharedStorage: answer({ replicas: 2 }) } },
      { started: 'storage.rebalance_policy' },
    ],
    [
      'a third rack parts the copies',
      { ...unnamed, status: { ...over, sharedStorage: answer({ racks: 3 }) } },
      { started: 'storage.rebalance_policy' },
    ],
    [
      'a host that is lost takes none away',
      { ...unnamed, status: { ...over, sharedStorage: answer({ hosts: 2 }) } },
      { started: undefined },
    ],
    [
      'a rack neither',
      { ...unnamed, status: { ...over, sharedStorage: answer({ racks: 2, failureDomain: 'rack' }) } },
      { started: undefined },
    ],
    [
      'what no host is missing for stays as it is',
      { ...unnamed, status: { ...over, sharedStorage: answer({ replicas: 1, failureDomain: 'osd', hosts: 1 }) } },
      { started: undefined },
    ],
    [
      'a failure domain of the administrator stays',
      { ...unnamed, status: { ...over, sharedStorage: answer({ replicas: 2, failureDomain: 'room' }) } },
      { started: undefined },
    ],
    [
      'the policy of the zone is the last word',
      {
        spec: { sharedStorage: { protocol: 'ceph', secretName: 's', policy: { replicas: 1, failureDomain: 'host' } } },
        status: {
          ...over,
          storagePolicy: { replicas: 1, failureDomain: 'host' },
          sharedStorage: answer({ replicas: 1 }),
        },
      },
      { started: undefined },
    ],
    [
      'an old answer is no reason',
      { ...unnamed, status: { ...over, sharedStorage: answer({ replicas: 2 }, { detail: 'silent' }) } },
      { started: undefined },
    ],
    [
      'what was tried once is not tried again',
      {
        spec: { ...unnamed.spec, operation: { ...OPERATION, arguments: { replicas: '3', failure_domain: 'host' } } },
        status: { ...over, sharedStorage: answer({ replicas: 2 }) },
      },
      { started: undefined },
    ],
    [
      'a policy that was taken out is forgotten',
      { spec: { sharedStorage: { protocol: 'ceph', secretName: 's' } }, status: { ...over, storagePolicy: POLICY } },
      { started: undefined, status: { storagePolicy: undefined } },
    ],
  ])('%s', (_why, changes, expected) => expect(outcome(changes)).toMatchObject(expected))
})
