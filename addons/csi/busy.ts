/** One call at a time for each volume: callers that lost patience ask again while the first call goes on. */
import { Refused } from './refusal.ts'

export type Once = <Answer>(key: string, work: () => Promise<Answer>) => Promise<Answer>

/** Throws ABORTED for a key whose call has not ended: whoever asked asks again. */
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
