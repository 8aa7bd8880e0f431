import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ENDED_KEPT_MILLISECONDS, plan, type Observed } from '../../../../controllers/kit/operation/reconciler.ts'
import { advance, eventsAfter, pendingProgress } from '../../../../controllers/kit/operation/progress.ts'
import type { OperationObject } from '../../../../controllers/kit/operation/record.ts'
import { type FinishedOperation, OPERATION_EVENTS_MAXIMUM, stepsOf } from '../../../../domain/operations.ts'
import type { OperationAction } from '../../../../kit/reconcile/action.ts'
import type { OperationState } from '../../../../resources/operation/index.ts'
import type { OperationStanza } from '../../../../resources/kit/shapes.ts'

const NOW = new Date('2026-01-01T12:00:00.000Z')
const stanza: OperationStanza = {
  id: 'op',
  kind: 'server.create',
  requestedAt: NOW.toISOString(),
  deadlineAt: '2026-01-01T12:30:00.000Z',
  actor: 'user:1',
  requestId: 'r',
}
const step = (name: string, more: Partial<OperationAction> = {}): OperationAction => ({
  do: 'operation',
  id: 'op',
  step: name,
  ...more,
})

describe('progress', () => {
  const pending = pendingProgress(stanza)
  test('starts as pending at the first step', () =>
    expect(pending).toMatchObject({ status: 'pending', step: 'claimed', stepIndex: 0, stepCount: 4 }))
  test('runs from its first turn, since then', () =>
    expect(advance(pending, step('claimed'), NOW)).toMatchObject({ status: 'running', startedAt: NOW.toISOString() }))
  test('succeeds past its last step', () =>
    expect(advance(pending, step('started', { outcome: 'succeeded' }), NOW)).toMatchObject({
      status: 'succeeded',
      step: 'started',
      stepIndex: 4,
      finishedAt: NOW.toISOString(),
    }))
  test('fails where it is, with the reason', () =>
    expect(advance(pending, step('storage', { outcome: 'failed', error: 'Full.' }), NOW)).toMatchObject({
      status: 'failed',
      step: 'storage',
      stepIndex: 1,
      error: 'Full.',
    }))

  const anyAction = fc
    .record({
      name: fc.constantFrom(...stepsOf('server.create'), 'unknown'),
      outcome: fc.constantFrom(
        undefined,
        undefined,
        undefined,
        'succeeded' as const,
        'failed' as const,
        'cancelled' as const,
      ),
    })
    .map(({ name, outcome }) => step(name, outcome === undefined ? {} : { outcome }))
  test('never goes back, and never changes once it has ended', () => {
    fc.assert(
      fc.property(fc.array(anyAction, { maxLength: 12 }), (actions) => {
        let progress = pending
        for (const action of actions) {
          const next = advance(progress, action, NOW)
          expect(next.stepIndex).toBeGreaterThanOrEqual(progress.stepIndex)
          if (progress.finishedAt !== undefined) expect(next).toEqual(progress)
          progress = next
        }
      }),
    )
  })
})

describe('events', () => {
  const running = advance(pendingProgress(stanza), step('claimed'), NOW)
  const record = (
    events: OperationState['events'],
  ): Pick<OperationState, 'status' | 'step' | 'stepIndex' | 'events'> => ({
    status: 'running',
    step: 'claimed',
    stepIndex: 0,
    events,
  })
  test('of a first turn are the beginning and its step', () =>
    expect(eventsAfter(undefined, running, [], NOW).map(({ kind }) => kind)).toEqual(['started', 'step']))
  test('of the same turn again are none', () => {
    const first = [...eventsAfter(undefined, running, [], NOW)] as NonNullable<OperationState['events']>
    expect(eventsAfter(record(first), running, [], NOW)).toEqual(first)
  })
  test('name each step that was passed since the record was written', () => {
    const started = advance(running, step('started'), NOW)
    const steps = eventsAfter(record([]), started, [], NOW).map(({ message, data }) => [message, data?.['step_index']])
    expect(steps).toEqual([
      ['Step storage.', 1],
      ['Step instance.', 2],
      ['Step started.', 3],
    ])
  })
  test('of an operation that ends in its first turn name its beginning and all steps', () => {
    const startedAt = new Date(NOW.getTime() - 5_000).toISOString()
    const ended = advance(pendingProgress(stanza), { ...step('started', { outcome: 'succeeded' }), startedAt }, NOW)
    expect(ended).toMatchObject({ startedAt, finishedAt: NOW.toISOString() })
    expect(eventsAfter(undefined, ended, [], NOW).map(({ at, message }) => [at, message])).toEqual([
      [startedAt, 'The operation began.'],
      [NOW.toISOString(), 'Step claimed.'],
      [NOW.toISOString(), 'Step storage.'],
      [NOW.toISOString(), 'Step instance.'],
      [NOW.toISOString(), 'Step started.'],
      [NOW.toISOString(), 'The operation succeeded.'],
    ])
  })
  test('name them also at the end', () => {
    const ended = advance(running, step('started', { outcome: 'succeeded' }), NOW)
    const steps = eventsAfter(record([]), ended, [], NOW).map(({ message, data }) => [message, data?.['step_index']])
    expect(steps).toEqual([
      ['Step storage.', 1],
      ['Step instance.', 2],
      ['Step started.', 3],
      ['The operation succeeded.', undefined],
    ])
  })
  test('that a plan reports twice exist once', () => {
    const actionLines = [{ kind: 'target_chosen', message: 'Host found.' }]
    const once = [...eventsAfter(record([]), running, actionLines, NOW)] as NonNullable<OperationState['events']>
    expect(eventsAfter(record(once), running, actionLines, NOW)).toHaveLength(1)
  })
  test('keep the newest hundred', () => {
    const many = Array.from({ length: OPERATION_EVENTS_MAXIMUM }, (_, index) => ({
      at: NOW.toISOString(),
      kind: 'step',
      message: `${index}`,
    }))
    const kept = eventsAfter(record(many), { ...running, step: 'storage' }, [], NOW)
    expect([kept.length, kept[0]?.message, kept.at(-1)?.message]).toEqual([
      OPERATION_EVENTS_MAXIMUM,
      '1',
      'Step storage.',
    ])
  })
})

describe('the record', () => {
  const operation = (status?: Partial<OperationState>): OperationObject => ({
    apiVersion: 'svccloud.dev/v1alpha1',
    kind: 'Operation',
    metadata: { name: 'op', namespace: 'acct-1' },
    spec: {
      kind: 'server.create',
      target: { type: 'server', id: 'web' },
      actor: 'user:1',
      requestId: 'r',
      createdAt: NOW.toISOString(),
      deadlineAt: stanza.deadlineAt,
      stepCount: 4,
    },
    ...(status === undefined
      ? {}
      : { status: { status: 'running', step: 'claimed', stepIndex: 0, error: '', ...status } }),
  })
  const history: FinishedOperation = {
    id: 'op',
    kind: 'server.create',
    target: { type: 'server', id: 'web' },
    actor: 'user:1',
    requestId: 'r',
    status: 'succeeded',
    step: 'started',
    stepIndex: 4,
    stepCount: 4,
    error: '',
    createdAt: NOW.toISOString(),
    deadlineAt: stanza.deadlineAt,
    startedAt: NOW.toISOString(),
    finishedAt: NOW.toISOString(),
    events: [],
  }
  const late = new Date(NOW.getTime() + ENDED_KEPT_MILLISECONDS)
  const actionLines = (object: OperationObject, observed: Observed, now = NOW) =>
    plan(object, observed, now).map((action) =>
      action.do === 'status'
        ? `status ${String(action.status['status'])}`
        : action.do === 'effect'
          ? action.name
          : action.do,
    )
  test.each<readonly [string, OperationObject, Observed, Date, readonly string[]]>([
    ['of an operation that runs is left to its target', operation({}), { history: undefined, target: 'busy' }, NOW, []],
    ['does not end before its target is free', operation({}), { history, target: 'busy' }, NOW, []],
    ['ends when its target is free', operation({}), { history, target: 'free' }, NOW, ['status succeeded']],
    ['ends when its target is gone', operation({}), { history, target: 'gone' }, NOW, ['status succeeded']],
    [
      'is cancelled when its target went before it began',
      operation(),
      { history: undefined, target: 'gone' },
      NOW,
      ['abandon'],
    ],
    [
      'stays for a while when it has ended',
      operation({ status: 'succeeded', finishedAt: NOW.toISOString() }),
      { history, target: 'free' },
      NOW,
      ['wait'],
    ],
    [
      'is removed when it is old',
      operation({ status: 'succeeded', finishedAt: NOW.toISOString() }),
      { history, target: 'free' },
      late,
      ['remove'],
    ],
    [
      'is never removed without history',
      operation({ status: 'failed', finishedAt: NOW.toISOString() }),
      { history: undefined, target: 'free' },
      late,
      ['keep', 'remove'],
    ],
  ])('%s', (_why, object, observed, now, expected) => expect(actionLines(object, observed, now)).toEqual(expected))
})
