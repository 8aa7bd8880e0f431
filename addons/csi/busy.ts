/** Allows one call at a time for each volume: callers whose timeout has expired retry while the first call still runs.
 */
import { Refused } from './refusal.ts'

export type Once = <Answer>(key: string, work: () => Promise<Answer>) => Promise<Answer>

/** Throws ABORTED while a call with the same key runs: the caller retries. */
export function oneAtATime(): Once {
  const busy = new Set<string>()
  return async (key, work) => {
    if (busy.has(key)) throw new Refused('ABORTED', `another call for ${key} has not ended`)
    busy.add(key)
    try {
      return await work()
    } finally {
      busy.delete(key)
    }
  }
}
