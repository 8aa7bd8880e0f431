/** `GET /v1/changes`: changes as server-sent events. */
import type { Answer, Call, Customer } from '../../kit/http/call.ts'
import { EVENT_STREAM_HEADERS, openEventStream } from '../../kit/http/event-stream.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { streamChanges } from '../../resources/change/index.ts'
import type { News, Stream } from './account.ts'
import type { Reader } from './reader.ts'
import { holderOf, type FeedParts } from './opened.ts'

const STREAM_MINUTES_MAXIMUM = 30
/** Unread characters of a stream. A reader with more is disconnected, and continues with its cursor. */
const UNREAD_MAXIMUM = 1_500_000

export async function stream(
  clock: Clock,
  { streams, room, metrics }: FeedParts,
  reader: Reader,
  { caller, request }: Call<typeof streamChanges, Customer>,
): Promise<Answer> {
  const entry = streams.enter(caller.accountId, holderOf(caller))
  const channel = openEventStream({
    clock,
    signal: request.signal,
    room,
    unreadMaximum: UNREAD_MAXIMUM,
    endsAfterMilliseconds: STREAM_MINUTES_MAXIMUM * 60_000,
    keepalive: () => {
      const place = entry.quietPlace(own)
      return place === undefined ? ': keepalive\n\n' : `: keepalive\n${idText(place)}`
    },
    onCutOff: () => metrics.cutOff.inc(),
    onClosed: () => entry.leave(own),
  })
  const idText = (place: News['place']) => (place === undefined ? '' : `id: ${reader.cursorOf(place)}\n\n`)
  const own: Stream = {
    accepts: reader.accepts,
    push({ reset, changes, place }) {
      if (reset !== undefined) metrics.resets.inc({ reason: reset })
      const begins = reset === undefined ? '' : `event: reset\ndata: ${JSON.stringify({ reason: reset })}\n`
      const texts = changes.map((change) => `event: change\ndata: ${change}\n\n`)
      // The id of a reset is in its event; a browser takes the id of a block without data too.
      channel.push(`${begins}${texts.join('')}${idText(place)}`)
    },
  }
  try {
    await entry.join(own, reader.from)
  } catch (error) {
    entry.leave(own)
    throw error
  }
  return { status: 200, stream: channel, headers: EVENT_STREAM_HEADERS }
}
