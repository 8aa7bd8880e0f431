import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { type BackupSchedule, dueSlot, nextSlot, parseBackupSchedule } from '../../../domain/backup/schedule.ts'

const schedule = (text: string): BackupSchedule => {
  const read = parseBackupSchedule(text)
  if ('fault' in read) throw new Error(read.fault)
  return read
}
const next = (text: string, after: string) => nextSlot(schedule(text), new Date(after))?.toISOString()

describe('a schedule', () => {
  it.each([
    ['30 3 * * *', '2026-11-22T03:29:59Z', '2026-11-22T03:30:00.000Z', 'every day'],
    ['30 3 * * *', '2026-11-22T03:30:00Z', '2026-11-23T03:30:00.000Z', 'a slot is not after itself'],
    ['0 * * * *', '2026-12-31T23:00:00Z', '2027-01-01T00:00:00.000Z', 'every hour, over the end of a year'],
    ['5 */6 * * *', '2026-11-22T06:06:00Z', '2026-11-22T12:05:00.000Z', 'a step'],
    ['5 8-18/5,22 * * *', '2026-11-22T18:05:00Z', '2026-11-22T22:05:00.000Z', 'a list of a range with a step'],
    ['0 2 * * 1-5', '2026-11-20T02:00:00Z', '2026-11-23T02:00:00.000Z', 'working days'],
    ['0 2 * * 7', '2026-11-20T02:00:00Z', '2026-11-22T02:00:00.000Z', '7 is Sunday'],
    ['0 2 * * 0', '2026-11-20T02:00:00Z', '2026-11-22T02:00:00.000Z', '0 is Sunday too'],
    ['0 0 1,15 * *', '2026-11-02T00:00:00Z', '2026-11-15T00:00:00.000Z', 'days of the month'],
    ['0 0 13 * 5', '2026-11-07T00:00:00Z', '2026-11-13T00:00:00.000Z', 'either, when both days are restricted'],
    ['0 0 13 * 5', '2026-11-13T00:00:00Z', '2026-11-20T00:00:00.000Z', 'a Friday that is no 13th'],
    ['0 0 */10 * 1', '2026-11-02T00:00:00Z', '2026-12-21T00:00:00.000Z', 'a star with a step restricts nothing'],
    ['0 0 31 * *', '2026-11-02T00:00:00Z', '2026-12-31T00:00:00.000Z', 'months without that day are passed over'],
    ['0 0 29 2 *', '2097-01-01T00:00:00Z', '2104-02-29T00:00:00.000Z', '2100 is no leap year'],
  ])('%s after %s is due at %s: %s', (text, after, expected) => {
    expect(next(text, after)).toBe(expected)
  })

  it.each([
    ['', 'five fields'],
    ['30 3 * *', 'five fields'],
    ['30 3 * * * *', 'five fields'],
    ['@daily', 'five fields'],
    ['60 3 * * *', 'minute'],
    ['0 24 * * *', 'hour'],
    ['0 0 0 * *', 'day of the month'],
    ['0 0 * 13 *', 'month'],
    ['0 0 * * 8', 'day of the week'],
    ['0 0 * * MON', 'day of the week'],
    ['0 5-3 * * *', 'hour'],
    ['0 */0 * * *', 'hour'],
    ['0 3/2 * * *', 'hour'],
    ['0 1,,2 * * *', 'hour'],
    ['0 -1 * * *', 'hour'],
    ['0 1e1 * * *', 'hour'],
    ['0,30 3 * * *', 'once in an hour'],
    ['* 3 * * *', 'once in an hour'],
    ['*/30 * * * *', 'once in an hour'],
    ['0 0 30 2 *', 'never comes'],
    [`0 0 ${'1,'.repeat(40)}1 * *`, 'five fields'],
  ])('%j is none: %s', (text, fault) => {
    expect(parseBackupSchedule(text)).toEqual({ fault: expect.stringContaining(fault) })
  })
})

test('what was missed is made up for once, by the newest slot', () => {
  const daily = schedule('0 3 * * *')
  const due = (after: string, now: string) =>
    dueSlot(daily, { after: new Date(after), now: new Date(now) })?.toISOString()
  expect(due('2026-11-20T03:00:00Z', '2026-11-21T02:59:59Z')).toBeUndefined()
  expect(due('2026-11-20T03:00:00Z', '2026-11-21T03:00:00Z')).toBe('2026-11-21T03:00:00.000Z')
  expect(due('2026-11-10T03:00:00Z', '2026-11-21T12:00:00Z')).toBe('2026-11-21T03:00:00.000Z')
  expect(due('2026-11-21T03:00:00Z', '2026-11-21T12:00:00Z')).toBeUndefined()
})

test('slots are at least an hour apart, and those that are found forwards are found backwards', () => {
  const list = (first: number, last: number) =>
    fc.oneof(
      fc.constant('*'),
      fc.uniqueArray(fc.integer({ min: first, max: last }), { minLength: 1, maxLength: 4 }).map((all) => all.join(',')),
    )
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 59 }),
      list(0, 23),
      list(1, 28),
      list(1, 12),
      list(0, 7),
      fc.date({ min: new Date('2000-01-01'), max: new Date('2100-01-01'), noInvalidDate: true }),
      (minute, hours, days, months, weekdays, from) => {
        const read = schedule(`${minute} ${hours} ${days} ${months} ${weekdays}`)
        const one = nextSlot(read, from)
        const other = one && nextSlot(read, one)
        if (one === undefined || other === undefined) throw new Error('it ends')
        expect(other.getTime() - one.getTime()).toBeGreaterThanOrEqual(3_600_000)
        expect(dueSlot(read, { after: from, now: one })).toEqual(one)
        expect(dueSlot(read, { after: from, now: new Date(other.getTime() - 1) })).toEqual(one)
        expect(dueSlot(read, { after: one, now: new Date(other.getTime() - 1) })).toBeUndefined()
      },
    ),
  )
})
