import { expect, test } from 'vitest'
import { openObjectStorageMetrics } from '../../../../controllers/nouns/object-storage/metrics.ts'
import type { KubeObject } from '../../../../kit/kube/object.ts'
import { openRegistry } from '../../../../kit/sys/metrics.ts'
import type { ObjectStorageSpec, ObjectStorageStatus } from '../../../../resources/object-storage/index.ts'

type ObjectStorageObject = KubeObject<ObjectStorageSpec, ObjectStorageStatus>
const AT = '2026-01-01T00:00:00Z'
const condition = (type: string, status: 'True' | 'False', reason: string) =>
  ({ type, status, reason, message: '', lastTransitionTime: AT }) as const
const MOVE = {
  id: 'op',
  kind: 'object_storage.migrate',
  requestedAt: AT,
  deadlineAt: AT,
  actor: 'a',
  requestId: 'r',
} as const
const storage = (status: Partial<ObjectStorageStatus>, spec: Partial<ObjectStorageSpec> = {}): ObjectStorageObject => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'ObjectStorage',
  metadata: { name: 'mine', namespace: 'acct-a' },
  spec: { zone: 'z', ...spec },
  status: { observedGeneration: 1, quotaBytes: 100, usedBytes: 10, ...status },
})

test.each<[string, ObjectStorageObject, readonly string[]]>([
  ['one that is served', storage({ conditions: [condition('Ready', 'True', 'Served')] }), []],
  ['one that nobody has looked at', { ...storage({}), status: undefined } as never, []],
  ['an empty one without a quota', storage({ quotaBytes: 0, usedBytes: 0 }), []],
  ['one whose store is away', storage({ conditions: [condition('Ready', 'False', 'Unreachable')] }), ['unreachable']],
  ['one with room', storage({ usedBytes: 89 }), []],
  ['one that is nearly full', storage({ usedBytes: 90 }), ['nearly_full']],
  [
    'a move that waits',
    storage({ conditions: [condition('Moving', 'False', 'Waiting')] }, { operation: MOVE }),
    ['moves_waiting'],
  ],
  ['one that goes on', storage({ conditions: [condition('Moving', 'True', 'Moving')] }, { operation: MOVE }), []],
  ['one that is over', storage({ conditions: [condition('Moving', 'False', 'Waiting')] }), []],
])('%s is counted as it is', async (_what, object, names) => {
  const registry = openRegistry({ isProcessWide: false })
  openObjectStorageMetrics(() => [object], registry)
  const lines = (await registry.metrics()).split('\n').filter((line) => /^svccloud_.* 1$/.test(line))
  expect(lines).toEqual(names.map((name) => `svccloud_object_storage_${name} 1`))
})
