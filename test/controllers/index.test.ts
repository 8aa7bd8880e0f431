/** What follows from the list of controllers, and what must agree with it. */
import { expect, test } from 'vitest'
import { KINDS, NOUNS } from '../../apiserver/nouns.ts'
import { CONTROLLERS, type ControllersOptions, INTENT_HANDLERS, OPERATION_TARGETS } from '../../controllers/index.ts'
import { openSimulatedOvn } from '../../controllers/network/ovn/simulated-ovn.ts'
import { targetTypeOf } from '../../controllers/kit/operation/record.ts'
import { controllerRights } from '../../controllers/rights.ts'
import { OPERATION_KINDS } from '../../domain/operations.ts'
import { type Caches, openCaches } from '../../kit/kube/caches.ts'
import type { ResourceType } from '../../kit/kube/object.ts'
import type { Store } from '../../kit/kube/store.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { silentLog } from '../../kit/sys/log.ts'
import { openRegistry } from '../../kit/sys/metrics.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { API_GROUP } from '../../resources/kit/define.ts'
import { RESOURCES } from '../../resources/index.ts'
import { carrierTypeOf, OPERATION_TARGETS as TARGET_TYPES } from '../../resources/operation/index.ts'

test('every controller has a separate queue, and every finalizer of a kind one controller', () => {
  const names = CONTROLLERS.map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
  const finalizers = CONTROLLERS.flatMap(({ finalizer, resource: { kind } }) =>
    finalizer === undefined ? [] : [`${finalizer} of ${kind}`],
  )
  expect(new Set(finalizers).size).toBe(finalizers.length)
})

test('no kind of operation has a flow with two nouns, but for templates of accounts and of operators', () => {
  const kinds = CONTROLLERS.filter(({ name }) => name !== 'template').flatMap(({ operationKinds }) => operationKinds)
  expect(kinds.length).toBeGreaterThan(0)
  expect(new Set(kinds).size).toBe(kinds.length)
  for (const kind of kinds) expect(OPERATION_KINDS).toContain(kind)
})

test('what the API server takes for targets of operations has a controller with flows, and nothing else has', () => {
  const targets = KINDS.filter(({ target }) => target !== undefined).map(({ resource }) => resource.kind)
  expect(targets.length).toBeGreaterThan(0)
  expect(OPERATION_TARGETS.map(({ kind }) => kind).toSorted()).toEqual(targets.toSorted())
})

test('everything that customers write has a handler of the intents that a dead API server leaves', () => {
  const writable = new Set(RESOURCES.filter(({ customers }) => customers === 'write').map(({ kind }) => kind))
  const types = NOUNS.flatMap(({ name, kinds }) =>
    kinds.filter(({ resource }) => writable.has(resource.kind)).map(({ target }) => target ?? name),
  )
  expect(types.length).toBeGreaterThan(0)
  expect(INTENT_HANDLERS.map(({ resourceType }) => resourceType).toSorted()).toEqual(types.toSorted())
})

/** Their targets are others; whoever begins one says what it is named after (`carriedBy`). Those of operators are found
 *  by their node or their zone. */
const CARRIED = ['storage.backup', 'storage.drain_host', 'storage.rebalance_policy']

test('operations are named after what they are done to, but for those that say what carries them', () => {
  const others = CONTROLLERS.flatMap(({ resource, operationKinds }) =>
    operationKinds.filter((kind) => carrierTypeOf(kind) !== targetTypeOf(resource.kind)),
  )
  expect([...new Set(others)].toSorted()).toEqual(CARRIED)
})

test('operations name every noun that has them, and no noun has two handlers of intents', () => {
  for (const { kind } of OPERATION_TARGETS) expect(TARGET_TYPES).toContain(targetTypeOf(kind))
  const types = INTENT_HANDLERS.map(({ resourceType }) => resourceType)
  expect(new Set(types).size).toBe(types.length)
})

/** Every controller with what it watches, and with every kind that it asks a cache for when it is opened. */
const OPENED = CONTROLLERS.map((registration) => {
  const asked = new Set<ResourceType>()
  const caches = openCaches({
    store: {} as Store, // the caches are not started
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    registry: openRegistry({ isProcessWide: false }),
  })
  const recording: Caches = {
    ...caches,
    of(type) {
      asked.add(type)
      return caches.of(type)
    },
  }
  // what is opened keeps its parts for later
  const options = { caches: recording, clock: systemClock, ovn: openSimulatedOvn() } as Partial<ControllersOptions>
  const reconciler = registration.open(options as ControllersOptions)
  return { registration, watched: [...asked, ...(reconciler?.watches ?? []).map(({ type }) => type)] }
})

test.each(OPENED)(
  '$registration.name has registered every kind that it reads, and no other',
  ({ registration: { resource, reads, writes, patches = [] }, watched }) => {
    const kinds = (types: Iterable<ResourceType>) => [...new Set([...types].map(({ kind }) => kind))].toSorted()
    const besidesItself = (types: readonly ResourceType[]) => types.filter(({ kind }) => kind !== resource.kind)
    expect(kinds([resource, ...reads, ...writes, ...patches])).toEqual(expect.arrayContaining(kinds(watched)))
    expect(kinds(watched)).toEqual(expect.arrayContaining(kinds(besidesItself(reads))))
    expect(kinds(reads).filter((kind) => kinds([...writes, ...patches]).includes(kind))).toEqual([])
  },
)

test('the controllers may write what they have registered and nothing else of the platform', () => {
  const rules = controllerRights(CONTROLLERS).everywhere
  const may = (verb: string) =>
    rules
      .filter(({ apiGroups, verbs }) => apiGroups[0] === API_GROUP && verbs.includes(verb))
      .flatMap(({ resources }) => resources)
      .toSorted()
  const written = CONTROLLERS.flatMap(({ writes }) => writes).filter(({ group }) => group === API_GROUP)
  expect(may('delete')).toEqual([...new Set(written.map(({ plural }) => plural))].toSorted())
  expect(may('update')).toEqual([])
  const roots = [...new Set(CONTROLLERS.map(({ resource }) => `${resource.plural}/status`))].toSorted()
  expect(may('patch').filter((resource) => resource.includes('/'))).toEqual(roots)
})
