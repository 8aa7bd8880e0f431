/** Keeps a Cache equal to what the server holds: list, then watch from the version of the list, for ever.
 *  A broken watch is resumed from the last version taken in, so that nothing is missed; everything is listed again only
 *  when the server no longer has that version. Two safety nets below the protocol: a watch without events for 50 s is
 *  closed and resumed, because a half-open connection looks the same, and every few minutes everything is listed. */
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

/** A watch without events is resumed within 60 s: it may be idle for this long, the rest is for the new connection. */
export const WATCH_IDLE_MAXIMUM_MILLISECONDS = 50_000
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
  readonly idleWatches: Counter<'name'>
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
    idleWatches: counter('reflector_silent_watches_total', 'Watches given up because nothing came'),
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
    if (isNewer(cache.syncedVersion, found.resourceVersion))
      throw new Error(
        `the API server answered with version ${found.resourceVersion}, older than ${cache.syncedVersion} that was ` +
          'seen before',
      )
    const differences = cache.takeList(found)
    if (listedOnce) metrics.corrections.inc({ name }, differences)
    listedOnce = true
    metrics.objects.set({ name }, cache.size)
    relistAt = clock.monotonicMilliseconds() + RELIST_MILLISECONDS * (1 + random.fraction() / 2)
  }

  /** Follows one watch until it ends, has been idle for too long or a list is due. Answers whether the watch was
   *  healthy. */
  function follow(): Promise<boolean> {
    metrics.watches.inc({ name })
    const openedAt = clock.monotonicMilliseconds()
    let lastEventAt = openedAt
    let hasProgressed = false
    const ended = new AbortController()
    const pump = async () => {
      for await (const event of store.watch(cache.type, {
        ...selection,
        resourceVersion: cache.syncedVersion,
        signal: ended.signal,
      })) {
        if (ended.signal.aborted) return
        lastEventAt = clock.monotonicMilliseconds()
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
        const isIdle = now - lastEventAt >= WATCH_IDLE_MAXIMUM_MILLISECONDS
        if (isIdle) metrics.idleWatches.inc({ name })
        if (isIdle || now >= relistAt) return finish()
        cancel = clock.after(Math.min(lastEventAt + WATCH_IDLE_MAXIMUM_MILLISECONDS, relistAt) - now, guard)
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
    let retryAfterMilliseconds = 0
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
      if (error instanceof ApiError) retryAfterMilliseconds = (error.retryAfterSeconds ?? 0) * 1000
      if (isNotFound(error)) limits = { ...BACKOFF, maximumMilliseconds: ABSENT_MAXIMUM_MILLISECONDS }
      log.warn(isNotFound(error) ? 'kind not served yet' : 'watch failed', { error })
    }
    await clock.sleep(Math.max(retryAfterMilliseconds, backoffMilliseconds(failures++, limits, random)), signal)
  }
}

/** Whether a watch can go on from the synced version: the server was busy or out of reach, but it did not say that it
 *  lacks that version (410; 504 for a version that it has not reached). */
const canResume = (error: unknown): boolean =>
  !(error instanceof ApiError) || error.code === 429 || (error.code >= 500 && error.code !== 504)
