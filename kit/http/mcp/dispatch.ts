/** A tool call as the request that it represents, sent through the same pipeline as any other, and its response as a
 *  result that a model can use. Nothing is decided here: the route decides who may do it and whether the arguments are
 *  valid. */
import { printable } from '../../../domain/printable.ts'
import { badRequest, Problem, type FieldError } from '../../../domain/problem.ts'
import type { RequestFacts } from '../call.ts'
import type { HttpRequest, HttpResponse, HttpService } from '../exchange.ts'
import type { Route } from '../route.ts'
import type { Members } from './protocol.ts'
import { LIMIT_DEFAULT, placesOf } from './tools.ts'

export interface ToolResult extends Members {
  readonly content: readonly { readonly type: 'text'; readonly text: string }[]
  readonly structuredContent?: Members
  readonly isError: boolean
  readonly _meta?: Members
}

export interface Dispatcher {
  /** The complete API, with its steps, budgets and audit. */
  readonly service: HttpService
  /** Prefix of our own keys in `_meta`, with its slash. */
  readonly metaPrefix: string
}

export interface ToolCall {
  readonly request: RequestFacts
  readonly route: Route
  readonly arguments: Members
  /** Clients check errors too against the schema of answers, if one was listed. */
  readonly hasOutputSchema: boolean
}

/** Never throws for invalid arguments: such refusals are results as well. */
export async function dispatch(dispatcher: Dispatcher, call: ToolCall): Promise<ToolResult> {
  let incoming: HttpRequest
  try {
    incoming = requestOf(call)
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return failure(dispatcher, call, { status: error.status, document: error.toDocument(), headers: {} })
  }
  const response = await dispatcher.service(incoming)
  const text = await textOf(response)
  const { status, headers } = response
  const document = text === '' ? {} : (JSON.parse(text) as Members) // refusals and answers are JSON objects
  if (status >= 400) return failure(dispatcher, call, { status, document, headers })
  return {
    content: [{ type: 'text', text: text === '' ? `Done (${status}).` : printable(text) }],
    structuredContent: document,
    isError: false,
    _meta: metaOf(dispatcher, { status, headers }),
  }
}

/** Headers that the inner request takes over from the outer one. The address was resolved already. */
const FORWARDED = ['authorization', 'user-agent', 'traceparent', 'tracestate'] as const

function requestOf({ route, arguments: values, request }: ToolCall): HttpRequest {
  const { path, query } = placesOf(route)
  const names = path.map(({ argument }) => argument)
  const missing = names.filter((name) => !isText(values[name]))
  if (missing.length > 0)
    throw refusal(
      missing.map((field) => ({ field, detail: values[field] === undefined ? 'is required' : 'must be a string' })),
    )
  const target = route.path.replaceAll(/\{(\w+)\}/g, (_all, name: string) =>
    encodeURIComponent(String(values[path.find((one) => one.name === name)?.argument ?? name]).toWellFormed()),
  )
  const rest = Object.entries(values).filter(([name, value]) => !names.includes(name) && value !== undefined)
  const isInQuery = (name: string) => query.includes(name) || route.body === null
  const search = new URLSearchParams(
    rest.filter(([name]) => isInQuery(name)).flatMap(([name, value]) => queryEntries(name, value)),
  )
  if (query.includes('limit') && !search.has('limit')) search.set('limit', String(LIMIT_DEFAULT))
  const headers = Object.fromEntries(
    FORWARDED.flatMap((name) => (request.header(name) === undefined ? [] : [[name, request.header(name)]])),
  )
  return {
    method: route.method,
    target: search.size === 0 ? target : `${target}?${search}`,
    remoteAddress: request.sourceIp,
    requestId: request.requestId,
    signal: request.signal,
    headers: route.body === null ? headers : { ...headers, 'content-type': 'application/json' },
    ...(route.body === null
      ? {}
      : { body: JSON.stringify(Object.fromEntries(rest.filter(([name]) => !isInQuery(name)))) }),
  }
}

const isText = (value: unknown): boolean => (typeof value === 'string' && value !== '') || typeof value === 'number'
const refusal = (errors: readonly FieldError[]): Problem =>
  badRequest(`${errors[0]?.field} ${errors[0]?.detail}.`, errors)

/** Lists are repeated parameters; a value that is not plain becomes text that the route refuses. */
const queryEntries = (name: string, value: unknown): [string, string][] =>
  Array.isArray(value) ? value.map((item) => [name, textFor(item)]) : value === null ? [] : [[name, textFor(value)]]
const textFor = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))

async function textOf({ body }: HttpResponse): Promise<string> {
  if (typeof body === 'string') return body
  if (body instanceof Uint8Array) return Buffer.from(body).toString()
  let text = ''
  for await (const chunk of body) text += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()
  return text
}

interface Outcome {
  readonly status: number
  readonly headers: HttpResponse['headers']
  readonly document?: Members
}

function failure(
  dispatcher: Dispatcher,
  { hasOutputSchema }: ToolCall,
  outcome: Outcome & { readonly document: Members },
): ToolResult {
  const { status, document } = outcome
  const { title, detail, reason, errors } = document
  const lines = [
    `${status} ${String(title ?? '')}: ${String(detail ?? '')}`,
    ...(reason === undefined ? [] : [`reason: ${String(reason)}`]),
    ...(errors === undefined ? [] : [`errors: ${JSON.stringify(errors)}`]),
    ...(outcome.headers['retry-after'] === undefined
      ? []
      : [`retry after ${String(outcome.headers['retry-after'])} seconds`]),
  ]
  return {
    content: [{ type: 'text', text: printable(lines.join('\n')) }],
    ...(hasOutputSchema ? {} : { structuredContent: document }),
    isError: true,
    _meta: metaOf(dispatcher, outcome),
  }
}

function metaOf({ metaPrefix }: Dispatcher, { status, headers, document }: Outcome): Members {
  const requestId = headers['x-request-id']
  const retryAfter = headers['retry-after']
  return {
    [`${metaPrefix}status`]: status,
    ...(requestId === undefined ? {} : { [`${metaPrefix}request_id`]: requestId }),
    ...(document?.['reason'] === undefined ? {} : { [`${metaPrefix}reason`]: document['reason'] }),
    ...(retryAfter === undefined ? {} : { [`${metaPrefix}retry_after_seconds`]: Number(retryAfter) }),
  }
}
