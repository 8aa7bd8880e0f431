/** An edit that controllers detect is tried once when it is refused: the object rests until it is changed. One whose
 *  operation ran out of time is tried again, ever more rarely. */
import { expect, test } from 'vitest'
import { planOperations } from '../../../../controllers/kit/operation/plan.ts'
import { SYSTEM_ACTOR } from '../../../../controllers/kit/operation/direct-edit.ts'
import type { KubeObject } from '../../../../kit/kube/object.ts'
import type { Action } from '../../../../kit/reconcile/action.ts'
import type { OperationProgress, OperationStanza } from '../../../../resources/kit/shapes.ts'
import { progressOf } from '../../../progress.ts'

interface Spec {
  readonly size: number
  readonly operation?: OperationStanza | undefined
}
interface Status {
  readonly size: number
  readonly operation?: OperationProgress | undefined
}
type Root = KubeObject<Spec, Status>

const NOW = new Date('2026-01-01T00:00:00Z')
const TURNS = 20

/** A thing that cannot grow, whatever its spec says. */
const planFor = (actor: string) =>
  planOperations<
    Root,
    undefined,
    { readonly root: Root },
    { readonly outcome?: 'failed'; readonly error?: string },
    Action
  >({
    label: 'A thing',
    endedByDeletion: 'all',
    flows: { 'storage.resize': () => ({ outcome: 'failed', error: 'It cannot grow.' }) },
    inputOf: (root) => ({ root }),
    unchanged: () => ({}),
    detectEdit: ({ root: { spec, status } }) =>
      spec.size === status?.size
        ? undefined
        : { kind: 'storage.resize', field: 'size', arguments: { size: String(spec.size) }, actor },
    idle: () => ({}),
    toActions: ({ root }, { outcome }) =>
      outcome === undefined || root.spec.operation === undefined
        ? []
        : [{ do: 'operation', id: root.spec.operation.id, step: 'done', outcome }],
  })

const thing: Root = {
  apiVersion: 'v1',
  kind: 'Thing',
  metadata: { name: 'thing', uid: 'u', generation: 1 },
  spec: { size: 2 },
  status: { size: 1 },
}
/** As `kubectl` does: each change of the spec is a generation. */
const changed = (root: Root, spec: Partial<Spec>): Root => ({
  ...root,
  metadata: { ...root.metadata, generation: (root.metadata.generation ?? 0) + 1 },
  spec: { ...root.spec, ...spec },
})

/** The operation that the actions start. */
function startedBy(actions: ReturnType<ReturnType<typeof planFor>>): OperationStanza | undefined {
  const change = actions.find((action) => action.do === 'change')
  return change?.do === 'change'
    ? (change.patch as { readonly spec: Pick<Spec, 'operation'> }).spec.operation
    : undefined
}

/** Carries the plan out as long as it writes; answers the object, and how many operations were started. */
function rested(from: Root, actor = 'user:grace'): { readonly root: Root; readonly starts: number } {
  const plan = planFor(actor)
  let [root, starts] = [from, 0]
  for (let turn = 0; turn < TURNS; turn += 1) {
    const before = root
    for (const action of plan(root, undefined, NOW)) {
      if (action.do === 'change') {
        const { spec } = action.patch as { readonly spec: Pick<Spec, 'operation'> } // a start writes nothing else
        root = changed(root, spec)
        starts += 1
      }
      if (action.do === 'operation' && root.spec.operation !== undefined)
        root = { ...root, status: { size: 1, operation: progressOf(root.spec.operation, { status: 'failed' }) } }
    }
    if (root === before) break
  }
  return { root, starts }
}

test('an edit whose operation was refused is not started again, at no time', () => {
  const { root, starts } = rested(thing)
  expect(starts).toBe(1)
  expect(planFor('user:grace')(root, undefined, new Date(NOW.getTime() + 7 * 86_400_000))).toEqual([])
})

test('it is started again when the object changes, also to the same', () => {
  const { root } = rested(thing)
  expect(rested(root).starts).toBe(0)
  expect(rested(changed(root, { size: 3 })).starts).toBe(1)
  expect(rested(changed(changed(root, { size: 1 }), { size: 2 })).starts).toBe(1)
})

/** Minutes after the end of each attempt at which the next one starts, when every attempt ends at its deadline. */
function pausesAfterDeadlines(attempts: number): readonly number[] {
  const plan = planFor('user:grace')
  const pauses: number[] = []
  let [root, now] = [thing, NOW]
  while (pauses.length < attempts) {
    const actions = plan(root, undefined, now)
    const started = actions.find((action) => action.do === 'change')
    if (started?.do === 'change') {
      const { spec } = started.patch as { readonly spec: Pick<Spec, 'operation'> } // a start writes nothing else
      const finishedAt = spec.operation?.deadlineAt ?? ''
      root = changed(root, spec)
      now = new Date(finishedAt)
      root = { ...root, status: { size: 1, operation: failedAt(root, finishedAt) } }
    }
    const wait = plan(root, undefined, now).find((action) => action.do === 'wait')
    if (wait?.do !== 'wait') throw new Error('nothing wakes the object for another attempt')
    pauses.push(wait.seconds / 60)
    const soon = new Date(now.getTime() + wait.seconds * 1_000 - 1)
    expect(plan(root, undefined, soon)).not.toContainEqual(expect.objectContaining({ do: 'change' }))
    now = new Date(now.getTime() + wait.seconds * 1_000)
  }
  return pauses
}

const failedAt = ({ spec: { operation } }: Root, finishedAt: string): OperationProgress | undefined =>
  operation && progressOf(operation, { status: 'failed', finishedAt })

test('one that ran out of time is started again: after five minutes, then ten, and at most an hour', () => {
  expect(pausesAfterDeadlines(7)).toEqual([5, 10, 20, 40, 60, 60, 60])
})

test('the pauses start anew with another edit', () => {
  const late = { ...thing, spec: { size: 2 } }
  const plan = planFor('user:grace')
  const first = startedBy(plan(late, undefined, NOW))
  const failed = changed(late, { operation: first })
  const stopped = { ...failed, status: { size: 1, operation: failedAt(failed, first?.deadlineAt ?? '') } } as Root
  const afterwards = new Date(Date.parse(first?.deadlineAt ?? '') + 300_000)
  expect(startedBy(plan(stopped, undefined, afterwards))?.arguments).toEqual({ size: '2', attempt: '2' })
  expect(startedBy(plan(changed(stopped, { size: 3 }), undefined, afterwards))?.arguments).toEqual({ size: '3' })
})

test('what a rule of the platform requires is left to the times of that rule', () => {
  expect(rested(thing, SYSTEM_ACTOR).starts).toBeGreaterThan(1)
})
