/** The caches of one process: one reflector per kind, shared by all users of that kind. */
import type { Clock } from '../sys/clock.ts'
import type { Logger } from '../sys/log.ts'
import type { Registry } from '../sys/metrics.ts'
import type { Random } from '../sys/random.ts'
import { Cache } from './cache.ts'
import type { KubeObject, ResourceType } from './object.ts'
import { openReflectorMetrics, runReflector } from './reflector.ts'
import type { ListOptions, Store } from './store.ts'

export interface CachesOptions {
  readonly store: Store
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly registry: Registry
  /** The namespace that is watched for namespaced kinds: all when absent. An agent names its own namespace. */
  readonly selection?: ListOptions
}

export interface Caches {
  /** The cache of the kind; the first request creates it. Its reflector runs once the caches are started. */
  of<Spec, Status>(type: ResourceType<Spec, Status>): Cache<Spec, Status>
  /** The cache of the kind if it was requested before. */
  known<Spec, Status>(type: ResourceType<Spec, Status>): Cache<Spec, Status> | undefined
  /** Stores the result of a write, if the kind is cached. */
  apply(type: ResourceType, written: KubeObject): void
  /** Starts every reflector, also of kinds that are requested later, until the signal aborts. */
  start(signal: AbortSignal): void
  /** Resolves when every kind requested so far has had its first list. */
  ready(): Promise<void>
  isReady(): boolean
}

const nameOf = (type: ResourceType): string => `${type.plural}.${type.group}`

export function openCaches(options: CachesOptions): Caches {
  const metrics = openReflectorMetrics(options.registry)
  const caches = new Map<string, Cache>()
  let running: AbortSignal | undefined

  const run = (cache: Cache, signal: AbortSignal) =>
    void runReflector(
      { ...options, cache, metrics, selection: cache.type.scope === 'Namespaced' ? (options.selection ?? {}) : {} },
      signal,
    )

  return {
    of<Spec, Status>(type: ResourceType<Spec, Status>) {
      const name = nameOf(type)
      let cache = caches.get(name)
      if (cache === undefined) {
        // a cache never reads inside spec and status
        cache = new Cache(type as ResourceType, (error) =>
          options.log.error('a listener failed', { kind: type.kind, error }),
        )
        caches.set(name, cache)
        if (running !== undefined) run(cache, running)
      }
      return cache as unknown as Cache<Spec, Status> // created for this very type
    },
    known: <Spec, Status>(type: ResourceType<Spec, Status>) =>
      caches.get(nameOf(type)) as unknown as Cache<Spec, Status> | undefined, // as above
    apply: (type, written) => caches.get(nameOf(type))?.apply(written),
    start(signal) {
      running = signal
      for (const cache of caches.values()) run(cache, signal)
    },
    async ready() {
      await Promise.all([...caches.values()].map((cache) => cache.ready()))
    },
    isReady: () => [...caches.values()].every((cache) => cache.isReady),
  }
}
