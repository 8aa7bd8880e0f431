/** Suspends accounts that have not paid within the grace period, and releases those that have paid since. */
import { listSuspensionsDue } from '../../../db/billing/index.ts'
import type { Parts } from '../../kit/parts.ts'
import { graceBefore, holdAccount } from './invoice-state.ts'

const BATCH = 500

/** Each account in its own transaction. */
export async function adjustSuspensions(parts: Pick<Parts, 'clock' | 'db' | 'random'>): Promise<void> {
  const { clock, db } = parts
  for (const accountId of await listSuspensionsDue(db, graceBefore(clock.now()), BATCH))
    await db.transaction().execute((tx) => holdAccount(tx, parts, accountId))
}
