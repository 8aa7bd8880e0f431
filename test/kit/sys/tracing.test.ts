import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { silentLog } from '../../../kit/sys/log.ts'
import { startTraceExport } from '../../../kit/sys/trace-export.ts'
import {
  currentTraceparent,
  inSpan,
  inSpanOfTrace,
  isTraced,
  startSpan,
  traceFields,
  withSpan,
} from '../../../kit/sys/tracing.ts'
import { startCollector } from '../../collector.ts'

const REMOTE = { trace: '4bf92f3577b34da6a3ce929d0e0e4736', span: '00f067aa0ba902b7' }
const TRACEPARENT = `00-${REMOTE.trace}-${REMOTE.span}-01`

/** What the work leaves with a collector, under the variables. */
async function collect(variables: Readonly<Record<string, string>>, work: () => Promise<void>) {
  const collector = await startCollector()
  const traces = await startTraceExport({
    component: 'test',
    version: '1.2.3',
    attributes: { 'host.name': 'n1' },
    environment: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...variables },
    log: silentLog,
  })
  try {
    await work()
  } finally {
    await traces.stop()
    await collector.stop()
  }
  return collector.spans
}

test('without an exporter nothing is traced, and work is done all the same', async () => {
  const traces = await startTraceExport({ component: 'test', version: '1', environment: {}, log: silentLog })
  const seen = await inSpan({ name: 'a', parent: TRACEPARENT }, async () => [isTraced(), traceFields()])
  expect(seen[0]).toBe(false)
  expect(await inSpan({ name: 'a' }, async () => currentTraceparent())).toBeUndefined()
  await traces.stop()
})

test('spans are sent as OTLP, below each other across awaits, with the resource they come from', async () => {
  const spans = await collect({}, async () => {
    await inSpan({ name: 'outer', kind: 'server', isRoot: true, attributes: { a: 1 } }, async () => {
      await Promise.resolve()
      expect(traceFields().trace_id).toBe(currentTraceparent()?.split('-')[1])
      await Promise.all(['one', 'two'].map((name) => inSpanOfTrace({ name }, async () => Promise.resolve())))
    })
    await inSpanOfTrace({ name: 'of no trace' }, async (span) => expect(span).toBeUndefined())
  })
  const outer = spans.find(({ name }) => name === 'outer')
  expect(spans.map(({ name }) => name).sort()).toEqual(['one', 'outer', 'two'])
  expect(outer).toMatchObject({
    kind: 2,
    attributes: { a: 1 },
    resource: { 'service.name': 'svccloud-test', 'service.version': '1.2.3', 'host.name': 'n1' },
  })
  for (const { traceId, parentSpanId, name } of spans)
    if (name !== 'outer') expect([traceId, parentSpanId]).toEqual([outer?.traceId, outer?.spanId])
})

test('a trace is continued by its traceparent, linked to by another one', async () => {
  const spans = await collect({}, async () => {
    await inSpan({ name: 'continues', parent: TRACEPARENT }, async () =>
      expect(currentTraceparent()).toMatch(new RegExp(`^00-${REMOTE.trace}-[0-9a-f]{16}-01$`)),
    )
    await inSpan({ name: 'links', isRoot: true, link: TRACEPARENT }, async () => {})
  })
  expect(spans).toMatchObject([
    { name: 'continues', traceId: REMOTE.trace, parentSpanId: REMOTE.span },
    { name: 'links', links: [{ traceId: REMOTE.trace, spanId: REMOTE.span }] },
  ])
  expect(spans[1]?.traceId).not.toBe(REMOTE.trace)
})

test.each(['', 'x', `00-${'0'.repeat(32)}-${REMOTE.span}-01`, `ff-${REMOTE.trace}-${REMOTE.span}-01`, '00-a-b-01'])(
  'what is no traceparent is neither: %s',
  async (text) => {
    const spans = await collect({}, async () => {
      await inSpan({ name: 'a', parent: text }, async () => {})
      await inSpan({ name: 'b', link: text }, async () => {})
    })
    expect(spans).toMatchObject([{ links: [] }, { links: [] }])
    for (const { traceId, parentSpanId } of spans)
      expect([traceId === REMOTE.trace, parentSpanId ?? '']).toEqual([false, ''])
  },
)

test('a failure marks its span and is never quoted', async () => {
  const spans = await collect({}, async () => {
    const failing = inSpan({ name: 'fails' }, async () => {
      throw new RangeError('password hunter2')
    })
    await expect(failing).rejects.toThrow('hunter2')
  })
  expect(spans).toMatchObject([{ name: 'fails', status: { code: 2 }, attributes: { 'error.type': 'RangeError' } }])
  expect(JSON.stringify(spans, (_key, value) => (typeof value === 'bigint' ? String(value) : value))).not.toContain(
    'hunter2',
  )
})

describe('samplers', () => {
  const record = async () => {
    const span = startSpan({ name: 'a', parent: `${TRACEPARENT.slice(0, -2)}00` })
    withSpan(span, () => expect(currentTraceparent()).toMatch(/-0[01]$/))
    span.end()
    await inSpan({ name: 'b', isRoot: true }, async () => {})
  }
  test.each([
    ['', '', ['b']], // a trace that others do not record is not recorded here
    ['always_on', '', ['a', 'b']],
    ['always_off', '', []],
    ['parentbased_traceidratio', '0', []],
    ['traceidratio', '1', ['a', 'b']],
  ])('%s %s', async (name, argument, expected) => {
    const spans = await collect({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: argument }, record)
    expect(spans.map((span) => span.name)).toEqual(expected)
  })
  test.each([
    [{ OTEL_TRACES_SAMPLER: 'sometimes' }, /OTEL_TRACES_SAMPLER must be one of always_on/],
    [{ OTEL_TRACES_SAMPLER_ARG: '2' }, /OTEL_TRACES_SAMPLER_ARG/],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'localhost' }, /must be a URL/],
  ])('%j is refused', async (variables, message) => {
    await expect(collect(variables as Record<string, string>, async () => {})).rejects.toThrow(message)
  })
})

test.each([{ OTEL_SDK_DISABLED: 'true' }, { OTEL_TRACES_EXPORTER: 'none' }])(
  '%j switches it off',
  async (variables) => {
    const spans = await collect(variables as Record<string, string>, () => inSpan({ name: 'a' }, async () => {}))
    expect(spans).toEqual([])
  },
)

test('a refusing collector is logged, and stops nothing', async () => {
  const server = createServer((_request, response) => void response.writeHead(400).end())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const warnings: string[] = []
  const { port } = server.address() as AddressInfo // a listening TCP server has one
  const traces = await startTraceExport({
    component: 'test',
    version: '1',
    environment: { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` },
    log: { ...silentLog, warn: (message) => void warnings.push(message) },
  })
  await inSpan({ name: 'a' }, async () => {})
  await traces.stop()
  server.close()
  expect(warnings).toContain('traces are not exported')
})

test('a span that is known at its end only never ends before its start', async () => {
  const collector = await startCollector()
  const warned: unknown[] = []
  const traces = await startTraceExport({
    component: 'test',
    version: '1',
    environment: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
    log: { ...silentLog, warn: (message, fields) => void warned.push(message, fields) },
  })
  for (let time = 0; time < 200; time++) startSpan({ name: 'short', isRoot: true, ago: 0.01 }).end()
  await traces.stop()
  await collector.stop()
  expect(collector.spans).toHaveLength(200)
  expect(warned).toEqual([])
})
