/** What one reader of the stream gets as text, and what is counted. */
import { expect, test } from 'vitest'
import { openFeedMetrics } from '../../../apiserver/feed/metrics.ts'
import { stream } from '../../../apiserver/feed/stream.ts'
import { openStreams } from '../../../apiserver/feed/streams.ts'
import type { Call, Customer } from '../../../kit/http/call.ts'
import { createRoom } from '../../../kit/http/channel.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { openRegistry } from '../../../kit/sys/metrics.ts'
import type { streamChanges } from '../../../resources/change/index.ts'
import { timedClock } from '../../kit/http/clock.ts'

/** All streams may hold `room` characters. */
function open(room: number) {
  const clock = timedClock()
  const registry = openRegistry({ isProcessWide: false })
  const streams = openStreams({
    feeds: [],
    clock,
    log: silentLog,
    ready: Promise.resolve(),
    readSequences: async () => new Map(),
    readEntries: async () => [],
    reach: async () => {},
    share: async () => {},
    forAccount: (_account, work) => work(),
  })
  const opened = { streams, room: createRoom(room), metrics: openFeedMetrics(registry, streams.count) }
  const reader = { accepts: () => true, from: 'start', cursorOf: () => 'c1' } as const
  return {
    clock,
    async connect(session: string, signal = new AbortController().signal) {
      const call = { caller: { accountId: 'ada', session: { id: session } }, request: { signal } }
      const answer = await stream(clock, opened, reader, call as Call<typeof streamChanges, Customer>) // what it reads
      return (answer as { stream: AsyncIterable<string> }).stream[Symbol.asyncIterator]()
    },
    /** Open streams, resets, readers that were cut off. */
    async counted() {
      const text = await registry.metrics()
      const valueOf = (name: string) => Number(new RegExp(`^${name}(?:\\{.*\\})? (\\d+)$`, 'm').exec(text)?.[1] ?? 0)
      return ['svccloud_change_streams', 'svccloud_change_resets_total', 'svccloud_change_readers_cut_off_total'].map(
        valueOf,
      )
    },
  }
}

test('says where to continue, shows that it lives, and ends after half an hour', async () => {
  const { clock, connect, counted } = open(10_000)
  const reading = await connect('one')
  expect(await counted()).toEqual([1, 1, 0])
  expect((await reading.next()).value).toBe('event: reset\ndata: {"reason":"start"}\nid: c1\n\n')
  await clock.pass(15_000)
  expect((await reading.next()).value).toBe(': keepalive\nid: c1\n\n')
  await clock.pass(30 * 60_000)
  let rest = 0
  while (!(await reading.next()).done) rest++
  expect(rest).toBe(118)
  expect(await counted()).toEqual([0, 1, 0])
})

test('a reader that does not read makes room for others, and is counted', async () => {
  const { connect, counted } = open(60)
  const slow = await connect('slow')
  const fast = await connect('fast')
  expect(await counted()).toEqual([1, 2, 1])
  const ends = await Promise.all([slow.next(), fast.next()])
  expect(ends.filter(({ done }) => done)).toHaveLength(1)
})

test('a client that has gone before its stream is made is not counted', async () => {
  const { connect, counted } = open(1_000)
  await connect('gone', AbortSignal.abort())
  expect((await counted())[0]).toBe(0)
  const going = new AbortController()
  await connect('going', going.signal)
  expect((await counted())[0]).toBe(1)
  going.abort()
  expect((await counted())[0]).toBe(0)
})
