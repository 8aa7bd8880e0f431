import type { Database } from '../../../../db/kit/open.ts'

/** As staff would set it. */
export const setAccountQuota = async (db: Database, accountId: string, limit: number): Promise<void> =>
  void (await db
    .updateTable('account_quota')
    .set({ limit })
    .where('account_id', '=', accountId)
    .where('name', '=', 'playgrounds')
    .execute())
