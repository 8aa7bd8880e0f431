/** The end of an accepted change in PostgreSQL: its intent is removed, its audit entry is written, and other replicas
 *  learn of the write. The changes of an account wait for the head of its chain anyway, so those that end at the same
 *  time share one transaction. */
import type { UnsealedAuditEntry } from '../../../domain/audit/entry.ts'
import { appendAudits, type Sealing } from '../../../db/audit/index.ts'
import { closeIntents, type RecentWrite, recordWrites } from '../../../db/change/index.ts'
import { type GroupCommit, openGroupCommit } from '../../../db/kit/group-commit.ts'
import type { Database } from '../../../db/kit/open.ts'

export interface CommittedChange extends RecentWrite {
  /** Of the intent. */
  readonly id: string
  /** The audit entry of the success; written unless somebody else has removed the intent. */
  readonly audit: UnsealedAuditEntry
}

/** By account id. */
export function openAuditCommit({
  db,
  hasPeers = false,
  ...by
}: Sealing & { readonly db: Database; readonly hasPeers?: boolean }): GroupCommit<CommittedChange, void> {
  return openGroupCommit(db, async (tx, changes) => {
    if (hasPeers) await recordWrites(tx, changes, by.clock.now())
    const removed = await closeIntents(
      tx,
      changes.map(({ id }) => id),
    )
    await appendAudits(
      tx,
      changes.filter(({ id }) => removed.has(id)).map(({ audit }) => audit),
      by,
    )
    return changes.map(() => undefined)
  })
}
