/** The reconciler of Instances: observes the host and carries out the plan. */
import { keyOf } from '../../../kit/kube/object.ts'
import { watch, type Reconciler } from '../../../kit/reconcile/reconciler.ts'
import { Instance, Volume, type InstanceSpec, type InstanceStatus } from '../../../resources/instance/index.ts'
import { isNameTaken } from '../../../resources/instance/name-taken.ts'
import type { Guest } from '../drivers/hypervisor/hypervisor.ts'
import type { VolumeStore } from '../drivers/storage/volume-store.ts'
import type { Ownership } from '../volume/ownership.ts'
import { openHostKeys } from '../host-keys.ts'
import { instanceEffects } from './effects.ts'
import { imageOf, type InstanceOptions, isUsable, volumesOf } from './guest-definition.ts'
import { hasRoomFor } from './room.ts'
import { type ObservedInstance, planInstance } from './plan.ts'

const VOLUME_INDEX = 'volume'

/** Volumes that the guest has open, as the hypervisor reports. Those of the spec come first, in its order. */
function openIn(guest: Guest | undefined, volumes: Pick<VolumeStore, 'nameOf'>, wanted: readonly string[]): string[] {
  const open = [...new Set((guest?.disks ?? []).flatMap((path) => volumes.nameOf(path) ?? []))]
  return [
    ...wanted.filter((volume) => open.includes(volume)),
    ...open.filter((volume) => !wanted.includes(volume)).toSorted(),
  ]
}

async function findHeldElsewhere(
  ownership: Ownership,
  volumes: readonly string[],
): Promise<ObservedInstance['heldElsewhere']> {
  for (const volume of volumes) {
    const node = await ownership.otherOwnerOf(volume)
    if (node !== undefined) return { volume, node }
  }
  return undefined
}

export function instanceReconciler(
  options: InstanceOptions,
): Reconciler<InstanceSpec, InstanceStatus, ObservedInstance> {
  const { caches, hypervisor, volumes, images, ledger, ownership, namespace } = options
  const instances = caches.of(Instance)
  const hostKeys = openHostKeys(hypervisor)
  instances.addIndex(VOLUME_INDEX, ({ spec }) => volumesOf(spec))
  return {
    name: 'instance',
    type: Instance,
    watches: [watch(Volume, ({ metadata }) => instances.by(VOLUME_INDEX, metadata.name).map(keyOf))],
    wakes(wake) {
      const stops = [
        hypervisor.onChange((name) => wake({ namespace, name })),
        hostKeys.onChange((name) => wake({ namespace, name })),
        images.onChange(() => instances.list().forEach((instance) => wake(keyOf(instance)))),
      ]
      return () => stops.forEach((stop) => stop())
    },
    async observe({ metadata: { name, uid = '' }, spec, status }) {
      const held = await Promise.all(
        volumesOf(spec).map(async (volume) => ({ volume, isHere: await isUsable(options, volume) })),
      )
      const [guest, entry] = [await hypervisor.inspect(name), ledger.get(name)]
      const isToBoot = guest === undefined && spec.power === 'running' && spec.receive === undefined
      return {
        guest,
        heldElsewhere: isToBoot ? await findHeldElsewhere(ownership, volumesOf(spec)) : undefined,
        hostKeys: guest?.state === 'running' ? hostKeys.of(guest) : undefined,
        entry,
        hasRoom: guest?.isDiskFull === true ? await hasRoomFor(guest.disks) : undefined,
        removedAt: ledger.bytesOf('guest', uid)?.at,
        hadNameTaken: isNameTaken(status?.conditions),
        guestVolumes: openIn(guest, volumes, volumesOf(spec)),
        unheldVolumes: (guest?.unheldDisks ?? []).flatMap((path) => volumes.nameOf(path) ?? []),
        hypervisor: hypervisor.kind,
        lostVolume: volumesOf(spec).find(
          (volume) => caches.of(Volume).get({ namespace, name: volume })?.status?.state === 'lost',
        ),
        missingVolumes: held.filter(({ isHere }) => !isHere).map(({ volume }) => volume),
        image: await imageOf(options, spec),
      }
    },
    plan: planInstance,
    // the plan names each with its own input
    effects: instanceEffects(options) as unknown as NonNullable<Reconciler<InstanceSpec, InstanceStatus>['effects']>,
  }
}
