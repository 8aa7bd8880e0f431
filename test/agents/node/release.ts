/** The part of the platform in the end of what a node holds: agents report that nothing is left, and may not take the
 *  finalizer off themselves. */
import type { Store } from '../../../kit/kube/store.ts'
import { removeAgentFinalizer } from '../../../controllers/fencing/agent-finalizer.ts'
import { Instance, Volume } from '../../../resources/instance/index.ts'

/** Releases what the agent of the namespace has reported as removed. */
export async function releaseRemoved(store: Store, namespace: string): Promise<void> {
  for (const { metadata, status } of (await store.list(Instance, { namespace })).items)
    if (status?.isRemoved === true) await removeAgentFinalizer(store, 'Instance', { namespace, name: metadata.name })
  for (const { metadata, status } of (await store.list(Volume, { namespace })).items)
    if (status?.isRemoved === true) await removeAgentFinalizer(store, 'Volume', { namespace, name: metadata.name })
}
