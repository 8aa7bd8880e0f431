/** Removes the agent's finalizer from deleted objects of a lost node. The caller has the proof that nothing of the
 *  object can be on the node any longer. */
import type { Key, ResourceType } from '../../kit/kube/object.ts'
import { isConflict, isNotFound, type Store } from '../../kit/kube/store.ts'
import { AGENT_FINALIZER, Instance, Volume } from '../../resources/instance/index.ts'

const TYPES: Readonly<Record<'Instance' | 'Volume', ResourceType>> = { Instance, Volume }

/** Does nothing for an object that no longer exists or is not deleted. An object that changed meanwhile is left for the
 *  next reconcile. */
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
