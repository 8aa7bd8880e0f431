/** A leader that has just begun may plan from an older object than the one before it: what the plan begins may have
 *  ended since. */
import { type Key, keyOf, type KubeObject, type ResourceType } from '../../kit/kube/object.ts'
import { ApiError, type Store } from '../../kit/kube/store.ts'

/** For effects that take hold of something outside Kubernetes. Fails as a write of the object would, with 409 Conflict,
 *  when it has changed since it was looked at. */
export async function requireNewest(store: Store, type: ResourceType, object: KubeObject): Promise<void> {
  const newest = await store.get(type, keyOf(object))
  if (newest?.metadata.resourceVersion !== object.metadata.resourceVersion)
    throw changed(`the ${type.kind} has changed since it was looked at`)
}

/** For effects after which everything rests on another object: 409 Conflict when that is gone or on its way out. */
export async function requireStaying(store: Store, type: ResourceType, key: Key): Promise<void> {
  const newest = await store.get(type, key)
  if (newest === undefined || newest.metadata.deletionTimestamp !== undefined)
    throw changed(`the ${type.kind} is on its way out since it was looked at`)
}

const changed = (message: string) => new ApiError({ code: 409, reason: 'Conflict', message })
