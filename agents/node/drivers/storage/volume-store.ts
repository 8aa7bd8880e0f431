/** What the agent needs of storage on its host. Two implementations behind one contract suite: `qcow2.ts` and
 *  `simulated.ts`.
 *  A volume lies on the host's own disks, or in a pool: shared storage that several hosts see as one. What lies in a
 *  pool is held by a host
 *  from `create` or `adopt` until `remove` or `release`; that only one host at a time uses it is for the control plane
 *  to see to. */
import type { TemplateImage } from '../../images/recipe.ts'

export interface HeldVolume {
  readonly name: string
  readonly sizeGibibytes: number
  /** The template's version that it began as; it needs that version for as long as it lives. */
  readonly source?: { readonly name: string; readonly version: string }
  /** On the host's own disks when absent. */
  readonly pool?: string
}

export interface NewVolume {
  readonly name: string
  readonly sizeGibibytes: number
  readonly source?: TemplateImage
  /** Of a disk whose data comes from another host: what they began as there. */
  readonly origin?: HeldVolume['source']
  readonly pool?: string
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
  /** Makes one that is here as large as that; free when it is so already, and never smaller. Never while a guest uses
   *  it. */
  grow(name: string, sizeGibibytes: number): Promise<void>
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
  /** Absolute path that a guest is given. */
  pathOf(name: string): Promise<string>
}
