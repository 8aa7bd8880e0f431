/** Every kind of operation has ended for a reader once what it changed can be read where the reader reads. */
import { describe, expect, test } from 'vitest'
import { openEnds } from '../../../../apiserver/nouns/operation/seen.ts'
import type { OperationObject } from '../../../../apiserver/nouns/operation/views.ts'
import type { Target } from '../../../../apiserver/kit/change/targets.ts'
import {
  isDeletion,
  OPERATION_KINDS,
  OPERATION_STATUSES,
  type OperationKind,
  stepsOf,
} from '../../../../domain/operations.ts'
import { OPERATION_TARGETS, type OperationView, toOperationView } from '../../../../resources/operation/index.ts'
import type { OperationProgress } from '../../../../resources/kit/shapes.ts'
import { Server } from '../../../../resources/server/index.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'

const AT = '2026-01-01T00:00:00.000Z'
const progress = (kind: OperationKind, status: OperationProgress['status']): OperationProgress => ({
  id: 'op',
  kind,
  status,
  step: stepsOf(kind).at(-1) ?? '',
  stepIndex: stepsOf(kind).length,
  stepCount: stepsOf(kind).length,
  error: '',
  actor: 'user:1',
  createdAt: AT,
  deadlineAt: AT,
  finishedAt: AT,
})
const typeOf = (kind: OperationKind) => OPERATION_TARGETS.find((type) => kind.startsWith(`${type}.`)) ?? 'server'
const viewOf = (kind: OperationKind, status: OperationProgress['status']): OperationView => ({
  ...toOperationView(progress(kind, status), { type: typeOf(kind), id: 'x', name: undefined }),
  events: [{ at: AT, kind: status, message: 'Ended.', data: {} }],
})
const targetOf = (kind: OperationKind, shown: OperationProgress | undefined, action?: string): Target => ({
  type: typeOf(kind),
  resource: Server as unknown as Target['resource'], // nobody asks it anything here
  object: {
    apiVersion: 'v1',
    kind: 'Any',
    metadata: { name: 'x', namespace: 'a' },
    spec: {
      operation: {
        id: 'op',
        kind,
        requestedAt: AT,
        deadlineAt: AT,
        actor: 'user:1',
        requestId: 'r',
        ...(action === undefined ? {} : { arguments: { action } }),
      },
    },
    ...(shown === undefined ? {} : { status: { operation: shown } }),
  } as Target['object'],
})
const upTo: { readonly accountId: string; readonly id: string; readonly version: string }[] = []
const endsWith = (find: () => Target | undefined) =>
  openEnds({
    targets: { find, knownVersion: () => '7' },
    catchUp: {
      upTo: async (accountId, end) => void upTo.push({ accountId, ...end }),
    },
    clock,
  })
/** As the store has it. */
const recordOf = ({ kind, status }: OperationView, resourceVersion = '5'): OperationObject => ({
  apiVersion: 'v1',
  kind: 'Operation',
  metadata: { name: 'op', namespace: 'a', resourceVersion },
  spec: {
    kind,
    target: { type: typeOf(kind), id: 'x' },
    actor: 'user:1',
    requestId: 'r',
    createdAt: AT,
    deadlineAt: AT,
    stepCount: 1,
  },
  status: { status, step: '', stepIndex: 1, error: '' },
})
const show = (target: Target | undefined, view: OperationView, record = recordOf(view)) =>
  endsWith(() => target).viewFor('account', view, record)
const seen = async (target: Target | undefined, view: OperationView) => (await show(target, view)).status

test.each(OPERATION_KINDS)('%s ends when its end can be read', async (kind) => {
  const done = viewOf(kind, 'succeeded')
  const [before, after] = [targetOf(kind, progress(kind, 'running')), targetOf(kind, progress(kind, 'succeeded'))]
  expect(await seen(targetOf(kind, undefined), done)).toBe('running')
  expect(await seen(before, done)).toBe('running')
  expect(await seen(after, done)).toBe(isDeletion(kind) ? 'running' : 'succeeded')
  expect(await seen(targetOf(kind, progress(kind, 'succeeded'), 'delete'), done)).toBe('running')
  expect(await seen(undefined, done)).toBe('succeeded')
  // One that did not succeed leaves its target there.
  expect(await seen(targetOf(kind, progress(kind, 'failed')), viewOf(kind, 'failed'))).toBe('failed')
})

test.each(OPERATION_STATUSES)('one that is %s in the store says nothing of its end before', async (status) => {
  const view = await show(targetOf('server.start', progress('server.start', 'running')), viewOf('server.start', status))
  expect(view.status).toBe(status === 'pending' ? 'pending' : 'running')
  expect(view.finished_at).toBe(view.status === 'running' && status !== 'running' ? null : AT)
  expect(view.step_index).toBeLessThanOrEqual(view.step_count)
  if (status !== 'pending' && status !== 'running') expect(view.events).toEqual([])
})

test('a read waits a moment for what it can read then', async () => {
  let target: Target | undefined = targetOf('floating_ip.sync', progress('floating_ip.sync', 'succeeded'), 'delete')
  const view = viewOf('floating_ip.sync', 'succeeded')
  const waiting = endsWith(() => target).awaited('account', view, recordOf(view))
  target = undefined
  expect(await waiting).toMatchObject({ status: 'succeeded' })
})

describe('one that has ended just now', () => {
  const done = { ...viewOf('server.start', 'succeeded'), finished_at: clock.now().toISOString() }
  const target = targetOf('server.start', progress('server.start', 'succeeded'))
  test.each([
    ['the record', '9', '9'],
    ['its target', '5', '7'],
  ])('is shown when everything up to the version of %s can be read', async (_which, version, expected) => {
    upTo.length = 0
    expect(await show(target, done, recordOf(done, version))).toEqual(done)
    expect(upTo).toEqual([{ accountId: 'account', id: 'op', version: expected }])
  })
  test('is under way while the record that is known here has not ended', async () => {
    expect(await show(target, done, recordOf(viewOf('server.start', 'running')))).toMatchObject({ status: 'running' })
    expect(await endsWith(() => target).viewFor('account', done, undefined)).toMatchObject({ status: 'running' })
  })
  test('costs nothing a minute later', async () => {
    upTo.length = 0
    expect(
      await endsWith(() => target).viewFor('account', viewOf('server.start', 'succeeded'), undefined),
    ).toMatchObject({
      status: 'succeeded',
    })
    expect(upTo).toEqual([])
  })
})
