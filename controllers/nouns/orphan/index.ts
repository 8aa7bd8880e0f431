/** The orphan controllers remove what a host holds for an owner that was deleted. Owners delete their children
 *  themselves; this is for owners whose finalizer was removed by hand. Objects whose owner is missing but was never
 *  ordered to be deleted stay: Kubernetes may have been restored from an older state. The cluster's garbage collector
 *  does not work across namespaces. A deleted object is released when its host reports that nothing of it is left: the
 *  agent of the host may write that status, but no metadata. */
import { wasRemovalOrdered } from '../../../db/removal/index.ts'
import { keyOf, type KubeObject, type ResourceType } from '../../../kit/kube/object.ts'
import { type RootType, watch } from '../../../kit/reconcile/reconciler.ts'
import { Backup } from '../../../resources/backup/index.ts'
import { BackupJob } from '../../../resources/backup-job/index.ts'
import { AGENT_FINALIZER, Image, Instance, type InstanceStatus, Volume } from '../../../resources/instance/index.ts'
import { Template } from '../../../resources/catalog/index.ts'
import { CustomImage } from '../../../resources/custom-image/index.ts'
import { ManagedMachine } from '../../../resources/managed-machine/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import { mayTakeAway } from '../../kit/absence.ts'
import { controller, type Registration } from '../../kit/controller.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { NoEffects, PlainAction } from '../../kit/effects.ts'
import type { Parts } from '../../kit/parts.ts'

export interface OwnerReference {
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

/** Removes children whose owner was deleted and no longer exists; releases those that their host has removed. */
export const orphanController = <Spec, Status extends Pick<InstanceStatus, 'isRemoved'>>(
  child: RootType<Spec, Status>,
  owners: readonly ResourceType[],
  /** The owner and its kind; the first kind when it is not given. */
  ownerOf: (child: KubeObject<Spec, Status>) => OwnerReference & { readonly type?: ResourceType },
): Registration<Parts> =>
  controller<NoEffects>()({
    name: `orphan-${child.plural}`,
    resource: child,
    sharding: 'common',
    finalizer: AGENT_FINALIZER,
    plan: (object: KubeObject<Spec, Status>, owner: OwnerState) => plan(child, object, owner),
    reads: owners,
    writes: [child],
    open(parts: Parts) {
      const { caches, store, db, sweepRate } = parts
      const children = caches.of(child)
      children.addIndex('owner-uid', (object) => [ownerOf(object).uid])
      return {
        watches: owners.map((owner) =>
          watch(owner, ({ metadata }) => children.by('owner-uid', metadata.uid ?? '').map(keyOf)),
        ),
        async observe(object): Promise<OwnerState> {
          const { namespace, name, uid, type: owner = owners[0] } = ownerOf(object)
          if (owner === undefined) return 'there'
          const key = namespace === '' ? { name } : { namespace, name }
          if (caches.of(owner).get(key)?.metadata.uid === uid) return 'there'
          if ((await store.get(owner, key))?.metadata.uid === uid) return 'there' // a cache may be behind
          const isOrdered = (await orUnavailable(wasRemovalOrdered(db, uid))) && (await mayTakeAway(parts))
          return isOrdered && sweepRate.mayGo(child.kind, object.metadata.uid ?? '', children.list().length)
            ? 'deleted'
            : 'missing'
        },
        effects: {},
      }
    },
  })

/** `missing`: nobody ordered its deletion. */
type OwnerState = 'there' | 'deleted' | 'missing'

/** The interval at which the owner of an orphan, or the order to delete it, is looked for again. */
const MISSING_SECONDS = 60

function plan<Spec>(
  type: ResourceType,
  object: KubeObject<Spec, Pick<InstanceStatus, 'isRemoved'>>,
  owner: OwnerState,
): readonly PlainAction[] {
  if (object.metadata.deletionTimestamp !== undefined)
    return object.status?.isRemoved === true ? [{ do: 'finalized' }] : []
  if (owner === 'deleted') return [{ do: 'remove', type, key: keyOf(object) }]
  return owner === 'missing'
    ? [{ do: 'wait', seconds: MISSING_SECONDS, for: 'the owner, or the order that it goes' }]
    : []
}

export const orphanInstanceController = orphanController(Instance, [Server], ({ spec }) => spec.server)
export const orphanMachineController = orphanController(ManagedMachine, [Server], ({ spec }) => spec.server)
export const orphanBackupJobController = orphanController(BackupJob, [Backup], ({ spec }) => spec.backup)
export const orphanImageController = orphanController(Image, [CustomImage, Template], ({ spec }) => ({
  ...spec.image,
  type: spec.image.namespace === '' ? Template : CustomImage,
}))
export const orphanVolumeController = orphanController(Volume, [Storage], ({ spec }) => spec.storage)

/** How many objects on hosts have an owner that is not in the caches, by kind; objects that are being deleted do not
 *  count. */
export function countUnowned(caches: Parts['caches']): ReadonlyMap<string, number> {
  const uids = (...types: readonly ResourceType[]) =>
    new Set(
      types.flatMap((type) =>
        caches
          .of(type)
          .list()
          .map(({ metadata }) => metadata.uid),
      ),
    )
  const count = <Spec, Status>(
    child: ResourceType<Spec, Status>,
    owners: ReadonlySet<string | undefined>,
    uidOf: (spec: Spec) => string,
  ): [string, number] => [
    child.kind,
    caches
      .of(child)
      .list()
      .filter(({ metadata, spec }) => metadata.deletionTimestamp === undefined && !owners.has(uidOf(spec))).length,
  ]
  const servers = uids(Server)
  return new Map([
    count(Instance, servers, ({ server }) => server.uid),
    count(ManagedMachine, servers, ({ server }) => server.uid),
    count(BackupJob, uids(Backup), ({ backup }) => backup.uid),
    count(Image, uids(CustomImage, Template), ({ image }) => image.uid),
    count(Volume, uids(Storage), ({ storage }) => storage.uid),
  ])
}
