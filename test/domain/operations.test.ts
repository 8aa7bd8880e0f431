import { expect, test } from 'vitest'
import {
  deadlineOf,
  isFinal,
  OPERATION_EVENTS_MAXIMUM,
  OPERATION_KINDS,
  OPERATION_STATUSES,
  type OperationKind,
  stepsOf,
} from '../../domain/operations.ts'

const NOW = new Date('2026-01-01T00:00:00Z')
const minutesOf = (kind: OperationKind, gibibytes?: number): number =>
  (deadlineOf(kind, NOW, gibibytes === undefined ? {} : { gibibytes }).getTime() - NOW.getTime()) / 60_000

test.each<readonly [OperationKind, number]>([
  ['server.start', 10],
  ['server.stop', 10],
  ['server.restart', 10],
  ['server.firewall', 10],
  ['server.metadata', 10],
  ['server.attach_network', 10],
  ['server.create', 30],
  ['server.migrate', 60],
  ['storage.backup', 12 * 60],
  ['backup.restore', 12 * 60],
  ['template.create', 6 * 60],
  ['object_storage.migrate', 7 * 24 * 60],
  ['kubernetes_cluster.create', 60],
  ['kubernetes_cluster.upgrade', 60],
  ['kubernetes_cluster.restore', 60],
  ['node.drain', 24 * 60],
  ['node.fence', 15],
])('%s has %i minutes', (kind, minutes) => expect(minutesOf(kind)).toBe(minutes))

test('a migration has two more for each GiB', () =>
  expect([minutesOf('server.migrate', 1), minutesOf('server.migrate', 100)]).toEqual([62, 260]))

test.each<readonly [OperationKind, number]>([
  ['server.rebuild', 30],
  ['server.change_plan', 30],
  ['server.recover', 30],
  ['server.move', 60],
  ['node.maintenance', 24 * 60],
  ['node.provision', 24 * 60],
  ['node.agent_upgrade', 60],
])('%s has %i minutes here, of which the contract says nothing', (kind, minutes) =>
  expect(minutesOf(kind)).toBe(minutes),
)

test('a move and a change of plan have two more for each GiB, nothing else has', () => {
  const longer = OPERATION_KINDS.filter((kind) => minutesOf(kind, 10) !== minutesOf(kind))
  expect(longer).toEqual(['server.change_plan', 'server.move', 'server.migrate'])
  expect(longer.map((kind) => minutesOf(kind, 10) - minutesOf(kind))).toEqual([20, 20, 20])
})

test('what has ended stays ended; a hundred events are kept', () => {
  expect(OPERATION_STATUSES.filter(isFinal)).toEqual(['succeeded', 'failed', 'cancelled'])
  expect(OPERATION_EVENTS_MAXIMUM).toBe(100)
})

test('every kind has a deadline and steps of different names', () => {
  expect(
    OPERATION_KINDS.filter(
      (kind) =>
        !(minutesOf(kind) > 0) || stepsOf(kind).length === 0 || new Set(stepsOf(kind)).size !== stepsOf(kind).length,
    ),
  ).toEqual([])
  expect(OPERATION_KINDS).toHaveLength(65)
})
