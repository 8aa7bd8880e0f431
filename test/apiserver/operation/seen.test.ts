/** Every kind of operation has ended for a reader once what it changed can be read where the reader reads. */
import { expect, test } from 'vitest'
import { openEnds } from '../../../apiserver/operation/seen.ts'
import type { Target } from '../../../apiserver/change/targets.ts'
import {
  isDeletion,
  OPERATION_KINDS,
  OPERATION_STATUSES,
  type OperationKind,
  stepsOf,
} from '../../../domain/operations.ts'
import { OPERATION_TARGETS, type OperationView, toOperationView } from '../../../resources/operation/index.ts'
import type { OperationProgress } from '../../../resources/shapes.ts'
import { Server } from '../../../resources/server/index.ts'
import { systemClock as clock } from '../../../kit/sys/clock.ts'

const AT = '2026-01-01T00:00:00.000Z'
const progress = (kind: OperationKind, status: OperationProgress['status']): OperationProgress => ({
  ...{ id: 'op', kind, status, step: stepsOf(kind).at(-1) ?? '', stepIndex: stepsOf(kind).length },
  ...{ stepCount: stepsOf(kind).length, error: '', actor: 'user:1', createdAt: AT, deadlineAt: AT, finishedAt: AT },
})
const typeOf = (kind: OperationKind) => OPERATION_TARGETS.find((type) => kind.startsWith(`${type}.`)) ?? 'server'
const viewOf = (kind: OperationKind, status: OperationProgress['status']): OperationView => ({
  ...toOperationView(progress(kind, status), { type: typeOf(kind), id: 'x' }),
  events: [{ at: AT, kind: status, message: 'Ended.', data: {} }],
})
const targetOf = (kind: OperationKind, shown: OperationProgress | undefined, action?: string): Target => ({
  type: typeOf(kind),
  resource: Server as unknown as Target['resource'], // nobody asks it anything here
  object: {
    ...{ apiVersion: 'v1', kind: 'Any', metadata: { name: 'x', namespace: 'a' } },
    spec: {
      operation: {
        ...{ id: 'op', kind, requestedAt: AT, deadlineAt: AT, actor: 'user:1', requestId: 'r' },
        ...(action === undefined ? {} : { arguments: { action } }),
      },
    },
    ...(shown === undefined ? {} : { status: { operation: shown } }),
  } as Target['object'],
})
const endsWith = (target: Target | undefined) => openEnds({ targets: { find: () => target }, clock })
const seen = (target: Target | undefined, view: OperationView) => endsWith(target).seen(view).status

test.each(OPERATION_KINDS)('%s ends when its end can be read', (kind) => {
  const done = viewOf(kind, 'succeeded')
  const [before, after] = [targetOf(kind, progress(kind, 'running')), targetOf(kind, progress(kind, 'succeeded'))]
  expect(seen(targetOf(kind, undefined), done)).toBe('running')
  expect(seen(before, done)).toBe('running')
  expect(seen(after, done)).toBe(isDeletion(kind) ? 'running' : 'succeeded')
  expect(seen(targetOf(kind, progress(kind, 'succeeded'), 'delete'), done)).toBe('running')
  expect(seen(undefined, done)).toBe('succeeded')
  // One that did not succeed leaves its target there.
  expect(seen(targetOf(kind, progress(kind, 'failed')), viewOf(kind, 'failed'))).toBe('failed')
})

test.each(OPERATION_STATUSES)('one that is %s in the store says nothing of its end before', (status) => {
  const view = endsWith(targetOf('server.start', progress('server.start', 'running'))).seen(
    viewOf('server.start', status),
  )
  expect(view.status).toBe(status === 'pending' ? 'pending' : 'running')
  expect(view.finished_at).toBe(view.status === 'running' && status !== 'running' ? null : AT)
  expect(view.step_index).toBeLessThanOrEqual(view.step_count)
  if (status !== 'pending' && status !== 'running') expect(view.events).toEqual([])
})

test('a read waits a moment for what it can read then', async () => {
  let target: Target | undefined = targetOf('floating_ip.sync', progress('floating_ip.sync', 'succeeded'), 'delete')
  const ends = openEnds({ targets: { find: () => target }, clock })
  const waiting = ends.awaited(viewOf('floating_ip.sync', 'succeeded'))
  target = undefined
  expect(await waiting).toMatchObject({ status: 'succeeded' })
})
