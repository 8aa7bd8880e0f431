import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  ADDRESS_LOCKOUT,
  countAttempt,
  EMAIL_LOCKOUT,
  type LockoutState,
  SECOND_FACTOR_LOCKOUT,
} from '../../../domain/identity/lockout.ts'

const start = new Date('2026-03-01T12:00:00Z')
const after = (seconds: number): Date => new Date(start.getTime() + seconds * 1000)
const state = (part: Partial<LockoutState>): LockoutState => ({
  failures: 0,
  windowStartedAt: start,
  locks: 0,
  lockedUntil: null,
  ...part,
})

describe('an attempt', () => {
  test.each<[string, LockoutState | undefined, number, number, Partial<LockoutState>]>([
    ['the first opens a window', undefined, 0, 0, { failures: 1, locks: 0, windowStartedAt: start, lockedUntil: null }],
    ['a further one counts', state({ failures: 2 }), 10, 0, { failures: 3, windowStartedAt: start }],
    [
      'the fifth locks until it proves right',
      state({ failures: 4 }),
      10,
      0,
      { failures: 5, locks: 1, lockedUntil: after(910) },
    ],
    [
      'a locked one waits, and changes nothing',
      state({ failures: 5, locks: 1, lockedUntil: after(900) }),
      100,
      800,
      { failures: 5, locks: 1 },
    ],
    ['a part of a second is a whole one to wait', state({ failures: 5, locks: 1, lockedUntil: after(0.2) }), 0, 1, {}],
    [
      'after the lock a new window opens',
      state({ failures: 5, locks: 1, lockedUntil: after(900) }),
      900,
      0,
      { failures: 1, locks: 1, lockedUntil: null },
    ],
    [
      'the second lock is twice as long',
      state({ failures: 4, locks: 1 }),
      0,
      0,
      { locks: 2, lockedUntil: after(1_800) },
    ],
    ['no lock is longer than a day', state({ failures: 4, locks: 20 }), 0, 0, { lockedUntil: after(86_400) }],
    [
      'a window that ended counts no more',
      state({ failures: 4 }),
      900,
      0,
      { failures: 1, windowStartedAt: after(900) },
    ],
    ['a window counts until its end', state({ failures: 3 }), 899, 0, { failures: 4 }],
    [
      'a quiet day forgets earlier locks',
      state({ failures: 5, locks: 4, lockedUntil: after(0) }),
      86_401,
      0,
      { failures: 1, locks: 0 },
    ],
    [
      'a day that is not over forgets none',
      state({ failures: 5, locks: 4, lockedUntil: after(0) }),
      86_400,
      0,
      { failures: 1, locks: 4 },
    ],
    ['a quiet day counts from the last window', state({ failures: 2, locks: 4 }), 86_401, 0, { failures: 1, locks: 0 }],
    ['so many locks are a day too', state({ failures: 4, locks: 5_000 }), 0, 0, { lockedUntil: after(86_400) }],
  ])('%s', (_what, before, seconds, waitSeconds, expected) => {
    const verdict = countAttempt(before, EMAIL_LOCKOUT, after(seconds))
    expect(verdict.waitSeconds).toBe(waitSeconds)
    expect(verdict.state).toMatchObject(expected)
  })
})

test('an address may fail a hundred times in a quarter of an hour, an email and a second factor five times', () => {
  const rule = { windowSeconds: 900, lockSeconds: 900, lockSecondsMaximum: 86_400 }
  expect(EMAIL_LOCKOUT).toEqual({ ...rule, failuresMaximum: 5 })
  expect(SECOND_FACTOR_LOCKOUT).toEqual({ ...rule, failuresMaximum: 5 })
  expect(ADDRESS_LOCKOUT).toEqual({ ...rule, failuresMaximum: 100 })
})

test('never are more than nine attempts judged in any quarter of an hour, however they come', () => {
  // Four at the end of one window, five in the next; then it is locked.
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 80 }), (gaps) => {
      let now = 0
      let current: LockoutState | undefined
      const judged: number[] = []
      for (const gap of gaps) {
        now += gap
        const verdict = countAttempt(current, EMAIL_LOCKOUT, after(now))
        if (verdict.waitSeconds === 0) judged.push(now)
        current = verdict.state
        expect(judged.filter((at) => now - at < 900).length).toBeLessThanOrEqual(9)
      }
    }),
    { numRuns: 500 },
  )
})
