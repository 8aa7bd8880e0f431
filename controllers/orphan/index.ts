/** The orphan controllers: what a host holds for an owner that is gone is removed. Owners take their children along by
 *  themselves; this is for one whose finalizer somebody took off. The cluster's garbage collector cannot help across
 *  namespaces. What was deleted goes when its host says that nothing of it is left: the agent of the host may write
 *  that, and no metadata. */
import { keyOf, type KubeObject, type ResourceType } from '../../kit/kube/object.ts'
import { watch } from '../../kit/reconcile/reconciler.ts'
import { Backup } from '../../resources/backup/index.ts'
import { BackupJob } from '../../resources/backup-job/index.ts'
import { AGENT_FINALIZER, Image, Instance, type InstanceStatus, Volume } from '../../resources/instance/index.ts'
import { Template } from '../../resources/catalog/index.ts'
import { CustomImage } from '../../resources/custom-image/index.ts'
import { ManagedMachine } from '../../resources/managed-machine/index.ts'
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

/** Removes children whose owner has gone, or has come back as another object of the same name; lets those go that their
 *  host has removed. */
export const orphanController = <Spec, Status extends Pick<InstanceStatus, 'isRemoved'>>(
  child: ResourceType<Spec, Status>,
  owners: readonly ResourceType[],
  /** The owner, and which of the kinds it is of: the first when that is not said. */
  ownerOf: (child: KubeObject<Spec, Status>) => OwnerReference & { readonly type?: ResourceType },
): Registration<Parts> =>
  controller<NoEffects>()({
    name: `orphan-${child.plural}`,
    resource: child,
    sharding: 'common',
    finalizer: AGENT_FINALIZER,
    plan: (object: KubeObject<Spec, Status>, isOrphan: boolean) => plan(child, object, isOrphan),
    reads: owners,
    writes: [child],
    open({ caches, store }: Parts) {
      const children = caches.of(child)
      children.addIndex('owner-uid', (object) => [ownerOf(object).uid])
      return {
        watches: owners.map((owner) =>
          watch(owner, ({ metadata }) => children.by('owner-uid', metadata.uid ?? '').map(keyOf)),
        ),
        async observe(object) {
          const { namespace, name, uid, type: owner = owners[0] } = ownerOf(object)
          if (owner === undefined) return false
          const key = namespace === '' ? { name } : { namespace, name }
          if (caches.of(owner).get(key)?.metadata.uid === uid) return false
          return (await store.get(owner, key))?.metadata.uid !== uid // a cache may be behind
        },
        effects: {},
      }
    },
  })

function plan<Spec>(
  type: ResourceType,
  object: KubeObject<Spec, Pick<InstanceStatus, 'isRemoved'>>,
  isOrphan: boolean,
): readonly PlainAction[] {
  if (object.metadata.deletionTimestamp !== undefined)
    return object.status?.isRemoved === true ? [{ do: 'finalized' }] : []
  return isOrphan ? [{ do: 'remove', type, key: keyOf(object) }] : []
}

export const orphanInstanceController = orphanController(Instance, [Server], ({ spec }) => spec.server)
export const orphanMachineController = orphanController(ManagedMachine, [Server], ({ spec }) => spec.server)
export const orphanBackupJobController = orphanController(BackupJob, [Backup], ({ spec }) => spec.backup)
export const orphanImageController = orphanController(Image, [CustomImage, Template], ({ spec }) => ({
  ...spec.image,
  type: spec.image.namespace === '' ? Template : CustomImage,
}))
export const orphanVolumeController = orphanController(Volume, [Storage], ({ spec }) => spec.storage)
