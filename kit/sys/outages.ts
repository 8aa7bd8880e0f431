/** Failures of work that is retried anyway. A log line at `warn` is worth waking somebody, but a failure that the next
 *  attempt repairs is not: a restarted component causes failures in the others for a minute. */
import type { Clock } from './clock.ts'
import type { Logger } from './log.ts'

/** How long something must fail before that is worth waking somebody. */
export const OUTAGE_MILLISECONDS = 120_000

/** Further keys are counted together. */
const KEYS_MAXIMUM = 10_000
const OTHERS = ' others'

interface Outage {
  readonly since: number
  isReported: boolean
}

/** The outcome of one kind of attempt, by key: each failure is logged at `info`, and once at `warn` when all attempts
 *  have failed for OUTAGE_MILLISECONDS. */
export class Outages {
  readonly #log: Logger
  readonly #clock: Clock
  readonly #message: string
  readonly #current = new Map<string, Outage>()

  constructor({ log, clock }: { readonly log: Logger; readonly clock: Clock }, message: string) {
    this.#log = log
    this.#clock = clock
    this.#message = message
  }

  /** An attempt has failed. `fields` are logged with it. Use one `key` for each thing that succeeds or fails alone;
   *  only `over` forgets it. */
  failed(error: unknown, fields: Readonly<Record<string, unknown>> = {}, key = ''): void {
    const now = this.#clock.monotonicMilliseconds()
    const counted = this.#current.has(key) || this.#current.size < KEYS_MAXIMUM ? key : OTHERS
    const outage = this.#current.get(counted) ?? { since: now, isReported: false }
    this.#current.set(counted, outage)
    const milliseconds = Math.round(now - outage.since)
    if (outage.isReported || milliseconds < OUTAGE_MILLISECONDS)
      return this.#log.info(this.#message, { ...fields, error })
    outage.isReported = true
    this.#log.warn(this.#message, { ...fields, error, failing_milliseconds: milliseconds })
  }

  /** An attempt has succeeded, or there is nothing to attempt. */
  over(key = ''): void {
    if (this.#current.get(key)?.isReported === true) this.#log.info(`over: ${this.#message}`, key === '' ? {} : { key })
    this.#current.delete(this.#current.has(key) ? key : OTHERS)
  }

  /** Attempts it; true when it succeeded. Never rejects. */
  async attempt(work: () => Promise<unknown>, fields?: Readonly<Record<string, unknown>>, key = ''): Promise<boolean> {
    try {
      await work()
      this.over(key)
      return true
    } catch (error) {
      this.failed(error, fields, key)
      return false
    }
  }
}
