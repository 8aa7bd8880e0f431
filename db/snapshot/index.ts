/** The claims of a snapshot in its account and on its storage. */
import type { Transaction } from 'kysely'
import { snapshotQuota } from '../../domain/account/quota.ts'
import { releaseQuotas, takeQuotas } from '../account/index.ts'
import { holdStorage } from '../storage/index.ts'
import { type Hold, releaseHold, safetyHolder, snapshotHolder } from '../storage-hold/index.ts'
import type { Tables } from '../tables.ts'

export interface SnapshotId {
  readonly accountId: string
  readonly snapshotId: string
}

export interface SnapshotClaim extends SnapshotId, Pick<Hold, 'storageId' | 'bootServerId' | 'isShared'> {
  /** Of the storage. */
  readonly sizeGibibytes: number
}

/** Does nothing when it is claimed already. Throws the Problems `quota_exceeded` (422), and `state_not_allowed` (409)
 *  while the storage is on its way to a server, or its server to another host. */
export async function claimSnapshot(
  tx: Transaction<Tables>,
  { accountId, snapshotId, sizeGibibytes, ...of }: SnapshotClaim,
): Promise<void> {
  const holder = snapshotHolder(snapshotId)
  await takeQuotas(tx, { accountId, holder, amounts: snapshotQuota(sizeGibibytes) })
  await holdStorage(tx, { accountId, holder, ...of })
}

/** As `claimSnapshot`, for a snapshot that was created before a restore: a restore is not refused for a quota. */
export const holdForSafety = (
  tx: Transaction<Tables>,
  { accountId, snapshotId, sizeGibibytes: _takesNone, ...of }: SnapshotClaim,
): Promise<void> => holdStorage(tx, { accountId, holder: safetyHolder(snapshotId), ...of })

/** Does nothing when nothing is claimed. */
export async function releaseSnapshot(tx: Transaction<Tables>, { accountId, snapshotId }: SnapshotId): Promise<void> {
  const holder = snapshotHolder(snapshotId)
  await releaseQuotas(tx, { accountId, holder })
  await releaseHold(tx, { accountId, holder })
  await releaseHold(tx, { accountId, holder: safetyHolder(snapshotId) })
}
