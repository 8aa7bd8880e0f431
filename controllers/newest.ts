/** A leader that has just begun may plan from an older object than the one before it: what the plan begins may have
 *  ended since. */
import { keyOf, type KubeObject, type ResourceType } from '../kit/kube/object.ts'
import { ApiError, type Store } from '../kit/kube/store.ts'

/** For effects that take hold of something outside Kubernetes. Fails as a write of the object would, with 409 Conflict,
 *  when it has changed since it was looked at. */
export async function requireNewest(store: Store, type: ResourceType, object: KubeObject): Promise<void> {
  const newest = await store.get(type, keyOf(object))
  if (newest?.metadata.resourceVersion !== object.metadata.resourceVersion)
    throw new ApiError({
      code: 409,
      reason: 'Conflict',
      message: `the ${type.kind} has changed since it was looked at`,
    })
}
