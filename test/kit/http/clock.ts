/** A clock that stands still until it is moved. */
import { type Clock, systemClock } from '../../../kit/sys/clock.ts'

export interface MovableClock extends Clock {
  move(seconds: number): void
}

export function movableClock(start = '2026-03-01T12:00:00Z'): MovableClock {
  let milliseconds = Date.parse(start)
  return {
    ...systemClock,
    now: () => new Date(milliseconds),
    monotonicMilliseconds: () => milliseconds,
    move: (seconds) => void (milliseconds += seconds * 1000),
  }
}
