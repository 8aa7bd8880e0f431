import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type Counters,
  growth,
  METRICS_PERIODS,
  newest,
  NO_COUNTERS,
  NO_LOAD,
  seriesOf,
  seriesStart,
  STEPS,
  stepOf,
  stepSecondsOf,
} from '../../../domain/usage/rules.ts'

const counters = (diskReadBytes: number): Counters => ({ ...NO_COUNTERS, diskReadBytes })

describe('readings of counters', () => {
  it('add up to the newest one, in any order and number', () => {
    fc.assert(
      fc.property(fc.array(fc.nat()), (values) => {
        let known = NO_COUNTERS
        let sum = 0
        for (const value of values) {
          sum += growth(known, counters(value)).diskReadBytes
          known = newest(known, counters(value))
        }
        expect(sum).toBe(Math.max(0, ...values))
      }),
    )
  })
})

describe('a series', () => {
  const now = new Date('2026-03-01T10:17:42Z')

  it.each([
    ['1h', 60, 60],
    ['24h', 96, 900],
    ['7d', 168, 3_600],
    ['30d', 180, 14_400],
  ] as const)('of %s has %i steps of %i seconds, the last one in progress', (period, count, stepSeconds) => {
    const series = seriesOf(period, [], now)
    expect([series.length, stepSecondsOf(period)]).toEqual([count, stepSeconds])
    expect(series.at(-1)?.at).toEqual(stepOf(now, stepSeconds))
    expect(
      series.every(
        ({ at }, index) => index === 0 || at.getTime() - (series[index - 1]?.at.getTime() ?? 0) === stepSeconds * 1_000,
      ),
    ).toBe(true)
  })

  it('starts with the step that is as old as the period is long', () => {
    expect(seriesStart('1h', now)).toEqual(new Date('2026-03-01T09:18:00Z'))
    expect(seriesStart('24h', now)).toEqual(new Date('2026-02-28T10:30:00Z'))
    for (const period of METRICS_PERIODS) expect(seriesOf(period, [], now)[0]?.at).toEqual(seriesStart(period, now))
  })

  it('is kept for its period and one step more', () =>
    expect(STEPS).toEqual([
      { stepSeconds: 60, keptSeconds: 3_660 },
      { stepSeconds: 900, keptSeconds: 87_300 },
      { stepSeconds: 3_600, keptSeconds: 608_400 },
      { stepSeconds: 14_400, keptSeconds: 2_606_400 },
    ]))

  it('is zero where nothing was counted', () => {
    const [first] = seriesOf('1h', [], now)
    expect(first).toEqual({
      at: new Date('2026-03-01T09:18:00Z'),
      networkReceivedBytes: 0,
      networkTransmittedBytes: 0,
      diskReadBytes: 0,
      diskWrittenBytes: 0,
      diskReadOperations: 0,
      diskWriteOperations: 0,
      cpuMilliseconds: null,
      memoryUsedBytes: null,
    })
  })

  it('shows what was counted in its step, and nothing outside of the period', () => {
    for (const period of METRICS_PERIODS) {
      const last = stepOf(now, stepSecondsOf(period))
      const before = new Date(last.getTime() - 400 * 86_400_000)
      const series = seriesOf(
        period,
        [
          { at: last, ...counters(5), ...NO_LOAD },
          { at: before, ...counters(7), ...NO_LOAD },
        ],
        now,
      )
      expect(series.reduce((sum, { diskReadBytes }) => sum + diskReadBytes, 0)).toBe(5)
      expect(series.at(-1)).toMatchObject({ at: last, diskReadBytes: 5 })
    }
  })
})
