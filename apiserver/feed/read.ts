/** `GET /v1/changes/read`: changes as one answer, for programs that poll. */
import type { Answer, Call, Customer } from '../../kit/http/call.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { readChanges } from '../../resources/change/index.ts'
import type { News, Stream } from './account.ts'
import type { Reader } from './reader.ts'
import { holderOf, type FeedParts } from './opened.ts'

/** Answers at once when something changed after the cursor, else with the first change, or when the time is up. */
export async function read(
  clock: Clock,
  { streams, metrics }: FeedParts,
  reader: Reader,
  { caller, query, request }: Call<typeof readChanges, Customer>,
): Promise<Answer> {
  let news: News = { changes: [] }
  const arrival = new AbortController()
  const own: Stream = {
    accepts: reader.accepts,
    push(more) {
      news = after(news, more)
      if (more.reset !== undefined) metrics.resets.inc({ reason: more.reset })
      if (more.reset !== undefined || more.changes.length > 0) arrival.abort()
    },
  }
  const entry = streams.enter(caller.accountId, holderOf(caller))
  try {
    await entry.join(own, reader.from)
    if (query.wait !== undefined && !arrival.signal.aborted)
      await clock.sleep(query.wait * 1_000, AbortSignal.any([arrival.signal, request.signal]))
    return answerOf(news, reader.cursorOf(entry.quietPlace(own) ?? placeOf(news)))
  } finally {
    entry.leave(own)
  }
}

/** Both, in this order. A reset makes what came before it worthless. */
const after = (one: News, more: News): News =>
  more.reset === undefined ? { ...one, ...more, changes: [...one.changes, ...more.changes] } : more

function placeOf({ place }: News): NonNullable<News['place']> {
  if (place === undefined) throw new Error('a stream began without a place')
  return place
}

const answerOf = ({ reset, changes }: News, cursor: string): Answer => ({
  status: 200,
  // the changes are JSON already
  json: Buffer.from(
    `{"reset":${JSON.stringify(reset ?? null)},"changes":[${changes.join(',')}],"cursor":${JSON.stringify(cursor)}}`,
  ),
})
