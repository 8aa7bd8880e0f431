/** The interface of fencing to the shared storage of a host: to take the host's access, and to give it back later.
 *  `ceph.ts` implements it; `controllers/nouns/node/fence.ts` decides when access is taken and what that proves. */

export interface StorageAccess {
  /** Resolves when the quorum of the storage has recorded that none of the host's addresses has access, and confirms it
   *  when asked: from then on the storage refuses every write of the host, also those that were under way. Does nothing
   *  when it is so already. Throws StorageAccessFailed. */
  take(): Promise<void>
  /** Resolves when the quorum has recorded that all of them have access again. Does nothing when they have it. Throws
   *  StorageAccessFailed. */
  giveBack(): Promise<void>
}

/** The message is for operators and contains no secret. */
export class StorageAccessFailed extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StorageAccessFailed'
  }
}

/** How to reach the storage, and as whom. */
export interface StorageLogin {
  /** Addresses of its monitors, as its clients are configured with them. */
  readonly monitors: string
  readonly username: string
  readonly key: string
}
