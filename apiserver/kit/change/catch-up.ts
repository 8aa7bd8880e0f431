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
  /** Ensures that it can be read at every other replica from now on. Does nothing without other replicas. */
  share(accountId: string, version: string): Promise<void>
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

/** The name in recent writes for a version that every replica must have reached. */
const SHOWN = 'operation'
/** The one of the stream of changes. */
const STREAM = 'changes'
/** How long to wait for the watches before the store is read instead: most kinds are quiet, and always wait in vain. */
const PATIENCE_MILLISECONDS = 10
const LOOK_MILLISECONDS = 2
/** Beyond this many namespaces, the oldest are forgotten, and listed again when needed. */
const NAMESPACES_MAXIMUM = 10_000

export function openCatchUp({ store, caches, db, clock, hasPeers = false }: CatchUpOptions): CatchUp {
  const writtenCaches = new Set<Cache>()
  /** Up to which all kinds of a namespace are known here. */
  const known = createVersions()
  /** Up to which every replica brings itself, because it is recorded. */
  const shared = createVersions()

  const listed = async (cache: Cache, namespace: string) =>
    cache.takeNamespace(namespace, await store.list(cache.type, { namespace }))

  async function reach(namespace: string, version: string): Promise<void> {
    if (known.covers(namespace, version)) return
    const behind = () => [...writtenCaches].filter(({ syncedVersion }) => isNewer(version, syncedVersion))
    const until = clock.monotonicMilliseconds() + PATIENCE_MILLISECONDS
    while (behind().length > 0 && clock.monotonicMilliseconds() < until) await clock.sleep(LOOK_MILLISECONDS)
    await Promise.all(behind().map((cache) => listed(cache, namespace)))
    known.note(namespace, version)
  }

  async function record(accountId: string, id: string, version: string): Promise<void> {
    const namespace = accountNamespace(accountId)
    if (!hasPeers || shared.covers(namespace, version)) return
    const shown = { accountId, resource: { type: SHOWN, id }, resourceVersion: version }
    await db.transaction().execute((tx) => recordWrites(tx, [shown], clock.now()))
    shared.note(namespace, version)
  }

  return {
    include: (kind) => void (kind.scope === 'Namespaced' && writtenCaches.add(caches.of(kind))),
    async account(accountId) {
      if (!hasPeers) return
      const shown = await listRecentWrites(db, accountId, SHOWN, clock.now())
      const newest = shown.map(({ resourceVersion }) => resourceVersion).reduce(newer, '')
      if (newest === '') return
      await reach(accountNamespace(accountId), newest)
      shared.note(accountNamespace(accountId), newest)
    },
    reach: (accountId, version) => reach(accountNamespace(accountId), version),
    share: (accountId, version) => record(accountId, STREAM, version),
    async upTo(accountId, { id, version }) {
      await reach(accountNamespace(accountId), version)
      await record(accountId, id, version)
    },
  }
}

/** The newest version of each namespace. */
function createVersions() {
  const versions = new Map<string, string>()
  const covers = (namespace: string, version: string) => !isNewer(version, versions.get(namespace) ?? '')
  return {
    covers,
    note(namespace: string, version: string) {
      if (covers(namespace, version)) return
      versions.delete(namespace)
      versions.set(namespace, version) // newest last
      const [oldest] = versions.keys()
      if (versions.size > NAMESPACES_MAXIMUM && oldest !== undefined) versions.delete(oldest)
    },
  }
}

const newer = (one: string, other: string): string => (isNewer(other, one) ? other : one)
