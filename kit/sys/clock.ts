/** Time as an input. Everything that waits or reads the time takes a Clock, so that the simulation can control it.
 *  Never elsewhere: Date.now, new Date() without arguments, setTimeout, setInterval. */
import { environment, isSupervised } from './process.ts'

export interface Clock {
  /** Wall time, for timestamps that people and other machines read. */
  now(): Date
  /** Milliseconds that never go backwards, for durations, leases and deadlines inside one process. */
  monotonicMilliseconds(): number
  /** Resolves after the given milliseconds, or at once (without an error) when the signal aborts. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>
  /** Calls `work` once after the given milliseconds; the returned function cancels it. Never keeps a process alive. */
  after(milliseconds: number, work: () => void): () => void
}

/** Milliseconds by which the components of a test cloud are ahead of the machine: `npm start -- --test-clock`. */
export const TEST_CLOCK_VARIABLE = 'SVCCLOUD_TEST_CLOCK_AHEAD_MILLISECONDS'

/** Only a supervisor on the same machine may set it: processes in a cluster share their time with others. Throws for
 *  any other process that has it. */
function readAhead(): number {
  const text = environment()[TEST_CLOCK_VARIABLE]
  if (text === undefined || text === '') return 0
  const ahead = Number(text)
  if (!isSupervised() || !Number.isSafeInteger(ahead) || ahead < 0)
    throw new Error(`${TEST_CLOCK_VARIABLE} is for components that npm start has started, and never goes back`)
  return ahead
}
const AHEAD_MILLISECONDS = readAhead()

/** The same instant by the clock of the machine, by which others judge certificates. */
export const byTheMachine = (at: Date): Date => new Date(at.getTime() - AHEAD_MILLISECONDS)

export const systemClock: Clock = {
  now: () => new Date(Date.now() + AHEAD_MILLISECONDS),
  monotonicMilliseconds: () => performance.now(),
  sleep: (milliseconds, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      const done = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', done)
        resolve()
      }
      const timer = setTimeout(done, milliseconds)
      signal?.addEventListener('abort', done, { once: true })
    }),
  after: (milliseconds, work) => {
    const timer = setTimeout(work, milliseconds)
    timer.unref()
    return () => clearTimeout(timer)
  },
}

/** RFC 3339 in UTC without milliseconds, as Kubernetes writes creationTimestamp and conditions. */
export const toSeconds = (at: Date): string => `${at.toISOString().slice(0, 19)}Z`
