/** Notices that people have dismissed. The notices themselves are not stored. */
import type { Transaction } from 'kysely'
import type { Queries } from '../kit/open.ts'
import { deleteWhere, selectWhere } from '../kit/where.ts'
import type { Tables } from '../tables.ts'

interface Reader {
  readonly userId: string
  readonly accountId: string
}

/** The ids of those that the person has dismissed in the account. */
export async function listDismissed(
  queries: Queries,
  { userId: user_id, accountId: account_id }: Reader,
): Promise<ReadonlySet<string>> {
  const rows = await selectWhere(queries, 'notice_dismissal', { user_id, account_id }).select('notice_id').execute()
  return new Set(rows.map((row) => row.notice_id))
}

/** For longer than any notice is announced ahead, and than most causes last. */
const KEPT_MILLISECONDS = 400 * 86_400_000

/** Once is enough. The person's dismissals that are older than a year are deleted with it. */
export async function recordDismissal(
  tx: Transaction<Tables>,
  { userId: user_id, accountId: account_id }: Reader,
  { noticeId: notice_id, now }: { readonly noticeId: string; readonly now: Date },
): Promise<void> {
  await deleteWhere(tx, 'notice_dismissal', { user_id, account_id })
    .where('dismissed_at', '<', new Date(now.getTime() - KEPT_MILLISECONDS))
    .execute()
  await tx
    .insertInto('notice_dismissal')
    .values({ user_id, account_id, notice_id, dismissed_at: now })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}
