/** Console sessions that have been audited. */
import type { Transaction } from 'kysely'
import type { Tables } from '../tables.ts'

export interface ConsoleSession {
  readonly accountId: string
  readonly serverId: string
  readonly sessionId: string
}

/** A session is forgotten after this long; one that continues is audited again. */
const SESSION_HOURS = 24

/** Returns whether the session is new. */
export async function openConsoleSession(
  tx: Transaction<Tables>,
  { accountId, serverId, sessionId }: ConsoleSession,
  now: Date,
): Promise<boolean> {
  await tx
    .deleteFrom('console_session')
    .where('opened_at', '<', new Date(now.getTime() - SESSION_HOURS * 3_600_000))
    .execute()
  const opened = await tx
    .insertInto('console_session')
    .values({ account_id: accountId, server_id: serverId, session_id: sessionId, opened_at: now })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst()
  return (opened.numInsertedOrUpdatedRows ?? 0n) > 0n
}
