/** A deletion by kubectl waits for the operation under way, and then goes its way. */
import { describe, expect, test } from 'vitest'
import { DELETION_WAITS, planOperations } from '../../../../controllers/kit/operation/plan.ts'
import { defined } from '../../../../domain/defined.ts'
import type { OperationKind } from '../../../../domain/operations.ts'
import type { KubeObject } from '../../../../kit/kube/object.ts'
import type { Action, ConditionDraft } from '../../../../kit/reconcile/action.ts'
import type { OperationProgress, OperationStanza } from '../../../../resources/kit/shapes.ts'
import { progressOf } from '../../../progress.ts'

interface Spec {
  readonly operation?: OperationStanza | undefined
  readonly isProtected?: boolean
}
interface Status {
  readonly operation?: OperationProgress
  readonly conditions?: readonly ConditionDraft[]
}
type Root = KubeObject<Spec, Status>

const NOW = new Date('2026-01-01T00:00:00Z')
const stanza = (kind: OperationKind, args?: Record<string, string>): OperationStanza => ({
  id: 'op',
  kind,
  requestedAt: NOW.toISOString(),
  deadlineAt: '2026-01-01T01:00:00Z',
  actor: 'user:x',
  requestId: 'r',
  ...defined({ arguments: args }),
})
const running = (operation: OperationStanza): Root => ({
  apiVersion: 'v1',
  kind: 'Thing',
  metadata: { name: 'thing', deletionTimestamp: NOW.toISOString(), uid: 'u', generation: 2 },
  spec: { operation },
  status: { operation: progressOf(operation, { status: 'running' }) },
})
const condition = (status: 'True' | 'False') => ({ type: DELETION_WAITS, status, reason: 'Any', message: '' })

/** A thing that grows, is made and is deleted; its plan says in words what it does. */
const plan = planOperations<
  Root,
  undefined,
  { readonly root: Root },
  { readonly says?: string; readonly outcome?: 'succeeded' },
  Action
>({
  label: 'A thing',
  endedByDeletion: ({ kind }) => kind === 'storage.create',
  flows: {
    'storage.create': () => ({ says: 'makes' }),
    'storage.resize': ({ root }) => ({ says: root.metadata.deletionTimestamp === undefined ? 'grows' : 'sees it' }),
    'storage.delete': () => ({ says: 'deletes' }),
  },
  inputOf: (root) => ({ root }),
  unchanged: () => ({}),
  detectEdit: ({ root }) =>
    root.metadata.deletionTimestamp !== undefined && root.spec.operation?.kind !== 'storage.delete'
      ? { kind: 'storage.delete', field: '', actor: 'user:grace' }
      : undefined,
  idle: () => ({ says: 'rests' }),
  toActions: (_input, { says }) => [{ do: 'status', status: { says }, conditions: [] }],
})
const decided = (root: Root) => {
  const actions = plan(root, undefined, NOW)
  const status = actions.find((action) => action.do === 'status')
  const change = actions.find((action) => action.do === 'change')
  return {
    says: status?.do === 'status' ? status.status['says'] : undefined,
    waits: status?.do === 'status' ? status.conditions?.find(({ type }) => type === DELETION_WAITS) : undefined,
    begins: change?.do === 'change' ? JSON.stringify(change.patch).match(/"kind":"([^"]+)"/)?.[1] : undefined,
  }
}

describe('a deletion while an operation runs', () => {
  test('lets it run as if nobody had deleted the object, and says what it waits for', () => {
    expect(decided(running(stanza('storage.resize')))).toEqual({
      says: 'grows',
      waits: expect.objectContaining({ status: 'True', message: expect.stringContaining('storage.resize (op)') }),
      begins: undefined,
    })
  })

  test('starts when that has ended, also for a controller that did not see it run', () => {
    const operation = stanza('storage.resize')
    for (const status of ['succeeded', 'failed', 'cancelled'] as const) {
      const over = { ...running(operation), status: { operation: progressOf(operation, { status }) } }
      expect(decided(over)).toMatchObject({ begins: 'storage.delete', waits: undefined })
    }
  })

  test('ends one that a deletion by REST ends as well', () => {
    expect(decided(running(stanza('storage.create')))).toMatchObject({ begins: 'storage.delete', waits: undefined })
  })

  test('does not wait for itself, and says no longer that it waits', () => {
    const deleting = running(stanza('storage.delete'))
    expect(decided(deleting)).toMatchObject({ says: 'deletes', waits: undefined })
    const waited = { ...deleting, status: { ...deleting.status, conditions: [condition('True')] } }
    expect(decided(waited)).toMatchObject({ says: 'deletes', waits: { status: 'False' } })
    const said = { ...deleting, status: { ...deleting.status, conditions: [condition('False')] } }
    expect(decided(said)).toMatchObject({ waits: undefined })
  })

  test('is none of what is protected', () => {
    const root = running(stanza('storage.resize'))
    expect(decided({ ...root, spec: { ...root.spec, isProtected: true } })).toMatchObject({ waits: undefined })
  })
})
