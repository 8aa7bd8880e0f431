/** The objects that rules look up: the caches at one moment, so that a rule sees one state. A test uses a map. */
import type { Caches } from '../../kit/kube/caches.ts'
import type { Key, KubeObject, ResourceType } from '../../kit/kube/object.ts'

export interface World {
  find<Spec, Status>(type: ResourceType<Spec, Status>, key: Key): KubeObject<Spec, Status> | undefined
  /** The objects of the namespace, or all of them. */
  list<Spec, Status>(type: ResourceType<Spec, Status>, namespace?: string): Iterable<KubeObject<Spec, Status>>
}

/** The world from the caches of the process. */
export const worldOf = (caches: Pick<Caches, 'of'>): World => ({
  find: (type, key) => caches.of(type).get(key),
  list: (type, namespace) =>
    namespace === undefined ? caches.of(type).list() : caches.of(type).inNamespace(namespace),
})
