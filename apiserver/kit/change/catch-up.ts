/** Brings the caches of this replica up to what customers were shown. Everything that an operation changed was written
 *  before its end, so a namespace that is complete up to the end shows all of it: the state of the target, what other
 *  kinds show of it (the router of a network, how many snapshots a storage has), and what was deleted with it. */
import { listRecentWrites, recordWrites } from '../../../db/change/index.ts'
import type { Database } from '../../../db/kit/open.ts'
import { isNewer, type Cache } from '../../../kit/kube/cache.ts'
import type { Caches } from '../../../kit/kube/caches.ts'
import type { ResourceType } from '../../../kit/kube/object.ts'
import type { Store } from '../../../kit/kube/store.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import { accountNamespace } from '../../../resources/index.ts'

export interface CatchUp {
  /** Adds the kind to those that accounts see: every kind with a view. */
  include(kind: ResourceType): void
  /** Ensures that what other replicas have shown the account can be read here. Does nothing without other replicas. */
  account(accountId: string): Promise<void>
  /** Ensures that everything written for the account up to this version of Kubernetes can be read here. */
  reach(accountId: string, version: string): Promise<void>
  /** Ensures that everything written for the account up to this version of Kubernetes, by any writer, can be read here,
   *  and from now on at every other replica. Does nothing when it could be read before. */
  upTo(accountId: string, operation: { readonly id: string; readonly version: string }): Promise<void>
}

export interface CatchUpOptions {
  readonly store: Store
  readonly caches: Caches
  readonly db: Database
  readonly clock: Clock
  readonly hasPeers?: boolean
}

/** The name in recent writes for the end of an operation. */
const OPERATION_END = 'operation'
/** How long to wait for the watches before the store is read instead: most kinds are quiet, and always wait in vain. */
const PATIENCE_MILLISECONDS = 10
const LOOK_MILLISECONDS = 2
/** Beyond this many namespaces, the oldest are forgotten, and listed again when needed. */
const NAMESPACES_MAXIMUM = 10_000

export function openCatchUp({ store, caches, db, clock, hasPeers = false }: CatchUpOptions): CatchUp {
  const kept = new Set<Cache>()
  /** The version up to which all kinds of a namespace are known. */
  const known = new Map<string, string>()
  const isKnown = (namespace: string, version: string) => !isNewer(version, known.get(namespace) ?? '')

  const listed = async (cache: Cache, namespace: string) =>
    cache.takeNamespace(namespace, await store.list(cache.type, { namespace }))

  async function reach(namespace: string, version: string): Promise<void> {
    if (isKnown(namespace, version)) return
    const behind = () => [...kept].filter(({ syncedVersion }) => isNewer(version, syncedVersion))
    const until = clock.monotonicMilliseconds() + PATIENCE_MILLISECONDS
    while (behind().length > 0 && clock.monotonicMilliseconds() < until) await clock.sleep(LOOK_MILLISECONDS)
    await Promise.all(behind().map((cache) => listed(cache, namespace)))
    if (isKnown(namespace, version)) return
    known.delete(namespace)
    known.set(namespace, version)
    const [oldest] = known.keys()
    if (known.size > NAMESPACES_MAXIMUM && oldest !== undefined) known.delete(oldest)
  }

  return {
    include: (kind) => void (kind.scope === 'Namespaced' && kept.add(caches.of(kind))),
    async account(accountId) {
      if (!hasPeers) return
      const ends = await listRecentWrites(db, accountId, OPERATION_END, clock.now())
      const newest = ends.map(({ resourceVersion }) => resourceVersion).reduce(newer, '')
      if (newest !== '') await reach(accountNamespace(accountId), newest)
    },
    reach: (accountId, version) => reach(accountNamespace(accountId), version),
    async upTo(accountId, { id, version }) {
      const namespace = accountNamespace(accountId)
      if (isKnown(namespace, version)) return
      await reach(namespace, version)
      if (!hasPeers) return
      const end = { accountId, resource: { type: OPERATION_END, id }, resourceVersion: version }
      await db.transaction().execute((tx) => recordWrites(tx, [end], clock.now()))
    },
  }
}

const newer = (one: string, other: string): string => (isNewer(other, one) ? other : one)
