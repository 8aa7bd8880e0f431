/** Takes what is deleted on a lost node out of its agent's hands. Whoever calls has the proof that nothing of it can be
 *  there any more. */
import type { Key, ResourceType } from '../../kit/kube/object.ts'
import { isConflict, isNotFound, type Store } from '../../kit/kube/store.ts'
import { AGENT_FINALIZER, Instance, Volume } from '../../resources/instance/index.ts'

const TYPES: Readonly<Record<'Instance' | 'Volume', ResourceType>> = { Instance, Volume }

/** Free for what is gone, and for what is not deleted. What changed meanwhile is left for the next reconcile. */
export async function removeAgentFinalizer(store: Store, kind: 'Instance' | 'Volume', key: Key): Promise<void> {
  const object = await store.get(TYPES[kind], key)
  if (object?.metadata.deletionTimestamp === undefined) return
  const { resourceVersion, uid, finalizers = [] } = object.metadata
  try {
    await store.patch(TYPES[kind], key, {
      metadata: { resourceVersion, uid, finalizers: finalizers.filter((finalizer) => finalizer !== AGENT_FINALIZER) },
    })
  } catch (error) {
    if (!isConflict(error) && !isNotFound(error)) throw error
  }
}
