/** What the agent needs of storage on its host. Three implementations behind one contract suite: `qcow2.ts`, `rbd.ts`
 *  and `simulated.ts`.
 *  A volume lies on the host's own disks, or in a pool: shared storage that several hosts see as one. What lies in a
 *  pool is held by a host
 *  from `create` or `adopt` until `remove` or `release`; which host uses it is noted beside it (`ownerOf`). */
import type { TemplateImage } from '../../images/recipe.ts'

export interface HeldVolume {
  readonly name: string
  readonly sizeGibibytes: number
  /** The template's version that it began as; it needs that version for as long as it lives. */
  readonly source?: { readonly name: string; readonly version: string }
  /** On the host's own disks when absent. */
  readonly pool?: string
}

/** The host whose guest has a volume of a pool, or may have it at any moment, since that boot. It is noted beside the
 *  data, where every host of the pool reads it. */
export interface VolumeOwner {
  readonly node: string
  readonly bootId: string
}

/** A point of a volume, kept in it. It goes wherever the volume's file goes, and nowhere else. */
export interface HeldSnapshot {
  readonly name: string
  /** Of the volume at that point. */
  readonly sizeGibibytes: number
  /** The file systems of the guest were frozen. */
  readonly isFrozen: boolean
  /** Room that it alone takes, where that was measured. */
  readonly usedBytes?: number
}

/** What a volume was to be made from is not there, and will not be. */
export class SourceLost extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'SourceLost'
  }
}

/** What changes a disk that a guest has open, in that guest: `label` is how the snapshot is written down. */
export type SnapshotInGuest = (path: string, label: string) => Promise<void>
/** The same for one that is taken: whether the guest's file systems are frozen is known only then. */
export type TakeInGuest = (path: string, labelOf: (isFrozen: boolean) => string) => Promise<void>

/** Of a volume on this host's own disks or in a pool. */
export interface SnapshotOf {
  readonly volume: string
  readonly pool?: string | undefined
  readonly snapshot: string
}

/** Points of a disk that its storage keeps for backups, beside its snapshots, and what was written between them. They
 *  stay wherever the disk is used. */
export interface DiskPoints {
  /** Names; none when the disk is not there. */
  list(): Promise<readonly string[]>
  /** Of all writes that are acknowledged by now, also of a guest that has the disk open. */
  take(point: string): Promise<void>
  /** Free when it is not there. */
  remove(point: string): Promise<void>
  /** As programs of the host read it, whoever has the disk open. */
  pathOf(point: string): string
  /** What differs from the earlier point, and more perhaps; also what was discarded. */
  changed(since: string, point: string): Promise<readonly { readonly offset: number; readonly length: number }[]>
}

export interface NewVolume {
  readonly name: string
  readonly sizeGibibytes: number
  readonly source?: TemplateImage
  /** Absolute path of a qcow2 file that it begins as a copy of. */
  readonly copyOf?: string
  /** A snapshot of another volume that it begins as a copy of. */
  readonly snapshotOf?: SnapshotOf
  /** Makes the disk at the path, which is not there, as programs of the host take it; it may be smaller. */
  readonly write?: (path: string, signal: AbortSignal | undefined) => Promise<void>
  /** Of a disk whose data comes from another host: what they began as there. */
  readonly origin?: HeldVolume['source']
  readonly pool?: string
  /** Writes what it begins as to the disk at the path, as programs of the host take it; the disk is empty. */
  readonly fill?: (path: string, signal: AbortSignal | undefined) => Promise<void>
  /** Another host serves its data. Nothing of it is here until all of it is. */
  readonly from?: ServedDisk
}

/** A disk that a host serves, and what both ends know: 64 hex digits. Nobody else can read it. */
export interface ServedDisk {
  readonly host: string
  readonly port: number
  readonly key: string
}

export interface VolumeStore {
  /** Shared storage of the host. */
  readonly pools: readonly string[]
  /** What this host holds, also when its pool has lost it or is not mounted. */
  list(): Promise<readonly HeldVolume[]>
  /** Undefined when this host does not hold it, or only half. */
  inspect(name: string): Promise<HeldVolume | undefined>
  /** Makes it, whole or not at all; free when it is here. The signal ends it with an error. */
  create(volume: NewVolume, signal?: AbortSignal): Promise<void>
  /** Whether it lies there whole, whoever holds it. */
  isInPool(name: string, pool: string): Promise<boolean>
  /** Holds what lies in the pool already. */
  adopt(name: string, pool: string): Promise<void>
  /** Makes one that is here as large as that; free when it is so already, and never smaller. While a guest uses it only
   *  that guest can: `by` lets it. */
  grow(name: string, sizeGibibytes: number, by?: (path: string, sizeGibibytes: number) => Promise<void>): Promise<void>
  /** The snapshots in it, oldest first; none when it is not here. */
  snapshots(name: string): Promise<readonly HeldSnapshot[]>
  /** By name, the bytes that each snapshot in it alone keeps; without those of which that is not known. Takes seconds
   *  for large volumes. */
  roomOfSnapshots(name: string): Promise<ReadonlyMap<string, number>>
  /** Makes the disk `to` of it, also while a guest uses the volume. Throws SourceLost when it is not there. */
  copySnapshot(of: SnapshotOf, to: string, signal?: AbortSignal): Promise<void>
  /** Keeps the point that the volume is at; free when there is one of the name. While a guest uses the volume only that
   *  guest can: `by` lets it. */
  takeSnapshot(name: string, snapshot: string, by?: TakeInGuest): Promise<void>
  /** Free when there is none of the name. As `takeSnapshot` while a guest uses the volume. */
  removeSnapshot(name: string, snapshot: string, by?: SnapshotInGuest): Promise<void>
  /** The volume with its data; free when it is not here. Never while a guest uses it. */
  remove(name: string): Promise<void>
  /** Holds it no longer and leaves its data in the pool; what lies on the host's own disks goes. */
  release(name: string): Promise<void>
  /** Lets another host read it, until `stopServing`, the end of the agent or the host. Never while a guest uses it. */
  serve(name: string, key: string): Promise<Omit<ServedDisk, 'key'>>
  /** Resolves when nobody reads it any more. Free when nobody does. */
  stopServing(name: string): Promise<void>
  /** Where it is served; undefined when it is not. */
  servedAt(name: string): Omit<ServedDisk, 'key'> | undefined
  /** What a guest is given: the absolute path of a file, or as `rbd-path.ts` names an image. */
  pathOf(name: string): Promise<string>
  /** Of which volume that path is, wherever that lies by now; undefined when it can be of none. */
  nameOf(path: string): string | undefined
  /** The same for a program of the host: rejects when that would open another file than a template besides. */
  checkedPathOf(name: string): Promise<string>
  /** Removes from pools what volumes no longer begin as; absent where nothing is kept for that. Answers what it was. */
  removeUnusedTemplates?(): Promise<readonly string[]>
  /** Undefined where the storage keeps none: there the disk records what is written to it. */
  pointsOf(name: string): Promise<DiskPoints | undefined>
  /** Undefined when no host has it, and for what lies on the host's own disks. The pool is named when this host does
   *  not hold the volume. Throws Unavailable while the pool is not mounted. */
  ownerOf(name: string, pool?: string): Promise<VolumeOwner | undefined>
  /** Notes another owner, or none, in place of the one that is known. False when somebody else has changed it: of
   *  several hosts one succeeds. True, and without effect, for what lies on the host's own disks. */
  changeOwner(name: string, known: VolumeOwner | undefined, next: VolumeOwner | undefined): Promise<boolean>
  /** Throws Unavailable while anybody has it open to write, on whatever host, where the hypervisor could not tell.
   *  Asked before a guest opens it that was not sent by another host. */
  requireClosed(name: string): Promise<void>
}
