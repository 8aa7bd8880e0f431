/** Time for the client, which runs where nothing else of this product does. */

export interface Timer {
  /** Grows with time; means nothing by itself. */
  milliseconds(): number
  /** Resolves after this long; rejects with the reason of the signal when that comes first. */
  pause(milliseconds: number, signal?: AbortSignal): Promise<void>
}

export const timer: Timer = {
  milliseconds: () => performance.now(),
  pause: (milliseconds, signal) =>
    new Promise((resolve, reject) => {
      const stop = () => {
        clearTimeout(timeout)
        reject(signal?.reason)
      }
      const timeout = setTimeout(() => {
        signal?.removeEventListener('abort', stop)
        resolve()
      }, milliseconds)
      if (signal?.aborted) stop()
      else signal?.addEventListener('abort', stop, { once: true })
    }),
}
