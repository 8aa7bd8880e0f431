/** Pages of lists: the cursor of a request says where the page starts. Reading one item more than the page holds shows
 *  whether another page follows. */
import type { ListPlace } from '../../../db/kit/page.ts'
import type { Caller } from '../../../kit/http/call.ts'
import type { Cursors, Position } from '../../../kit/http/cursor.ts'
import type { Route } from '../../../kit/http/route.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { type Facets, facetsOf as fieldsOf, matchesOf } from './filters.ts'
import { positionOf, sortNewestFirst } from './newest-first.ts'

/** A call that requests a page. */
export interface ListCall {
  readonly route: Pick<Route, 'id' | 'filters'>
  readonly caller: Caller
  readonly query: { readonly cursor?: string | undefined; readonly limit: number }
}

export interface Page<Item> {
  readonly items: readonly Item[]
  /** Null on the last page. */
  readonly nextCursor: string | null
}

/** How many items a request with filters reads at a time, and about how many in all. */
const BATCH_ITEMS = 500
export const READ_ITEMS_MAXIMUM = 10_000

interface PageOptions<Item, View> {
  /** Renders items; it may look up at once what all of them need. */
  readonly viewsOf: ViewsOf<Item, View>
  /** By which filters judge an item; by default its fields. */
  readonly facetsOf?: (view: View) => Facets
  /** Whether the query asks for an item, besides by the filters that every list has. */
  readonly matches?: ((view: View) => boolean) | undefined
  readonly batchItems?: number
}

/** `find` returns the items after the position in the order of the list, from its start when that is undefined, and at
 *  least `count` of them when there are so many. With filters, a request reads a bounded number of items: when only few
 *  of them match, the page is short, and its cursor continues behind what was read. Throws a Problem (400) for a cursor
 *  of another list. */
export async function readPage<Item, View>(
  cursors: Cursors,
  call: ListCall,
  find: (after: Position | undefined, count: number) => Promise<readonly Item[]> | readonly Item[],
  positionOf: (item: Item) => Position,
  { viewsOf, facetsOf = fieldsOf, matches: isAsked, batchItems = BATCH_ITEMS }: PageOptions<Item, View>,
): Promise<Page<View>> {
  const {
    route,
    caller,
    query: { cursor, limit },
  } = call
  const isFiltered = matchesOf(route, call.query)
  const owner = 'accountId' in caller ? caller.accountId : NOBODY
  const cursorAt = (item: Item | undefined) =>
    item === undefined ? null : cursors.encode(route.id, owner, positionOf(item))
  let after = cursor === undefined ? undefined : cursors.decode(route.id, owner, cursor)
  if (isFiltered === undefined && isAsked === undefined) {
    const found = await find(after, limit + 1)
    const items = found.slice(0, limit)
    return { items: await viewsOf(items), nextCursor: found.length > limit ? cursorAt(items.at(-1)) : null }
  }
  const matches = (view: View) => (isAsked?.(view) ?? true) && (isFiltered?.(facetsOf(view)) ?? true)
  const hits: { readonly item: Item; readonly view: View }[] = []
  for (let read = 0; ; ) {
    const found = await find(after, batchItems + 1)
    const batch = found.slice(0, batchItems)
    const views = await viewsOf(batch)
    for (const [index, item] of batch.entries()) {
      const view = views[index]
      if (view !== undefined && matches(view)) hits.push({ item, view })
      if (hits.length > limit) break
    }
    read += batch.length
    const items = hits.slice(0, limit).map(({ view }) => view)
    const last = batch.at(-1)
    if (hits.length > limit) return { items, nextCursor: cursorAt(hits[limit - 1]?.item) }
    if (found.length <= batchItems || last === undefined) return { items, nextCursor: null }
    if (read >= READ_ITEMS_MAXIMUM) return { items, nextCursor: cursorAt(last) }
    after = positionOf(last)
  }
}

/** Operators' lists belong to no account. */
const NOBODY = ''

/** A page of a list that is ordered by creation time, newest first, as the rows of PostgreSQL are. */
export const readPageByTime = <Item, View>(
  cursors: Cursors,
  call: ListCall,
  find: (after: ListPlace | undefined, count: number) => Promise<readonly Item[]>,
  placeOf: (item: Item) => ListPlace,
  options: PageOptions<Item, View>,
): Promise<Page<View>> =>
  readPage(
    cursors,
    call,
    (after, count) => find(after && { createdAt: new Date(Number(after.sortKey)), id: after.id }, count),
    (item) => {
      const { createdAt, id } = placeOf(item)
      return { sortKey: String(createdAt.getTime()), id }
    },
    options,
  )

export interface ListAnswer {
  readonly status: 200
  readonly body: { readonly items: readonly object[]; readonly next_cursor: string | null }
}

type ViewsOf<Item, View = object> = (items: readonly Item[]) => Promise<readonly View[]> | readonly View[]

/** A list that is never longer than one page. */
export const completeList = (items: readonly object[]): ListAnswer => ({
  status: 200,
  body: { items, next_cursor: null },
})

/** A page of rows, newest first. */
export const pageOfRows = async <Item extends ListPlace>(
  { cursors }: { readonly cursors: Cursors },
  call: ListCall,
  find: (after: ListPlace | undefined, count: number) => Promise<readonly Item[]>,
  viewsOf: ViewsOf<Item>,
): Promise<ListAnswer> => answerOf(await readPageByTime(cursors, call, find, (item) => item, { viewsOf }))

/** A page of objects from the caches, newest first. */
export const pageOfObjects = async <Item extends KubeObject>(
  { cursors }: { readonly cursors: Cursors },
  call: ListCall,
  objects: readonly Item[],
  viewsOf: ViewsOf<Item>,
): Promise<ListAnswer> =>
  answerOf(await readPage(cursors, call, (after) => sortNewestFirst(objects, after), positionOf, { viewsOf }))

/** The answer with a page. */
export const answerOf = ({ items, nextCursor }: Page<object>): ListAnswer => ({
  status: 200,
  body: { items, next_cursor: nextCursor },
})
