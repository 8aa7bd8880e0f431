/** Storage of the server's objects across restarts. One writer; the caller assigns increasing revisions. */
import type { KubeObject } from '../core/object.ts'

export interface StoredRecord {
  readonly revision: number
  /** `group/resource` */
  readonly storageKey: string
  /** `namespace/name`, or only the name. */
  readonly key: string
  /** The new state; undefined when the object was deleted. */
  readonly object: KubeObject | undefined
}

export interface LoadedState {
  /** The state at `revision`: one record for each object. */
  readonly snapshot: readonly StoredRecord[]
  readonly revision: number
  /** Changes after the snapshot, oldest first. */
  readonly records: readonly StoredRecord[]
}

export interface Storage {
  /** Reads the stored state. Called once, before anything else. */
  load(): Promise<LoadedState>
  /** Resolves when the record is durable. Promises resolve in the order of the calls. */
  append(record: StoredRecord): Promise<void>
  /** Closes once all appended records are durable. */
  close(): Promise<void>
}

/** Provides the complete state at one revision, for snapshots. */
export type StateSource = () => { readonly revision: number; readonly records: Iterable<StoredRecord> }
