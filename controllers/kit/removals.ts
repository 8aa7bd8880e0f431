/** Records that an object is being deleted before anything of it is removed: others read the order (`db/removal/`). */
import { confirmRemoval, orderRemoval, type RemovedObject } from '../../db/removal/index.ts'
import type { KubeObject, ResourceType } from '../../kit/kube/object.ts'
import { orUnavailable } from './outage.ts'
import type { Parts } from './parts.ts'

export interface Removals {
  /** Awaited before the first effect of a deletion. Does nothing when the order is recorded already. Throws
   *  Unavailable. */
  readonly order: (type: ResourceType, root: KubeObject) => Promise<void>
  /** Records that nothing of it is left. Throws Unavailable. */
  readonly confirm: (type: ResourceType, root: KubeObject) => Promise<void>
}

const removedOf = ({ kind }: ResourceType, { metadata }: KubeObject): RemovedObject => ({
  kind,
  namespace: metadata.namespace ?? '',
  name: metadata.name,
  uid: metadata.uid ?? '',
})

/** Also covers objects that were removed before their controller sees the deletion: somebody removed the finalizer. */
export function openRemovals(
  { db, caches, clock, random, log }: Pick<Parts, 'db' | 'caches' | 'clock' | 'random' | 'log'>,
  types: readonly ResourceType[],
): Removals {
  const noted = new Set<string>()
  async function order(type: ResourceType, root: KubeObject): Promise<void> {
    const removed = removedOf(type, root)
    if (!types.includes(type)) return
    if (noted.has(removed.uid)) return
    await orUnavailable(orderRemoval(db, removed, { reason: 'deleted', clock, random }))
    noted.add(removed.uid)
  }
  for (const type of types)
    caches.of(type).subscribe(({ is, object }) => {
      const { uid = '', deletionTimestamp, namespace, name } = object.metadata
      if (deletionTimestamp === undefined) return
      order(type, object)
        .catch((error: unknown) => log.info('removal not noted', { kind: type.kind, namespace, name, error }))
        .finally(() => is === 'removed' && noted.delete(uid))
    })
  return {
    order,
    confirm: async (type, root) => {
      if (types.includes(type)) await orUnavailable(confirmRemoval(db, removedOf(type, root), clock.now()))
    },
  }
}
