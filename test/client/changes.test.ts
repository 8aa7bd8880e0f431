/** How the client follows the stream of changes, against a service that streams as configured. */
import { expect, test } from 'vitest'
import { changes, type ChangeType, createClient, SvccloudError, type Timer } from '../../client/index.ts'
import { defined } from '../../domain/defined.ts'
import { CHANGE_TYPES } from '../../resources/change/index.ts'

const change = (id: string, is = 'set') =>
  `event: change\ndata: ${JSON.stringify({ type: 'server', id, is, item: is === 'set' ? { id } : null })}\n\n`
const RESET = 'event: reset\ndata: {"reason":"start"}\nid: c1\n\n'

/** Never ends by itself. */
const SILENT = Symbol('nothing more comes')
type Answer = number | Refusal | string | readonly (string | typeof SILENT)[] | Error

interface Refusal {
  readonly status: number
  readonly retryAfter: string
}
const isRefusal = (answer: Answer): answer is Refusal => typeof answer === 'object' && 'retryAfter' in answer

/** Answers each connection by the next of the script; ends with the last. */
function scripted(...script: readonly Answer[]) {
  const asked: string[] = []
  const pauses: number[] = []
  const stop = new AbortController()
  const answers = script.values()
  const watching: (() => void)[] = []
  let now = 0
  let left = 0
  const timer: Timer = {
    milliseconds: () => now,
    async pause(milliseconds, signal) {
      // Those in between watch a connection: the test says when they are over. Sums of fractions are not exact.
      if (milliseconds <= 30_000 || Math.round(milliseconds) > 45_000) pauses.push(milliseconds)
      else await new Promise<void>((resolve) => void watching.push(resolve))
      if (signal?.aborted !== true) now += milliseconds
    },
  }
  const fetch = async (request: Request): Promise<Response> => {
    asked.push(new URL(request.url).search)
    const { value = new Error('no more'), done } = answers.next()
    if (done) stop.abort()
    if (value instanceof Error) throw value
    if (typeof value === 'number' || isRefusal(value)) {
      const { status, retryAfter } = isRefusal(value) ? value : { status: value, retryAfter: undefined }
      return new Response(JSON.stringify({ status, title: 'Refused' }), {
        status,
        headers: { 'content-type': 'application/json', ...defined({ 'retry-after': retryAfter }) },
      })
    }
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        const parts = typeof value === 'string' ? [value] : value
        for (const part of parts) if (part !== SILENT) controller.enqueue(new TextEncoder().encode(String(part)))
        if (!parts.includes(SILENT)) controller.close()
        request.signal.addEventListener('abort', () => {
          left++
          controller.error(request.signal.reason)
        })
      },
    })
    return new Response(body, { status: 200, headers: { 'content-type': 'text/event-stream' } })
  }
  const client = createClient({ url: 'http://127.0.0.1', fetch })
  const passSilence = () => watching.splice(0).forEach((resolve) => resolve())
  return { client, timer, signal: stop.signal, asked, pauses, passSilence, left: () => left }
}

async function read(from: AsyncIterable<{ readonly event: string; readonly id?: string; readonly cursor: string }>) {
  const got: string[] = []
  for await (const { event, id = '', cursor } of from) got.push(`${event} ${id} ${cursor}`)
  return got
}

test('has the type of each item that the service sends, and of no other', () => {
  const known: readonly ChangeType[] = CHANGE_TYPES
  const sent: readonly (typeof CHANGE_TYPES)[number][] = known // neither compiles with a type more
  expect(sent.length).toBeGreaterThan(0)
})

test('continues after the newest cursor, also from one that only a comment had', async () => {
  const { client, asked, ...options } = scripted(
    [RESET, change('a').slice(0, 20), change('a').slice(20)],
    [': keepalive\nid: c2\n\n', change('b', 'removed')],
    new Error('connection refused'),
  )
  const lost: unknown[] = []
  const got = await read(changes(client, { ...options, types: ['server'], onLost: (error) => void lost.push(error) }))
  expect(got).toEqual(['reset  c1', 'change a c1', 'change b c2'])
  expect(asked).toEqual(['?type=server', '?cursor=c1&type=server', '?cursor=c2&type=server', '?cursor=c2&type=server'])
  // a stream that ends is no loss
  expect(lost).toEqual([expect.objectContaining({ message: 'connection refused' })])
})

test('continues an earlier stream', async () => {
  const { client, asked, ...options } = scripted(change('a'))
  await read(changes(client, { ...options, cursor: 'c9' }))
  expect(asked[0]).toBe('?cursor=c9')
})

test('comes back later and later while the service is away or busy, and at once after it was there', async () => {
  const { client, pauses, ...options } = scripted(429, 503, new Error('refused'), 503, RESET, 503)
  const failures: number[] = []
  await read(changes(client, { ...options, onLost: (_error, count) => void failures.push(count) }))
  expect(failures).toEqual([1, 2, 3, 4, 1])
  const most = [500, 1_000, 2_000, 4_000, 500, 500]
  expect(pauses.length).toBe(most.length)
  expect(most.map((limit, index) => [limit >= (pauses[index] ?? 0), limit / 2 <= (pauses[index] ?? 0)])).toEqual(
    most.map(() => [true, true]),
  )
})

test('comes back when the service says, a little later, and after ten minutes at the latest', async () => {
  const { client, pauses, ...options } = scripted(
    { status: 429, retryAfter: '10' },
    { status: 503, retryAfter: '7200' },
    { status: 503, retryAfter: 'Wed, 21 Oct 2026 07:28:00 GMT' },
    { status: 503, retryAfter: '-5' },
    RESET,
  )
  await read(changes(client, options))
  const wanted = [10_000, 600_000, 0, 0, 0, 0]
  const more = [500, 1_000, 2_000, 4_000, 500, 500]
  const isGood = (pause: number, index: number) =>
    pause > (wanted[index] ?? 0) && pause <= (wanted[index] ?? 0) + (more[index] ?? 0)
  expect(pauses.map(isGood)).toEqual([true, true, true, true, true])
})

test('a silent connection is lost', async () => {
  const { client, asked, passSilence, left, ...options } = scripted([RESET, SILENT], change('a'))
  const lost: unknown[] = []
  const got: string[] = []
  for await (const { event, cursor } of changes(client, { ...options, onLost: (error) => void lost.push(error) })) {
    got.push(`${event} ${cursor}`)
    if (event === 'reset') passSilence()
  }
  expect(got).toEqual(['reset c1', 'change c1'])
  expect(lost).toContainEqual(expect.objectContaining({ message: 'the stream of changes is silent' }))
  expect([asked[1], left()]).toEqual(['?cursor=c1', 2])
})

test('ends with a refusal that waiting does not cure, and with what onLost throws', async () => {
  const { client, ...options } = scripted(RESET, 403)
  await expect(read(changes(client, options))).rejects.toThrow(SvccloudError)
  const { client: other, ...others } = scripted(503, RESET)
  const enough = (error: unknown) => {
    throw error
  }
  await expect(read(changes(other, { ...others, onLost: enough }))).rejects.toMatchObject({ status: 503 })
})

test('leaves the connection when its reader stops, and when the signal aborts', async () => {
  const { client, timer, left } = scripted([RESET, SILENT], [RESET, SILENT])
  for await (const _change of changes(client, { timer })) break
  expect(left()).toBe(1)
  const stop = new AbortController()
  const got: string[] = []
  for await (const { event } of changes(client, { timer, signal: stop.signal })) {
    got.push(event)
    stop.abort()
  }
  expect([got, left()]).toEqual([['reset'], 2])
})

test.each(['its signal aborts', 'it is silent'])('ends when %s, though the body hears nothing of that', async (why) => {
  const stop = new AbortController()
  const silences: (() => void)[] = []
  let now = 0
  const timer: Timer = {
    milliseconds: () => now,
    pause: async (milliseconds) => {
      if (milliseconds > 30_000) await new Promise<void>((resolve) => void silences.push(resolve))
    },
  }
  let cancelled = 0
  // as Node's fetch after the request was garbage
  const fetch = async () =>
    new Response(
      new ReadableStream<Uint8Array>({
        start: (controller) => controller.enqueue(new TextEncoder().encode(RESET)),
        cancel: () => void cancelled++,
      }),
    )
  const lost: unknown[] = []
  const onLost = (error: unknown) => {
    lost.push(error)
    stop.abort()
  }
  const got: string[] = []
  const stream = changes(createClient({ url: 'http://127.0.0.1', fetch }), { signal: stop.signal, timer, onLost })
  for await (const { event } of stream) {
    got.push(event)
    setImmediate(() => {
      if (why === 'its signal aborts') return stop.abort()
      now += 60_000
      silences.splice(0).forEach((resolve) => resolve())
    })
  }
  expect([got, cancelled]).toEqual([['reset'], 1])
  expect(lost.length).toBe(why === 'it is silent' ? 1 : 0)
})
