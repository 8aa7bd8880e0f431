/** Changes of nouns without operations that were left half-way: how they show. */
import { expect, test } from 'vitest'
import { devClusterChanges } from '../../../changes/dev-cluster.ts'
import { intentOf } from '../../../controllers/kit/changes.ts'
import { LAST_CHANGE_ANNOTATION } from '../../../resources/kit/labels.ts'

const OPERATION = '00000000-0000-7000-8000-000000000001'
const wasApplied = (action: string, metadata: object | undefined) => {
  const resource = { type: 'dev_cluster', id: 'one' }
  const intent = { operationId: OPERATION, accountId: '1', resource, createdAt: new Date(0), audit: { action } }
  const object = metadata && { metadata, spec: {} }
  const none = { executeTakeFirst: async () => undefined }
  const query: object = new Proxy(none, { get: (of, name) => Reflect.get(of, name) ?? (() => query) })
  const store = { get: async ({ kind }: { readonly kind: string }) => (kind === 'DevCluster' ? object : undefined) }
  const parts = { store, db: query }
  // the members that are looked at
  return intentOf(devClusterChanges).wasApplied(parts as never, intent as never)
}

test.each<readonly [string, string, object | undefined, boolean]>([
  ['a deletion, when it is gone', 'dev_cluster.delete', undefined, true],
  ['a deletion, when it is being deleted', 'dev_cluster.delete', { deletionTimestamp: '2026-01-01T00:00:00Z' }, true],
  ['no deletion, when it is as it was', 'dev_cluster.delete', {}, false],
  ['a creation, by its note', 'dev_cluster.create', { annotations: { [LAST_CHANGE_ANNOTATION]: OPERATION } }, true],
  ['no creation, when it is gone', 'dev_cluster.create', undefined, false],
])('it shows %s', async (_what, action, metadata, expected) => {
  expect(await wasApplied(action, metadata)).toBe(expected)
})
