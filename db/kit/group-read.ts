/** Group read: requests that arrive while a statement runs are queued and then read by one statement. Each sees what
 *  was committed before it arrived, as if it had its own statement. */
import { inBatches } from '../../kit/sys/batches.ts'
import { databaseUnavailable } from './failures.ts'

/** Maximum of items in one statement. More save little. */
const ITEMS_MAXIMUM = 64

/** `read` returns a result for each item, in order. When it fails, each item is read by itself, so that an error
 *  reaches the caller that caused it only; an outage reaches all. */
export function openGroupRead<Item, Result>(
  read: (items: readonly Item[]) => Promise<readonly Result[]>,
): (item: Item) => Promise<Result> {
  const only = async (item: Item): Promise<Result> => (await read([item]))[0] as Result // one for each
  const ask = inBatches<Item, Result>({
    itemsMaximum: ITEMS_MAXIMUM,
    async work(group) {
      try {
        const results = await read(group.map(({ item }) => item))
        for (const [index, { resolve }] of group.entries()) resolve(results[index] as Result) // one for each
      } catch (error) {
        const isShared = group.length > 1 && databaseUnavailable(error) === error
        for (const { item, resolve, reject } of group)
          if (isShared) resolve(only(item))
          else reject(error)
      }
    },
  })
  return (item) => ask('', item)
}
