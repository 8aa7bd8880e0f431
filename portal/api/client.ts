/** Requests to the API, by operationId. Sends the session's cookies, its CSRF token with every unsafe request, and an
 *  Idempotency-Key when one is given. Throws a Refusal, and nothing else. */
import createFetchClient from 'openapi-fetch'
import type { paths, Problem } from '../../client/schema.ts'
import { defined } from '../../domain/defined.ts'
import { cookie } from './browser.ts'
import type { Answer, BodyOf, OperationId, PathOf, QueryOf } from './operations.ts'
import { portal, ruleOf } from './portal.ts'
import { asRefusal, Refusal } from './refusal.ts'
import { storeOf } from './store.ts'

export interface Call<Id extends OperationId> {
  readonly path?: PathOf<Id>
  readonly query?: QueryOf<Id>
  readonly body?: BodyOf<Id>
  readonly signal?: AbortSignal
  /** A UUID: the same key makes the same thing once. */
  readonly idempotencyKey?: string
  /** Changes only this version, as `exchange` answered it; another one is refused. */
  readonly version?: string
  /** A 401 is an answer here, and does not open the sign-in sheet. */
  readonly isSigningIn?: boolean
}

/** Whether the session has ended while a page is open. */
export const sessionLost = storeOf(false)

interface Raw {
  readonly data?: unknown
  readonly error?: unknown
  readonly response: Response
}

type Send = (method: string, path: string, init: object) => Promise<Raw>

/** Made for the first request. */
let made: Send | undefined
const send: Send = (...request) => (made ??= newSend())(...request)

function newSend(): Send {
  const { request } = createFetchClient<paths>({ baseUrl: '', credentials: 'same-origin' })
  // By operationId the method and the path belong together; its own types want them as literals.
  return request as unknown as Send
}

/** Of every request that changes something. */
const unsafeHeaders = ({
  idempotencyKey,
  version,
}: Pick<Call<OperationId>, 'idempotencyKey' | 'version'>): Readonly<Record<string, string>> => ({
  'x-csrf-token': cookie(portal().csrfCookie),
  ...defined({ 'idempotency-key': idempotencyKey, 'if-match': version }),
})

export interface Exchange<Id extends OperationId> {
  readonly answer: Answer<Id>
  /** Names the version that was read; `call` takes it as `version`. Null where there is none. */
  readonly version: string | null
  /** The request was carried out before, under the same key: the answer is the first one without its secrets. */
  readonly isRepeated: boolean
}

export const call = async <Id extends OperationId>(id: Id, input: Call<Id> = {}): Promise<Answer<Id>> =>
  (await exchange(id, input)).answer

/** The answer with the version that it shows. */
export async function exchange<Id extends OperationId>(id: Id, input: Call<Id> = {}): Promise<Exchange<Id>> {
  const { method, path } = ruleOf(id)
  const { signal, body } = input
  try {
    const { data, error, response } = await send(method.toLowerCase(), path, {
      params: { path: input.path, query: input.query },
      ...defined({ body, signal }),
      headers: method === 'GET' ? {} : unsafeHeaders(input),
    })
    if (response.ok)
      return {
        answer: data as Answer<Id>, // as the document describes it
        version: versionOf(response),
        isRepeated: response.headers.get('idempotent-replayed') === 'true',
      }
    if (response.status === 401 && input.isSigningIn !== true) sessionLost.set(true)
    throw new Refusal(id, response, problemOf(error))
  } catch (error) {
    if (signal?.aborted === true) throw error
    throw asRefusal(id, error)
  }
}

/** Without the mark that a proxy puts on it when it compresses the answer: no change would be made from such a one. */
const versionOf = (response: Response): string | null => response.headers.get('etag')?.replace(/^W\//, '') ?? null

const problemOf = (error: unknown): Partial<Problem> =>
  typeof error === 'object' && error !== null
    ? (error as Partial<Problem>) // refusals are problem documents
    : typeof error === 'string' && error.length < 500
      ? { detail: error }
      : {}
