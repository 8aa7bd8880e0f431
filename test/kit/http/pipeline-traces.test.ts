import { expect, test } from 'vitest'
import { z } from 'zod'
import type { Answer } from '../../../kit/http/call.ts'
import { publicEndpoint } from '../../../kit/http/endpoint.ts'
import type { HttpRequest } from '../../../kit/http/exchange.ts'
import { createPipeline, requestDurations } from '../../../kit/http/pipeline.ts'
import { route } from '../../../kit/http/route.ts'
import { type LogFields, silentLog } from '../../../kit/sys/log.ts'
import { openRegistry } from '../../../kit/sys/metrics.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { inSpanOfTrace, traceFields } from '../../../kit/sys/tracing.ts'
import { useTracing } from '../../tracing.ts'
import { movableClock } from './clock.ts'

const REMOTE = '4bf92f3577b34da6a3ce929d0e0e4736'
const TRACEPARENT = `00-${REMOTE}-00f067aa0ba902b7-01`
const PROXY = '192.0.2.1'
const STRANGER = '198.51.100.7'

const spansSince = useTracing()
const lines: unknown[] = []

const shared = { summary: 'x', permission: null, credentials: ['public'] } as const
const get = route({ ...shared, id: 'get_thing', method: 'GET', path: '/v1/things/{id}', answers: { 200: z.object() } })
const follow = route({
  ...shared,
  id: 'follow',
  method: 'GET',
  path: '/v1/follow',
  mediaType: 'application/x-ndjson',
  answers: { 200: z.string() },
})

const service = (answer: () => Promise<Answer>) =>
  createPipeline({
    endpoints: [
      publicEndpoint({ ...get, params: z.looseObject({}) }, answer),
      publicEndpoint(follow, async () => ({ status: 200, stream: parts() })),
    ],
    authenticate: async () => undefined,
    requireStanding: async () => {},
    countRequest: async () => 0,
    auditRefusal: async () => {},
    translate: (error) => error,
    clock: movableClock(),
    random: systemRandom,
    // as the real one takes them
    log: { ...silentLog, info: (_message, fields?: LogFields) => void lines.push({ ...fields, ...traceFields() }) },
    durations: requestDurations(openRegistry({ isProcessWide: false })),
    trustedProxies: [PROXY],
    isSecure: false,
    checkAnswers: false,
  })
async function* parts() {
  yield 'a'
  yield 'b'
}

const ok = async (): Promise<Answer> => {
  await inSpanOfTrace({ name: 'inside' }, async () => {})
  return { status: 200, body: {} }
}
const send = ({ answer = ok, ...request }: Partial<HttpRequest> & { readonly answer?: typeof ok } = {}) =>
  service(answer)({
    method: 'GET',
    target: '/v1/things/7',
    remoteAddress: STRANGER,
    headers: {},
    signal: new AbortController().signal,
    ...request,
  })

test('a request is a span by its route, around what happens in it, and its log line has the trace', async () => {
  lines.length = 0
  const { headers } = await send()
  const [inside, request] = await spansSince()
  expect(request).toMatchObject({
    name: 'GET /v1/things/{id}',
    kind: 2,
    attributes: {
      'http.request.method': 'GET',
      'http.route': '/v1/things/{id}',
      'http.response.status_code': 200,
      'svccloud.operation_id': 'get_thing',
      'svccloud.request_id': headers['x-request-id'],
    },
  })
  expect(inside).toMatchObject({ name: 'inside', traceId: request?.traceId, parentSpanId: request?.spanId })
  expect(lines).toMatchObject([{ request_id: headers['x-request-id'], trace_id: request?.traceId }])
})

test('only a proxy of ours continues a trace; what others send is a link', async () => {
  for (const remoteAddress of [PROXY, STRANGER]) await send({ remoteAddress, headers: { traceparent: TRACEPARENT } })
  const [fromProxy, fromStranger] = (await spansSince()).filter(({ kind }) => kind === 2)
  expect([fromProxy?.traceId, fromProxy?.parentSpanId]).toEqual([REMOTE, '00f067aa0ba902b7'])
  expect(fromStranger?.traceId).not.toBe(REMOTE)
  expect(fromStranger?.links).toMatchObject([{ traceId: REMOTE, spanId: '00f067aa0ba902b7' }])
})

test('a stranger decides neither that nothing is recorded nor what cannot be read', async () => {
  for (const traceparent of [`${TRACEPARENT.slice(0, -1)}0`, 'nonsense']) await send({ headers: { traceparent } })
  expect((await spansSince()).filter(({ kind }) => kind === 2)).toHaveLength(2)
})

test('the request of a tool is a part of the one that it is made for', async () => {
  await send({ answer: async () => (await send({ requestId: 'outer' }), { status: 200, body: {} }) })
  const spans = await spansSince()
  const outer = spans.find(({ kind }) => kind === 2)
  const inner = spans.find(({ kind, name }) => kind === 1 && name === 'GET /v1/things/{id}')
  expect(inner).toMatchObject({ traceId: outer?.traceId, parentSpanId: outer?.spanId })
})

test('an unknown path is recorded by its method alone; a bug marks its span', async () => {
  await send({ target: '/v1/nothing/secret' })
  await send({
    answer: async () => {
      throw new TypeError('secret')
    },
  })
  const [unmatched, failed] = await spansSince()
  expect(unmatched).toMatchObject({ name: 'GET', attributes: { 'http.response.status_code': 404 } })
  expect(failed).toMatchObject({ status: { code: 2 }, attributes: { 'error.type': '500' } })
  expect(JSON.stringify([unmatched?.attributes, failed?.attributes])).not.toContain('secret')
})

test('a stream is a span until its end', async () => {
  const { body } = await send({ target: '/v1/follow' })
  expect(await spansSince()).toEqual([])
  for await (const _ of body as AsyncIterable<string>);
  expect(await spansSince()).toMatchObject([{ name: 'GET /v1/follow' }])
})
