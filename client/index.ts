/** The TypeScript client of the API: every path with its types, by openapi-fetch, and the two things that every program needs beside:
 *  waiting for an operation and reading lists to their end. Stands alone: it runs in a browser as well. */
import createFetchClient, { type Client as FetchClient, type ClientOptions as FetchOptions } from 'openapi-fetch'
import type { components, paths } from './schema.ts'

export type { components, operations, paths } from './schema.ts'

export type Schemas = components['schemas']
export type Operation = Schemas['Operation']
export type Problem = Schemas['Problem']
export type Client = FetchClient<paths>

export interface ClientOptions extends Omit<FetchOptions, 'baseUrl'> {
  /** Where the API is, without /v1. */
  readonly url: string
  /** An API token. Leave it out in a browser with a session. */
  readonly token?: string
}

/** A client with one method for each HTTP method: `client.GET('/v1/servers/{id}', {params: {path: {id}}})` answers `{data, error, response}`. */
export function createClient({ url, token, ...options }: ClientOptions): Client {
  return createFetchClient<paths>({
    ...options, baseUrl: url.replace(/\/+$/, ''), querySerializer: { array: { style: 'form', explode: true } },
    headers: { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...options.headers },
  })
}

/** A refusal of the service. `problem` says why; `requestId` is what to name when asking for help. */
export class SvccloudError extends Error {
  readonly status: number
  readonly problem: Partial<Problem>
  readonly requestId: string | null
  constructor(response: Response, problem: Partial<Problem> | undefined) {
    super(`${response.status} ${problem?.title ?? response.statusText}: ${problem?.detail ?? 'no detail'}`)
    this.name = 'SvccloudError'
    this.status = response.status
    this.problem = problem ?? {}
    this.requestId = response.headers.get('x-request-id')
  }
}

/** The data of an answer. Throws SvccloudError for a refusal. */
export async function unwrap<Data>(answer: Promise<{ readonly data?: Data; readonly error?: unknown; readonly response: Response }>): Promise<Data> {
  const { data, error, response } = await answer
  if (!response.ok) throw new SvccloudError(response, typeof error === 'object' && error !== null ? error as Partial<Problem> : undefined) // refusals are problem documents
  return data as Data // of a success
}

/** Thrown when an operation did not succeed. */
export class OperationFailed extends Error {
  readonly operation: Operation
  constructor(operation: Operation) {
    super(`operation ${operation.id} (${operation.kind}) ${operation.status === 'cancelled' ? 'was cancelled' : `failed: ${operation.error}`}`)
    this.name = 'OperationFailed'
    this.operation = operation
  }
}

const WAIT_SECONDS = 20

export interface WaitOptions {
  /** Called with every state that is seen. */
  readonly onChange?: (operation: Operation) => void
  readonly signal?: AbortSignal
}

/** Resolves when the operation has succeeded. Throws OperationFailed when it failed or was cancelled. It ends by its own `deadline_at`. */
export async function waitForOperation(client: Client, id: string, { onChange, signal }: WaitOptions = {}): Promise<Operation> {
  for (;;) {
    // The service answers when something changes: nothing is asked in vain.
    const { operation } = await unwrap(client.GET('/v1/operations/{id}', { params: { path: { id }, query: { wait: WAIT_SECONDS } }, ...(signal === undefined ? {} : { signal }) }))
    onChange?.(operation)
    if (operation.status === 'succeeded') return operation
    if (operation.status === 'failed' || operation.status === 'cancelled') throw new OperationFailed(operation)
  }
}

interface Page<Item> {
  readonly items: readonly Item[]
  readonly next_cursor: string | null
}

/** Every item of a list: `for await (const server of pages((query) => client.GET("/v1/servers", {params: {query}})))`.
 *  The first page is asked for without a cursor. */
export async function* pages<Item>(
  read: (query: { readonly cursor?: string }) => Promise<{ readonly data?: Page<Item>; readonly error?: unknown; readonly response: Response }>,
): AsyncGenerator<Item, void, undefined> {
  let cursor: string | null = null
  do {
    const page: Page<Item> = await unwrap(read(cursor === null ? {} : { cursor }))
    yield* page.items
    cursor = page.next_cursor
  } while (cursor !== null)
}
