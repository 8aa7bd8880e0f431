/** What autoscaling makes of a pool: which nodes come and go, and what happens when they will not. */
import { expect, test } from 'vitest'
import { COMING_SECONDS } from '../../../../domain/node-pool/autoscaling/judge.ts'
import { DRAIN_MINUTES } from '../../../../domain/node-pool/rules.ts'
import { scalingFor, type UnderusedMemory } from '../../../../controllers/nouns/node-pool/scaling.ts'
import type { Load, LoadPod } from '../../../../domain/node-pool/autoscaling/load.ts'
import type { NodePoolObject } from '../../../../controllers/nouns/node-pool/observed.ts'
import {
  at,
  decide,
  machineOf,
  nameOf,
  nodeOf,
  NOW,
  observedWith,
  operationOf,
  poolWith,
  running,
} from './situations.ts'
import { WAITING } from '../../../domain/node-pool/pods.ts'

const AUTOSCALING = { min: 1, max: 4 }
const following = (pool: NodePoolObject): NodePoolObject => {
  const { status } = decide(
    { ...pool, spec: { ...pool.spec, operation: operationOf('scale') } },
    running(pool, wholeOf(pool)),
  )
  return { ...pool, status: { ...pool.status, followed: String(status['followed']) } }
}
const scaled = (count: number, spec: Partial<NodePoolObject['spec']> = {}): NodePoolObject =>
  following(poolWith({ count, spec: { autoscaling: AUTOSCALING, ...spec } }))
const numbersOf = ({ spec }: NodePoolObject): number[] =>
  Array.from({ length: 20 }, (_, number) => number)
    .filter((number) => spec.skipped?.includes(number) !== true)
    .slice(0, spec.count)
const wholeOf = (pool: NodePoolObject) => ({
  machines: numbersOf(pool).map((number) => machineOf(number)),
  nodes: numbersOf(pool).map((number) => nodeOf(number)),
})

const loadOf = (pool: NodePoolObject, pods: readonly Partial<LoadPod>[]): Load => ({
  nodes: numbersOf(pool).map((number) => ({
    name: nameOf(number),
    isReady: true,
    isSchedulable: true,
    isKept: false,
    labels: {},
    taints: [],
    allocatable: { cpu: 1_000, memory: 1_000, pods: 110 },
  })),
  pods: pods.map((more, index) => ({
    ...WAITING,
    name: `a/${index}`,
    requests: { cpu: 600 },
    ...more,
  })),
  budgets: {},
})
const placed = (number: number, cpu: number): Partial<LoadPod> => ({
  node: nameOf(number),
  isUnschedulable: false,
  requests: { cpu },
})
/** Looked at once now, and once so many minutes later. */
function changeOf(
  pool: NodePoolObject,
  pods: readonly Partial<LoadPod>[],
  minutes = 0,
  numbersInUse: readonly number[] = [],
  mayGrow = true,
) {
  const memory = new Map()
  const load = loadOf(pool, pods)
  const lookAt = (now: Date) =>
    scalingFor(memory, 'shop', { load, pools: [pool], region: 'eu-1', now, planOf: () => undefined })
  lookAt(NOW)
  const later = new Date(at(minutes))
  const scaling = lookAt(later)
  const { change } = decide(pool, { ...running(pool, wholeOf(pool)), scaling, numbersInUse, mayGrow }, later)
  return (change as { spec: NodePoolObject['spec'] } | undefined)?.spec
}

test('it grows for pods that wait, by an operation of the platform', () => {
  const change = changeOf(scaled(1), [placed(0, 900), {}, {}])
  expect(change).toMatchObject({ count: 3, skipped: [] })
  expect(change?.operation).toMatchObject({
    kind: 'node_pool.sync',
    arguments: { action: 'grow' },
    actor: 'system:controllers',
  })
  expect(changeOf(scaled(4), [{}, {}, {}, {}, {}])).toBeUndefined()
  expect(changeOf(poolWith({ count: 1 }), [placed(0, 900), {}])).toBeUndefined()
})

test('bounds that leave out what there is bring it within them', () => {
  expect(changeOf(scaled(5), [])).toMatchObject({ count: 4 })
  expect(changeOf(scaled(1, { autoscaling: { min: 2, max: 4 } }), [])).toMatchObject({ count: 2 })
})

test('the pool of an account that may make nothing shrinks and does not grow', () => {
  const change = (pool: NodePoolObject, pods: readonly Partial<LoadPod>[]) => changeOf(pool, pods, 0, [], false)
  expect(change(scaled(1), [placed(0, 900), {}, {}])).toBeUndefined()
  expect(change(scaled(1, { autoscaling: { min: 2, max: 4 } }), [])).toBeUndefined()
  expect(change(scaled(5), [])).toMatchObject({ count: 4 })
})

test('the node that is used least goes after ten minutes, whichever number it has, and its number comes back', () => {
  const used = [placed(0, 400), placed(2, 600)]
  expect(changeOf(scaled(3), used, 9)).toBeUndefined()
  const change = changeOf(scaled(3), used, 10)
  expect(change).toMatchObject({ count: 2, skipped: [1], operation: { arguments: { action: 'shrink' } } })
  const shrinking = poolWith({
    count: 2,
    spec: { autoscaling: AUTOSCALING, skipped: [1] },
    operation: operationOf('shrink'),
  })
  const three = {
    machines: [0, 1, 2].map((number) => machineOf(number)),
    nodes: [0, 1, 2].map((number) => nodeOf(number)),
  }
  expect(decide(shrinking, running(shrinking, three)).effects).toEqual({ drain: { names: [nameOf(1)], known: [] } })

  const without = scaled(2, { skipped: [1, 7] })
  expect(changeOf(without, [{}, {}, {}])).toMatchObject({ count: 3, skipped: [7] })
  // Something of it is left: another number comes.
  expect(changeOf(without, [{}, {}, {}], 0, [1, 7])).toMatchObject({ count: 3, skipped: [1, 7] })
})

test('a node whose pods will not go stays', () => {
  const pool = (drain: object, spec: Partial<NodePoolObject['spec']> = {}) =>
    poolWith({
      count: 1,
      spec: { autoscaling: AUTOSCALING, skipped: [1], ...spec },
      operation: operationOf('shrink'),
      status: { drains: [{ hostname: nameOf(1), since: at(-DRAIN_MINUTES), isDone: false, ...drain }] },
    })
  const two = { machines: [machineOf(0), machineOf(1)], nodes: [nodeOf(0), nodeOf(1)] }
  const stuck = decide(pool({}), running(pool({}), two))
  expect([stuck.removed, stuck.effects]).toEqual([
    [],
    { keep: { names: [nameOf(1)], known: [expect.objectContaining({ hostname: nameOf(1) })] } },
  ])
  const patient = decide(pool({ since: at(1 - DRAIN_MINUTES) }), running(pool({}), two))
  expect(Object.keys(patient.effects)).toEqual(['drain'])
  const calledOff = decide(pool({ isCalledOff: true }), running(pool({}), two))
  expect([calledOff.removed, calledOff.effects, calledOff.change]).toEqual([
    [],
    {},
    { spec: { count: 2, skipped: [] } },
  ])
  const back = pool({ isCalledOff: true }, { count: 2, skipped: [] })
  expect(decide(back, running(back, two))).toMatchObject({
    outcome: 'succeeded',
    removed: [],
    status: { drains: undefined },
  })
  // Deleted with its pool it goes whatever its pods want.
  const deleting = { ...pool({}), metadata: { ...pool({}).metadata, deletionTimestamp: at(0) } }
  const { operation: _operation, ...spec } = deleting.spec
  const gone = { ...deleting, spec: { ...spec, operation: operationOf('delete', { kind: 'node_pool.delete' }) } }
  expect(decide(gone, running(gone, two)).removed).toEqual([machineOf(1).serverId])
})

test('a node that does not come in time is given up, and its pool waits before it grows again', () => {
  const growing = (minutes: number, min = 1) =>
    poolWith({
      count: 3,
      spec: { autoscaling: { ...AUTOSCALING, min } },
      operation: operationOf('grow', { requestedAt: at(-minutes) }),
    })
  const one = { machines: [machineOf(0), machineOf(1, { state: 'error' })], nodes: [nodeOf(0)] }
  const given = (minutes: number, min?: number) => decide(growing(minutes, min), running(growing(minutes, min), one))
  expect(given(COMING_SECONDS / 60 - 1).change).toBeUndefined()
  expect(given(COMING_SECONDS / 60)).toMatchObject({
    change: { spec: { count: 1, skipped: [1, 2] } },
    status: { growthFailedAt: at(0) },
  })
  // Never below its bounds.
  expect(given(COMING_SECONDS / 60, 2).change).toEqual({ spec: { count: 2, skipped: [2] } })
  const paused = (minutes: number) => {
    const pool = scaled(1)
    return { ...pool, status: { ...pool.status, growthFailedAt: at(-minutes) } }
  }
  expect(changeOf(paused(9), [placed(0, 900), {}])).toBeUndefined()
  expect(changeOf(paused(10), [placed(0, 900), {}])).toMatchObject({ count: 2 })
})

test('nothing is decided while the cluster does not say', () => {
  const pool = scaled(1)
  expect(decide(pool, { ...running(pool, wholeOf(pool)), scaling: undefined }).change).toBeUndefined()
  expect(decide(pool, observedWith({ api: { obstacle: 'the API' } })).change).toBeUndefined()
})

test('the memory of a cluster that nobody looks at is dropped', () => {
  const memory: UnderusedMemory = new Map()
  const pool = scaled(1)
  const lookAt = (cluster: string, minutes: number) =>
    scalingFor(memory, cluster, {
      load: loadOf(pool, []),
      pools: [pool],
      region: 'eu-1',
      now: new Date(at(minutes)),
      planOf: () => undefined,
    })
  lookAt('gone', 0)
  lookAt('shop', 1)
  lookAt('shop', 59)
  expect([...memory.keys()]).toEqual(['gone', 'shop'])
  lookAt('shop', 60)
  expect([...memory.keys()]).toEqual(['shop'])
})
