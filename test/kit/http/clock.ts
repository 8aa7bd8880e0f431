/** A clock that stands still until it is moved. */
import { AsyncResource } from 'node:async_hooks'
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

export interface TimedClock extends Clock {
  /** Lets time pass, with everything that is due in it, in order; resolves when that has had its turns. */
  pass(milliseconds: number): Promise<void>
}

/** A clock whose timers are due only when it is moved. */
export function timedClock(start = '2026-03-01T12:00:00Z'): TimedClock {
  let milliseconds = Date.parse(start)
  const timers = new Set<{ readonly at: number; readonly work: () => void }>()
  const after: Clock['after'] = (delay, work) => {
    // as real timers do, it works in the name of whoever set it
    const timer = { at: milliseconds + delay, work: AsyncResource.bind(work) }
    timers.add(timer)
    return () => void timers.delete(timer)
  }
  const settle = () => new Promise((resolve) => void setImmediate(resolve))
  return {
    now: () => new Date(milliseconds),
    monotonicMilliseconds: () => milliseconds,
    after,
    sleep: (delay, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted === true) return resolve()
        const cancel = after(delay, resolve)
        signal?.addEventListener('abort', () => (cancel(), resolve()), { once: true })
      }),
    async pass(delay) {
      const end = milliseconds + delay
      await settle()
      for (;;) {
        const [next] = [...timers].filter(({ at }) => at <= end).sort((one, other) => one.at - other.at)
        if (next === undefined) break
        timers.delete(next)
        milliseconds = next.at
        next.work()
        await settle()
      }
      milliseconds = end
    },
  }
}
