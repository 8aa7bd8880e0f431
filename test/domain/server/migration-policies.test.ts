import { expect, test } from 'vitest'
import { gibibytesOf, MIGRATION_POLICIES, sendSeconds } from '../../../domain/server/migration-policies.ts'
import { deadlineOf, isCancelled, cancelling } from '../../../domain/operations.ts'

test.each([
  ['default', 2_000, 3, true],
  ['relaxed', 5_000, 5, true],
  ['strict', 300, 2, false],
] as const)(
  '%s allows a pause of %i ms over %i attempts; slowing the guest: %s',
  (name, downtimeLimitMilliseconds, attemptsMaximum, mayThrottle) =>
    expect(MIGRATION_POLICIES[name]).toMatchObject({ downtimeLimitMilliseconds, attemptsMaximum, mayThrottle }),
)

test('relaxed prefers a finished move: it waits longer for each send, and alone may stop the guest', () => {
  expect(sendSeconds(MIGRATION_POLICIES.relaxed, 4)).toBeGreaterThan(sendSeconds(MIGRATION_POLICIES.default, 4))
  expect(
    Object.entries(MIGRATION_POLICIES)
      .filter(([, policy]) => policy.isColdAllowed)
      .map(([name]) => name),
  ).toEqual(['relaxed'])
})

test('what is sent is the memory and the disks, in GiB', () => {
  expect(gibibytesOf({ memoryMebibytes: 2_048, storageGibibytes: 10 })).toBe(12)
  expect([gibibytesOf({ memoryMebibytes: 512 }), gibibytesOf({ storageGibibytes: 3 }), gibibytesOf({})]).toEqual([
    0.5, 3, 0,
  ])
})

test.each([
  ['default', 120, 600],
  ['relaxed', 120, 1_320],
  ['strict', 120, 600],
] as const)('one send under %s may take %i seconds, and %i for four GiB', (name, least, forFour) => {
  expect(sendSeconds(MIGRATION_POLICIES[name], 0)).toBe(least)
  expect(sendSeconds(MIGRATION_POLICIES[name], 4)).toBe(forFour)
  expect(sendSeconds(MIGRATION_POLICIES[name], 0.001)).toBe(least + 1)
})

test('a move has an hour, and two minutes more for each GiB; other operations have no more for their size', () => {
  const now = new Date('2026-01-01T00:00:00Z')
  expect(deadlineOf('server.migrate', now, { gibibytes: 10 })).toEqual(new Date('2026-01-01T01:20:00Z'))
  expect(deadlineOf('server.start', now, { gibibytes: 10 })).toEqual(deadlineOf('server.start', now))
})

test.each([
  [1, 10],
  [60, 10],
  [300, 10],
  [540, 14],
  [600, 15],
])(
  'a guest with %i seconds to shut down leaves its operation enough time: %i minutes in all',
  (graceSeconds, minutes) => {
    const now = new Date('2026-01-01T00:00:00Z')
    expect(deadlineOf('server.stop', now, { graceSeconds })).toEqual(new Date(now.getTime() + minutes * 60_000))
  },
)

test('the wish to cancel is an argument among others', () => {
  expect([
    isCancelled({}),
    isCancelled({ arguments: { mode: 'cold' } }),
    isCancelled({ arguments: { mode: 'cold', ...cancelling } }),
  ]).toEqual([false, false, true])
})
