/** Accounts that have not paid beyond the grace period, and those that have since. */
import { listSuspensionsDue } from '../../../db/billing/index.ts'
import type { Parts } from '../../kit/parts.ts'
import { graceBefore, holdAccount } from './invoice-state.ts'

const BATCH = 500

/** Each account in a transaction of its own. */
export async function adjustSuspensions(parts: Pick<Parts, 'clock' | 'db' | 'random'>): Promise<void> {
  const { clock, db } = parts
  for (const accountId of await listSuspensionsDue(db, graceBefore(clock.now()), BATCH))
    await db.transaction().execute((tx) => holdAccount(tx, parts, accountId))
}
