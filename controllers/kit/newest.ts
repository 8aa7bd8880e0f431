/** A new leader may plan from an older object than its predecessor: what the plan starts may have ended since. */
import { type Key, keyOf, type KubeObject, type ResourceType } from '../../kit/kube/object.ts'
import { ApiError, type Store } from '../../kit/kube/store.ts'

/** For effects that change something outside Kubernetes. Fails with 409 Conflict, as a write of the object would, when
 *  the object has changed since it was observed. */
export async function requireNewest(store: Store, type: ResourceType, object: KubeObject): Promise<void> {
  const newest = await store.get(type, keyOf(object))
  if (newest?.metadata.resourceVersion !== object.metadata.resourceVersion)
    throw changed(`the ${type.kind} has changed since it was looked at`)
}

/** For effects whose result depends on another object: 409 Conflict when that object is being deleted or no longer
 *  exists. */
export async function requireStaying(store: Store, type: ResourceType, key: Key): Promise<void> {
  const newest = await store.get(type, key)
  if (newest === undefined || newest.metadata.deletionTimestamp !== undefined)
    throw changed(`the ${type.kind} is on its way out since it was looked at`)
}

const changed = (message: string) => new ApiError({ code: 409, reason: 'Conflict', message })
