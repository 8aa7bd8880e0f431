/** The changes of everything that an account has, as a stream and as an answer. */
import { auditSequences, exportAudit } from '../../db/audit/index.ts'
import { forAccount } from '../../db/kit/account-share.ts'
import { createRoom } from '../../kit/http/channel.ts'
import { customerEndpoint, type Endpoint } from '../../kit/http/endpoint.ts'
import type { Registry } from '../../kit/sys/metrics.ts'
import { readChanges, streamChanges } from '../../resources/change/index.ts'
import type { Feed } from '../kit/feed.ts'
import type { Parts } from '../kit/parts.ts'
import { openFeedMetrics } from './metrics.ts'
import type { FeedParts } from './opened.ts'
import { read } from './read.ts'
import { readerOf } from './reader.ts'
import { stream } from './stream.ts'
import { openStreams } from './streams.ts'

/** Unread characters of all streams of the process. Beyond it, the streams that have most are disconnected. */
const UNREAD_MAXIMUM = 50_000_000

/** Follows the feeds from now on: opened before the caches are started. */
export function changesEndpoints(parts: Parts, feeds: readonly Feed[], registry: Registry): readonly Endpoint[] {
  const { db, clock, log, caches, catchUp, cursors } = parts
  // What another replica has sent must not be sent again in an older state.
  for (const { kind } of feeds.flatMap(({ sources }) => sources)) catchUp.include(kind)
  const streams = openStreams({
    feeds,
    clock,
    log,
    ready: caches.ready(),
    readSequences: (accountIds) => auditSequences(db, accountIds),
    readEntries: (accountId, after, limit) => exportAudit(db, accountId, { after, limit }),
    reach: catchUp.reach,
    share: catchUp.share,
    forAccount,
  })
  const opened: FeedParts = {
    streams,
    room: createRoom(UNREAD_MAXIMUM),
    metrics: openFeedMetrics(registry, streams.count),
  }
  const routes = new Map(feeds.map(({ type, list }) => [type, list]))
  return [
    customerEndpoint(streamChanges, (call) => stream(clock, opened, readerOf(cursors, routes, call), call)),
    customerEndpoint(readChanges, (call) => read(clock, opened, readerOf(cursors, routes, call), call)),
  ]
}
