/** Keeps a Cache equal to what the server holds: list, then watch from the version of the list, for ever.
 *  A broken watch is resumed from the last version seen, so that nothing is missed; only when the server no longer has
 *  that version
 *  is everything listed again. Two safety nets below the protocol: a watch that has been silent for 50 s is given up
 *  and resumed
 *  (a half-open connection looks just like quiet), and every few minutes everything is listed whatever the watch says.
 */
import { backoffMilliseconds } from '../sys/backoff.ts'
import type { Clock } from '../sys/clock.ts'
import type { Logger } from '../sys/log.ts'
import { Counter, Gauge, type Registry } from '../sys/metrics.ts'
import type { Random } from '../sys/random.ts'
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

/** A silent watch is resumed within 60 s: this long it may be silent, the rest is for getting a connection. */
export const SILENCE_MILLISECONDS = 50_000
/** Spread by half of it, so that kinds do not list together. */
export const RELIST_MILLISECONDS = 300_000
const BACKOFF = { baseMilliseconds: 1_600, maximumMilliseconds: 30_000 }
/** How long at most until a kind is asked for again that the server does not serve yet: on a new cluster it is being
 *  installed. */
const ABSENT_MAXIMUM_MILLISECONDS = 2_000
/** A watch that lived this long was healthy, even when nothing happened. */
const HEALTHY_MILLISECONDS = 30_000

export interface ReflectorMetrics {
  readonly lists: Counter<'name'>
  readonly watches: Counter<'name'>
  readonly silences: Counter<'name'>
  readonly failures: Counter<'name'>
  readonly corrections: Counter<'name'>
  readonly objects: Gauge<'name'>
}

export function openReflectorMetrics(registry: Registry): ReflectorMetrics {
  const counter = (name: string, help: string) =>
    new Counter({ name, help, labelNames: ['name'], registers: [registry] })
  return {
    lists: counter('reflector_lists_total', 'Lists of a kind'),
    watches: counter('reflector_watches_total', 'Watches opened'),
    silences: counter('reflector_silent_watches_total', 'Watches given up because nothing came'),
    failures: counter('reflector_failures_total', 'Lists and watches that failed'),
    corrections: counter(
      'reflector_relist_corrections_total',
      'Objects that a later list found different from what the watch had told',
    ),
    objects: new Gauge({
      name: 'reflector_objects',
      help: 'Objects in the cache',
      labelNames: ['name'],
      registers: [registry],
    }),
  }
}

/** Runs until the signal aborts; never throws. */
export async function runReflector<Spec, Status>(
  options: ReflectorOptions<Spec, Status>,
  signal: AbortSignal,
): Promise<void> {
  const { store, cache, clock, random, metrics } = options
  const name = cache.type.plural
  const log = options.log.with({ kind: cache.type.kind })
  const selection = options.selection ?? {}
  let listedOnce = false
  let relistAt = 0 // monotonic; due
  let failures = 0

  async function list(): Promise<void> {
    metrics.lists.inc({ name })
    const found = await store.list(cache.type, selection)
    if (signal.aborted) return
    if (isNewer(cache.seenVersion, found.resourceVersion))
      throw new Error(
        `the API server answered with version ${found.resourceVersion}, older than ${cache.seenVersion} that was ` +
          'seen before',
      )
    const differences = cache.takeList(found)
    if (listedOnce) metrics.corrections.inc({ name }, differences)
    listedOnce = true
    metrics.objects.set({ name }, cache.size)
    relistAt = clock.monotonicMilliseconds() + RELIST_MILLISECONDS * (1 + random.fraction() / 2)
  }

  /** Follows one watch until it ends, falls silent or a list is due; answers whether it was worth having. */
  function follow(): Promise<boolean> {
    metrics.watches.inc({ name })
    const openedAt = clock.monotonicMilliseconds()
    let heardAt = openedAt
    let hasProgressed = false
    const ended = new AbortController()
    const pump = async () => {
      for await (const event of store.watch(cache.type, {
        ...selection,
        resourceVersion: cache.seenVersion,
        signal: ended.signal,
      })) {
        if (ended.signal.aborted) return
        heardAt = clock.monotonicMilliseconds()
        if (cache.takeEvent(event)) hasProgressed = true
        metrics.objects.set({ name }, cache.size)
      }
    }
    return new Promise((resolve, reject) => {
      let cancel = () => {}
      const stop = () => {
        cancel()
        signal.removeEventListener('abort', finish)
        ended.abort()
      }
      const finish = () => {
        stop()
        resolve(hasProgressed || clock.monotonicMilliseconds() - openedAt >= HEALTHY_MILLISECONDS)
      }
      const guard = () => {
        const now = clock.monotonicMilliseconds()
        const isSilent = now - heardAt >= SILENCE_MILLISECONDS
        if (isSilent) metrics.silences.inc({ name })
        if (isSilent || now >= relistAt) return finish()
        cancel = clock.after(Math.min(heardAt + SILENCE_MILLISECONDS, relistAt) - now, guard)
      }
      guard()
      signal.addEventListener('abort', finish, { once: true })
      pump().then(finish, (error: unknown) => {
        stop()
        reject(error)
      })
    })
  }

  while (!signal.aborted) {
    let patienceMilliseconds = 0
    let limits = BACKOFF
    try {
      if (clock.monotonicMilliseconds() >= relistAt) await list()
      if (signal.aborted) return
      if (await follow()) {
        failures = 0
        continue
      }
    } catch (error) {
      metrics.failures.inc({ name })
      if (!canResume(error)) relistAt = 0
      if (error instanceof ApiError) patienceMilliseconds = (error.retryAfterSeconds ?? 0) * 1000
      if (isNotFound(error)) limits = { ...BACKOFF, maximumMilliseconds: ABSENT_MAXIMUM_MILLISECONDS }
      log.warn(isNotFound(error) ? 'kind not served yet' : 'watch failed', { error })
    }
    await clock.sleep(Math.max(patienceMilliseconds, backoffMilliseconds(failures++, limits, random)), signal)
  }
}

/** Whether the version seen is still good: the server was busy or out of reach, rather than without that version (410,
 *  or 504 for one
 *  that it has not come to). */
const canResume = (error: unknown): boolean =>
  !(error instanceof ApiError) || error.code === 429 || (error.code >= 500 && error.code !== 504)
