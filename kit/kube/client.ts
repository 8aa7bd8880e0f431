/** The Store over a Transport: paths, content types, Status answers, pages, deadlines, and retries where they are safe.
 *  It contains what one request needs. Connections are in `https-transport.ts`, caching in `reflector.ts`. */
import { defined } from '../../domain/defined.ts'
import { Unavailable } from '../../domain/problem.ts'
import { backoffMilliseconds } from '../sys/backoff.ts'
import { isDryRun } from '../sys/dry-run.ts'
import type { Clock } from '../sys/clock.ts'
import type { Random } from '../sys/random.ts'
import { currentTraceparent, inSpanOfTrace, type SpanDraft } from '../sys/tracing.ts'
import { apiVersionOf, type Key, type KubeObject, type ResourceType } from './object.ts'
import { ApiError, type ListOptions, type ObjectList, type Store, type WatchEvent } from './store.ts'
import type { Transport, TransportRequest, TransportResponse } from './transport.ts'
import { REQUEST_TIMEOUT_MILLISECONDS, within } from './within.ts'

export interface ClientOptions {
  readonly transport: Transport
  /** The owner of the written fields: one name per component, at most 128 characters. */
  readonly fieldManager: string
  readonly clock: Clock
  readonly random: Random
  readonly requestTimeoutMilliseconds?: number
}

const PAGE_LIMIT = 500
const ATTEMPTS_MAXIMUM = 4
const RETRY_BACKOFF = { baseMilliseconds: 100, maximumMilliseconds: 2_000 }
/** A refusal with a longer Retry-After is passed on to the caller. */
const RETRY_AFTER_MAXIMUM_SECONDS = 10
/** How long the server may keep one watch open; spread, so that watches do not end together. */
const WATCH_SECONDS = { least: 300, most: 600 }

const WHAT = 'the Kubernetes API'
/** Maximum length of the text of a body that is no Status. */
const ERROR_TEXT_CHARACTERS_MAXIMUM = 200
const CONTENT_TYPES = {
  json: 'application/json',
  merge: 'application/merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const

type Query = Readonly<Record<string, string | undefined>>

interface Write {
  readonly contentType: string
  readonly body: unknown
}

export function openClient(options: ClientOptions): Store {
  const call = openCaller(options)
  const written: Query = { fieldManager: options.fieldManager, fieldValidation: 'Strict' }

  const object = async <Spec, Status>(
    type: ResourceType<Spec, Status>,
    method: TransportRequest['method'],
    path: string,
    write?: Write,
  ): Promise<KubeObject<Spec, Status>> => objectOf(type, await call(method, path, write))

  return {
    async get(type, key) {
      try {
        return await object(type, 'GET', pathOf(type, key))
      } catch (error) {
        if (isAbsent(error)) return undefined
        throw error
      }
    },

    async list(type, selection = {}) {
      try {
        return await listPages(call, type, selection, PAGE_LIMIT)
      } catch (error) {
        // The pages' snapshot was compacted meanwhile: request everything at once.
        if (error instanceof ApiError && error.code === 410) return listPages(call, type, selection, undefined)
        throw error
      }
    },

    create: (type, draft) =>
      object(type, 'POST', pathOf(type, { namespace: draft.metadata.namespace }, written), {
        contentType: CONTENT_TYPES.json,
        body: { ...identityOf(type), ...draft },
      }),

    replace: (type, next) =>
      object(type, 'PUT', pathOf(type, next.metadata, written), { contentType: CONTENT_TYPES.json, body: next }),

    replaceStatus: (type, next) =>
      object(type, 'PUT', pathOf(type, { ...keyIn(next), subresource: 'status' }, written), {
        contentType: CONTENT_TYPES.json,
        body: next,
      }),

    patch: (type, key, patch, subresource) =>
      object(type, 'PATCH', pathOf(type, { ...key, subresource }, written), {
        contentType: CONTENT_TYPES.merge,
        body: patch,
      }),

    apply: (type, draft, subresource) =>
      object(type, 'PATCH', pathOf(type, { ...keyIn(draft), subresource }, { ...written, force: 'true' }), {
        contentType: CONTENT_TYPES.apply,
        body: { ...identityOf(type), ...draft },
      }),

    delete: (type, key, deletion) => remove(call, type, key, deletion),
    watch: (type, watched) => watch(options, type, watched),
  }
}

/** One request with its complete answer as a value. Throws ApiError and Unavailable. */
type Call = (method: TransportRequest['method'], path: string, write?: Write) => Promise<unknown>

/** Sends requests within their deadline, repeated where that is safe. */
function openCaller({ transport, clock, random, requestTimeoutMilliseconds: timeout }: ClientOptions): Call {
  const once = (request: TransportRequest): Promise<unknown> =>
    inSpanOfTrace(spanOf(request), (span) =>
      within(clock, timeout ?? REQUEST_TIMEOUT_MILLISECONDS, async (signal) => {
        const response = await transport({ ...traced(request), signal })
        span?.setAttribute('http.response.status_code', response.status)
        const text = await response.text()
        if (response.status >= 400) throw refusalOf(response, text)
        return JSON.parse(text)
      }),
    )

  return async (method, path, write) => {
    const request = requestOf(method, path, write)
    for (let attempt = 1; ; attempt++) {
      try {
        return await once(request)
      } catch (error) {
        const failure = error instanceof ApiError ? error : new Unavailable(WHAT, error)
        const retryAfterSeconds = error instanceof ApiError ? (error.retryAfterSeconds ?? 0) : 0
        const isTooLong = retryAfterSeconds > RETRY_AFTER_MAXIMUM_SECONDS
        if (attempt >= ATTEMPTS_MAXIMUM || isTooLong || !canRepeat(method, failure)) throw failure
        const backoff = backoffMilliseconds(attempt - 1, RETRY_BACKOFF, random)
        await clock.sleep(Math.max(retryAfterSeconds * 1000, backoff))
      }
    }
  }
}

const spanOf = ({ method, path }: TransportRequest): SpanDraft => {
  const [resource = ''] = path.split('?')
  // /apis/GROUP/VERSION[/namespaces/NAMESPACE]/PLURAL[/NAME[/SUBRESOURCE]]
  const [plural = '', , subresource] = resource
    .replace(/^\/(api|apis\/[^/]+)\/[^/]+\//, '')
    .replace(/^namespaces\/[^/]+\/(?=.)/, '')
    .split('/')
  return {
    name: `${method} ${plural}${subresource === undefined ? '' : `/${subresource}`}`,
    kind: 'client',
    attributes: { 'http.request.method': method, 'url.path': resource, 'peer.service': 'kubernetes' },
  }
}

/** The Kubernetes API continues the trace, if it supports tracing. */
function traced(request: TransportRequest): TransportRequest {
  const traceparent = currentTraceparent()
  return traceparent === undefined ? request : { ...request, headers: { ...request.headers, traceparent } }
}

async function listPages<Spec, Status>(
  call: Call,
  type: ResourceType<Spec, Status>,
  selection: ListOptions,
  limit: number | undefined,
): Promise<ObjectList<Spec, Status>> {
  const items: KubeObject<Spec, Status>[] = []
  let position: string | undefined
  for (;;) {
    const query = { ...selectors(selection), limit: limit?.toString(), continue: position }
    const page = listOf(await call('GET', pathOf(type, { namespace: selection.namespace }, query)))
    for (const item of page.items) items.push(objectOf(type, item))
    position = page.position
    if (position === undefined) return { items, resourceVersion: page.resourceVersion }
  }
}

async function remove(
  call: Call,
  type: ResourceType,
  key: Key,
  { uid, resourceVersion, propagation = 'Background' }: Parameters<Store['delete']>[2] = {},
): Promise<void> {
  const preconditions =
    uid === undefined && resourceVersion === undefined ? {} : { preconditions: { uid, resourceVersion } }
  try {
    await call('DELETE', pathOf(type, key), {
      contentType: CONTENT_TYPES.json,
      body: { kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy: propagation, ...preconditions },
    })
  } catch (error) {
    const isAnother =
      uid !== undefined && resourceVersion === undefined && error instanceof ApiError && error.code === 409
    if (!isAbsent(error) && !isAnother) throw error
  }
}

async function* watch<Spec, Status>(
  { transport, clock, random, requestTimeoutMilliseconds: timeout = REQUEST_TIMEOUT_MILLISECONDS }: ClientOptions,
  type: ResourceType<Spec, Status>,
  {
    resourceVersion,
    signal,
    ...selection
  }: ListOptions & { readonly resourceVersion: string; readonly signal: AbortSignal },
): AsyncGenerator<WatchEvent<Spec, Status>> {
  const seconds = Math.round(WATCH_SECONDS.least + random.fraction() * (WATCH_SECONDS.most - WATCH_SECONDS.least))
  const path = pathOf(
    type,
    { namespace: selection.namespace },
    {
      ...selectors(selection),
      watch: 'true',
      allowWatchBookmarks: 'true',
      timeoutSeconds: seconds.toString(),
      resourceVersion,
    },
  )
  const ended = new AbortController()
  const end = () => ended.abort()
  signal.addEventListener('abort', end, { once: true })
  if (signal.aborted) end()
  try {
    const response = await within(clock, timeout, () => transport({ ...requestOf('GET', path), signal: ended.signal }))
    if (response.status >= 400) throw refusalOf(response, await response.text())
    for await (const line of response.lines()) {
      if (signal.aborted) return
      if (line !== '') yield eventOf(type, line)
    }
  } catch (error) {
    if (signal.aborted) return
    throw error instanceof ApiError ? error : new Unavailable(WHAT, error)
  } finally {
    signal.removeEventListener('abort', end)
    end()
  }
}

/** A read may be repeated after any temporary failure; a write only when the server says that it did not start. */
function canRepeat(method: TransportRequest['method'], failure: ApiError | Unavailable): boolean {
  if (failure instanceof ApiError && failure.code === 429) return true
  return method === 'GET' && (failure instanceof Unavailable || failure.code >= 500)
}

/** The path of a collection, or of an object when `name` is given. */
function pathOf(
  type: ResourceType,
  at: { readonly namespace?: string | undefined; readonly name?: string; readonly subresource?: string | undefined },
  query: Query = {},
): string {
  const root = type.group === '' ? `/api/${type.version}` : `/apis/${type.group}/${type.version}`
  const namespace =
    type.scope === 'Namespaced' && at.namespace !== undefined ? `/namespaces/${encodeURIComponent(at.namespace)}` : ''
  const name = at.name === undefined ? '' : `/${encodeURIComponent(at.name)}`
  const subresource = at.subresource === undefined ? '' : `/${at.subresource}`
  const search = new URLSearchParams()
  for (const [field, value] of Object.entries(query)) if (value !== undefined) search.set(field, value)
  return `${root}${namespace}/${type.plural}${name}${subresource}${search.size === 0 ? '' : `?${search}`}`
}

const keyIn = ({ metadata }: { readonly metadata: { readonly name: string; readonly namespace?: string } }): Key =>
  metadata.namespace === undefined ? { name: metadata.name } : { namespace: metadata.namespace, name: metadata.name }

const selectors = ({ labelSelector, fieldSelector }: ListOptions): Query => ({ labelSelector, fieldSelector })

const identityOf = (type: ResourceType) => ({ apiVersion: apiVersionOf(type), kind: type.kind })

function requestOf(method: TransportRequest['method'], path: string, write?: Write): TransportRequest {
  const headers = { accept: 'application/json' }
  if (write === undefined) return { method, path, headers }
  const { contentType, body } = write
  const written = { method, path, headers: { ...headers, 'content-type': contentType } }
  if (!isDryRun()) return { ...written, body: JSON.stringify(body) }
  // A deletion has its options in the body.
  if (method === 'DELETE') return { ...written, body: JSON.stringify({ ...(body as object), dryRun: ['All'] }) }
  return { ...written, path: `${path}${path.includes('?') ? '&' : '?'}dryRun=All`, body: JSON.stringify(body) }
}

/** Items of a list of built-in kinds come without apiVersion and kind. */
const objectOf = <Spec, Status>(type: ResourceType<Spec, Status>, body: unknown): KubeObject<Spec, Status> =>
  ({ ...identityOf(type), ...(body as object) }) as KubeObject<Spec, Status> // the server enforces the schema

function listOf(body: unknown): { items: unknown[]; resourceVersion: string; position: string | undefined } {
  // the answer to a list
  const { items, metadata } = body as {
    items?: unknown[] | null
    metadata: { resourceVersion: string; continue?: string }
  }
  return { items: items ?? [], resourceVersion: metadata.resourceVersion, position: metadata.continue || undefined }
}

interface StatusBody {
  readonly kind?: string
  readonly code?: number
  readonly reason?: string
  readonly message?: string
  readonly details?: { readonly causes?: ApiError['causes']; readonly retryAfterSeconds?: number }
}

/** An error answer; a body that is no Status (a proxy's page, an unknown path) has reason Unknown. */
function refusalOf(response: TransportResponse, text: string): ApiError {
  const status = statusIn(text)
  const header = Number(response.headers['retry-after'] ?? Number.NaN)
  return errorOf(
    {
      ...status,
      code: response.status,
      message: status?.message ?? (text.slice(0, ERROR_TEXT_CHARACTERS_MAXIMUM).trim() || `HTTP ${response.status}`),
    },
    Number.isFinite(header) ? header : undefined,
  )
}

function errorOf(status: StatusBody, retryAfterHeaderSeconds?: number): ApiError {
  const retryAfterSeconds = retryAfterHeaderSeconds ?? status.details?.retryAfterSeconds
  return new ApiError({
    code: status.code ?? 500,
    reason: status.reason || 'Unknown',
    message: status.message ?? '',
    ...(status.details?.causes && { causes: status.details.causes }),
    ...defined({ retryAfterSeconds }),
  })
}

function statusIn(text: string): StatusBody | undefined {
  try {
    const body: unknown = JSON.parse(text)
    const isStatus = typeof body === 'object' && body !== null && 'kind' in body && body.kind === 'Status'
    return isStatus ? (body as StatusBody) : undefined // its kind says so
  } catch {
    return undefined
  }
}

const isAbsent = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 404 && error.reason === 'NotFound'

function eventOf<Spec, Status>(type: ResourceType<Spec, Status>, line: string): WatchEvent<Spec, Status> {
  const { type: what, object } = JSON.parse(line) as { type: string; object: unknown } // one frame of a watch
  if (what === 'ERROR') throw errorOf(object as StatusBody) // what errors carry
  const changed = objectOf(type, object)
  if (what === 'BOOKMARK') return { type: 'BOOKMARK', resourceVersion: changed.metadata.resourceVersion ?? '' }
  if (what === 'ADDED' || what === 'MODIFIED' || what === 'DELETED') return { type: what, object: changed }
  throw new Error(`unknown kind of watch event ${JSON.stringify(what)}`)
}
