/** The interface between a repository and its store: complete objects by name. A folder and S3 are the two kinds. */

export interface StoredObject {
  readonly name: string
  readonly modifiedAt: Date
}

export interface StoredContent {
  readonly bytes: Buffer
  readonly modifiedAt: Date
}

export interface ObjectStore {
  /** Resolves when the store contains exactly these bytes; a power failure may undo that until it is settled. The same
   *  name may be written again. */
  put(name: string, bytes: Buffer): Promise<void>
  /** Resolves when no power failure can undo earlier puts, by any writer. */
  settle(): Promise<void>
  /** Undefined when there is no such object. */
  get(name: string, maximumBytes: number): Promise<StoredContent | undefined>
  /** Objects whose names start with the prefix, in no order. A store may omit recent additions and deletions. */
  list(prefix: string): AsyncIterable<StoredObject>
  /** Does nothing when there is none. */
  remove(name: string): Promise<void>
}

/** The store failed to do what it was asked; it may succeed later. */
export class StoreFailed extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StoreFailed'
  }
}

/** The store is unreachable, or reports itself that it cannot answer now. This says nothing about the request. */
export class StoreAway extends StoreFailed {}

const OBJECT_NAME = /^[a-z]\/[a-z0-9][a-z0-9-]{0,127}$/

/** Names never point out of a folder, and need no escaping in a path. */
export function checkObjectName(name: string): void {
  if (!OBJECT_NAME.test(name)) throw new Error(`${name} is no name of an object`)
}
export const isObjectName = (name: string): boolean => OBJECT_NAME.test(name)
