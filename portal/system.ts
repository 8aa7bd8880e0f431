/** The clock, the timers and the randomness of the browser: the only place of the portal that uses them, so that tests
 *  of pure parts pass their own. */

/** Milliseconds since 1970 in UTC. */
export const now = (): number => Date.now()

/** Calls `work` once after `milliseconds`. The returned function cancels it. */
export function after(milliseconds: number, work: () => void): () => void {
  const timer = setTimeout(work, milliseconds)
  return () => clearTimeout(timer)
}

/** Calls `work` every `milliseconds`. The returned function ends it. */
export function every(milliseconds: number, work: () => void): () => void {
  const timer = setInterval(work, milliseconds)
  return () => clearInterval(timer)
}

/** Between 0 and 1, for jitter only. */
export const fraction = (): number => Math.random()

/** A UUID of version 4. */
export const newUuid = (): string => crypto.randomUUID()
