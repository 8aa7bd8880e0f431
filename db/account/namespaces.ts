/** Which accounts have their namespace in Kubernetes. */
import type { Queries } from '../kit/open.ts'
import { updateWhere } from '../kit/where.ts'

/** Ids of accounts whose namespace does not exist yet, oldest first. */
export async function listWithoutNamespace(queries: Queries, limit: number): Promise<readonly string[]> {
  const rows = await queries
    .selectFrom('account')
    .select('id')
    .where('namespace_made_at', 'is', null)
    .orderBy('created_at')
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}

/** Records that the account has it. */
export async function noteAccountNamespace(queries: Queries, accountId: string, at: Date): Promise<void> {
  await updateWhere(queries, 'account', { id: accountId })
    .set({ namespace_made_at: at })
    .where('namespace_made_at', 'is', null)
    .execute()
}
