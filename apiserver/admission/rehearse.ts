/** Claims that are only tried: quotas, names and room are validated by the code that takes them. */
import type { Transaction } from 'kysely'
import type { Tables } from '../../db/tables.ts'
import type { AdmissionParts } from './kind.ts'

/** Does the work in a transaction that is rolled back. Throws what it throws. */
export async function rehearse(
  { db }: Pick<AdmissionParts, 'db'>,
  work: (tx: Transaction<Tables>) => Promise<unknown>,
): Promise<void> {
  const transaction = await db.startTransaction().execute()
  try {
    await work(transaction)
  } finally {
    await transaction.rollback().execute()
  }
}
