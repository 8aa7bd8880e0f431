import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Cache, isNewer, type CacheChange } from '../../../kit/kube/cache.ts'
import type { KubeObject, ResourceType } from '../../../kit/kube/object.ts'
import type { WatchEvent } from '../../../kit/kube/store.ts'

interface Spec {
  readonly value: number
}
const Thing: ResourceType<Spec> = { group: 'g', version: 'v1', kind: 'Thing', plural: 'things', scope: 'Namespaced' }

const openCache = () =>
  new Cache(Thing, (error) => {
    throw error
  })
const thing = (name: string, version: number, metadata: object = {}): KubeObject<Spec> => ({
  apiVersion: 'g/v1',
  kind: 'Thing',
  metadata: { name, namespace: 'n', resourceVersion: String(version), ...metadata },
  spec: { value: version },
})
const list = (version: number, ...items: KubeObject<Spec>[]) => ({ items, resourceVersion: String(version) })
const valueOf = (cache: Cache<Spec>, name: string) => cache.get({ namespace: 'n', name })?.spec.value

test.each([
  ['9', '10', false],
  ['10', '9', true],
  ['10', '10', false],
  ['1', '', true],
  ['99999999999999999999', '99999999999999999998', true],
])('version %s is newer than %s: %s', (a, b, expected) => {
  expect(isNewer(a, b)).toBe(expected)
})

describe('what is known never goes back', () => {
  const open = () => {
    const cache = openCache()
    cache.takeList(list(10, thing('a', 5)))
    return cache
  }

  test('an own write counts at once, and older news of the watch changes nothing', () => {
    const cache = open()
    cache.apply(thing('a', 14))
    expect(valueOf(cache, 'a')).toBe(14)
    cache.takeEvent({ type: 'MODIFIED', object: thing('a', 12) })
    expect(valueOf(cache, 'a')).toBe(14)
    cache.takeEvent({ type: 'MODIFIED', object: thing('a', 14) })
    cache.takeEvent({ type: 'MODIFIED', object: thing('a', 15) })
    expect(valueOf(cache, 'a')).toBe(15)
  })
  test('the answer of a write after the watch reported the removal does not bring the object back', () => {
    const cache = open()
    cache.takeEvent({ type: 'MODIFIED', object: thing('a', 11) })
    cache.takeEvent({ type: 'DELETED', object: thing('a', 12) })
    cache.apply(thing('a', 11))
    expect(valueOf(cache, 'a')).toBeUndefined()
  })
  test('the write that took the last finalizer off removes, and the events before it do not bring back', () => {
    const cache = open()
    cache.apply(thing('a', 14, { deletionTimestamp: '2030-01-01T00:00:00Z', finalizers: [] }))
    expect(valueOf(cache, 'a')).toBeUndefined()
    cache.takeEvent({ type: 'MODIFIED', object: thing('a', 12) })
    cache.takeList(list(13, thing('a', 12)))
    expect(valueOf(cache, 'a')).toBeUndefined()
    cache.takeEvent({ type: 'ADDED', object: thing('a', 16) })
    expect(valueOf(cache, 'a')).toBe(16)
  })
  test('a list does not remove what was written after it, and removes what it lacks', () => {
    const cache = open()
    cache.apply(thing('b', 15))
    cache.takeList(list(12))
    expect([valueOf(cache, 'a'), valueOf(cache, 'b')]).toEqual([undefined, 15])
  })
  test('events up to the version seen are known', () => {
    const cache = open()
    expect(cache.takeEvent({ type: 'DELETED', object: thing('a', 9) })).toBe(false)
    expect(cache.takeEvent({ type: 'BOOKMARK', resourceVersion: '20' })).toBe(true)
    expect(cache.takeEvent({ type: 'MODIFIED', object: thing('a', 20) })).toBe(false)
    expect(valueOf(cache, 'a')).toBe(5)
  })
})

test('a list reports how many objects differed from the cache', () => {
  const cache = openCache()
  expect(cache.takeList(list(10, thing('a', 5), thing('b', 6), thing('c', 7)))).toBe(3)
  expect(cache.takeList(list(12, thing('a', 5), thing('b', 11)))).toBe(2)
})

test('objects are frozen all the way down and without managedFields', () => {
  const cache = openCache()
  cache.takeList(list(10, thing('a', 5, { labels: { x: 'y' }, managedFields: [{ manager: 'm' }] })))
  const found = cache.get({ namespace: 'n', name: 'a' })
  expect(found?.metadata.managedFields).toBeUndefined()
  expect([found, found?.metadata, found?.metadata.labels, found?.spec].every(Object.isFrozen)).toBe(true)
})

test('a subscriber hears of what is there, then of every change, until it leaves', () => {
  const cache = openCache()
  cache.takeList(list(10, thing('a', 5)))
  const heard: CacheChange<Spec>[] = []
  const leave = cache.subscribe((change) => heard.push(change))
  cache.takeEvent({ type: 'MODIFIED', object: thing('a', 11) })
  cache.takeEvent({ type: 'DELETED', object: thing('a', 12) })
  leave()
  cache.takeEvent({ type: 'ADDED', object: thing('a', 13) })
  expect(
    heard.map((change) =>
      change.is === 'set'
        ? [change.isInitial, change.previous?.spec.value, change.object.spec.value]
        : ['removed', change.object.spec.value, change.version],
    ),
  ).toEqual([
    [true, undefined, 5],
    [false, 5, 11],
    ['removed', 11, '12'],
  ])
})

test('a removal names a version that is not before it, however it became known', () => {
  const cache = openCache()
  cache.takeList(list(10, thing('a', 5), thing('b', 6), thing('c', 7), thing('d', 8)))
  const versions: Record<string, string> = {}
  cache.subscribe((change) => {
    if (change.is === 'removed') versions[change.object.metadata.name] = change.version
  })
  cache.takeEvent({ type: 'DELETED', object: thing('a', 11) })
  cache.apply(thing('b', 12, { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [] }))
  cache.takeNamespace('n', list(13, thing('d', 8)))
  cache.takeList(list(14))
  expect(versions).toEqual({ a: '11', b: '12', c: '13', d: '14' })
})

test('a listener that throws does not keep the others from hearing', () => {
  const failures: unknown[] = []
  const cache = new Cache(Thing, (error) => failures.push(error))
  const heard: string[] = []
  cache.subscribe(() => {
    throw new Error('bug')
  })
  cache.subscribe(({ object }) => heard.push(object.metadata.name))
  cache.takeList(list(10, thing('a', 5)))
  expect([heard, failures.length]).toEqual([['a'], 1])
})

test('ready resolves with the first list, not before', async () => {
  const cache = openCache()
  let isReady = false
  const ready = cache.ready().then(() => (isReady = true))
  cache.apply(thing('a', 3))
  await Promise.resolve()
  expect([isReady, cache.isReady]).toEqual([false, false])
  cache.takeList(list(10))
  await ready
  expect(valueOf(cache, 'a')).toBeUndefined()
})

test('asking an index that was never added is a bug', () =>
  expect(() => openCache().by('colour', 'red')).toThrow('no index colour'))

/** A history of one server: what happened at each version. */
const history = fc.array(
  fc.record({
    name: fc.constantFrom('a', 'b', 'c'),
    isRemoval: fc.boolean(),
    label: fc.constantFrom('x', 'y'),
    owner: fc.constantFrom('u1', 'u2'),
  }),
  { minLength: 1, maxLength: 30 },
)

test(
  'late and repeated news by the watch, a list or a write: the end is the state of the server, and the ' +
    'indexes agree',
  () => {
    fc.assert(
      fc.property(history, fc.array(fc.nat(5), { minLength: 60, maxLength: 60 }), (steps, choices) => {
        const cache = openCache()
        cache.addIndex('parity', ({ spec }) => [spec.value % 2 === 0 ? 'even' : 'odd'])
        const server = new Map<string, KubeObject<Spec>>()
        const events: WatchEvent<Spec>[] = []
        const states = [new Map(server)]
        for (const [index, { name, isRemoval, label, owner }] of steps.entries()) {
          const version = index + 1
          const ownerReferences = [{ apiVersion: 'g/v1', kind: 'O', name: owner, uid: owner }]
          const next = thing(name, version, { labels: { team: label }, ownerReferences })
          const isThere = server.has(name)
          if (isRemoval && isThere) server.delete(name)
          else server.set(name, next)
          events.push({ type: isRemoval && isThere ? 'DELETED' : isThere ? 'MODIFIED' : 'ADDED', object: next })
          states.push(new Map(server))
        }
        cache.takeList(list(0))
        let told = 0
        let highest = new Map<string, number>()
        const unchanged = () => {
          for (const object of cache.list()) {
            const known = highest.get(object.metadata.name) ?? 0
            expect(object.spec.value, 'never goes back').toBeGreaterThanOrEqual(known)
          }
          highest = new Map(cache.list().map((object) => [object.metadata.name, object.spec.value]))
        }
        for (const choice of choices) {
          const event = events[told]
          if (event === undefined) break
          if (choice === 0 && told > 0)
            cache.takeEvent(events[told - 1] ?? event) // once more
          else if (choice === 1)
            cache.takeList(list(told + 1, ...(states[++told]?.values() ?? []))) // a list instead
          else if (choice === 2 && event.type !== 'BOOKMARK' && event.type !== 'DELETED')
            cache.apply(event.object) // the answer came first
          else {
            cache.takeEvent(event)
            told++
          }
          unchanged()
        }
        for (const event of events.slice(told)) cache.takeEvent(event)
        // very late answers
        for (const event of events) if (event.type !== 'BOOKMARK' && event.type !== 'DELETED') cache.apply(event.object)

        const byName = (objects: Iterable<KubeObject<Spec>>) =>
          [...objects].map(({ metadata, spec }) => `${metadata.name}@${spec.value}`).sort()
        expect(byName(cache.list())).toEqual(byName(server.values()))
        const scan = (isIn: (object: KubeObject<Spec>) => boolean) => byName(cache.list().filter(isIn))
        expect(byName(cache.labelled('team', 'x'))).toEqual(scan(({ metadata }) => metadata.labels?.['team'] === 'x'))
        expect(byName(cache.ownedBy('u1'))).toEqual(scan(({ metadata }) => metadata.ownerReferences?.[0]?.uid === 'u1'))
        expect(byName(cache.inNamespace('n'))).toEqual(byName(cache.list()))
        expect(byName(cache.by('parity', 'even'))).toEqual(scan(({ spec }) => spec.value % 2 === 0))
      }),
    )
  },
)
