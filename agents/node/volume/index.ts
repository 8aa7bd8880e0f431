/** The reconciler of Volumes: the disk is on the host, or it is gone. */
import { keyOf } from '../../../kit/kube/object.ts'
import { watch, type Reconciler } from '../../../kit/reconcile/reconciler.ts'
import {
  AGENT_FINALIZER,
  Instance,
  Volume,
  type VolumeSpec,
  type VolumeStatus,
} from '../../../resources/instance/index.ts'
import { Copies } from './copies.ts'
import { servingOf, userOf, volumeEffects, type VolumeOptions } from './effects.ts'
import { planVolume, type ObservedVolume } from './plan.ts'

export function volumeReconciler(options: VolumeOptions): Reconciler<VolumeSpec, VolumeStatus, ObservedVolume> {
  const { caches, volumes, images, namespace } = options
  const copies = new Copies(options.clock)
  const parts = { ...options, copies, servedFor: new Map<string, string>() }
  return {
    name: 'volume',
    type: Volume,
    finalizer: AGENT_FINALIZER,
    watches: [watch(Instance, ({ spec }) => spec.disks.map(({ volume }) => ({ namespace, name: volume })))],
    wakes(wake) {
      const wakeAll = () =>
        caches
          .of(Volume)
          .list()
          .forEach((volume) => wake(keyOf(volume)))
      const stops = [images.onChange(wakeAll), copies.onChange((name) => wake({ namespace, name }))]
      return () => stops.forEach((stop) => stop())
    },
    async observe({ metadata: { name, deletionTimestamp }, spec }) {
      const held = await volumes.inspect(name)
      const mustBeFree =
        deletionTimestamp !== undefined ||
        spec.serve !== undefined ||
        (held !== undefined && held.sizeGibibytes < spec.sizeGibibytes)
      return {
        held,
        user: mustBeFree ? await userOf(options, name) : undefined,
        image: spec.source?.kind === 'template' ? await images.newest(spec.source.name) : undefined,
        serving: servingOf(parts, name),
        copy: copies.state(name),
        pool:
          spec.pool === undefined
            ? undefined
            : { isMounted: volumes.pools.includes(spec.pool), hasVolume: await volumes.isInPool(name, spec.pool) },
      }
    },
    plan: planVolume,
    // the plan names each with its own input
    effects: volumeEffects(parts) as unknown as NonNullable<Reconciler<VolumeSpec, VolumeStatus>['effects']>,
  }
}
