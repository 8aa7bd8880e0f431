/** Attempts per subject (an email, an address, a user's second factor); the rules are in `domain/identity/lockout.ts`.
 */
import { countAttempt, type LockoutRule } from '../../domain/identity/lockout.ts'
import type { Database, Queries } from '../kit/open.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'

/** Counts an attempt before it is checked. Returns the whole seconds to wait; 0 when it may be checked. */
export async function beginAttempt(db: Database, subject: string, rule: LockoutRule, now: Date): Promise<number> {
  return await db.transaction().execute(async (tx) => {
    // Inserts or locks the row in one statement: between two, a successful attempt could delete it.
    const row = await tx
      .insertInto('lockout')
      .values({ subject, failures: 0, window_started_at: now })
      .onConflict((conflict) =>
        conflict.column('subject').doUpdateSet((expression) => ({ subject: expression.ref('excluded.subject') })),
      )
      .returningAll()
      .executeTakeFirstOrThrow()
    const before = {
      failures: row.failures,
      windowStartedAt: row.window_started_at,
      locks: row.locks,
      lockedUntil: row.locked_until,
    }
    const { waitSeconds, state } = countAttempt(before, rule, now)
    if (waitSeconds > 0) return waitSeconds
    await updateWhere(tx, 'lockout', { subject })
      .set({
        failures: state.failures,
        window_started_at: state.windowStartedAt,
        locks: state.locks,
        locked_until: state.lockedUntil,
      })
      .execute()
    return 0
  })
}

/** The whole seconds that the subject is locked out for; counts nothing. */
export async function waitForAttempt(queries: Queries, subject: string, now: Date): Promise<number> {
  const row = await selectWhere(queries, 'lockout', { subject }).select('locked_until').executeTakeFirst()
  return Math.max(0, Math.ceil(((row?.locked_until?.getTime() ?? 0) - now.getTime()) / 1000))
}

/** The attempt succeeded: deletes the subject's failures. */
export async function forgetAttempts(queries: Queries, subject: string): Promise<void> {
  await deleteWhere(queries, 'lockout', { subject }).execute()
}

/** Deletes subjects without attempts since `before`. */
export async function forgetOldAttempts(queries: Queries, before: Date): Promise<void> {
  await queries
    .deleteFrom('lockout')
    .where('window_started_at', '<', before)
    .where((where) => where.or([where('locked_until', 'is', null), where('locked_until', '<', before)]))
    .execute()
}
