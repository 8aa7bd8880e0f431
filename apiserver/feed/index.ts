/** `GET /v1/changes`: server-sent events of everything that an account has. */
import { auditSequences, exportAudit } from '../../db/audit/index.ts'
import { Problem } from '../../domain/problem.ts'
import type { Answer, Call, Customer } from '../../kit/http/call.ts'
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
  })
  const lists = new Map(feeds.map(({ type, list }) => [type, list]))
  return customerEndpoint(streamChanges, (call) => open(parts, { streams, lists }, call))
}

async function open(
  { clock, cursors }: Parts,
  { streams, lists }: { readonly streams: Streams; readonly lists: ReadonlyMap<string, Route> },
  call: Call<typeof streamChanges, Customer>,
): Promise<Answer> {
  const { caller, query, request } = call
  const { accountId } = caller
  const entry = streams.enter(accountId, caller.session?.id ?? caller.token?.id ?? caller.userId)
  const channel = openEventStream({
    clock,
    signal: request.signal,
    unreadMaximum: UNREAD_MAXIMUM,
    endsAfterMilliseconds: STREAM_MINUTES_MAXIMUM * 60_000,
    keepalive: () => {
      const cursor = entry.quietCursor(stream)
      return cursor === undefined ? ': keepalive\n\n' : `: keepalive\nid: ${cursor}\n\n`
    },
    onClosed: () => entry.leave(stream),
  })
  const wanted: readonly string[] | undefined = query.type
  const stream: Stream = {
    accepts: (type) => wanted?.includes(type) !== false && mayList(caller, lists.get(type)),
    push: (text) => void channel.push(text),
    cursorOf: ({ version, sequence }) =>
      cursors.encode(streamChanges.id, accountId, { sortKey: version, id: String(sequence) }),
  }
  try {
    await entry.join(stream, placeOf(cursors, call))
  } catch (error) {
    entry.leave(stream)
    throw error
  }
  return { status: 200, stream: channel, headers: EVENT_STREAM_HEADERS }
}

/** Who may read the list of a type may see its items. Of a type without items only the name and ids are sent, which the
 *  audit log shows to everybody. */
const mayList = (caller: Customer, list: Route | undefined): boolean =>
  list === undefined ||
  ((list.permission === null || caller.permissions.includes(list.permission)) &&
    list.credentials.includes(caller.kind) &&
    !(list.isRefusedToSupport && caller.support !== undefined))

/** A browser repeats the last id that it got in a header. A cursor of another account, or of another deployment, is no
 *  reason to refuse: a browser would never reconnect. */
function placeOf(
  cursors: Cursors,
  { caller, query, request }: Call<typeof streamChanges, Customer>,
): Place | 'start' | 'unknown' {
  const cursor = request.header('last-event-id') ?? query.cursor ?? ''
  if (cursor === '') return 'start'
  try {
    const { sortKey, id } = cursors.decode(streamChanges.id, caller.accountId, cursor)
    return { version: sortKey, sequence: Number(id) }
  } catch (error) {
    if (error instanceof Problem) return 'unknown'
    throw error
  }
}
