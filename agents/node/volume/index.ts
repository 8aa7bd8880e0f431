/** The reconciler of Volumes: creates the disk on the host, or removes it. */
import { keyOf } from '../../../kit/kube/object.ts'
import { watch, type Reconciler } from '../../../kit/reconcile/reconciler.ts'
import { Image, Instance, Volume, type VolumeSpec, type VolumeStatus } from '../../../resources/instance/index.ts'
import { isCurrent, isOlderThanServing, isSuperseded } from './bytes.ts'
import { Copies } from './copies.ts'
import { servingOf, volumeUser, volumeEffects, type VolumeOptions } from './effects.ts'
import { SnapshotRoom } from './snapshot-room.ts'
import { planVolume, type ObservedVolume, type VolumeObject } from './plan.ts'

/** What the host has recorded about a disk of the name. */
const recordOf = (ledger: VolumeOptions['ledger'], name: string) => ({
  bytes: ledger.bytesOf('volume', name),
  isSuperseded: isSuperseded(ledger, name),
  isCurrent: isCurrent(ledger, name),
})

export function volumeReconciler(options: VolumeOptions): Reconciler<VolumeSpec, VolumeStatus, ObservedVolume> {
  const { caches, volumes, images, customImages, ledger, namespace } = options
  const copies = new Copies(options.clock)
  const room = new SnapshotRoom(options)
  const parts = { ...options, copies, servedFor: new Map<string, string>() }
  /** Whether the newest object is older than the order to serve the disk. A stale cache proves nothing. */
  async function isOlder(volume: VolumeObject): Promise<boolean> {
    const entry = ledger.bytesOf('volume', volume.metadata.name)
    if (!isOlderThanServing(entry, volume)) return false
    const newest = await options.store.get(Volume, keyOf(volume))
    return newest !== undefined && isOlderThanServing(entry, newest)
  }
  return {
    name: 'volume',
    type: Volume,
    watches: [
      watch(Image, ({ metadata }) =>
        caches
          .of(Volume)
          .list()
          .filter(({ spec: { source } }) => source?.kind === 'image' && source.name === metadata.name)
          .map(keyOf),
      ),
      watch(Instance, ({ spec }) => spec.disks.map(({ volume }) => ({ namespace, name: volume }))),
    ],
    wakes(wake) {
      const wakeAll = () =>
        caches
          .of(Volume)
          .list()
          .forEach((volume) => wake(keyOf(volume)))
      const stops = [
        images.onChange(wakeAll),
        ...[copies, room].map((each) => each.onChange((name) => wake({ namespace, name }))),
      ]
      return () => stops.forEach((stop) => stop())
    },
    async observe(volume) {
      const { metadata, spec, status } = volume
      const { name, deletionTimestamp } = metadata
      const held = await volumes.inspect(name)
      const mustBeFree =
        deletionTimestamp !== undefined ||
        spec.serve !== undefined ||
        (held !== undefined && held.sizeGibibytes < spec.sizeGibibytes)
      return {
        held,
        ...recordOf(ledger, name),
        isOlderThanServing: await isOlder(volume),
        user: mustBeFree ? await volumeUser(options, name) : undefined,
        customImage: spec.source?.kind === 'image' ? await customImages.inspect(spec.source.name) : undefined,
        image: spec.source?.kind === 'template' ? await images.newest(spec.source.name) : undefined,
        serving: servingOf(parts, name),
        copy: copies.state(name),
        hasBackups: options.backups !== undefined,
        snapshots:
          // A disk on shared storage may have arrived with snapshots that another host took.
          held === undefined ||
          (held.pool === undefined && spec.snapshots === undefined && status?.snapshots === undefined)
            ? []
            : room.of(name, await volumes.snapshots(name)),
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
