import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { defined } from '../../../domain/defined.ts'
import { Unavailable } from '../../../domain/problem.ts'
import { openCaches, type Caches } from '../../../kit/kube/caches.ts'
import { type KubeObject, Namespace } from '../../../kit/kube/object.ts'
import type { Store } from '../../../kit/kube/store.ts'
import type { Transport } from '../../../kit/kube/transport.ts'
import type { Action } from '../../../kit/reconcile/action.ts'
import { openController } from '../../../kit/reconcile/loop.ts'
import { openControllerMetrics } from '../../../kit/reconcile/metrics.ts'
import { activeOperation, isOverdue, type Operations } from '../../../kit/reconcile/operation.ts'
import { watch, type Reconciler } from '../../../kit/reconcile/reconciler.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import { type Logger, silentLog } from '../../../kit/sys/log.ts'
import { openRegistry } from '../../../kit/sys/metrics.ts'
import { OUTAGE_MILLISECONDS } from '../../../kit/sys/outages.ts'
import { Child, NAMESPACE, openWorld, Parent, type ParentSpec, type ParentStatus, type World } from '../world.ts'

const FINALIZER = 'kit.svccloud.example/parent'
const key = (name: string) => ({ namespace: NAMESPACE, name })

interface Seen {
  readonly children: readonly string[]
}
type Root = KubeObject<ParentSpec, ParentStatus>

/** Makes as many children as the root is large, one after the other. */
const sizing = (caches: Caches): Reconciler<ParentSpec, ParentStatus, Seen> => ({
  name: 'parent',
  type: Parent,
  watches: [watch(Child, ({ metadata, spec }) => [{ namespace: metadata.namespace ?? '', name: spec.parent }])],
  finalizer: FINALIZER,
  observe: (root) => ({
    children: caches
      .of(Child)
      .inNamespace(NAMESPACE)
      .filter(({ spec }) => spec.parent === root.metadata.name)
      .map(({ metadata }) => metadata.name),
  }),
  plan(root, { children }, now) {
    const active = activeOperation(root)
    const wanted = Array.from(
      { length: root.metadata.deletionTimestamp === undefined ? root.spec.size : 0 },
      (_, index) => ({ index, name: `${root.metadata.name}-${index}` }),
    )
    const surplus = children.filter((name) => !wanted.some((each) => each.name === name))
    const missing = wanted.find(({ name }) => !children.includes(name))
    const end = (outcome: 'succeeded' | 'failed'): Action[] =>
      active === undefined ? [] : [{ do: 'operation', id: active.id, step: 'done', outcome }]
    if (surplus.length > 0) return surplus.map((name) => ({ do: 'remove', type: Child, key: key(name) }))
    if (root.metadata.deletionTimestamp !== undefined) return [...end('succeeded'), { do: 'finalized' }]
    if (missing !== undefined && isOverdue(root, now)) return end('failed')
    if (missing !== undefined) {
      return [
        { do: 'status', status: { state: 'making', children: children.length } },
        {
          do: 'ensure',
          type: Child,
          draft: { metadata: key(missing.name), spec: { parent: root.metadata.name, index: missing.index } },
        },
      ]
    }
    return [{ do: 'status', status: { state: 'made', children: children.length } }, ...end('succeeded')]
  },
})

const keeping = (log: string[] = []): Operations => ({
  async record(_root, action) {
    log.push(`${action.id} ${action.outcome ?? action.step}`)
    const { id, step, outcome, error = '' } = action
    return { id, kind: 'parent.create', step, status: outcome ?? 'running', error, actor: 'user:1' }
  },
})

interface Running {
  readonly registry: ReturnType<typeof openRegistry>
  readonly stop: () => Promise<void>
  readonly store: Store
}

function run(
  world: World,
  make: (caches: Caches) => Reconciler<ParentSpec, ParentStatus, Seen>,
  more: {
    operations?: Operations
    disturb?: (serve: Transport, clock: Clock) => Transport
    workers?: number
    mayAct?: () => boolean
    log?: Logger
  } = {},
): Running & { crash(): void } {
  const { process, store, clock } = world.join('controller', more.disturb)
  const registry = openRegistry({ isProcessWide: false })
  const { random } = world.scheduler
  const caches = openCaches({ store, clock, random, log: silentLog, registry })
  const controller = openController(make(caches), {
    store,
    caches,
    clock,
    random,
    log: more.log ?? silentLog,
    metrics: openControllerMetrics(registry),
    operations: more.operations ?? keeping(),
    ...defined({ workers: more.workers }),
    ...(more.mayAct && { mayAct: more.mayAct }),
  })
  const stop = new AbortController()
  caches.start(stop.signal)
  const running = controller.run(stop.signal)
  return {
    registry,
    store,
    crash: () => process.crash(),
    async stop() {
      stop.abort()
      await world.settled(running)
    },
  }
}

const create = (world: World, name: string, spec: ParentSpec) =>
  world.settled(world.admin.create(Parent, { metadata: key(name), spec }))
async function read(world: World, name: string): Promise<Root | undefined> {
  return world.settled(world.admin.get(Parent, key(name)))
}
async function untilRoot(
  world: World,
  name: string,
  isTrue: (root: Root | undefined) => boolean,
  withinMilliseconds = 3_600_000,
): Promise<void> {
  const deadline = world.scheduler.nowMilliseconds + withinMilliseconds
  while (!isTrue(await read(world, name))) {
    if (world.scheduler.nowMilliseconds > deadline)
      throw new Error(`${name} did not come to it: ${JSON.stringify(await read(world, name))}`)
    await world.pass(250)
  }
}
const childrenOf = async (world: World) =>
  (await world.settled(world.admin.list(Child))).items.map(({ metadata }) => metadata.name).sort()
const inMinutes = (world: World, minutes: number) =>
  new Date(world.scheduler.now().getTime() + minutes * 60_000).toISOString()

test('brings roots to what they request, follows changes, and removes them with everything they have', async () => {
  const world = await openWorld()
  const controller = run(world, sizing)
  await create(world, 'a', { size: 3 })
  await untilRoot(world, 'a', (root) => root?.status?.state === 'made' && root.status.children === 3)
  expect((await read(world, 'a'))?.metadata.finalizers).toEqual([FINALIZER])
  await world.settled(world.admin.patch(Parent, key('a'), { spec: { size: 1 } }))
  await untilRoot(world, 'a', (root) => root?.status?.children === 1)
  await world.settled(world.admin.delete(Child, key('a-0')))
  await world.pass(1000)
  expect(await childrenOf(world)).toEqual(['a-0'])
  await world.settled(world.admin.delete(Parent, key('a')))
  await untilRoot(world, 'a', (root) => root === undefined)
  expect(await childrenOf(world)).toEqual([])
  await controller.stop()
})

test('an effect that moves what its plan waits for is refused, and the operation ends at once', async () => {
  const world = await openWorld()
  const log: string[] = []
  let asked = 0
  const chasing = (): Reconciler<ParentSpec, ParentStatus, Seen> => ({
    name: 'parent',
    type: Parent,
    watches: [],
    observe: () => ({ children: [] }),
    plan: (root) => {
      const active = activeOperation(root)
      return active === undefined
        ? []
        : [
            { do: 'effect', name: 'move', input: { to: 'here' } },
            { do: 'operation', id: active.id, step: 'moved' },
            { do: 'wait', seconds: 1, for: 'what moves' },
          ]
    },
    effects: { move: async () => ({ status: { children: asked++ } }) },
  })
  const controller = run(world, chasing, { operations: keeping(log) })
  await create(world, 'a', {
    size: 0,
    operation: { id: 'op1', kind: 'parent.create', deadlineAt: inMinutes(world, 10) },
  })
  await untilRoot(world, 'a', (root) => root?.status?.operation?.status === 'failed', 60_000)
  expect(log.at(-1)).toBe('op1 failed')
  await controller.stop()
})

test('is quiet once everything is as it should be', async () => {
  const world = await openWorld()
  let writes = 0
  const controller = run(world, sizing, {
    disturb: (serve) => (request) => (request.method === 'GET' ? serve(request) : (writes++, serve(request))),
  })
  await create(world, 'a', { size: 2 })
  await untilRoot(world, 'a', (root) => root?.status?.children === 2)
  const before = writes
  await world.pass(3_600_000) // with resyncs and lists
  expect(writes).toBe(before)
  expect(await controller.registry.metrics()).toMatch(
    /controller_runtime_reconcile_total\{controller="parent",result="success"\} [5-9]/,
  )
  await controller.stop()
})

test(
  'a root that fails is tried again ever more rarely, others go ' + 'on, and it is well as soon as it can be',
  async () => {
    const world = await openWorld()
    let isBroken = true
    let attempts = 0
    const controller = run(
      world,
      (caches) => {
        const reconciler = sizing(caches)
        return {
          ...reconciler,
          observe(root, now) {
            if (root.metadata.name === 'bad') attempts++
            if (root.metadata.name === 'bad' && isBroken) throw new Unavailable('the database')
            return reconciler.observe(root, now)
          },
        }
      },
      { workers: 1 },
    )
    await create(world, 'bad', { size: 1 })
    await create(world, 'good', { size: 1 })
    await untilRoot(world, 'good', (root) => root?.status?.state === 'made', 60_000)
    await world.pass(600_000)
    expect(attempts).toBeLessThan(60)
    isBroken = false
    await untilRoot(world, 'bad', (root) => root?.status?.state === 'made', 31_000)
    isBroken = true
    attempts = 0
    await world.settled(world.admin.patch(Parent, key('bad'), { spec: { size: 2 } }))
    await world.pass(1000)
    expect(attempts, 'its next failure is its first').toBeGreaterThan(5)
    await controller.stop()
  },
)

test('a bug in a plan harms nobody else, and is counted', async () => {
  const world = await openWorld()
  const controller = run(
    world,
    (caches) => {
      const reconciler = sizing(caches)
      return {
        ...reconciler,
        plan: (root, seen, now) =>
          root.metadata.name === 'bad' ? (JSON.parse('{') as Action[]) : reconciler.plan(root, seen, now),
      }
    },
    { workers: 1 },
  )
  await create(world, 'bad', { size: 1 })
  await create(world, 'good', { size: 1 })
  await untilRoot(world, 'good', (root) => root?.status?.state === 'made', 60_000)
  expect(await controller.registry.metrics()).toMatch(
    /controller_runtime_reconcile_panics_total\{controller="parent"\} [1-9]/,
  )
  await controller.stop()
})

describe('a reconcile that loses a race is no warning', () => {
  const recording = (warnings: string[]): Logger => {
    const log: Logger = {
      ...silentLog,
      warn: (message, fields) => void warnings.push(`${message}: ${String(fields?.error)}`),
      error: (message, fields) => void warnings.push(`${message}: ${String(fields?.error)}`),
      with: () => log,
    }
    return log
  }
  /** Lets something else happen right before the first request that matches. */
  const before =
    (isMeant: (method: string, path: string) => boolean, event: () => Promise<unknown>, races: { count: number }) =>
    (serve: Transport): Transport =>
    async (request) => {
      if (races.count === 0 && isMeant(request.method, request.path)) {
        races.count += 1
        await event()
      }
      return serve(request)
    }

  test('when the root is deleted between reading and writing', async () => {
    const world = await openWorld()
    const warnings: string[] = []
    const races = { count: 0 }
    const controller = run(
      world,
      (caches) => {
        const { finalizer: _none, ...reconciler } = sizing(caches)
        return reconciler
      },
      {
        log: recording(warnings),
        disturb: before(
          (method, path) => method === 'PATCH' && path.includes('/parents/a/status'),
          () => world.admin.delete(Parent, key('a')),
          races,
        ),
      },
    )
    await create(world, 'a', { size: 0 })
    await untilRoot(world, 'a', (root) => root === undefined, 60_000)
    await world.pass(60_000)
    expect(races.count).toBe(1)
    expect(warnings).toEqual([])
    await controller.stop()
  })

  test('when its namespace is deleted in between', async () => {
    const world = await openWorld()
    const warnings: string[] = []
    const races = { count: 0 }
    const controller = run(world, sizing, {
      log: recording(warnings),
      disturb: before(
        (method, path) => method === 'PATCH' && path.includes('/children/a-0'),
        () => world.admin.delete(Namespace, { name: NAMESPACE }),
        races,
      ),
    })
    await create(world, 'a', { size: 1 })
    await untilRoot(world, 'a', (root) => root === undefined)
    expect(races.count).toBe(1)
    expect(warnings).toEqual([])
    await controller.stop()
  })
})

test('an object that goes from one root to another wakes both', async () => {
  const world = await openWorld()
  const controller = run(world, sizing)
  await create(world, 'a', { size: 1 })
  await create(world, 'b', { size: 0 })
  await untilRoot(world, 'b', (root) => root?.status?.state === 'made')
  await untilRoot(world, 'a', (root) => root?.status?.state === 'made')
  await world.settled(world.admin.patch(Child, key('a-0'), { spec: { parent: 'b' } }))
  await world.pass(5000)
  const [left] = (await world.settled(world.admin.list(Child))).items
  expect(left?.spec.parent).toBe('a')
  await controller.stop()
})

test('an effect that does not take is tried ever more rarely, and the log says so', async () => {
  const world = await openWorld()
  const warnings: string[] = []
  let attempts = 0
  const log: Logger = { ...silentLog, warn: (message) => void warnings.push(message), with: () => log }
  const controller = run(
    world,
    (caches) => ({
      ...sizing(caches),
      plan: () => [
        { do: 'effect', name: 'mirror', input: {} },
        { do: 'wait', seconds: 1, for: 'the mirror' },
      ],
      effects: { mirror: async () => void (attempts += 1) },
    }),
    { log },
  )
  await create(world, 'a', { size: 0 })
  await world.pass(600_000)
  expect(attempts).toBeGreaterThan(10)
  expect(attempts, 'ten times each second, then every half minute').toBeLessThan(45)
  expect(warnings).toEqual(['what the plan does takes no effect; it is tried ever more rarely'])
  await world.settled(world.admin.patch(Parent, key('a'), { spec: { size: 1 } }))
  const before = attempts
  await world.pass(5_000)
  expect(attempts - before, 'a change of the root begins anew').toBeGreaterThan(3)
  await controller.stop()
})

test('a root whose reconcile fails wakes somebody once, when it has failed for long', async () => {
  const world = await openWorld()
  const warnings: string[] = []
  const log: Logger = { ...silentLog, warn: (message) => void warnings.push(message), with: () => log }
  let isAway = true
  const controller = run(
    world,
    (caches) => ({
      ...sizing(caches),
      plan: () => {
        if (isAway) throw new Unavailable('what it needs')
        return []
      },
    }),
    { log },
  )
  await create(world, 'a', { size: 0 })
  await world.pass(OUTAGE_MILLISECONDS / 2)
  isAway = false
  await world.pass(OUTAGE_MILLISECONDS)
  isAway = true
  await world.settled(world.admin.patch(Parent, key('a'), { spec: { size: 1 } }))
  await world.pass(OUTAGE_MILLISECONDS / 2)
  expect(warnings).toEqual([])
  await world.pass(3 * OUTAGE_MILLISECONDS)
  expect(warnings).toEqual(['reconcile failed'])
  await controller.stop()
})

test('what only reads is done as often as the plan says, however long nothing moves', async () => {
  const world = await openWorld()
  const warnings: string[] = []
  let readings = 0
  const log: Logger = { ...silentLog, warn: (message) => void warnings.push(message), with: () => log }
  const controller = run(
    world,
    (caches) => ({
      ...sizing(caches),
      plan: () => [
        { do: 'effect', name: 'read', input: {} },
        { do: 'wait', seconds: 1, for: 'an answer' },
      ],
      effects: {
        read: async () => {
          readings += 1
          return { isReading: true }
        },
      },
    }),
    { log },
  )
  await create(world, 'a', { size: 0 })
  await world.pass(600_000)
  expect(readings).toBeGreaterThan(500)
  expect(warnings).toEqual([])
  await controller.stop()
})

test('a wait brings the root back', async () => {
  const world = await openWorld()
  const visits: number[] = []
  const controller = run(world, (caches) => ({
    ...sizing(caches),
    plan: () => {
      visits.push(world.scheduler.nowMilliseconds)
      return [{ do: 'wait', seconds: 30, for: 'the tide' }]
    },
  }))
  await create(world, 'a', { size: 0 })
  await world.until(() => visits.length > 0)
  await world.pass(1000)
  visits.length = 0
  await world.pass(95_000)
  expect(visits).toHaveLength(3)
  await controller.stop()
})

describe('deadlines', () => {
  const stanza = (world: World) => ({ id: 'op1', kind: 'parent.create', deadlineAt: inMinutes(world, 10) })
  /** Children never come. */
  const stuck = (caches: Caches) => {
    const reconciler = sizing(caches)
    return {
      ...reconciler,
      plan: (root: Root, seen: Seen, now: Date) =>
        reconciler.plan(root, seen, now).filter((action) => action.do !== 'ensure'),
    }
  }

  test('the plan is asked when the deadline passes, and its verdict counts', async () => {
    const world = await openWorld()
    const controller = run(world, stuck)
    await create(world, 'a', { size: 1, operation: stanza(world) })
    await world.pass(599_000)
    expect((await read(world, 'a'))?.status?.operation).toBeUndefined()
    await world.pass(2000)
    expect((await read(world, 'a'))?.status).toMatchObject({ operation: { id: 'op1', status: 'failed', error: '' } })
    await controller.stop()
  })

  test('a deadline that passes while a turn is under way is not missed', async () => {
    const world = await openWorld()
    const { clock } = world.join('slow')
    const controller = run(world, (caches) => {
      const reconciler = stuck(caches)
      return {
        ...reconciler,
        observe: async (root: Root, now: Date) => {
          const seen = await reconciler.observe(root, now)
          await clock.sleep(2_000)
          return seen
        },
        plan: (root: Root, seen: Seen, now: Date) => reconciler.plan(root, seen, now),
      }
    })
    await create(world, 'a', { size: 1, operation: stanza(world) })
    await world.pass(599_000)
    await world.join('person').store.patch(Parent, key('a'), { metadata: { labels: { looked: 'at' } } })
    await world.pass(10_000)
    expect((await read(world, 'a'))?.status).toMatchObject({ operation: { id: 'op1', status: 'failed' } })
    await controller.stop()
  })

  test('an operation whose reconciler fails on and on is ended all the same', async () => {
    const world = await openWorld()
    const controller = run(world, (caches) => ({
      ...sizing(caches),
      observe: () => Promise.reject(new Unavailable('the database')),
    }))
    await create(world, 'a', { size: 1, operation: stanza(world) })
    await world.pass(600_000)
    expect((await read(world, 'a'))?.status?.operation).toBeUndefined()
    await untilRoot(world, 'a', (root) => root?.status?.operation?.status === 'failed', 120_000)
    expect((await read(world, 'a'))?.status?.operation?.error).toContain('deadline')
    await controller.stop()
  })
})

test('stopping finishes the current turn and starts no other', async () => {
  const world = await openWorld()
  let begun = 0
  const controller = run(
    world,
    (caches) => ({
      ...sizing(caches),
      observe: async () => {
        begun++
        await new Promise<void>((resolve) => world.scheduler.after(5000, resolve))
        return { children: [] }
      },
    }),
    { workers: 1 },
  )
  await create(world, 'a', { size: 1 })
  await create(world, 'b', { size: 1 })
  await world.until(() => begun === 1)
  await controller.stop()
  await world.pass(60_000)
  expect(begun).toBe(1)
  expect(await childrenOf(world)).toHaveLength(1)
})

test('a process that no longer leads writes nothing', async () => {
  const world = await openWorld()
  const controller = run(world, sizing, { mayAct: () => false })
  await create(world, 'a', { size: 1 })
  await world.pass(60_000)
  expect((await read(world, 'a'))?.metadata.finalizers).toBeUndefined()
  await controller.stop()
})

const program = fc.array(
  fc.record({
    name: fc.constantFrom('a', 'b'),
    does: fc.constantFrom('create', 'resize', 'delete', 'crash', 'meddle'),
    size: fc.nat(3),
    pass: fc.nat(5000),
  }),
  { minLength: 2, maxLength: 12 },
)

test(
  'with any losses on the way and deaths of the process: in the end every root is what it asks for, and what ' +
    'is gone left nothing',
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(10_000), program, async (seed, steps) => {
        const world = await openWorld(seed)
        let isCalm = false
        const strikes = (percent: number) => !isCalm && world.scheduler.random.fraction() < percent / 100
        const disturb =
          (serve: Transport, clock: Clock): Transport =>
          async (request) => {
            await clock.sleep(world.scheduler.random.fraction() * 300)
            if (strikes(5)) throw new Error('connection reset')
            const response = await serve(request)
            await clock.sleep(world.scheduler.random.fraction() * 300) // a crash here: done, and nobody knows
            if (strikes(5)) throw new Error('reply lost')
            return response
          }
        const ended: string[] = []
        const start = () => run(world, sizing, { disturb, operations: keeping(ended), workers: 2 })
        let controller = start()
        let operations = 0
        for (const { name, does, size, pass } of steps) {
          const there = await read(world, name)
          const operation = { id: `op${operations++}`, kind: 'parent.change', deadlineAt: inMinutes(world, 10) }
          if (does === 'create' && there === undefined) await create(world, name, { size, operation })
          if (does === 'resize' && there !== undefined)
            await world.settled(world.admin.patch(Parent, key(name), { spec: { size, operation } }))
          if (does === 'delete') await world.settled(world.admin.delete(Parent, key(name)))
          if (does === 'meddle') await world.settled(world.admin.delete(Child, key(`${name}-0`)))
          if (does === 'crash') {
            controller.crash()
            controller = start()
          }
          await world.pass(pass)
        }
        isCalm = true
        await world.pass(120_000)
        const roots = (await world.settled(world.admin.list(Parent))).items
        for (const root of roots) {
          expect(root.metadata.deletionTimestamp).toBeUndefined()
          expect(root.status).toMatchObject({
            state: 'made',
            children: root.spec.size,
            observedGeneration: root.metadata.generation,
          })
          expect(activeOperation(root)).toBeUndefined()
        }
        const wanted = roots
          .flatMap((root) => Array.from({ length: root.spec.size }, (_, index) => `${root.metadata.name}-${index}`))
          .sort()
        expect(await childrenOf(world)).toEqual(wanted)
        await controller.stop()
      }),
      { numRuns: 60 },
    )
  },
)
