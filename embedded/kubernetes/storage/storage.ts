/** Where the server's objects outlive it. One writer; revisions are given by the caller and only grow. */
import type { KubeObject } from '../core/object.ts'

export interface StoredRecord {
  readonly revision: number
  /** `group/resource` */
  readonly storageKey: string
  /** `namespace/name`, or the name alone. */
  readonly key: string
  /** The new state; undefined when the object is gone. */
  readonly object: KubeObject | undefined
}

export interface Loaded {
  /** The state at `revision`: one record for each object. */
  readonly snapshot: readonly StoredRecord[]
  readonly revision: number
  /** What came after it, oldest first. */
  readonly records: readonly StoredRecord[]
}

export interface Storage {
  /** Reads what is there. Called once, before anything else. */
  load(): Promise<Loaded>
  /** Resolves when the record will survive a power cut. Promises resolve in the order of the calls. */
  append(record: StoredRecord): Promise<void>
  /** Ends after everything appended is durable. */
  close(): Promise<void>
}

/** Gives a storage the whole state at one revision, for its snapshots. */
export type StateSource = () => { readonly revision: number; readonly records: Iterable<StoredRecord> }
