/** Group commit: changes that would wait for each other's rows are made together. While one transaction of a key runs,
 *  what comes for the key
 *  waits, and then goes in one transaction: the rows are locked once and the log is flushed once, however many wait.
 *  Whoever waits is
 *  answered after the commit, so that nothing is promised that a power cut could take back. */
import type { Transaction } from 'kysely'
import { type PendingItem, inBatches } from '../kit/sys/batches.ts'
import { databaseUnavailable } from './failures.ts'
import type { Database } from './open.ts'
import type { Tables } from './tables.ts'

/** Answers when the item is committed, with its result; throws what refused it. */
export type GroupCommit<Item, Result> = (key: string, item: Item) => Promise<Result>

/** In one transaction. More of them save little, and hold their rows for longer. */
const ITEMS_MAXIMUM = 64

/** `work` does the items of one key and answers a result for each, in their order. When it throws, nothing of the
 *  transaction stays; items that
 *  are refused together are tried in halves, so that in the end each has its own answer. */
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
  return inBatches({ itemsMaximum: ITEMS_MAXIMUM, work: commit })
}
