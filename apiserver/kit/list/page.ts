/** Pages of lists: the cursor of a request says where the page starts. Reading one item more than the page holds shows
 *  whether another page follows. */
import type { ListPlace } from '../../../db/kit/page.ts'
import type { Caller } from '../../../kit/http/call.ts'
import type { Cursors, Position } from '../../../kit/http/cursor.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { positionOf, sortNewestFirst } from './newest-first.ts'

/** A call that requests a page. */
export interface ListCall {
  readonly route: { readonly id: string }
  readonly caller: Caller
  readonly query: { readonly cursor?: string | undefined; readonly limit: number }
}

export interface Page<Item> {
  readonly items: readonly Item[]
  /** Null on the last page. */
  readonly nextCursor: string | null
}

/** `find` returns the items after the position in the order of the list, from its start when that is undefined, and at
 *  least `count` of them when there are so many. Throws a Problem (400) for a cursor of another list. */
export async function readPage<Item>(
  cursors: Cursors,
  { route, caller, query: { cursor, limit } }: ListCall,
  find: (after: Position | undefined, count: number) => Promise<readonly Item[]> | readonly Item[],
  positionOf: (item: Item) => Position,
): Promise<Page<Item>> {
  const owner = 'accountId' in caller ? caller.accountId : NOBODY
  const found = await find(cursor === undefined ? undefined : cursors.decode(route.id, owner, cursor), limit + 1)
  const items = found.slice(0, limit)
  const last = items.at(-1)
  return {
    items,
    nextCursor:
      found.length > items.length && last !== undefined ? cursors.encode(route.id, owner, positionOf(last)) : null,
  }
}

/** Operators' lists belong to no account. */
const NOBODY = ''

/** A page of a list that is ordered by creation time, newest first, as the rows of PostgreSQL are. */
export const readPageByTime = <Item>(
  cursors: Cursors,
  call: ListCall,
  find: (after: ListPlace | undefined, count: number) => Promise<readonly Item[]>,
  placeOf: (item: Item) => ListPlace,
): Promise<Page<Item>> =>
  readPage(
    cursors,
    call,
    (after, count) => find(after && { createdAt: new Date(Number(after.sortKey)), id: after.id }, count),
    (item) => {
      const { createdAt, id } = placeOf(item)
      return { sortKey: String(createdAt.getTime()), id }
    },
  )

export interface ListAnswer {
  readonly status: 200
  readonly body: { readonly items: readonly object[]; readonly next_cursor: string | null }
}

/** Renders the items of a page; it may look up at once what all of them need. */
type ViewsOf<Item> = (items: readonly Item[]) => Promise<readonly object[]> | readonly object[]

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
): Promise<ListAnswer> => answerOf(await readPageByTime(cursors, call, find, (item) => item), viewsOf)

/** A page of objects from the caches, newest first. */
export const pageOfObjects = async <Item extends KubeObject>(
  { cursors }: { readonly cursors: Cursors },
  call: ListCall,
  objects: readonly Item[],
  viewsOf: ViewsOf<Item>,
): Promise<ListAnswer> =>
  answerOf(await readPage(cursors, call, (after) => sortNewestFirst(objects, after), positionOf), viewsOf)

const answerOf = async <Item>({ items, nextCursor }: Page<Item>, viewsOf: ViewsOf<Item>): Promise<ListAnswer> => ({
  status: 200,
  body: { items: await viewsOf(items), next_cursor: nextCursor },
})
