/** An edit that controllers detect is tried once: when its operation fails, the object rests until it is changed. */
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
  readonly operation?: OperationProgress
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

test('an edit whose operation failed is not started again', () => {
  expect(rested(thing).starts).toBe(1)
})

test('it is started again when the object changes, also to the same', () => {
  const { root } = rested(thing)
  expect(rested(root).starts).toBe(0)
  expect(rested(changed(root, { size: 3 })).starts).toBe(1)
  expect(rested(changed(changed(root, { size: 1 }), { size: 2 })).starts).toBe(1)
})

test('what a rule of the platform requires is left to the times of that rule', () => {
  expect(rested(thing, SYSTEM_ACTOR).starts).toBeGreaterThan(1)
})
