/** Which objects are reconciled when one changes that they name. */
import { expect, test } from 'vitest'
import { Cache } from '../../../kit/kube/cache.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { watchNamed } from '../../../kit/reconcile/watch-named.ts'
import { Child, type ChildSpec, NAMESPACE, Parent, type ParentSpec, type ParentStatus } from '../world.ts'

const fail = (error: unknown): never => {
  throw error
}
const head = ({ kind }: { readonly kind: string }) => ({ apiVersion: 'kit.svccloud.example/v1', kind })
const child = (name: string, parent: string, namespace = NAMESPACE): KubeObject<ChildSpec, { isReady?: boolean }> => ({
  ...head(Child),
  metadata: { name, namespace, uid: name, resourceVersion: '1' },
  spec: { parent, index: 0 },
})
const parent = (name: string): KubeObject<ParentSpec, ParentStatus> => ({
  ...head(Parent),
  metadata: { name, namespace: NAMESPACE },
  spec: { size: 0 },
})

test('all that name it in its namespace, and none else', () => {
  const cache = new Cache(Child, fail)
  const { type, toKeys } = watchNamed(cache, Parent, ({ spec }) => (spec.parent === '' ? undefined : spec.parent))
  cache.apply(child('a', 'one'))
  cache.apply(child('b', 'one'))
  cache.apply(child('c', 'two'))
  cache.apply(child('d', ''))
  cache.apply(child('e', 'one', 'elsewhere'))
  const keys = (name: string) => toKeys(parent(name)).map((key) => key.name)
  expect([type, keys('one'), keys('two'), keys('undefined')]).toEqual([Parent, ['a', 'b'], ['c'], []])
})
