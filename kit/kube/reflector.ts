/** Keeps a Cache equal to the state of the server: list, then watch from the version of the list, for ever. A broken
 *  watch is resumed from the last version received, so that nothing is missed; everything is listed again only when the
 *  server no longer has that version. There are two safety nets below the protocol: a watch without events for 50 s is
 *  closed and resumed, because a half-open connection looks the same, and every few minutes everything is listed. */
import { backoffMilliseconds } from '../sys/backoff.ts'
import type { Clock } from '../sys/clock.ts'
import type { Logger } from '../sys/log.ts'
import { Counter, Gauge, type Registry } from '../sys/metrics.ts'
import type { Random } from '../sys/random.ts'
import { Outages } from '../sys/outages.ts'
import { isNewer, type Cache } from './cache.ts'
import { ApiError, isNotFound, type ListOptions, type Store } from './store.ts'

export interface ReflectorOptions<Spec, Status> {
  readonly store: Store
  readonly cache: Cache<Spec, Status>
  readonly selection?: ListOptions
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: ReflectorMetrics
}

/** A watch without events is resumed within 60 s: it may be idle for this long, the rest is for the new connection. */
export const WATCH_IDLE_MAXIMUM_MILLISECONDS = 50_000
/** Spread by half of it, so that kinds do not list together. */
export const RELIST_MILLISECONDS = 300_000
const BACKOFF = { baseMilliseconds: 1_600, maximumMilliseconds: 30_000 }
/** The longest interval at which a kind is requested again that the server does not serve yet: on a new cluster it is
 *  being installed. */
const ABSENT_MAXIMUM_MILLISECONDS = 2_000
/** A watch that lived this long was healthy, even when nothing happened. */
const HEALTHY_MILLISECONDS = 30_000

export interface ReflectorMetrics {
  readonly lists: Counter<'name'>
  readonly watches: Counter<'name'>
  readonly idleWatches: Counter<'name'>
  readonly failures: Counter<'name'>
  readonly corrections: Counter<'name'>
  readonly objects: Gauge<'name'>
}

export function openReflectorMetrics(registry: Registry): ReflectorMetrics {
  const counter = (name: string, help: string) =>
    new Counter({ name, help, labelNames: ['name'], registers: [registry] })
  return {
    lists: counter('svccloud_reflector_lists_total', 'Lists of a kind'),
    watches: counter('svccloud_reflector_watches_total', 'Watches opened'),
    idleWatches: counter('svccloud_reflector_silent_watches_total', 'Watches given up because nothing came'),
    failures: counter('svccloud_reflector_failures_total', 'Lists and watches that failed'),
    corrections: counter(
      'svccloud_reflector_relist_corrections_total',
      'Objects that a later list found different from what the watch had told',
    ),
    objects: new Gauge({
      name: 'svccloud_reflector_objects',
      help: 'Objects in the cache',
      labelNames: ['name'],
      registers: [registry],
    }),
  }
}

/** Runs until the signal aborts; never throws. */
export const runReflector = <Spec, Status>(
  options: ReflectorOptions<Spec, Status>,
  signal: AbortSignal,
): Promise<void> => new Reflector(options, signal).run()

class Reflector<Spec, Status> {
  readonly #options: ReflectorOptions<Spec, Status>
  readonly #signal: AbortSignal
  readonly #name: string
  readonly #log: Logger
  #hasListed = false
  /** Monotonic milliseconds; a list is due at once. */
  #relistAt = 0
  #failures = 0
  /** The server did not have the version at the last request. */
  #isExpired = false
  readonly #outages: Outages

  constructor(options: ReflectorOptions<Spec, Status>, signal: AbortSignal) {
    this.#options = options
    this.#signal = signal
    this.#name = options.cache.type.plural
    this.#log = options.log.with({ kind: options.cache.type.kind })
    this.#outages = new Outages({ log: this.#log, clock: options.clock }, 'watch failed')
  }

  async run(): Promise<void> {
    const { clock, random, metrics } = this.#options
    while (!this.#signal.aborted) {
      let retryAfterMilliseconds = 0
      let limits = BACKOFF
      try {
        if (clock.monotonicMilliseconds() >= this.#relistAt) await this.#list()
        if (this.#signal.aborted) return
        if (await this.#follow()) continue
      } catch (error) {
        // A server may forget versions, also one that was away: then request a list. Twice in a row is a fault.
        const isOrdinary = isExpired(error) && !this.#isExpired
        this.#isExpired = isExpired(error)
        if (!isOrdinary) metrics.failures.inc({ name: this.#name })
        if (!canResume(error)) this.#relistAt = 0
        if (error instanceof ApiError) retryAfterMilliseconds = (error.retryAfterSeconds ?? 0) * 1000
        if (isNotFound(error)) limits = { ...BACKOFF, maximumMilliseconds: ABSENT_MAXIMUM_MILLISECONDS }
        if (isOrdinary) this.#log.info('watch expired', { error })
        else this.#outages.failed(error, isNotFound(error) ? { detail: 'kind not served yet' } : {})
      }
      const backoff = backoffMilliseconds(this.#failures++, limits, random)
      await clock.sleep(Math.max(retryAfterMilliseconds, backoff), this.#signal)
    }
  }

  async #list(): Promise<void> {
    const { store, cache, clock, random, metrics, selection = {} } = this.#options
    const name = this.#name
    metrics.lists.inc({ name })
    const found = await store.list(cache.type, selection)
    if (this.#signal.aborted) return
    if (isNewer(cache.syncedVersion, found.resourceVersion))
      throw new Error(
        `the API server answered with version ${found.resourceVersion}, older than ${cache.syncedVersion} that was ` +
          'seen before',
      )
    const differences = cache.takeList(found)
    if (this.#hasListed) metrics.corrections.inc({ name }, differences)
    this.#hasListed = true
    metrics.objects.set({ name }, cache.size)
    this.#relistAt = clock.monotonicMilliseconds() + RELIST_MILLISECONDS * (1 + random.fraction() / 2)
  }

  /** Follows one watch until it ends, has been idle for too long or a list is due. Returns whether the watch was
   *  healthy. */
  #follow(): Promise<boolean> {
    const { store, cache, clock, metrics, selection = {} } = this.#options
    const name = this.#name
    metrics.watches.inc({ name })
    const openedAt = clock.monotonicMilliseconds()
    let lastEventAt = openedAt
    let hasProgressed = false
    const ended = new AbortController()
    const { signal } = ended
    const pump = async () => {
      const events = store.watch(cache.type, { ...selection, resourceVersion: cache.syncedVersion, signal })
      for await (const event of events) {
        if (signal.aborted) return
        lastEventAt = clock.monotonicMilliseconds()
        if (cache.takeEvent(event)) hasProgressed = true
        metrics.objects.set({ name }, cache.size)
      }
    }
    /** Resets earlier failures when the watch has delivered something, or has lasted. */
    const noteHealth = (): boolean => {
      const isHealthy = hasProgressed || clock.monotonicMilliseconds() - openedAt >= HEALTHY_MILLISECONDS
      if (isHealthy) [this.#failures, this.#isExpired] = [0, false]
      if (isHealthy) this.#outages.over()
      return isHealthy
    }
    return new Promise((resolve, reject) => {
      let cancel = () => {}
      const stop = () => {
        cancel()
        this.#signal.removeEventListener('abort', finish)
        ended.abort()
      }
      const finish = () => {
        stop()
        resolve(noteHealth())
      }
      const guard = () => {
        const now = clock.monotonicMilliseconds()
        // Instants are compared, never durations: a remaining duration may be too small to change the sum.
        const idleAt = lastEventAt + WATCH_IDLE_MAXIMUM_MILLISECONDS
        if (now >= idleAt) metrics.idleWatches.inc({ name })
        const nextAt = Math.min(idleAt, this.#relistAt)
        if (now >= nextAt) return finish()
        cancel = clock.after(nextAt - now, guard)
      }
      guard()
      this.#signal.addEventListener('abort', finish, { once: true })
      pump().then(finish, (error: unknown) => {
        stop()
        noteHealth()
        reject(error)
      })
    })
  }
}

const isExpired = (error: unknown): boolean => error instanceof ApiError && error.code === 410

/** Whether a watch can continue from the synced version: the server was busy or unreachable, but it did not report that
 *  it lacks that version (410; 504 for a version that it has not reached). */
const canResume = (error: unknown): boolean =>
  !(error instanceof ApiError) || error.code === 429 || (error.code >= 500 && error.code !== 504)
