/** `GET /v1/changes`: server-sent events of everything that an account has. */
import { auditSequences, exportAudit } from '../../db/audit/index.ts'
import { forAccount } from '../../db/kit/account-share.ts'
import { Problem } from '../../domain/problem.ts'
import type { Answer, Call, Customer } from '../../kit/http/call.ts'
import { createRoom, type Room } from '../../kit/http/channel.ts'
import { customerEndpoint, type Endpoint } from '../../kit/http/endpoint.ts'
import { EVENT_STREAM_HEADERS, openEventStream } from '../../kit/http/event-stream.ts'
import type { Cursors } from '../../kit/http/cursor.ts'
import type { Route } from '../../kit/http/route.ts'
import { streamChanges } from '../../resources/change/index.ts'
import type { Feed } from '../kit/feed.ts'
import type { Parts } from '../kit/parts.ts'
import type { Place, Stream } from './account.ts'
import { openStreams, type Streams } from './streams.ts'

const STREAM_MINUTES_MAXIMUM = 30
/** Unread characters of a stream. A reader with more is disconnected, and continues with its cursor. */
const UNREAD_MAXIMUM = 1_500_000
/** Unread characters of all streams of the process. Beyond it, the streams that have most are disconnected. */
const ALL_UNREAD_MAXIMUM = 50_000_000

interface Opened {
  readonly streams: Streams
  readonly room: Room
  /** By type: who may use the route may follow its items. */
  readonly routes: ReadonlyMap<string, Route>
}

/** Follows the feeds from now on: opened before the caches are started. */
export function changesEndpoint(parts: Parts, feeds: readonly Feed[]): Endpoint {
  const { db, clock, log, caches, catchUp } = parts
  const streams = openStreams({
    feeds,
    clock,
    log,
    ready: caches.ready(),
    readSequences: (accountIds) => auditSequences(db, accountIds),
    readEntries: (accountId, after, limit) => exportAudit(db, accountId, { after, limit }),
    reach: catchUp.reach,
    forAccount,
  })
  const opened = {
    streams,
    room: createRoom(ALL_UNREAD_MAXIMUM),
    routes: new Map(feeds.map(({ type, list }) => [type, list])),
  }
  return customerEndpoint(streamChanges, (call) => open(parts, opened, call))
}

async function open(
  { clock, cursors }: Parts,
  { streams, room, routes }: Opened,
  call: Call<typeof streamChanges, Customer>,
): Promise<Answer> {
  const { caller, query, request } = call
  const { accountId } = caller
  const entry = streams.enter(accountId, caller.session?.id ?? caller.token?.id ?? caller.userId)
  const channel = openEventStream({
    clock,
    signal: request.signal,
    room,
    unreadMaximum: UNREAD_MAXIMUM,
    endsAfterMilliseconds: STREAM_MINUTES_MAXIMUM * 60_000,
    keepalive: () => {
      const cursor = entry.quietCursor(stream)
      return cursor === undefined ? ': keepalive\n\n' : `: keepalive\nid: ${cursor}\n\n`
    },
    onClosed: () => entry.leave(stream),
  })
  const wanted: readonly string[] | undefined = query.type
  const accepts = (type: string) => wanted?.includes(type) !== false && mayRead(caller, routes.get(type))
  const scope = scopeOf([...routes.keys()].filter(accepts), wanted)
  const stream: Stream = {
    accepts,
    push: (text) => void channel.push(text),
    cursorOf: ({ version, sequence }) => cursors.encode(scope, accountId, { sortKey: version, id: String(sequence) }),
  }
  try {
    await entry.join(stream, placeOf(cursors, scope, call))
  } catch (error) {
    entry.leave(stream)
    throw error
  }
  return { status: 200, stream: channel, headers: EVENT_STREAM_HEADERS }
}

/** Who may read the list of a type may see its items. Of a type without items only the name and ids are sent, which the
 *  audit log shows to everybody. */
const mayRead = (caller: Customer, route: Route | undefined): boolean =>
  route === undefined ||
  ((route.permission === null || caller.permissions.includes(route.permission)) &&
    route.credentials.includes(caller.kind) &&
    !(route.isRefusedToSupport && caller.support !== undefined))

/** A cursor is of use to streams of the same types only: it says that everything of these has been sent. */
const scopeOf = (types: readonly string[], wanted: readonly string[] | undefined): string =>
  [streamChanges.id, ...types.toSorted(), ...(wanted === undefined ? ['and the rest'] : [])].join(' ')

/** A browser repeats the last id that it got in a header. A cursor of another account, of other types, or of another
 *  deployment, is no reason to refuse: a browser would never reconnect. */
function placeOf(
  cursors: Cursors,
  scope: string,
  { caller, query, request }: Call<typeof streamChanges, Customer>,
): Place | 'start' | 'unknown' {
  const cursor = request.header('last-event-id') ?? query.cursor ?? ''
  if (cursor === '') return 'start'
  try {
    const { sortKey, id } = cursors.decode(scope, caller.accountId, cursor)
    return { version: sortKey, sequence: Number(id) }
  } catch (error) {
    if (error instanceof Problem) return 'unknown'
    throw error
  }
}
