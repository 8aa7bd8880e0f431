/** The orphan controllers: what a host holds for an owner that is gone is removed. Owners take their children along by
 *  themselves; this is
 *  for one whose finalizer somebody took off. The cluster's garbage collector cannot help across namespaces. */
import type { Action } from '../../kit/reconcile/action.ts'
import { keyOf, type KubeObject, type ResourceType } from '../../kit/kube/object.ts'
import { type Reconciler, watch } from '../../kit/reconcile/reconciler.ts'
import type { Parts } from '../parts.ts'

export interface OwnerReference {
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

/** Removes children whose owner has gone, or has come back as another object of the same name. */
export function orphanReconciler<Spec, Status>(
  { caches, store }: Pick<Parts, 'caches' | 'store'>,
  child: ResourceType<Spec, Status>,
  owner: ResourceType,
  ownerOf: (child: KubeObject<Spec, Status>) => OwnerReference,
): Reconciler<Spec, Status, boolean> {
  const children = caches.of(child)
  children.addIndex('owner-uid', (object) => [ownerOf(object).uid])
  return {
    name: `orphan-${child.plural}`,
    type: child,
    watches: [watch(owner, ({ metadata }) => children.by('owner-uid', metadata.uid ?? '').map(keyOf))],
    async observe(object) {
      const { namespace, name, uid } = ownerOf(object)
      if (caches.of(owner).get({ namespace, name })?.metadata.uid === uid) return false
      return (await store.get(owner, { namespace, name }))?.metadata.uid !== uid // a cache may be behind
    },
    plan: (object, isOrphan) => plan(child, object, isOrphan),
  }
}

const plan = (type: ResourceType, object: KubeObject, isOrphan: boolean): readonly Action[] =>
  isOrphan && object.metadata.deletionTimestamp === undefined ? [{ do: 'remove', type, key: keyOf(object) }] : []
