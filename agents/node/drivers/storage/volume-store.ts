/** The storage interface of the agent. Three implementations pass one contract suite: `qcow2.ts`, `rbd.ts` and
 *  `simulated.ts`. A volume is on the host's own disks or in a pool, which is shared storage that several hosts see as
 *  one. A host holds a volume of a pool from `create` or `adopt` until `remove` or `release`. The host that uses it is
 *  recorded beside it (`ownerOf`). */
import type { TemplateImage } from '../../images/recipe.ts'

export interface HeldVolume {
  readonly name: string
  readonly sizeGibibytes: number
  /** The version of the template that it was created from. It needs that version as long as it exists. */
  readonly source?: { readonly name: string; readonly version: string }
  /** Absent for a volume on the host's own disks. */
  readonly pool?: string
}

/** The host whose guest has a volume of a pool, or may have it at any moment, and the boot of that host. It is recorded
 *  beside the data, where every host of the pool can read it. */
export interface VolumeOwner {
  readonly node: string
  readonly bootId: string
}

/** A snapshot of a volume, stored in the volume's file. It moves with the file. */
export interface HeldSnapshot {
  readonly name: string
  /** Size of the volume at that point. */
  readonly sizeGibibytes: number
  /** The file systems of the guest were frozen. */
  readonly isFrozen: boolean
  /** Bytes that only this snapshot keeps, if that was measured. */
  readonly usedBytes?: number
}

/** The source of a new volume does not exist, and will not. */
export class SourceLost extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'SourceLost'
  }
}

/** Changes the snapshots of a disk that a guest has open, through that guest. `label` is the snapshot's name in the
 *  disk. */
export type SnapshotInGuest = (path: string, label: string) => Promise<void>
/** The same for a new snapshot. The label depends on whether the guest's file systems are frozen, which is known only
 *  then. */
export type TakeInGuest = (path: string, labelOf: (isFrozen: boolean) => string) => Promise<void>

/** A snapshot of a volume on this host's own disks or in a pool. */
export interface SnapshotOf {
  readonly volume: string
  readonly pool?: string | undefined
  readonly snapshot: string
}

/** Points of a disk that its storage keeps for backups, besides its snapshots, and the changes between them. They stay
 *  with the disk on every host. */
export interface DiskPoints {
  /** Names; none when the disk does not exist. */
  list(): Promise<readonly string[]>
  /** Takes a point of all writes that are acknowledged by now, even if a guest has the disk open. */
  take(point: string): Promise<void>
  /** Does nothing when the point does not exist. */
  remove(point: string): Promise<void>
  /** The path for programs of the host; it can be read while the disk is open elsewhere. */
  pathOf(point: string): string
  /** Ranges that were written or discarded since the earlier point. May include more. */
  changed(since: string, point: string): Promise<readonly { readonly offset: number; readonly length: number }[]>
}

export interface NewVolume {
  readonly name: string
  readonly sizeGibibytes: number
  readonly source?: TemplateImage
  /** Absolute path of a qcow2 file to copy. */
  readonly copyOf?: string
  /** A snapshot of another volume to copy. */
  readonly snapshotOf?: SnapshotOf
  /** Creates the disk at the path, which must not exist. The path has the form for programs of the host. The disk may
   *  be smaller than the volume. */
  readonly write?: (path: string, signal: AbortSignal | undefined) => Promise<void>
  /** For data from another host: the source of the volume there. */
  readonly origin?: HeldVolume['source']
  readonly pool?: string
  /** Writes the initial data to the empty disk at the path, which has the form for programs of the host. */
  readonly fill?: (path: string, signal: AbortSignal | undefined) => Promise<void>
  /** Another host serves the data. The volume exists here only once all of it has arrived. */
  readonly from?: ServedDisk
}

/** A disk that a host serves. The key of 64 hex digits is known to both ends only; nobody else can read the disk. */
export interface ServedDisk {
  readonly host: string
  readonly port: number
  readonly key: string
}

export interface VolumeStore {
  /** Ids of the host's shared storage. */
  readonly pools: readonly string[]
  /** Volumes that this host holds, even when the pool has lost them or is not mounted. */
  list(): Promise<readonly HeldVolume[]>
  /** Undefined when this host does not hold it, or holds only half of it. */
  inspect(name: string): Promise<HeldVolume | undefined>
  /** Creates it completely or not at all; does nothing when it exists. The signal stops it with an error. */
  create(volume: NewVolume, signal?: AbortSignal): Promise<void>
  /** Whether the complete volume is in the pool, regardless of which host holds it. */
  isInPool(name: string, pool: string): Promise<boolean>
  /** Starts to hold a volume that is in the pool already. */
  adopt(name: string, pool: string): Promise<void>
  /** Grows a volume that is here; does nothing when it is that large, and never shrinks it. While a guest uses it, only
   *  that guest can grow it, through `by`. */
  grow(name: string, sizeGibibytes: number, by?: (path: string, sizeGibibytes: number) => Promise<void>): Promise<void>
  /** Snapshots of the volume, oldest first; none when it is not here. */
  snapshots(name: string): Promise<readonly HeldSnapshot[]>
  /** Bytes that only this snapshot keeps, by name; without snapshots for which that is unknown. Takes seconds for large
   *  volumes. */
  roomOfSnapshots(name: string): Promise<ReadonlyMap<string, number>>
  /** Creates the disk `to` from the snapshot, even while a guest uses the volume. Throws SourceLost when the snapshot
   *  does not exist. */
  copySnapshot(of: SnapshotOf, to: string, signal?: AbortSignal): Promise<void>
  /** Takes a snapshot; does nothing when one of the name exists. While a guest uses the volume, only that guest can
   *  take it, through `by`. */
  takeSnapshot(name: string, snapshot: string, by?: TakeInGuest): Promise<void>
  /** Does nothing when there is none of the name. While a guest uses the volume, `by` is needed as in `takeSnapshot`.
   */
  removeSnapshot(name: string, snapshot: string, by?: SnapshotInGuest): Promise<void>
  /** Removes the volume with its data; does nothing when it is not here. Never call it while a guest uses the volume.
   */
  remove(name: string): Promise<void>
  /** Stops holding it and leaves its data in the pool. A volume on the host's own disks is deleted. */
  release(name: string): Promise<void>
  /** Lets another host read it, until `stopServing` or until the agent or the host stops. Never call it while a guest
   *  uses the volume. */
  serve(name: string, key: string): Promise<Omit<ServedDisk, 'key'>>
  /** Resolves when nobody reads it. Does nothing when it is not served. */
  stopServing(name: string): Promise<void>
  /** Address where it is served; undefined when it is not. */
  servedAt(name: string): Omit<ServedDisk, 'key'> | undefined
  /** The disk for a guest: the absolute path of a file, or an image's name from `rbd-path.ts`. */
  pathOf(name: string): Promise<string>
  /** Name of the volume with this path, wherever the volume is by now; undefined when no volume can have it. */
  nameOf(path: string): string | undefined
  /** The path for a program of the host. Rejects when the program would also open another file that is not a template.
   */
  checkedPathOf(name: string): Promise<string>
  /** Removes templates from pools that no volume is backed by; absent when pools keep none. Returns their names. */
  removeUnusedTemplates?(): Promise<readonly string[]>
  /** Undefined when the storage has no points; then the disk records its changes. */
  pointsOf(name: string): Promise<DiskPoints | undefined>
  /** Undefined when no host owns it, and for volumes on the host's own disks. Give the pool when this host does not
   *  hold the volume. Throws Unavailable while the pool is not mounted. */
  ownerOf(name: string, pool?: string): Promise<VolumeOwner | undefined>
  /** Replaces the known owner by another one, or by none. False when another host has changed it: if several hosts try,
   *  one succeeds. Returns true and does nothing for volumes on the host's own disks. */
  changeOwner(name: string, known: VolumeOwner | undefined, next: VolumeOwner | undefined): Promise<boolean>
  /** Throws Unavailable while any host has it open for writing, on storage where the hypervisor cannot tell. Call it
   *  before a guest opens the volume, unless the guest comes from another host. */
  requireClosed(name: string): Promise<void>
}
