/** The orphan controllers: what a host holds for an owner that is gone is removed. Owners take their children along by
 *  themselves; this is for one whose finalizer somebody took off. The cluster's garbage collector cannot help across
 *  namespaces. */
import { keyOf, type KubeObject, type ResourceType } from '../../kit/kube/object.ts'
import { watch } from '../../kit/reconcile/reconciler.ts'
import { Instance, Volume } from '../../resources/instance/index.ts'
import { Server } from '../../resources/server/index.ts'
import { Storage } from '../../resources/storage/index.ts'
import { controller, type Registration } from '../controller.ts'
import type { NoEffects, PlainAction } from '../effects.ts'
import type { Parts } from '../parts.ts'

export interface OwnerReference {
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

/** Removes children whose owner has gone, or has come back as another object of the same name. */
export const orphanController = <Spec, Status>(
  child: ResourceType<Spec, Status>,
  owner: ResourceType,
  ownerOf: (child: KubeObject<Spec, Status>) => OwnerReference,
): Registration<Parts> =>
  controller<NoEffects>()({
    name: `orphan-${child.plural}`,
    resource: child,
    sharding: 'common',
    plan: (object: KubeObject<Spec, Status>, isOrphan: boolean) => plan(child, object, isOrphan),
    open({ caches, store }: Parts) {
      const children = caches.of(child)
      children.addIndex('owner-uid', (object) => [ownerOf(object).uid])
      return {
        watches: [watch(owner, ({ metadata }) => children.by('owner-uid', metadata.uid ?? '').map(keyOf))],
        async observe(object) {
          const { namespace, name, uid } = ownerOf(object)
          if (caches.of(owner).get({ namespace, name })?.metadata.uid === uid) return false
          return (await store.get(owner, { namespace, name }))?.metadata.uid !== uid // a cache may be behind
        },
        effects: {},
      }
    },
  })

const plan = (type: ResourceType, object: KubeObject, isOrphan: boolean): readonly PlainAction[] =>
  isOrphan && object.metadata.deletionTimestamp === undefined ? [{ do: 'remove', type, key: keyOf(object) }] : []

export const orphanInstanceController = orphanController(Instance, Server, ({ spec }) => spec.server)
export const orphanVolumeController = orphanController(Volume, Storage, ({ spec }) => spec.storage)
