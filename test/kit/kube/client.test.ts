import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Unavailable } from '../../../domain/problem.ts'
import { openClient } from '../../../kit/kube/client.ts'
import { readLines } from '../../../kit/http/bounded.ts'
import type { ResourceType } from '../../../kit/kube/object.ts'
import { ApiError, type Store } from '../../../kit/kube/store.ts'
import type { Transport, TransportRequest, TransportResponse } from '../../../kit/kube/transport.ts'
import { Scheduler, SimulatedProcess } from '../../sim/scheduler.ts'

interface Spec {
  readonly size: number
}
const Thing: ResourceType<Spec> = { group: 'g', version: 'v1', kind: 'Thing', plural: 'things', scope: 'Namespaced' }
const Plain: ResourceType<Spec> = { group: '', version: 'v1', kind: 'Plain', plural: 'plains', scope: 'Cluster' }

const answer = (status: number, body: unknown, headers: Record<string, string> = {}): TransportResponse => ({
  status,
  headers,
  text: async () => (typeof body === 'string' ? body : JSON.stringify(body)),
  async *lines() {
    if (typeof body === 'string') yield* body.split('\n')
  },
})
const refusal = (code: number, reason: string, more: { headers?: Record<string, string>; details?: object } = {}) =>
  answer(
    code,
    { kind: 'Status', status: 'Failure', code, reason, message: `it is ${reason}`, details: more.details },
    more.headers,
  )
const thing = {
  apiVersion: 'g/v1',
  kind: 'Thing',
  metadata: { namespace: 'n', name: 'a', resourceVersion: '7' },
  spec: { size: 1 },
}
const key = { namespace: 'n', name: 'a' }
const draft = { metadata: key, spec: { size: 1 } }

/** A client whose transport gives the answers in turn, the last one for ever; undefined never answers, an Error is
 *  thrown. */
function open(...answers: (TransportResponse | Error | undefined)[]) {
  const scheduler = new Scheduler(1)
  const process = new SimulatedProcess('p', scheduler)
  process.begin()
  const requests: TransportRequest[] = []
  const transport: Transport = (request) => {
    const given = answers[Math.min(requests.length, answers.length - 1)]
    requests.push(request)
    return given === undefined
      ? new Promise(() => {})
      : given instanceof Error
        ? Promise.reject(given)
        : Promise.resolve(given)
  }
  const store = openClient({ transport, fieldManager: 'me', clock: process.clock(), random: scheduler.random })
  const settled = async <T>(promise: Promise<T>): Promise<T> => {
    let isOver = false
    const end = () => void (isOver = true)
    promise.then(end, end)
    await scheduler.runUntil(scheduler.nowMilliseconds + 600_000, () => isOver)
    return promise
  }
  return { store, requests, settled, elapsed: () => scheduler.nowMilliseconds }
}

describe('what is asked', () => {
  test.each<[string, (store: Store) => Promise<unknown>, string, string?]>([
    ['get', (store) => store.get(Thing, key), 'GET /apis/g/v1/namespaces/n/things/a'],
    ['get of the core group and cluster scope', (store) => store.get(Plain, { name: 'a' }), 'GET /api/v1/plains/a'],
    ['names are escaped', (store) => store.get(Plain, { name: '../x?y' }), 'GET /api/v1/plains/..%2Fx%3Fy'],
    [
      'create',
      (store) => store.create(Thing, draft),
      'POST /apis/g/v1/namespaces/n/things?fieldManager=me&fieldValidation=Strict',
      'application/json',
    ],
    [
      'replace',
      (store) => store.replace(Thing, thing),
      'PUT /apis/g/v1/namespaces/n/things/a?fieldManager=me&fieldValidation=Strict',
      'application/json',
    ],
    [
      'replaceStatus',
      (store) => store.replaceStatus(Thing, thing),
      'PUT /apis/g/v1/namespaces/n/things/a/status?fieldManager=me&fieldValidation=Strict',
      'application/json',
    ],
    [
      'patch',
      (store) => store.patch(Thing, key, {}),
      'PATCH /apis/g/v1/namespaces/n/things/a?fieldManager=me&fieldValidation=Strict',
      'application/merge-patch+json',
    ],
    [
      'apply',
      (store) => store.apply(Thing, draft, 'status'),
      'PATCH /apis/g/v1/namespaces/n/things/a/status?fieldManager=me&fieldValidation=Strict&force=true',
      'application/apply-patch+yaml',
    ],
    ['delete', (store) => store.delete(Thing, key), 'DELETE /apis/g/v1/namespaces/n/things/a', 'application/json'],
    [
      'list',
      (store) => store.list(Thing, { labelSelector: 'a=b' }),
      'GET /apis/g/v1/things?labelSelector=a%3Db&limit=500',
    ],
  ])('%s', async (_what, call, line, contentType) => {
    const { store, requests, settled } = open(answer(200, { ...thing, items: [] }))
    await settled(call(store))
    expect(`${requests[0]?.method} ${requests[0]?.path}`).toBe(line)
    expect(requests[0]?.headers['content-type']).toBe(contentType)
  })
})

describe('pages', () => {
  const page = (names: string[], position?: string) =>
    answer(200, {
      metadata: { resourceVersion: '9', continue: position ?? '' },
      items: names.map((name) => ({ metadata: { name } })),
    })
  test('are followed to the end; items get their kind', async () => {
    const { store, requests, settled } = open(page(['a'], 'more'), page(['b']))
    const list = await settled(store.list(Thing))
    expect(list.items.map(({ metadata, kind }) => [metadata.name, kind])).toEqual([
      ['a', 'Thing'],
      ['b', 'Thing'],
    ])
    expect(list.resourceVersion).toBe('9')
    expect(requests[1]?.path).toContain('continue=more')
  })
  test('that are no longer there mean one whole list', async () => {
    const { store, requests, settled } = open(page(['a'], 'more'), refusal(410, 'Expired'), page(['a', 'b']))
    expect((await settled(store.list(Thing))).items).toHaveLength(2)
    expect(requests[2]?.path).toBe('/apis/g/v1/things')
  })
})

describe('failures', () => {
  const lost = new Error('connection reset')
  const busy = refusal(429, 'TooManyRequests', { headers: { 'retry-after': '3' } })
  const read = (store: Store): Promise<unknown> => store.get(Thing, key)
  const write = (store: Store): Promise<unknown> => store.create(Thing, draft)
  test.each<
    [
      why: string,
      call: (store: Store) => Promise<unknown>,
      answers: (TransportResponse | Error)[],
      requests: number,
      outcome: 'well' | number | 'unavailable',
    ]
  >([
    ['a read is repeated when the connection breaks', read, [lost, answer(200, thing)], 2, 'well'],
    [
      'a read is repeated when the server is in trouble',
      read,
      [refusal(500, 'InternalError'), refusal(503, 'ServiceUnavailable'), answer(200, thing)],
      3,
      'well',
    ],
    ['but not for ever', read, [lost], 4, 'unavailable'],
    [
      'a write whose answer is lost is not repeated: it may have happened',
      write,
      [lost, answer(201, thing)],
      1,
      'unavailable',
    ],
    [
      'a write that failed inside the server is not repeated',
      write,
      [refusal(500, 'InternalError'), answer(201, thing)],
      1,
      500,
    ],
    ['a write that the server did not begin is repeated', write, [busy, answer(201, thing)], 2, 'well'],
    ['a refusal is an answer', write, [refusal(422, 'Invalid')], 1, 422],
    ['patience that is asked for is had a few times', write, [busy], 4, 429],
    [
      'and not when it is too much',
      write,
      [refusal(429, 'TooManyRequests', { details: { retryAfterSeconds: 60 } })],
      1,
      429,
    ],
    ['an answer that is no JSON is no answer', write, [answer(200, '<html>')], 1, 'unavailable'],
  ])('%s', async (_why, call, answers, count, outcome) => {
    const { store, requests, settled } = open(...answers)
    const error: unknown = await settled(call(store)).then(
      () => undefined,
      (reason: unknown) => reason,
    )
    expect(requests).toHaveLength(count)
    if (outcome === 'well') expect(error).toBeUndefined()
    else if (outcome === 'unavailable') expect(error).toBeInstanceOf(Unavailable)
    else expect(error).toMatchObject({ name: 'ApiError', code: outcome })
  })

  test('the wait that is asked for is kept', async () => {
    const { store, settled, elapsed } = open(busy, answer(200, thing))
    await settled(read(store))
    expect(elapsed()).toBeGreaterThanOrEqual(3000)
  })
  test('a server that never answers, and a transport that does not heed its signal, end at the deadline', async () => {
    const { store, settled, elapsed, requests } = open(undefined)
    await expect(settled(write(store))).rejects.toThrow(Unavailable)
    expect(elapsed()).toBe(30_000)
    expect(requests[0]?.signal?.aborted).toBe(true)
  })
  test('an error keeps reason, causes and patience; a body that is no Status has reason Unknown', async () => {
    const causes = [{ reason: 'FieldValueInvalid', field: 'spec.size', message: 'too large' }]
    const invalid = open(refusal(422, 'Invalid', { details: { causes, retryAfterSeconds: 4 } }))
    await expect(invalid.settled(write(invalid.store))).rejects.toMatchObject({
      reason: 'Invalid',
      causes,
      retryAfterSeconds: 4,
      message: 'it is Invalid',
    })
    const proxy = open(answer(404, '404 page not found\n'))
    await expect(proxy.settled(read(proxy.store))).rejects.toMatchObject({
      code: 404,
      reason: 'Unknown',
      message: '404 page not found',
    })
  })
})

describe('a watch', () => {
  const follow = async (store: Store, signal = new AbortController().signal) => {
    const seen: unknown[] = []
    for await (const event of store.watch(Thing, { resourceVersion: '5', signal })) seen.push(event.type)
    return seen
  }
  const frame = (type: string, object: object) => JSON.stringify({ type, object })
  test('gives events and bookmarks, and asks for both', async () => {
    const { store, requests, settled } = open(
      answer(200, [frame('ADDED', thing), frame('BOOKMARK', { metadata: { resourceVersion: '8' } })].join('\n')),
    )
    expect(await settled(follow(store))).toEqual(['ADDED', 'BOOKMARK'])
    expect(requests[0]?.path).toMatch(
      /^\/apis\/g\/v1\/things\?watch=true&allowWatchBookmarks=true&timeoutSeconds=[345]\d\d&resourceVersion=5$/,
    )
  })
  test('throws what the server says inside the stream', async () => {
    const { store, settled } = open(
      answer(200, frame('ERROR', { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' })),
    )
    await expect(settled(follow(store))).rejects.toBeInstanceOf(ApiError)
  })
  test('is not repeated by itself, and a line that is no event breaks it', async () => {
    const { store, requests, settled } = open(answer(200, '{"type":'))
    await expect(settled(follow(store))).rejects.toThrow(Unavailable)
    expect(requests).toHaveLength(1)
  })
  test('ends without an error when its signal aborts', async () => {
    const stop = new AbortController()
    stop.abort()
    const { store, settled } = open(new Error('aborted'))
    expect(await settled(follow(store, stop.signal))).toEqual([])
  })
})

test('lines are the text between newlines, for any cut of the chunks; a rest is no line', async () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'ü', '€', '𝄞', ' '), maxLength: 8 })
  await fc.assert(
    fc.asyncProperty(
      fc.array(text, { maxLength: 6 }),
      text,
      fc.array(fc.nat(40), { maxLength: 8 }),
      async (lines, rest, cuts) => {
        const bytes = Buffer.from(lines.map((line) => `${line}\n`).join('') + rest)
        const at = [...new Set(cuts.map((cut) => Math.min(cut, bytes.length)))].sort((a, b) => a - b)
        async function* chunks() {
          let from = 0
          for (const to of [...at, bytes.length]) {
            yield bytes.subarray(from, to)
            from = to
          }
        }
        const seen: string[] = []
        for await (const line of readLines(chunks(), 1024)) seen.push(line)
        expect(seen).toEqual(lines)
      },
    ),
  )
})
