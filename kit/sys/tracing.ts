/** Spans of OpenTelemetry, through its API alone: without a configured exporter (`trace-export.ts`) every span is a
 *  no-op, and nothing of a trace is ever recorded. Outside this process a trace is identified by its `traceparent`, in
 *  the W3C format. */
import {
  type Attributes,
  type Context,
  context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
} from '@opentelemetry/api'
import { defined } from '../../domain/defined.ts'

export type { Attributes, Span } from '@opentelemetry/api'

/** From the provider that the process has registered by then. */
const tracer = () => trace.getTracer('svccloud')

export interface SpanDraft {
  readonly name: string
  readonly kind?: 'server' | 'client' | 'internal'
  readonly attributes?: Attributes
  /** The traceparent of the parent: the active span, when absent. */
  readonly parent?: string | undefined
  /** Starts a new trace, regardless of the active one. */
  readonly isRoot?: boolean
  /** The traceparent of something related that is not trusted as the parent. */
  readonly link?: string | undefined
  /** When it started, or how many milliseconds ago, for spans that are known only at their end. */
  readonly startedAt?: Date
  readonly ago?: number
}

const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL } as const

/** Starts a span, which its caller ends. */
export function startSpan({ name, kind = 'internal', attributes, link, startedAt, ago, ...draft }: SpanDraft): Span {
  // Use the clock that ends a span with a given start: with a finer one it would end before it started.
  const begun = startedAt ?? (ago === undefined ? undefined : Date.now() - ago)
  const linked = link === undefined ? undefined : readTraceparent(link)
  return tracer().startSpan(
    name,
    {
      kind: KINDS[kind],
      ...defined({ attributes }),
      ...(linked === undefined ? {} : { links: [{ context: linked }] }),
      ...defined({ startTime: begun }),
    },
    contextOf(draft),
  )
}

function contextOf({ parent, isRoot = false }: Pick<SpanDraft, 'parent' | 'isRoot'>): Context {
  const remote = parent === undefined ? undefined : readTraceparent(parent)
  if (remote !== undefined) return trace.setSpanContext(ROOT_CONTEXT, remote)
  return isRoot ? ROOT_CONTEXT : context.active()
}

/** Does the work with the span as the active one. Does not end it. */
export const withSpan = <T>(span: Span, work: () => T): T => context.with(trace.setSpan(context.active(), span), work)

/** Does the work in a separate span, which a failure marks. */
export async function inSpan<T>(draft: SpanDraft, work: (span: Span) => Promise<T>): Promise<T> {
  const span = startSpan(draft)
  try {
    return await withSpan(span, () => work(span))
  } catch (error) {
    markFailed(span, error)
    throw error
  } finally {
    span.end()
  }
}

/** As `inSpan` inside of a trace; without one, only the work. Frequent routine work starts no traces. */
export const inSpanOfTrace = <T>(draft: SpanDraft, work: (span: Span | undefined) => Promise<T>): Promise<T> =>
  isTraced() ? inSpan(draft, work) : work(undefined)

export const isTraced = (): boolean => trace.getActiveSpan()?.isRecording() === true

/** Names the error and never quotes it: messages may contain what customers typed. A number is a status of HTTP. */
export function markFailed(span: Span, error: unknown): void {
  span.setAttribute('error.type', error instanceof Error ? error.name : String(error))
  span.setStatus({ code: SpanStatusCode.ERROR })
}

/** Keeps the active span for a function that is called later. */
export const inThisTrace = <F extends (...args: never[]) => unknown>(later: F): F =>
  context.bind(context.active(), later)

/** The context with which others continue the active trace; undefined when nothing is traced. A trace that is not
 *  sampled is passed on as such, so that nobody records a part of it. */
export function currentTraceparent(): string | undefined {
  const active = trace.getActiveSpan()?.spanContext()
  return active === undefined || !isSpanContextValid(active) ? undefined : traceparentOf(active)
}

export const traceparentOf = ({ traceId, spanId, traceFlags }: SpanContext): string =>
  `00-${traceId}-${spanId}-${(traceFlags & TraceFlags.SAMPLED).toString(16).padStart(2, '0')}`

/** For log lines. */
export function traceFields(): { readonly trace_id?: string } {
  const active = trace.getActiveSpan()?.spanContext()
  return active === undefined || !isSpanContextValid(active) ? {} : { trace_id: active.traceId }
}

/** Newer versions may have more fields after those of version 00. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/

function readTraceparent(text: string): SpanContext | undefined {
  const [, traceId = '', spanId = '', flags = ''] = TRACEPARENT.exec(text) ?? []
  const read = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED, isRemote: true }
  return isSpanContextValid(read) ? read : undefined
}
