/** Limits the network bandwidth of backups: the bytes of all requests together, averaged over a second. */
import type { ObjectStore } from '../../../kit/chunks/object-store.ts'
import type { Clock } from '../../../kit/sys/clock.ts'

const SECOND_MILLISECONDS = 1_000

export interface Bandwidth {
  /** Resolves when the bytes may be sent. For received bytes, delays the caller until the bandwidth allows them. */
  take(bytes: number): Promise<void>
}

export function openBandwidth(bytesPerSecond: number, clock: Clock): Bandwidth {
  /** When all bytes so far will have been sent. Monotonic milliseconds. */
  let freeAt = 0
  return {
    async take(bytes) {
      const now = clock.monotonicMilliseconds()
      const wait = Math.max(freeAt - now, 0)
      freeAt = now + wait + (bytes / bytesPerSecond) * SECOND_MILLISECONDS
      if (wait > 0) await clock.sleep(wait)
    },
  }
}

/** The store, limited to the bandwidth. */
export const throttled = (store: ObjectStore, bandwidth: Bandwidth): ObjectStore => ({
  ...store,
  async put(name, bytes) {
    await bandwidth.take(bytes.length)
    await store.put(name, bytes)
  },
  async get(name, maximumBytes) {
    const found = await store.get(name, maximumBytes)
    await bandwidth.take(found?.bytes.length ?? 0)
    return found
  },
})
