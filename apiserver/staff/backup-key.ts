/** Exports the key of an account's backups, on the machine: with it and the store, its disks can be read even when the
 *  platform no longer exists. The export is recorded in the log of staff and in the chain of the account. */
import { isUuid } from '../../domain/uuid.ts'
import { appendAudit } from '../../db/audit/index.ts'
import { backupKeyOwner, findBackupKey } from '../../db/backup/index.ts'
import type { Database } from '../../db/kit/open.ts'
import { appendStaffAudit } from '../../db/staff/index.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { newUuid, type Random } from '../../kit/sys/random.ts'
import type { Sealing } from '../../kit/sys/sealing.ts'
import { auditEntry } from '../kit/change/audit.ts'

export interface KeyExport {
  readonly accountId: string
  /** Who exports it, and why. */
  readonly by: string
  readonly reason: string
}

const NOBODY = { user_id: null, staff_id: null, token_id: null, token_name: null }

/** 64 hexadecimal digits; undefined when nothing of the account was ever backed up. Needs a sealing key. */
export async function exportBackupKey(
  parts: { readonly db: Database; readonly clock: Clock; readonly random: Random; readonly sealing: Sealing },
  { accountId, by, reason }: KeyExport,
): Promise<string | undefined> {
  const { db, random, sealing } = parts
  const sealed = isUuid(accountId) ? await findBackupKey(db, accountId) : undefined
  if (sealed === undefined) return undefined
  const key = sealing.open(sealed, backupKeyOwner(accountId))
  const entry = auditEntry(
    accountId,
    { ...NOBODY, actor_email: by, actor_kind: 'operator' },
    { requestId: newUuid(random), sourceIp: '', userAgent: 'npm run staff' },
    {
      action: 'backup.key_exported',
      resourceType: 'account',
      resourceId: accountId,
      detail: { reason },
    },
  )
  await db.transaction().execute(async (tx) => {
    await appendStaffAudit(tx, entry, parts)
    await appendAudit(tx, entry, parts)
  })
  return key
}
