/** The clock, the timers and the randomness of the browser: the only place of the portal that uses them. */

/** Milliseconds since 1970. */
export const now = (): number => Date.now()

/** Calls once, after so many milliseconds; the answer cancels it. */
export function after(milliseconds: number, call: () => void): () => void {
  const timer = setTimeout(call, milliseconds)
  return () => clearTimeout(timer)
}

/** Resolves after so many milliseconds, or as soon as the signal is aborted. */
export const pause = (milliseconds: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const cancel = after(milliseconds, resolve)
    signal?.addEventListener('abort', () => {
      cancel()
      resolve()
    })
  })

/** A UUID, version 4. Works on plain HTTP too, where browsers offer no `randomUUID`. */
export function uuid(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

/** A number from 0 up to 1, for jitter. */
export const fraction = (): number => (crypto.getRandomValues(new Uint32Array(1))[0] ?? 0) / 2 ** 32
