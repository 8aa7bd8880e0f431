/** The objects of each namespace, newest first, kept in order as the cache changes: a page costs its own length,
 *  regardless of how many objects there are. */
import type { Position } from '../../../kit/http/cursor.ts'
import type { Cache } from '../../../kit/kube/cache.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'

/** The position of an object: its creation time, then its name. */
export const positionOf = ({ metadata }: KubeObject): Position => ({
  sortKey: metadata.creationTimestamp ?? '',
  id: metadata.name,
})

/** Negative when `one` comes first. */
export function compareNewestFirst(one: Position, other: Position): number {
  if (one.sortKey !== other.sortKey) return one.sortKey > other.sortKey ? -1 : 1
  return one.id === other.id ? 0 : one.id > other.id ? -1 : 1
}

/** The objects after the position, newest first; all of them when it is undefined. */
export const sortNewestFirst = <Item extends KubeObject>(
  objects: readonly Item[],
  after: Position | undefined,
): Item[] =>
  objects
    .filter((object) => after === undefined || compareNewestFirst(positionOf(object), after) > 0)
    .sort((one, other) => compareNewestFirst(positionOf(one), positionOf(other)))

export interface NewestFirst<Spec, Status> {
  /** At most `count` objects after the position; from the newest when it is undefined. */
  page(namespace: string, after: Position | undefined, count: number): readonly KubeObject<Spec, Status>[]
}

/** Kept in order as the cache changes, so that a page costs no sorting. `isListed` selects the objects. */
export function newestFirst<Spec, Status>(
  cache: Cache<Spec, Status>,
  isListed: (object: KubeObject<Spec, Status>) => boolean = () => true,
): NewestFirst<Spec, Status> {
  // Oldest first internally, so that a new object is appended.
  const lists = new Map<string, KubeObject<Spec, Status>[]>()
  const change = (object: KubeObject<Spec, Status>, isThere: boolean) => {
    const namespace = object.metadata.namespace ?? ''
    const list = lists.get(namespace) ?? []
    const at = indexOf(list, positionOf(object))
    const isKnown = list[at]?.metadata.name === object.metadata.name
    if (isThere) list.splice(at, isKnown ? 1 : 0, object)
    else if (isKnown) list.splice(at, 1)
    if (list.length === 0) lists.delete(namespace)
    else lists.set(namespace, list)
  }
  cache.subscribe((news) => {
    if (!isListed(news.object)) return
    // A new object of the same name may appear before the deletion of the first is known.
    if (
      news.is === 'set' &&
      news.previous !== undefined &&
      compareNewestFirst(positionOf(news.previous), positionOf(news.object)) !== 0
    )
      change(news.previous, false)
    change(news.object, news.is === 'set')
  })
  return {
    page(namespace, after, count) {
      const list = lists.get(namespace) ?? []
      const end = after === undefined ? list.length : indexOf(list, after)
      return list.slice(Math.max(0, end - count), end).reverse()
    },
  }
}

/** How many objects of a list in oldest-first order are older than the position. */
function indexOf(list: readonly KubeObject[], position: Position): number {
  let low = 0
  let high = list.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const object = list[middle]
    if (object !== undefined && compareNewestFirst(positionOf(object), position) > 0) low = middle + 1
    else high = middle
  }
  return low
}
