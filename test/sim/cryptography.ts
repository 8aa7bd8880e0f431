/** What Node computes in separate threads: virtual time stands still until that is over, and however long it takes, its
 *  answer comes behind those of the database. */
import { webcrypto } from 'node:crypto'
import type { Scheduler } from './scheduler.ts'

const METHODS = ['digest', 'exportKey', 'generateKey', 'importKey', 'sign', 'verify'] as const

/** From now on keys and certificates take no virtual time, and no other than that; the answer ends it. */
export function trackCryptography(scheduler: Scheduler): () => void {
  const { subtle } = webcrypto
  for (const name of METHODS) {
    const original = subtle[name] as (...input: unknown[]) => Promise<unknown> // whatever each of them takes
    const value = (...input: unknown[]) => scheduler.hold(original.apply(subtle, input))
    Object.defineProperty(subtle, name, { configurable: true, value })
  }
  return () => {
    for (const name of METHODS) Reflect.deleteProperty(subtle, name)
  }
}
