/** Waiting for what becomes true, and saying what was there instead when it never does. */
import { setTimeout as sleep } from 'node:timers/promises'

const PATIENCE_MILLISECONDS = 90_000
const LOOK_MILLISECONDS = 20
/** Of what was seen last, and of the end of each text in it. */
const SEEN_CHARACTERS_MAXIMUM = 4_000
const TEXT_CHARACTERS_MAXIMUM = 1_000

/** Thrown by a look: waiting longer would not help. */
export class Hopeless extends Error {}

/** Looks until what is seen is so, and answers it. A look that throws saw nothing. When it never is, says what was seen
 *  last, or why nothing was. */
export async function until<Seen>(
  what: string,
  look: () => Seen | Promise<Seen>,
  isSo: (seen: Seen) => boolean,
  milliseconds = PATIENCE_MILLISECONDS,
): Promise<Seen> {
  const deadline = performance.now() + milliseconds
  let last: { readonly seen: Seen } | { readonly failure: unknown }
  do {
    try {
      const seen = await look()
      if (isSo(seen)) return seen
      last = { seen }
    } catch (failure) {
      if (failure instanceof Hopeless) throw failure
      last = { failure }
    }
    await sleep(LOOK_MILLISECONDS)
  } while (performance.now() < deadline)
  const vain = `waited ${milliseconds} ms in vain for ${what}`
  throw 'seen' in last
    ? new Error(`${vain}; there was ${inWords(last.seen)}`)
    : new Error(vain, { cause: last.failure })
}

/** Waits until the condition answers something, and answers that. */
export async function eventually<Value>(
  what: string,
  condition: () => Value | undefined | false | Promise<Value | undefined | false>,
  milliseconds?: number,
): Promise<Value> {
  // what is so is neither
  return (await until(what, condition, (value) => value !== undefined && value !== false, milliseconds)) as Value
}

const inWords = (seen: unknown): string =>
  String(
    JSON.stringify(seen, (key, value: unknown) =>
      key === 'managedFields' ? undefined : typeof value === 'string' ? value.slice(-TEXT_CHARACTERS_MAXIMUM) : value,
    ),
  ).slice(0, SEEN_CHARACTERS_MAXIMUM)
