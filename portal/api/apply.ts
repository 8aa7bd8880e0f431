/** A change of the stream, applied to what was read: pure functions over pages and items. */
import type { ListPart } from './cache.ts'

export interface Item {
  readonly id: string
}

export interface Pages {
  readonly pages: readonly ListPart<Item>[]
  readonly pageParams: readonly unknown[]
}

/** Of a list that nobody reads on: one that is open all day does not keep everything that was new. */
const NEW_ITEMS_MAXIMUM = 200

export interface Applied {
  /** The same list when it has none of the items. */
  readonly list: Pages
  /** It has to be read again: whether a filter lets a new item through is not known here. */
  readonly isBehind: boolean
}

/** Applies the newest states of items to a list, null for those that were deleted. Lists are newest first: an item
 *  that it does not have goes to the front, if `isWhole` says that the list has no filter. */
export function withChanges(list: Pages, changes: ReadonlyMap<string, Item | null>, isWhole: boolean): Applied {
  const unknown = new Map(changes)
  let isSame = true
  const pages = list.pages.map((page) => ({
    ...page,
    items: page.items.flatMap((item) => {
      const next = changes.get(item.id)
      if (next === undefined) return item
      unknown.delete(item.id)
      isSame = false
      return next ?? []
    }),
  }))
  const added = [...unknown.values()].flatMap((item) => item ?? []).toReversed()
  const [first, ...others] = pages
  if (added.length === 0 || !isWhole || first === undefined)
    return { list: isSame ? list : { ...list, pages }, isBehind: added.length > 0 }
  const items = [...added, ...first.items]
  return {
    list: { ...list, pages: [{ ...first, items }, ...others] },
    isBehind: others.length === 0 && items.length > NEW_ITEMS_MAXIMUM,
  }
}
