/** Group commit: changes that would wait for each other's row locks are committed together. While one transaction of a
 *  key runs, new items of the key are queued; the queue then becomes one transaction, which locks the rows once and
 *  flushes the log once. Callers are answered after the commit, so that a power failure undoes nothing that was
 *  answered. */
import type { Transaction } from 'kysely'
import { type PendingItem, inBatches } from '../../kit/sys/batches.ts'
import { isDryRun } from '../../kit/sys/dry-run.ts'
import { databaseUnavailable } from './failures.ts'
import type { Database } from './open.ts'
import type { Tables } from '../tables.ts'

/** Resolves with the item's result when it is committed; throws what refused it. */
export type GroupCommit<Item, Result> = (key: string, item: Item) => Promise<Result>

/** Maximum of items in one transaction. More save little and hold row locks for longer. */
const ITEMS_MAXIMUM = 64

/** `work` does the items of one key and returns a result for each, in order. When it throws, the transaction is rolled
 *  back and the items are retried in halves, so that each gets its own result. */
export function openGroupCommit<Item, Result>(
  db: Database,
  work: (tx: Transaction<Tables>, items: readonly Item[]) => Promise<readonly Result[]>,
): GroupCommit<Item, Result> {
  async function commit(group: readonly PendingItem<Item, Result>[]): Promise<void> {
    try {
      const results = await db.transaction().execute((tx) =>
        work(
          tx,
          group.map(({ item }) => item),
        ),
      )
      for (const [index, { resolve }] of group.entries()) resolve(results[index] as Result) // one for each
    } catch (error) {
      // After an outage it is unknown whether it was committed, so it is not repeated.
      if (group.length === 1 || databaseUnavailable(error) !== error)
        return group.forEach(({ reject }) => reject(error))
      const half = group.length >> 1
      await commit(group.slice(0, half))
      await commit(group.slice(half))
    }
  }
  const together = inBatches({ itemsMaximum: ITEMS_MAXIMUM, work: commit })
  // What a dry run does is rolled back: nobody else's item may be in its transaction.
  const alone = (item: Item) => new Promise<Result>((resolve, reject) => void commit([{ item, resolve, reject }]))
  return (key, item) => (isDryRun() ? alone(item) : together(key, item))
}
