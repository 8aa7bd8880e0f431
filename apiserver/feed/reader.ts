/** What one caller may read of the changes of its account, and from which place on. */
import { Problem } from '../../domain/problem.ts'
import type { Call, Customer } from '../../kit/http/call.ts'
import type { Cursors } from '../../kit/http/cursor.ts'
import type { Route } from '../../kit/http/route.ts'
import { type readChanges, streamChanges } from '../../resources/change/index.ts'
import { mayRead } from '../kit/feed.ts'
import type { Place, Stream } from './account.ts'

export interface Reader {
  readonly accepts: Stream['accepts']
  readonly from: Place | 'start' | 'unknown'
  readonly cursorOf: (place: Place) => string
}

/** `routes`, by type: who may use the route may read its items. */
export function readerOf(
  cursors: Cursors,
  routes: ReadonlyMap<string, Route>,
  { caller, query, request }: Call<typeof streamChanges | typeof readChanges, Customer>,
): Reader {
  const { accountId } = caller
  const wanted: readonly string[] | undefined = query.type
  const accepts = (type: string) => wanted?.includes(type) !== false && mayRead(caller, routes.get(type))
  const scope = scopeOf([...routes.keys()].filter(accepts), wanted)
  return {
    accepts,
    // A browser repeats the last id that it got in a header.
    from: placeOf(cursors, { scope, accountId, cursor: request.header('last-event-id') ?? query.cursor ?? '' }),
    cursorOf: ({ version, sequence }) => cursors.encode(scope, accountId, { sortKey: version, id: String(sequence) }),
  }
}

/** A cursor is of use to readers of the same types only: it says that everything of these has been sent. */
const scopeOf = (types: readonly string[], wanted: readonly string[] | undefined): string =>
  [streamChanges.id, ...types.toSorted(), ...(wanted === undefined ? ['and the rest'] : [])].join(' ')

/** A cursor of another account, of other types, or of another deployment, is no reason to refuse: a browser would never
 *  reconnect. */
function placeOf(
  cursors: Cursors,
  { scope, accountId, cursor }: { readonly scope: string; readonly accountId: string; readonly cursor: string },
): Reader['from'] {
  if (cursor === '') return 'start'
  try {
    const { sortKey, id } = cursors.decode(scope, accountId, cursor)
    return { version: sortKey, sequence: Number(id) }
  } catch (error) {
    if (error instanceof Problem) return 'unknown'
    throw error
  }
}
