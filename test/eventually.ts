/** Waiting for what becomes true, and saying what was there instead when it never does. */
import { setTimeout as sleep } from 'node:timers/promises'
import { environment } from '../kit/sys/process.ts'

/** What the tier gives (vitest.config.ts); benchmarks have none. */
const PATIENCE_MILLISECONDS = Number(environment()['SVCCLOUD_TEST_PATIENCE_MILLISECONDS'] ?? 90_000)
const POLL_MILLISECONDS = 20
/** Of what was observed last, and of the end of each text in it. */
const OBSERVED_CHARACTERS_MAXIMUM = 4_000
const TEXT_CHARACTERS_MAXIMUM = 1_000

/** Thrown by an observation: waiting longer would not help. */
export class Unrecoverable extends Error {}

/** Observes until the condition is met, and answers what was observed. An observation that throws is made again. Throws
 *  with what was observed last, or why nothing was, when the condition is not met in time. */
export async function until<Observed>(
  what: string,
  observe: () => Observed | Promise<Observed>,
  isMet: (observed: Observed) => boolean,
  milliseconds = PATIENCE_MILLISECONDS,
): Promise<Observed> {
  const deadline = performance.now() + milliseconds
  let last: { readonly observed: Observed } | { readonly failure: unknown }
  do {
    try {
      const observed = await observe()
      if (isMet(observed)) return observed
      last = { observed }
    } catch (failure) {
      if (failure instanceof Unrecoverable) throw failure
      last = { failure }
    }
    await sleep(POLL_MILLISECONDS)
  } while (performance.now() < deadline)
  const vain = `waited ${milliseconds} ms in vain for ${what}`
  throw 'observed' in last
    ? new Error(`${vain}; there was ${describeValue(last.observed)}`)
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

const describeValue = (observed: unknown): string =>
  String(
    JSON.stringify(observed, (key, value: unknown) =>
      key === 'managedFields' ? undefined : typeof value === 'string' ? value.slice(-TEXT_CHARACTERS_MAXIMUM) : value,
    ),
  ).slice(0, OBSERVED_CHARACTERS_MAXIMUM)
