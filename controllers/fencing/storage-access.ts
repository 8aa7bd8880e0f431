/** What fencing asks of the shared storage of a host: to serve it no more, and later again. The way to one is
 *  `ceph.ts`; when access is taken away and what that proves is the rules' business
 *  (`controllers/nouns/node/fence.ts`). */

export interface StorageAccess {
  /** Resolves when the quorum of the storage has written down that none of the host's addresses is served any more, and
   *  says so when it is asked: from then on it refuses every write of the host, also those that were under way. Free
   *  when it is so already. Throws StorageAccessFailed. */
  take(): Promise<void>
  /** Resolves when the quorum has written down that all of them are served again. Free when they are. Throws
   *  StorageAccessFailed. */
  giveBack(): Promise<void>
}

/** The message is for operators and holds no secret. */
export class StorageAccessFailed extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StorageAccessFailed'
  }
}

/** How to reach the storage, and as whom. */
export interface StorageLogin {
  /** Addresses of its monitors, as its clients are given them. */
  readonly monitors: string
  readonly username: string
  readonly key: string
}
