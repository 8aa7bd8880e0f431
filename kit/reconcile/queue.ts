/** The work queue of one controller: which keys need a reconcile, and when. It contains keys, never events: a key is in
 *  it once, however often it was added, and is never given to two workers; one that is added while it is processed
 *  comes back once. All waiting uses the clock. */
import { backoffMilliseconds, type BackoffLimits } from '../sys/backoff.ts'
import type { Clock } from '../sys/clock.ts'
import type { Random } from '../sys/random.ts'
import type { QueueMetrics } from './metrics.ts'

export type Priority = 'normal' | 'low'

export interface QueueOptions {
  /** Names the queue in its metrics. */
  readonly name: string
  readonly clock: Clock
  readonly random: Random
  readonly metrics: QueueMetrics
}

const BACKOFF: BackoffLimits = { baseMilliseconds: 5, maximumMilliseconds: 1_000_000 }
/** A key that is due later is processed early, which does no harm; timers cannot count much further. */
const DELAY_MAXIMUM_MILLISECONDS = 86_400_000
/** How many keys of normal priority may overtake one of low priority. */
const OVERTAKING_MAXIMUM = 16

interface Delay {
  readonly atMilliseconds: number
  readonly cancel: () => void
}

export class WorkQueue {
  readonly #options: QueueOptions
  /** Keys that need a reconcile, with the instant since when; a key that is being processed is here when it needs
   *  another one. */
  readonly #dirty = new Map<string, { priority: Priority; since: number }>()
  readonly #processing = new Map<string, number>()
  readonly #lanes: Readonly<Record<Priority, Lane>> = { normal: new Lane(), low: new Lane() }
  readonly #delays = new Map<string, Delay>()
  readonly #failures = new Map<string, number>()
  readonly #takers: ((key: string | undefined) => void)[] = []
  #overtaken = 0
  #isStopped = false

  constructor(options: QueueOptions) {
    this.#options = options
    options.metrics.observe(options.name, () => ({
      depth: this.#lanes.normal.size + this.#lanes.low.size,
      since: [...this.#processing.values()],
      now: options.clock.monotonicMilliseconds(),
    }))
  }

  /** The key needs a reconcile now. This replaces a pending delay. */
  add(key: string, priority: Priority = 'normal'): void {
    if (this.#isStopped) return
    this.#dropDelay(key)
    const known = this.#dirty.get(key)
    if (known !== undefined) {
      if (known.priority === priority || priority === 'low') return
      known.priority = priority
      if (!this.#processing.has(key)) {
        this.#lanes.low.delete(key)
        this.#lanes.normal.push(key)
      }
      return
    }
    this.#options.metrics.adds.inc({ name: this.#options.name })
    this.#dirty.set(key, { priority, since: this.#now() })
    if (this.#processing.has(key)) return
    this.#lanes[priority].push(key)
    this.#hand()
  }

  /** The key needs a reconcile after the delay; of several delays the earliest counts. Does nothing when a reconcile is
   *  due anyway. A delay of zero uses the clock too, so that a plan that never comes to rest leaves the process time
   *  for everything else. */
  addAfter(key: string, milliseconds: number): void {
    if (this.#isStopped || this.#dirty.has(key)) return
    const atMilliseconds = this.#now() + milliseconds
    const pending = this.#delays.get(key)
    if (pending !== undefined && pending.atMilliseconds <= atMilliseconds) return
    pending?.cancel()
    this.#delays.set(key, {
      atMilliseconds,
      cancel: this.#options.clock.after(Math.min(milliseconds, DELAY_MAXIMUM_MILLISECONDS), () => this.add(key)),
    })
  }

  /** The key failed: another reconcile after a delay that doubles with each failure, 5 ms to the maximum. */
  addFailed(key: string, maximumMilliseconds = BACKOFF.maximumMilliseconds): void {
    const failures = this.#failures.get(key) ?? 0
    this.#failures.set(key, failures + 1)
    this.#options.metrics.retries.inc({ name: this.#options.name })
    this.addAfter(key, backoffMilliseconds(failures, { ...BACKOFF, maximumMilliseconds }, this.#options.random))
  }

  /** The key succeeded: its next failure is its first. */
  forget(key: string): void {
    this.#failures.delete(key)
  }

  /** The next key, when there is one; undefined once the queue is stopped. Every key taken must be given to `done`. */
  take(): Promise<string | undefined> {
    return new Promise((resolve) => {
      this.#takers.push(resolve)
      this.#hand()
    })
  }

  done(key: string): void {
    const { metrics, name } = this.#options
    metrics.workSeconds.observe({ name }, (this.#now() - (this.#processing.get(key) ?? 0)) / 1000)
    this.#processing.delete(key)
    const again = this.#dirty.get(key)
    if (again === undefined) return
    this.#lanes[again.priority].push(key)
    this.#hand()
  }

  /** Returns no more keys and forgets every delay. */
  stop(): void {
    this.#isStopped = true
    for (const { cancel } of this.#delays.values()) cancel()
    this.#delays.clear()
    this.#hand()
  }

  #now(): number {
    return this.#options.clock.monotonicMilliseconds()
  }

  #dropDelay(key: string): void {
    this.#delays.get(key)?.cancel()
    this.#delays.delete(key)
  }

  #hand(): void {
    while (this.#takers.length > 0) {
      const key = this.#isStopped ? undefined : this.#next()
      if (key === undefined && !this.#isStopped) return
      if (key !== undefined) this.#begin(key)
      this.#takers.shift()?.(key)
    }
  }

  #begin(key: string): void {
    const now = this.#now()
    const { metrics, name } = this.#options
    metrics.queueSeconds.observe({ name }, (now - (this.#dirty.get(key)?.since ?? now)) / 1000)
    this.#dirty.delete(key)
    this.#processing.set(key, now)
  }

  #next(): string | undefined {
    const { normal, low } = this.#lanes
    const isLowDue = low.size > 0 && (normal.size === 0 || this.#overtaken >= OVERTAKING_MAXIMUM)
    this.#overtaken = isLowDue || low.size === 0 ? 0 : this.#overtaken + 1
    return (isLowDue ? low : normal).shift()
  }
}

/** First in, first out, and removable by name. A Set keeps the order of insertion. */
class Lane {
  readonly #keys = new Set<string>()
  get size(): number {
    return this.#keys.size
  }
  push(key: string): void {
    this.#keys.add(key)
  }
  delete(key: string): void {
    this.#keys.delete(key)
  }
  shift(): string | undefined {
    const [key] = this.#keys
    if (key !== undefined) this.#keys.delete(key)
    return key
  }
}
