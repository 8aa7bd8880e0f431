/** Transactions that their caller ends. */
import type { Transaction } from 'kysely'
import type { Database } from './open.ts'
import type { Tables } from '../tables.ts'

export interface BegunTransaction {
  readonly tx: Transaction<Tables>
  commit(): Promise<void>
  rollback(): Promise<void>
}

/** One of `commit` and `rollback` must be called. */
export async function begin(db: Database): Promise<BegunTransaction> {
  const begun = await db.startTransaction().execute()
  return {
    // It has all members of a transaction; comparing the two types, table by table, takes the compiler seconds.
    tx: begun as unknown as Transaction<Tables>,
    commit: () => begun.commit().execute(),
    rollback: () => begun.rollback().execute(),
  }
}

/** Does the work in a transaction that is rolled back. Throws what it throws. */
export async function rehearse(db: Database, work: (tx: Transaction<Tables>) => Promise<unknown>): Promise<void> {
  const { tx, rollback } = await begin(db)
  try {
    await work(tx)
  } finally {
    await rollback()
  }
}
