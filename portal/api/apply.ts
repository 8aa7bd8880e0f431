/** A change of the stream, applied to what was read: pure functions over pages and items. */
import type { ListPart } from './cache.ts'

export interface Item {
  readonly id: string
}

export interface Pages {
  readonly pages: readonly ListPart<Item>[]
  readonly pageParams: readonly unknown[]
}

/** The list with the new state of an item that it has. Lists are newest first: an item that it does not have goes to
 *  the front, if `isWhole` says that the list has no filter. Undefined when the list has to be read again. */
export function withItem(list: Pages, item: Item, isWhole: boolean): Pages | undefined {
  if (list.pages.some(({ items }) => items.some(({ id }) => id === item.id)))
    return mapItems(list, (items) => items.map((each) => (each.id === item.id ? item : each)))
  if (!isWhole) return undefined
  const [first, ...others] = list.pages
  return first === undefined ? undefined : { ...list, pages: [{ ...first, items: [item, ...first.items] }, ...others] }
}

/** The list without the item; the same list when it has none. */
export const withoutItem = (list: Pages, removed: string): Pages =>
  list.pages.some(({ items }) => items.some(({ id }) => id === removed))
    ? mapItems(list, (items) => items.filter(({ id }) => id !== removed))
    : list

const mapItems = (list: Pages, change: (items: readonly Item[]) => readonly Item[]): Pages => ({
  ...list,
  pages: list.pages.map((page) => ({ ...page, items: change(page.items) })),
})
