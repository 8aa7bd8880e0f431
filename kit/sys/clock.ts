/** Time as an input. Everything that waits or reads the time takes a Clock, so that the simulation can own it.
 *  Never elsewhere: Date.now, new Date() without arguments, setTimeout, setInterval. */

export interface Clock {
  /** Wall time, for timestamps that people and other machines read. */
  now(): Date
  /** Milliseconds that never go backwards, for durations, leases and deadlines inside one process. */
  monotonicMilliseconds(): number
  /** Resolves after the given milliseconds, or at once (without an error) when the signal aborts. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>
  /** Calls `work` once after the given milliseconds; the answer cancels it. Never keeps a process alive. */
  after(milliseconds: number, work: () => void): () => void
}

export const systemClock: Clock = {
  now: () => new Date(),
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
