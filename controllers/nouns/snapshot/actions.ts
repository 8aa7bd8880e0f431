/** What the snapshot's plan may decide: its effects by name, each with its input. */
import type { claimSnapshot, SnapshotId } from '../../../db/snapshot/index.ts'
import { type releaseHold, safetyHolder, snapshotHolder } from '../../../db/storage-hold/index.ts'
import type { AuditEffects } from '../../kit/audit.ts'
import { isForSafety } from '../../../resources/snapshot/index.ts'
import type { ActionWith } from '../../kit/effects.ts'
import type { SnapshotObject } from './observed.ts'

export interface SnapshotEffects extends AuditEffects {
  readonly claim: Parameters<typeof claimSnapshot>[1]
  /** The same, of one that is taken before a restore. */
  readonly holdForSafety: SnapshotEffects['claim']
  readonly release: SnapshotId
  /** Of the storage; its quota it keeps. */
  readonly releaseHold: Parameters<typeof releaseHold>[1]
}
export type SnapshotAction = ActionWith<SnapshotEffects>

/** What the snapshot is called among those that keep a storage. */
export const holderOf = ({ metadata: { name }, spec }: SnapshotObject): string =>
  isForSafety(spec) ? safetyHolder(name) : snapshotHolder(name)

/** What PostgreSQL was asked for a snapshot, and whether it was granted. */
export const CLAIMED = 'Claimed'
