/** A small collector of traces: OTLP over HTTP as JSON, kept in memory. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { z } from 'zod'

const Value = z.looseObject({
  stringValue: z.string().optional(),
  intValue: z.union([z.number(), z.string()]).optional(),
  arrayValue: z.looseObject({ values: z.array(z.looseObject({ stringValue: z.string() })) }).optional(),
})
const Attributes = z
  .array(z.looseObject({ key: z.string(), value: Value }))
  .default([])
  .transform((all) => Object.fromEntries(all.map(({ key, value }) => [key, plainOf(value)])))
const plainOf = ({ stringValue, intValue, arrayValue }: z.infer<typeof Value>) =>
  stringValue ?? (intValue === undefined ? arrayValue?.values.map((each) => each.stringValue) : Number(intValue))
const Span = z.looseObject({
  traceId: z.string().regex(/^[0-9a-f]{32}$/),
  spanId: z.string().regex(/^[0-9a-f]{16}$/),
  parentSpanId: z.string().optional(),
  name: z.string(),
  kind: z.int(),
  startTimeUnixNano: z.string().transform(BigInt),
  endTimeUnixNano: z.string().transform(BigInt),
  attributes: Attributes,
  links: z.array(z.looseObject({ traceId: z.string(), spanId: z.string() })).default([]),
  status: z.looseObject({ code: z.int().optional() }).optional(),
})
const Body = z.looseObject({
  resourceSpans: z.array(
    z.looseObject({
      resource: z.looseObject({ attributes: Attributes }),
      scopeSpans: z.array(z.looseObject({ spans: z.array(Span) })),
    }),
  ),
})

export interface CollectedSpan extends z.infer<typeof Span> {
  readonly resource: Readonly<Record<string, unknown>>
  readonly service: string
}

export interface Collector {
  /** For OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly url: string
  readonly spans: readonly CollectedSpan[]
  stop(): Promise<void>
}

/** Refuses what is not OTLP as JSON. */
export async function startCollector(): Promise<Collector> {
  const spans: CollectedSpan[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => void chunks.push(chunk))
    request.on('end', () => {
      const read = Body.safeParse(JSON.parse(Buffer.concat(chunks).toString()))
      if (request.url !== '/v1/traces' || !read.success) return response.writeHead(400).end(read.error?.message)
      for (const { resource, scopeSpans } of read.data.resourceSpans)
        for (const span of scopeSpans.flatMap((scope) => scope.spans))
          spans.push({
            ...span,
            resource: resource.attributes,
            service: String(resource.attributes['service.name']),
          })
      return response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
