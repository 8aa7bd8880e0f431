/** One trace from the stanza of a root to what is made of it, and its end. */
import { expect, test } from 'vitest'
import { defined } from '../../../domain/defined.ts'
import { openCaches } from '../../../kit/kube/caches.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { Action } from '../../../kit/reconcile/action.ts'
import { interpret } from '../../../kit/reconcile/interpret.ts'
import { openController } from '../../../kit/reconcile/loop.ts'
import { openControllerMetrics } from '../../../kit/reconcile/metrics.ts'
import type { Operations } from '../../../kit/reconcile/operation.ts'
import { TRACE_ANNOTATION } from '../../../kit/reconcile/trace.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { openRegistry } from '../../../kit/sys/metrics.ts'
import { useTracing } from '../../tracing.ts'
import { Child, NAMESPACE, openWorld, Parent, type ParentSpec, type ParentStatus } from '../world.ts'

const spansSince = useTracing()
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const TRACEPARENT = `00-${TRACE}-00f067aa0ba902b7-01`
const ROOT = { namespace: NAMESPACE, name: 'p' }
const CHILD = { namespace: NAMESPACE, name: 'c' }

const stanza = (deadlineAt: Date, traceparent?: string) => ({
  id: 'op-1',
  kind: 'parent.create',
  requestedAt: new Date(deadlineAt.getTime() - 60_000).toISOString(),
  deadlineAt: deadlineAt.toISOString(),
  ...defined({ traceparent }),
})
const operations: Operations = {
  record: async (_root, { id, step, outcome }) => ({
    id,
    kind: 'parent.create',
    step,
    status: outcome ?? 'running',
    error: '',
    actor: 'user:1',
  }),
}

async function open() {
  const world = await openWorld()
  const { store, clock } = world.join('controller')
  const { random } = world.scheduler
  const registry = openRegistry({ isProcessWide: false })
  const caches = openCaches({ store, clock, random, log: silentLog, registry })
  const [parents, children] = [caches.of(Parent), caches.of(Child)]
  const options = { store, caches, clock, random, log: silentLog, metrics: openControllerMetrics(registry), operations }
  const control = (plan: (root: KubeObject<ParentSpec, ParentStatus>) => readonly Action[]) =>
    openController({ name: 'parent', type: Parent, watches: [], observe: () => ({}), plan }, options)
  const make = (operation: ParentSpec['operation'], name = 'p') =>
    world.settled(
      world.admin.create(Parent, {
        metadata: { ...ROOT, name },
        spec: { size: 1, ...(operation && { operation }) },
      }),
    )
  const later = (seconds: number) => new Date(clock.now().getTime() + seconds * 1_000)
  return { world, store, clock, caches, parents, children, control, make, later, options }
}
const child: Action = {
  do: 'ensure',
  type: Child,
  draft: { metadata: CHILD, spec: { parent: 'p', index: 0 } },
}

test('an operation is reconciled in its trace, which continues in what is made and ends in one span', async () => {
  const { world, caches, children, control, make, later } = await open()
  const operation = stanza(later(60), TRACEPARENT)
  await make(operation)
  const stop = new AbortController()
  caches.start(stop.signal)
  const end: Action = { do: 'operation', id: 'op-1', step: 'done', outcome: 'succeeded' }
  const running = control(() => [child, end]).run(stop.signal)
  await world.until(() => children.get(CHILD) !== undefined)
  await world.pass(5_000)
  stop.abort()
  await world.settled(running)
  expect(children.get(CHILD)?.metadata.annotations?.[TRACE_ANNOTATION]).toBe(
    `${TRACEPARENT};until=${operation.deadlineAt}`,
  )
  const spans = await spansSince()
  expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([TRACE]))
  const reconcile = spans.find(({ name }) => name === 'reconcile parent')
  expect(reconcile).toMatchObject({
    parentSpanId: '00f067aa0ba902b7',
    attributes: { 'svccloud.operation': 'op-1', 'svccloud.object': `${NAMESPACE}/p` },
  })
  expect(reconcile?.attributes['svccloud.did']).toContain('ensure Child')
  const made = spans.find(({ name }) => name === 'PATCH children')
  expect(made).toMatchObject({ kind: 3, parentSpanId: reconcile?.spanId })
  const whole = spans.filter(({ name }) => name === 'parent.create')
  expect(whole).toMatchObject([{ attributes: { 'svccloud.operation.status': 'succeeded' } }])
  expect(whole[0]?.startTimeUnixNano).toBe(BigInt(Date.parse(operation.requestedAt)) * 1_000_000n)
})

test('what was made for an operation is followed until its deadline, and only where something is done', async () => {
  const { world, caches, make, later, control, parents } = await open()
  for (const [name, until] of [
    ['open', later(600)],
    ['over', later(-1)],
  ] as const) {
    await make(undefined, name)
    const annotations = { [TRACE_ANNOTATION]: `${TRACEPARENT};until=${until.toISOString()}` }
    await world.settled(world.admin.patch(Parent, { ...ROOT, name }, { metadata: { annotations } }))
  }
  await spansSince()
  const stop = new AbortController()
  caches.start(stop.signal)
  const running = control(() => [{ do: 'status', status: { state: 'made' } }]).run(stop.signal)
  await world.until(() => parents.list().every(({ status }) => status?.state === 'made'))
  await world.pass(5_000) // both are reconciled once more, for their own new status, and nothing is done then
  stop.abort()
  await world.settled(running)
  const reconciles = (await spansSince()).filter(({ name }) => name === 'reconcile parent')
  expect(reconciles).toMatchObject([{ traceId: TRACE, attributes: { 'svccloud.object': `${NAMESPACE}/open` } }])
})

test('an operation that a plan starts has a separate trace, never that of the operation before', async () => {
  const { world, caches, make, later, options, parents } = await open()
  const made = await make(stanza(later(60), TRACEPARENT))
  const stop = new AbortController()
  caches.start(stop.signal)
  await world.settled(caches.ready())
  const { traceparent: _, ...next } = { ...stanza(later(90)), id: 'op-2', traceparent: '' }
  const begin: Action = { do: 'change', patch: { spec: { operation: next } } }
  const interpreter = { ...options, mayAct: () => true }
  await world.settled(interpret(Parent, made, [begin], interpreter))
  await world.until(() => parents.get(ROOT)?.spec.operation?.id === 'op-2')
  const span = (await spansSince()).find(({ name }) => name === 'begin parent.create')
  expect(span?.traceId).not.toBe(TRACE)
  expect(parents.get(ROOT)?.spec.operation?.traceparent).toBe(`00-${span?.traceId}-${span?.spanId}-01`)
  stop.abort()
})
