/** Deadlines of requests: the transport has none. */
import type { Clock } from '../sys/clock.ts'

export const REQUEST_TIMEOUT_MILLISECONDS = 30_000

/** The result of the work. Throws when it takes longer, also if the work ignores its signal. */
export function within<T>(clock: Clock, milliseconds: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const deadline = new AbortController()
  return new Promise<T>((resolve, reject) => {
    const cancel = clock.after(milliseconds, () => {
      reject(new Error(`no answer within ${milliseconds} ms`))
      deadline.abort()
    })
    work(deadline.signal).then(resolve, reject).finally(cancel)
  })
}
