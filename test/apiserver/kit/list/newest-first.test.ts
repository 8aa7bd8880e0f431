import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compareNewestFirst, newestFirst, positionOf } from '../../../../apiserver/kit/list/newest-first.ts'
import { Cache } from '../../../../kit/kube/cache.ts'
import type { KubeObject } from '../../../../kit/kube/object.ts'
import { Server } from '../../../../resources/server/index.ts'

const objectOf = (name: number, second: number, version: number, namespace: string) =>
  ({
    apiVersion: 'svccloud.dev/v1alpha1',
    kind: 'Server',
    spec: {},
    metadata: {
      name: `s${name}`,
      namespace,
      resourceVersion: String(version),
      creationTimestamp: new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString().replace('.000', ''),
    },
  }) as unknown as Parameters<Cache<never, never>['apply']>[0]

test('pages are those of a full sort, after any creations, changes and deletions', () => {
  const change = fc.record({ name: fc.nat(30), namespace: fc.constantFrom('a', 'b'), isRemoved: fc.boolean() })
  fc.assert(
    fc.property(
      fc.array(change, { maxLength: 80 }),
      fc.nat(40),
      fc.integer({ min: 1, max: 7 }),
      (changes, from, count) => {
        const cache = new Cache(Server, (error) => {
          throw error
        })
        cache.takeList({ items: [], resourceVersion: '1' })
        const ordered = newestFirst(cache)
        changes.forEach(({ name, namespace, isRemoved }, index) => {
          // Several are made within a second, and one that is made anew has another.
          const object = objectOf(name, (name + (index >> 4)) % 5, index + 2, namespace)
          cache.takeEvent({ type: isRemoved ? 'DELETED' : 'MODIFIED', object } as never)
        })
        for (const namespace of ['a', 'b', 'c']) {
          const all = (cache.inNamespace(namespace) as KubeObject[]).sort((one, other) =>
            compareNewestFirst(positionOf(one), positionOf(other)),
          )
          expect(ordered.page(namespace, undefined, 1_000)).toEqual(all)
          const after = positionOf(objectOf(from, from % 5, 0, namespace))
          expect(ordered.page(namespace, after, count)).toEqual(
            all.filter((object) => compareNewestFirst(positionOf(object), after) > 0).slice(0, count),
          )
        }
      },
    ),
  )
})
