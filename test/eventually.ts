/** Waiting for what becomes true, and saying what was there instead when it never does. */
import { setTimeout as sleep } from 'node:timers/promises'

const PATIENCE_MILLISECONDS = 90_000
const LOOK_MILLISECONDS = 20
const SEEN_CHARACTERS_MAXIMUM = 2_000

/** Thrown by a condition: waiting longer would not help. */
export class Hopeless extends Error {}

/** Waits until the condition answers something. One that throws is not true yet; what it threw last is the cause when it never is. */
export async function eventually<Value>(what: string, condition: () => Value | undefined | false | Promise<Value | undefined | false>, milliseconds = PATIENCE_MILLISECONDS): Promise<Value> {
  const deadline = performance.now() + milliseconds
  let last: unknown
  do {
    try {
      const value = await condition()
      if (value !== undefined && value !== false) return value
      last = undefined
    } catch (error) {
      if (error instanceof Hopeless) throw error
      last = error
    }
    await sleep(LOOK_MILLISECONDS)
  } while (performance.now() < deadline)
  throw new Error(`waited ${milliseconds} ms in vain for ${what}`, { cause: last })
}

/** Looks until what is seen is so, and answers it; says what was seen last when it never is. */
export async function until<Seen>(what: string, look: () => Seen | Promise<Seen>, isSo: (seen: Seen) => boolean, milliseconds?: number): Promise<Seen> {
  const { found } = await eventually(what, async () => {
    const seen = await look()
    if (!isSo(seen)) throw new Error(`there was ${inWords(seen)}`)
    return { found: seen }
  }, milliseconds)
  return found
}

const inWords = (seen: unknown): string =>
  typeof seen === 'string' ? JSON.stringify(seen.slice(-SEEN_CHARACTERS_MAXIMUM)) : String(JSON.stringify(seen, (key, value: unknown) => (key === 'managedFields' ? undefined : value))).slice(0, SEEN_CHARACTERS_MAXIMUM)
