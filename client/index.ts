/** The TypeScript client of the API: every path with its types, through openapi-fetch, and what every program
 *  needs: waiting for an operation, reading complete lists, and following changes. It has no other dependencies, and
 *  also runs in browsers. */
import createFetchClient, { type Client as FetchClient, type ClientOptions as FetchOptions } from 'openapi-fetch'
import { follow, type FollowOptions, retryAfterSeconds } from './follow.ts'
import type { Change, ChangeType, OtherChange, Reset } from './items.ts'
import type { components, Operation, paths, Problem } from './schema.ts'
import { type Timer, timer as realTimer } from './timer.ts'

export type * from './schema.ts'
export type * from './items.ts'
export type { Timer } from './timer.ts'

export type Schemas = components['schemas']
export type Client = FetchClient<paths>

export interface ClientOptions extends Omit<FetchOptions, 'baseUrl'> {
  /** URL of the API, without /v1. */
  readonly url: string
  /** An API token. Omit it in a browser with a session. */
  readonly token?: string
}

/** A client with one method for each HTTP method: `client.GET('/v1/servers/{id}', {params: {path: {id}}})` returns
 *  `{data, error, response}`. */
export function createClient({ url, token, ...options }: ClientOptions): Client {
  return createFetchClient<paths>({
    ...options,
    baseUrl: url.replace(/\/+$/, ''),
    querySerializer: { array: { style: 'form', explode: true } },
    headers: { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...options.headers },
  })
}

/** A refusal of the service. `problem` has the reason; give `requestId` to support. */
export class SvccloudError extends Error {
  readonly status: number
  readonly problem: Partial<Problem>
  readonly requestId: string | null
  /** When the request may be repeated, if the service says so. */
  readonly retryAfterSeconds: number | undefined
  constructor(response: Response, problem: Partial<Problem> | undefined) {
    super(`${response.status} ${problem?.title ?? response.statusText}: ${problem?.detail ?? 'no detail'}`)
    this.name = 'SvccloudError'
    this.status = response.status
    this.problem = problem ?? {}
    this.requestId = response.headers.get('x-request-id')
    this.retryAfterSeconds = retryAfterSeconds(response.headers)
  }
  /** The reason for programs, such as `quota_exceeded`; undefined when there is none. */
  get code(): string | undefined {
    return this.problem.reason
  }
  /** What is wrong with which field. */
  get fields(): Readonly<Record<string, string>> {
    const { errors } = this.problem
    return Array.isArray(errors) ? Object.fromEntries(errors.map(({ field, detail }) => [field, detail])) : {}
  }
}

/** The data of a response. Throws SvccloudError for a refusal. */
export async function unwrap<Data>(
  answer: Promise<{ readonly data?: Data; readonly error?: unknown; readonly response: Response }>,
): Promise<Data> {
  const { data, error, response } = await answer
  if (!response.ok)
    throw new SvccloudError(
      response,
      // refusals are problem documents
      typeof error === 'object' && error !== null ? (error as Partial<Problem>) : undefined,
    )
  return data as Data // of a success
}

/** Thrown when an operation did not succeed. */
export class OperationFailed extends Error {
  readonly operation: Operation
  constructor(operation: Operation) {
    super(
      `operation ${operation.id} (${operation.kind}) ` +
        `${operation.status === 'cancelled' ? 'was cancelled' : `failed: ${operation.error}`}`,
    )
    this.name = 'OperationFailed'
    this.operation = operation
  }
}

/** Thrown when an operation has not ended by its deadline. It goes on. */
export class DeadlinePassed extends Error {
  readonly operation: Operation
  constructor(operation: Operation) {
    super(
      `operation ${operation.id} (${operation.kind}) has not ended by its deadline; it is at step ${operation.step}`,
    )
    this.name = 'DeadlinePassed'
    this.operation = operation
  }
}

/** Thrown when the pages of a list do not end. */
export class EndlessList extends Error {
  constructor(detail: string) {
    super(detail)
    this.name = 'EndlessList'
  }
}

const WAIT_SECONDS = 20
/** The service ends an operation itself at its deadline, but for deletions. */
const AFTER_DEADLINE_MILLISECONDS = 60_000
const PAGES_MOST = 10_000
/** Responses of a proxy, or different clocks: only a larger difference counts as early. */
const EARLY_MILLISECONDS = 1_000
const PAUSE_LEAST_SECONDS = 1
const PAUSE_MOST_SECONDS = 60
const REFUSALS_MOST = 5

export interface WaitOptions {
  /** Called with every observed state. */
  readonly onChange?: (operation: Operation) => void
  readonly signal?: AbortSignal
  /** For programs with their own time. */
  readonly timer?: Timer
}

/** Resolves when the operation has succeeded. Throws OperationFailed when it failed or was cancelled, and SvccloudError
 *  when the service refuses; "too many requests" and "unavailable" only after six in a row. Throws DeadlinePassed after
 *  the operation's `deadline_at`, by the clock of the service. */
export async function waitForOperation(
  client: Client,
  id: string,
  { onChange, signal, timer = realTimer }: WaitOptions = {},
): Promise<Operation> {
  let latest = ''
  let refusals = 0
  for (;;) {
    const sentAt = timer.milliseconds()
    // The service answers when something changes, so every request returns news.
    const answer = await client.GET('/v1/operations/{id}', {
      params: { path: { id }, query: { wait: WAIT_SECONDS } },
      ...(signal === undefined ? {} : { signal }),
    })
    if ([429, 503].includes(answer.response.status) && refusals++ < REFUSALS_MOST) {
      await timer.pause(pauseSeconds(answer.response.headers) * 1_000, signal)
      continue
    }
    refusals = 0
    const { operation } = await unwrap(Promise.resolve(answer))
    onChange?.(operation)
    if (operation.status === 'succeeded') return operation
    if (operation.status === 'failed' || operation.status === 'cancelled') throw new OperationFailed(operation)
    // without both times no comparison is true
    const now = Date.parse(answer.response.headers.get('date') ?? '')
    if (now > Date.parse(operation.deadline_at) + AFTER_DEADLINE_MILLISECONDS) throw new DeadlinePassed(operation)
    const before = latest
    latest = JSON.stringify(operation)
    const isEarly = timer.milliseconds() - sentAt < WAIT_SECONDS * 1_000 - EARLY_MILLISECONDS
    if (latest === before && isEarly) await timer.pause(pauseSeconds(answer.response.headers) * 1_000, signal)
  }
}

/** The value of Retry-After. Without it, a pause that spreads the remaining requests until the budget is full again
 *  (RateLimit). */
function pauseSeconds(headers: Headers): number {
  const [, left, fullAfter] = /;r=(\d+);t=(\d+)/.exec(headers.get('ratelimit') ?? '') ?? []
  const wanted = retryAfterSeconds(headers) ?? Number(fullAfter ?? 0) / Math.max(1, Number(left ?? 0))
  return Math.min(PAUSE_MOST_SECONDS, Math.max(PAUSE_LEAST_SECONDS, wanted))
}

interface Page<Item> {
  readonly items: readonly Item[]
  readonly next_cursor: string | null
}

/** Every item of a list: `for await (const server of pages((query) => client.GET("/v1/servers", {params: {query}})))`.
 *  The first page is requested without a cursor. Throws EndlessList when a cursor comes again, and after 10,000
 *  pages. */
export async function* pages<Item>(
  read: (query: {
    readonly cursor?: string
  }) => Promise<{ readonly data?: Page<Item>; readonly error?: unknown; readonly response: Response }>,
): AsyncGenerator<Item, void, undefined> {
  const cursors = new Set<string>()
  let cursor: string | null = null
  for (let count = 0; count < PAGES_MOST; count++) {
    const page: Page<Item> = await unwrap(read(cursor === null ? {} : { cursor }))
    yield* page.items
    cursor = page.next_cursor
    if (cursor === null) return
    if (cursors.has(cursor)) throw new EndlessList('a page names an earlier one as the next')
    cursors.add(cursor)
  }
  throw new EndlessList(`the list has more than ${PAGES_MOST} pages`)
}

export interface ChangesOptions<Type extends ChangeType> extends Omit<FollowOptions, 'open'> {
  /** Everything when absent. */
  readonly types?: readonly Type[]
}

/** Every change of the account from now on, or after the cursor: `for await (const change of changes(client))`. It
 *  begins with a reset unless a cursor is given. It reconnects by itself until the signal aborts; `onLost` is called
 *  with each failure, and may throw. Throws SvccloudError when the service refuses for good. */
export async function* changes<Type extends ChangeType = ChangeType>(
  client: Client,
  { types, onLost, ...options }: ChangesOptions<Type> = {},
): AsyncGenerator<Reset | Change<Type> | OtherChange, void, undefined> {
  const parts = follow({
    ...options,
    async open(cursor, signal) {
      const query = { ...(cursor === '' ? {} : { cursor }), ...(types === undefined ? {} : { type: [...types] }) }
      const answer = await client.GET('/v1/changes', { params: { query }, parseAs: 'stream', signal })
      await unwrap(Promise.resolve(answer))
      return answer.response
    },
    onLost(error, failures) {
      if (error instanceof SvccloudError && error.status !== 429 && error.status < 500) throw error
      onLost?.(error, failures)
    },
  })
  for await (const { event, data, cursor } of parts) {
    // as the document describes its events
    yield { event, ...JSON.parse(data), cursor } as Reset | Change<Type>
  }
}
