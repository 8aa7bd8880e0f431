/** What a repository needs of the place that holds it: whole objects by name. A folder and S3 are the two kinds. */

export interface StoredObject {
  readonly name: string
  readonly modifiedAt: Date
}

export interface StoredContent {
  readonly bytes: Buffer
  readonly modifiedAt: Date
}

export interface ObjectStore {
  /** Resolves when the store holds exactly these bytes; a power cut may undo that until it is settled. The same name
   *  may be written again. */
  put(name: string, bytes: Buffer): Promise<void>
  /** Resolves when no power cut undoes what was put before, by whomever. */
  settle(): Promise<void>
  /** Undefined when there is no such object. */
  get(name: string, maximumBytes: number): Promise<StoredContent | undefined>
  /** Those whose names begin with the prefix, in no order. A store may leave out what came or went lately. */
  list(prefix: string): AsyncIterable<StoredObject>
  /** Also when there is none. */
  remove(name: string): Promise<void>
}

/** The store did not do what it was to do; it may later. */
export class StoreFailed extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StoreFailed'
  }
}

/** The store is not there, or says itself that it cannot now. It says nothing of what was asked. */
export class StoreAway extends StoreFailed {}

const OBJECT_NAME = /^[a-z]\/[a-z0-9][a-z0-9-]{0,127}$/

/** Names never lead out of a folder, and need no escaping in a path. */
export function checkObjectName(name: string): void {
  if (!OBJECT_NAME.test(name)) throw new Error(`${name} is no name of an object`)
}
export const isObjectName = (name: string): boolean => OBJECT_NAME.test(name)
