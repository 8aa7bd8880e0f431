/** Group read: requests that come while a statement is under way wait for its end and are then read together by one
 *  statement. Each sees what was committed before it came, as by a statement of its own. */
import { inBatches } from '../kit/sys/batches.ts'
import { databaseUnavailable } from './failures.ts'

/** In one statement. More of them save little. */
const ITEMS_MAXIMUM = 64

/** `read` answers a result for each of the items, in their order. When it fails, each is read by itself, so that nobody
 *  hears of another's trouble; an
 *  outage is everybody's. */
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
