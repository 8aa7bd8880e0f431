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
  ['storage.create', 60],
  ['server.move', 60],
  ['storage.move', 60],
  ['storage.drain_host', 24 * 60],
  ['node.maintenance', 24 * 60],
  ['node.provision', 24 * 60],
  ['node.agent_upgrade', 60],
])('%s has %i minutes here, of which the contract says nothing', (kind, minutes) =>
  expect(minutesOf(kind)).toBe(minutes),
)

test('what moves data has more for each GiB, and nothing else has', () => {
  const moreForTen = OPERATION_KINDS.map((kind) => [kind, minutesOf(kind, 10) - minutesOf(kind)] as const)
  expect(moreForTen.filter(([, minutes]) => minutes !== 0)).toEqual([
    ['server.change_plan', 20],
    ['server.move', 20],
    ['server.migrate', 20],
    ['storage.create', 10],
    ['storage.move', 20],
  ])
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
