import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { Unavailable } from '../../../domain/problem.ts'
import { openCaches } from '../../../kit/kube/caches.ts'
import { keyOf, type KubeObject } from '../../../kit/kube/object.ts'
import type { Transport } from '../../../kit/kube/transport.ts'
import type { Action, OperationAction } from '../../../kit/reconcile/action.ts'
import type { EventDraft } from '../../../kit/reconcile/events.ts'
import { interpret, patchBetween, type Interpreter } from '../../../kit/reconcile/interpret.ts'
import type { Progress } from '../../../kit/reconcile/operation.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { openRegistry } from '../../../kit/sys/metrics.ts'
import { Child, NAMESPACE, openWorld, Parent, type ParentSpec, type ParentStatus } from '../world.ts'

const FINALIZER = 'kit.svccloud.example/parent'

async function open(spec: ParentSpec = { size: 1 }, metadata: object = {}) {
  const world = await openWorld()
  const writes: string[] = []
  const noting =
    (serve: Transport): Transport =>
    (request) => {
      if (request.method !== 'GET')
        writes.push(`${request.method} ${request.path.split('?')[0]?.split('/').slice(6).join('/')}`)
      return serve(request)
    }
  const { store, clock } = world.join('controller', noting)
  const caches = openCaches({
    store,
    clock,
    random: world.scheduler.random,
    log: silentLog,
    registry: openRegistry({ isProcessWide: false }),
  })
  const [parents, children] = [caches.of(Parent), caches.of(Child)]
  const made = await world.settled(
    world.admin.create(Parent, { metadata: { namespace: NAMESPACE, name: 'p', ...metadata }, spec }),
  )
  const stop = new AbortController()
  caches.start(stop.signal)
  await world.settled(caches.ready())

  const interpreter: Interpreter = { store, caches, clock, finalizer: FINALIZER, mayAct: () => true }
  /** Interprets over the root as the cache knows it, then lets the watches catch up. */
  const act = async (actions: readonly Action[], more: Partial<Interpreter> = {}) => {
    const result = await world.settled(
      interpret(Parent, parents.get(keyOf(made)) ?? made, actions, { ...interpreter, ...more }),
    )
    await world.pass(10)
    return result
  }
  const root = async () =>
    (await world.settled(world.admin.get(Parent, keyOf(made)))) as KubeObject<ParentSpec, ParentStatus>
  return { world, writes, parents, children, act, root, interpreter, clock }
}

const child = (name: string, spec: object = {}) => ({
  metadata: { namespace: NAMESPACE, name },
  spec: { parent: 'p', index: 0, ...spec },
})
const ensure = (name: string, spec: object = {}): Action => ({ do: 'ensure', type: Child, draft: child(name, spec) })

describe('ensure', () => {
  test('makes, is free when true, changes, and takes away what the draft no longer has', async () => {
    const { act, writes, children } = await open()
    const spec = () => children.get({ namespace: NAMESPACE, name: 'c' })?.spec
    await act([ensure('c', { note: 'n' })])
    expect(spec()).toEqual({ parent: 'p', index: 0, note: 'n', level: 'plain' })
    expect((await act([ensure('c', { note: 'n' })])).done).toEqual([])
    expect(writes).toHaveLength(1)
    await act([ensure('c')])
    expect(spec()).toEqual({ parent: 'p', index: 0, level: 'plain' })
    expect(writes).toHaveLength(2)
  })
  test('puts right what somebody else has changed', async () => {
    const { act, world, children } = await open()
    await act([ensure('c')])
    await world.settled(world.admin.patch(Child, { namespace: NAMESPACE, name: 'c' }, { spec: { index: 7 } }))
    await world.pass(10)
    await act([ensure('c')])
    expect(children.get({ namespace: NAMESPACE, name: 'c' })?.spec.index).toBe(0)
  })
  test('leaves alone what is being deleted', async () => {
    const { act, world, writes } = await open()
    await world.settled(
      world.admin.create(Child, {
        ...child('c'),
        metadata: { namespace: NAMESPACE, name: 'c', finalizers: ['kit.svccloud.example/hold'] },
      }),
    )
    await world.settled(world.admin.delete(Child, { namespace: NAMESPACE, name: 'c' }))
    await world.pass(10)
    await act([ensure('c', { index: 3 })])
    expect(writes).toEqual([])
  })
})

test('remove is free when the object is deleted or in deletion', async () => {
  const { act, writes, children } = await open()
  const remove: Action = { do: 'remove', type: Child, key: { namespace: NAMESPACE, name: 'c' } }
  await act([remove])
  expect(writes).toEqual([])
  await act([ensure('c')])
  await act([remove])
  expect(children.size).toBe(0)
  await act([remove])
  expect(writes).toHaveLength(2)
})

describe('status', () => {
  test(
    'is one write for the whole plan, merged by field, with ' + 'observedGeneration; none when nothing changes',
    async () => {
      const { act, root, writes } = await open()
      const plan: Action[] = [
        { do: 'status', status: { state: 'up', detail: { a: '1', b: '2' } } },
        { do: 'status', status: { children: 2 } },
      ]
      await act(plan)
      expect((await root()).status).toEqual({
        observedGeneration: 1,
        state: 'up',
        detail: { a: '1', b: '2' },
        children: 2,
      })
      expect((await act(plan)).done).toEqual([])
      expect(writes).toEqual(['PATCH parents/p/status'])
      await act([{ do: 'status', status: { children: undefined, detail: { a: '1' } } }])
      expect((await root()).status).toEqual({ observedGeneration: 1, state: 'up', detail: { a: '1' } })
    },
  )
  test('conditions keep lastTransitionTime while their status stays, and others stay untouched', async () => {
    const { act, root, world, clock } = await open()
    const ready = (status: 'True' | 'False', reason: string): Action => ({
      do: 'status',
      status: {},
      conditions: [{ type: 'Ready', status, reason, message: '' }],
    })
    await act([
      { do: 'status', status: {}, conditions: [{ type: 'Placed', status: 'True', reason: 'Placed', message: '' }] },
      ready('False', 'Starting'),
    ])
    const [placed, first] = (await root()).status?.conditions ?? []
    await world.pass(5000)
    await act([ready('False', 'StillStarting')])
    expect((await root()).status?.conditions).toEqual([placed, { ...first, reason: 'StillStarting' }])
    await world.pass(5000)
    const at = `${clock.now().toISOString().slice(0, 19)}Z`
    await act([ready('True', 'Started')])
    expect((await root()).status?.conditions?.[1]).toEqual({
      type: 'Ready',
      status: 'True',
      reason: 'Started',
      message: '',
      observedGeneration: 1,
      lastTransitionTime: at,
    })
  })
  describe('is written whole or not', () => {
    const status = z.strictObject({
      state: z.string().max(9),
      detail: z.strictObject({ a: z.string().max(9), b: z.string().max(9).optional() }).optional(),
      children: z.int().optional(),
      observedGeneration: z.int().optional(),
    })
    const report = async () => ({ status: { children: 2 } })
    const effect: Action = { do: 'effect', name: 'count', input: {} }
    const strictly = async () => {
      const { interpreter, parents, root, world, writes } = await open()
      const act = async (actions: readonly Action[], effects: Interpreter['effects'] = { count: report }) => {
        const known = parents.get({ namespace: NAMESPACE, name: 'p' }) ?? (await root())
        const result = await world.settled(
          interpret({ ...Parent, status }, known, actions, { ...interpreter, effects }),
        )
        await world.pass(10)
        return result
      }
      return { act, root, writes }
    }
    test('what an effect reports waits for the status of the plan', async () => {
      const { act, root, writes } = await strictly()
      await act([effect])
      expect(writes).toEqual([])
      await act([effect, { do: 'status', status: { state: 'up' } }])
      expect((await root()).status).toEqual({ state: 'up', children: 2, observedGeneration: 1 })
      await act([effect], { count: async () => ({ status: { children: 3 } }) })
      expect((await root()).status).toEqual({ state: 'up', children: 3, observedGeneration: 1 })
    })
    test('a plan that leaves out a required field fails before the request, with its name', async () => {
      const { act, writes } = await strictly()
      await expect(act([{ do: 'status', status: { children: 1 } }])).rejects.toThrow('status without status.state')
      const incomplete: Action = { do: 'status', status: { state: 'up', detail: { b: 'x' } } }
      await expect(act([incomplete])).rejects.toThrow('status without status.detail.a')
      expect(writes).toEqual([])
    })
    test('what was decided before an effect failed is written only when it is whole', async () => {
      const { act, root, writes } = await strictly()
      const failing = {
        count: report,
        fail: async () => {
          throw new Unavailable('a host', 'it is away')
        },
      }
      const fail: Action = { do: 'effect', name: 'fail', input: {} }
      await expect(act([effect, fail], failing)).rejects.toThrow(Unavailable)
      expect(writes).toEqual([])
      await expect(act([{ do: 'status', status: { state: 'up' } }, fail], failing)).rejects.toThrow(Unavailable)
      expect((await root()).status).toEqual({ state: 'up', observedGeneration: 1 })
    })
  })
  test('is refused when the root has changed since it was seen', async () => {
    const { interpreter, world, root } = await open()
    const stale = await root()
    await world.settled(world.admin.patch(Parent, keyOf(stale), { spec: { size: 2 } }))
    await expect(
      world.settled(interpret(Parent, stale, [{ do: 'status', status: { state: 'up' } }], interpreter)),
    ).rejects.toMatchObject({ reason: 'Conflict' })
    expect((await root()).status).toBeUndefined()
  })
  test('that was decided before an action failed is kept', async () => {
    const { act, root } = await open()
    const failing = { fail: async () => Promise.reject(new Unavailable('the database')) }
    await expect(
      act([{ do: 'status', status: { state: 'trying' } }, { do: 'effect', name: 'fail', input: {} }, ensure('never')], {
        effects: failing,
      }),
    ).rejects.toThrow(Unavailable)
    expect((await root()).status?.state).toBe('trying')
  })
})

test('change is conditional, free when true, and what follows builds on it', async () => {
  const { act, root, writes } = await open()
  const plan: Action[] = [
    { do: 'change', patch: { spec: { size: 2 }, metadata: { labels: { x: 'y' } } } },
    { do: 'status', status: { state: 'up' } },
  ]
  await act(plan)
  expect(await root()).toMatchObject({
    spec: { size: 2 },
    metadata: { labels: { x: 'y' }, generation: 2 },
    status: { state: 'up', observedGeneration: 2 },
  })
  await act(plan)
  expect(writes).toEqual(['PATCH parents/p', 'PATCH parents/p/status'])
})

test('the earliest wait counts, and the plan continues after it', async () => {
  const { act, children } = await open()
  expect(await act([{ do: 'wait', seconds: 5, for: 'x' }, ensure('c'), { do: 'wait', seconds: 2, for: 'y' }])).toEqual({
    waitSeconds: 2,
    done: ['ensure Child'],
    readings: [],
  })
  expect(children.size).toBe(1)
})

test('finalized writes the status first and lets the root go', async () => {
  const { act, world, root, parents } = await open({ size: 1 }, { finalizers: [FINALIZER] })
  await world.settled(world.admin.delete(Parent, { namespace: NAMESPACE, name: 'p' }))
  await world.pass(10)
  await act([{ do: 'status', status: { state: 'gone' } }, { do: 'finalized' }])
  expect(await root()).toBeUndefined()
  expect(parents.size).toBe(0)
})

test('the root stays until everybody who wants to learn of its end has', async () => {
  const { act, world, root } = await open({ size: 1 }, { finalizers: [FINALIZER] })
  await world.settled(world.admin.delete(Parent, { namespace: NAMESPACE, name: 'p' }))
  await world.pass(10)
  const deaf = async () => {
    throw new Error('not now')
  }
  await expect(act([{ do: 'finalized' }], { beforeGone: deaf })).rejects.toThrow('not now')
  expect(await root()).toMatchObject({ metadata: { name: 'p' } })
  const told: string[] = []
  await act([{ do: 'finalized' }], {
    beforeGone: async (type, { metadata }) => void told.push(`${type.kind} ${metadata.name}`),
  })
  expect(told).toEqual(['Parent p'])
  expect(await root()).toBeUndefined()
})

test('an effect is called in its turn with its input and the root; an unknown one is a bug', async () => {
  const { act, children } = await open()
  const calls: unknown[] = []
  const effects = {
    note: async (input: object, seen: KubeObject) => void calls.push([input, seen.metadata.name, children.size]),
  }
  await act([ensure('c'), { do: 'effect', name: 'note', input: { a: 1 } }], { effects })
  expect(calls).toEqual([[{ a: 1 }, 'p', 1]])
  await expect(act([{ do: 'effect', name: 'other', input: {} }], { effects })).rejects.toThrow('unknown effect other')
})

test('nothing takes effect once another process may lead', async () => {
  const { act, writes } = await open()
  const plans: Action[][] = [
    [ensure('c')],
    [{ do: 'status', status: { state: 'x' } }],
    [{ do: 'change', patch: { spec: { size: 9 } } }],
    [{ do: 'effect', name: 'e', input: {} }],
  ]
  for (const plan of plans)
    await expect(
      act(plan, { mayAct: () => false, effects: { e: async () => void writes.push('effect') } }),
    ).rejects.toThrow(Unavailable)
  expect(writes).toEqual([])
})

describe('operation', () => {
  const STANZA = { id: 'op1', kind: 'parent.create', deadlineAt: '2030-01-01T01:00:00Z' }
  const records = (log: OperationAction[]) => ({
    async record(_root: KubeObject, action: OperationAction): Promise<Progress> {
      log.push(action)
      const { id, step, outcome, error = '' } = action
      return { id, kind: STANZA.kind, step, status: outcome ?? 'running', error, actor: 'user:1' }
    },
  })

  test(
    'the record is written first, then the mirror together with ' + 'the status; a step that is known is free',
    async () => {
      const { act, root, writes } = await open({ size: 1, operation: STANZA })
      const log: OperationAction[] = []
      const operations = records(log)
      const step: Action[] = [
        { do: 'operation', id: 'op1', step: 'storage' },
        { do: 'status', status: { state: 'creating' } },
      ]
      await act(step, { operations })
      await act(step, { operations })
      expect([log.length, writes.length]).toEqual([1, 1])
      await act(
        [
          { do: 'status', status: { state: 'up' } },
          { do: 'operation', id: 'op1', step: 'started', outcome: 'succeeded' },
        ],
        { operations },
      )
      expect((await root()).status).toMatchObject({
        state: 'up',
        operation: { id: 'op1', step: 'started', status: 'succeeded' },
      })
      expect([log.length, writes.length]).toEqual([2, 2])
    },
  )
  test('a record that cannot be kept leaves the mirror as it was', async () => {
    const { act, root } = await open({ size: 1, operation: STANZA })
    const operations = { record: async () => Promise.reject(new Unavailable('history')) }
    await expect(
      act([{ do: 'operation', id: 'op1', step: 's', outcome: 'succeeded' }], { operations }),
    ).rejects.toThrow(Unavailable)
    expect((await root()).status?.operation).toBeUndefined()
  })
  test('nothing is recorded once another process may lead', async () => {
    const { act, root } = await open({ size: 1, operation: STANZA })
    const log: OperationAction[] = []
    const plan: Action[] = [{ do: 'operation', id: 'op1', step: 's', outcome: 'succeeded' }]
    await expect(act(plan, { operations: records(log), mayAct: () => false })).rejects.toThrow(Unavailable)
    expect([log, (await root()).status]).toEqual([[], undefined])
  })
  test('its start and end are reported once each, for any retries', async () => {
    const { act } = await open({ size: 1, operation: STANZA })
    const told: EventDraft[] = []
    const more = {
      operations: records([]),
      events: { record: (_: KubeObject, event: EventDraft) => void told.push(event) },
    }
    await act([{ do: 'operation', id: 'op1', step: 'storage' }], more)
    await act([{ do: 'operation', id: 'op1', step: 'storage' }], more)
    await act([{ do: 'operation', id: 'op1', step: 'started' }], more)
    await act([{ do: 'operation', id: 'op1', step: 'started', outcome: 'failed', error: 'No room.' }], more)
    expect(told).toEqual([
      {
        type: 'Normal',
        reason: 'OperationStarted',
        action: 'parent.create',
        note: 'parent.create began, requested by user:1.',
        id: 'op1',
        isTransient: true,
      },
      {
        type: 'Warning',
        reason: 'OperationFailed',
        action: 'parent.create',
        note: 'parent.create failed at step started: No room.',
        id: 'op1',
      },
    ])
  })
  test('what has ended stays as it ended', async () => {
    const { act, root } = await open({ size: 1, operation: STANZA })
    const log: OperationAction[] = []
    const operations = records(log)
    await act([{ do: 'operation', id: 'op1', step: 's', outcome: 'failed', error: 'no room' }], { operations })
    await act([{ do: 'operation', id: 'op1', step: 'started', outcome: 'succeeded' }], { operations })
    expect((await root()).status?.operation).toEqual({
      id: 'op1',
      kind: 'parent.create',
      step: 's',
      status: 'failed',
      error: 'no room',
      actor: 'user:1',
    })
    expect(log).toHaveLength(1)
  })
})

describe('mergePatch', () => {
  const name = fc.constantFrom('a', 'b', 'c')
  const { record } = fc.letrec((tie) => ({
    record: fc.dictionary(name, tie('json'), { noNullPrototype: true }),
    json: fc.oneof(
      { depthSize: 'small' },
      fc.integer(),
      fc.string({ maxLength: 2 }),
      fc.boolean(),
      fc.array(tie('json'), { maxLength: 2 }),
      tie('record'),
    ),
  }))
  /** RFC 7396. */
  function merged(target: unknown, patch: unknown): unknown {
    if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch
    const result: Record<string, unknown> =
      typeof target === 'object' && target !== null && !Array.isArray(target) ? { ...target } : {}
    for (const [name, value] of Object.entries(patch)) {
      if (value === null) delete result[name]
      else result[name] = merged(result[name], value)
    }
    return result
  }
  test('leads from one value to the other, and is undefined when they are equal', () => {
    fc.assert(
      fc.property(record, record, (from, to) => {
        const patch = patchBetween(from, to)
        expect(patch === undefined ? from : merged(from, patch)).toEqual(to)
        expect(patchBetween(to, structuredClone(to))).toBeUndefined()
      }),
    )
  })
})
