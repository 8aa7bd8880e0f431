/** Time for the client, which does not use other code of this product. */

export interface Timer {
  /** Increases with time; the absolute value has no meaning. */
  milliseconds(): number
  /** Resolves after this time; rejects with the signal's reason when it aborts first. */
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

/** Between half of the time and all of it, so that clients that lost the same server do not return together. */
export const spread = (milliseconds: number): number => milliseconds * (0.5 + Math.random() / 2)
