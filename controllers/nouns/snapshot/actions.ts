/** The actions of the snapshot's plan: its effects by name, each with its input. */
import type { claimSnapshot, SnapshotId } from '../../../db/snapshot/index.ts'
import { type releaseHold, safetyHolder, snapshotHolder } from '../../../db/storage-hold/index.ts'
import type { AuditEffects } from '../../kit/audit.ts'
import { isForSafety } from '../../../resources/snapshot/index.ts'
import type { ActionWith } from '../../kit/effects.ts'
import type { SnapshotObject } from './observed.ts'

export interface SnapshotEffects extends AuditEffects {
  readonly claim: Parameters<typeof claimSnapshot>[1]
  /** The same for a snapshot that is taken before a restore. */
  readonly holdForSafety: SnapshotEffects['claim']
  readonly release: SnapshotId
  /** Releases the storage; the snapshot keeps its quota. */
  readonly releaseHold: Parameters<typeof releaseHold>[1]
}
export type SnapshotAction = ActionWith<SnapshotEffects>

/** The snapshot's name among the holders of a storage. */
export const holderOf = ({ metadata: { name }, spec }: SnapshotObject): string =>
  isForSafety(spec) ? safetyHolder(name) : snapshotHolder(name)

/** Whether PostgreSQL granted the claims of the snapshot. */
export const CLAIMED = 'Claimed'
