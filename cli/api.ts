/** Requests of the command line to the service: a token, JSON, and refusals as failures. */
import { defined } from '../domain/defined.ts'
import { EXIT, Failure, serviceFailure } from './exit.ts'

export type Members = Readonly<Record<string, unknown>>

/** Whether the value is a JSON object. */
export const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
/** The members of a JSON object; none for any other value. */
export const asMembers = (value: unknown): Members => (isMembers(value) ? value : {})

export interface Request {
  readonly method: string
  /** Includes the query. */
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The body of a JSON answer; undefined otherwise. */
  readonly body: unknown
}

export interface Api {
  readonly url: string
  /** Throws a Failure unless the request succeeds. */
  send(request: Request): Promise<Reply>
  /** The response without changes, for streams. Throws a Failure unless the request succeeds. */
  open(request: Request): Promise<Response>
}

/** Throws a Failure when the service refuses or cannot be reached, or when somebody interrupts. */
export function createApi({
  url,
  token,
  userAgent,
}: {
  readonly url: string
  readonly token: string | undefined
  readonly userAgent: string
}): Api {
  const base = url.replace(/\/+$/, '')
  async function open({ method, path, body, headers, signal }: Request): Promise<Response> {
    const response = await fetch(`${base}${path}`, {
      method,
      headers: {
        'user-agent': userAgent,
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...defined({ signal }),
    }).catch((error: unknown) => {
      throw signal?.aborted === true
        ? new Failure(EXIT.interrupted, 'interrupted')
        : new Failure(EXIT.unreachable, `${base} cannot be reached: ${causeOf(error)}`, error)
    })
    if (response.ok) return response
    throw serviceFailure(response.status, members(await response.text().catch(() => '')), response.headers)
  }
  return {
    url: base,
    open,
    async send(request) {
      const response = await open(request)
      const text = await response.text().catch((error: unknown) => {
        throw new Failure(EXIT.unreachable, `${base} closed the connection during its answer: ${causeOf(error)}`, error)
      })
      const body = isJson(response) && text !== '' ? parseJson(text) : undefined
      return { status: response.status, headers: response.headers, text, body }
    },
  }
}

const isJson = (response: Response): boolean =>
  /^application\/([\w.-]+\+)?json/.test(response.headers.get('content-type') ?? '')

/** Throws a Failure when the body does not match the content type. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const start = text.slice(0, DETAIL_CHARACTERS_MAXIMUM)
    throw new Failure(EXIT.refused, `the service returned invalid JSON: ${start}`, error)
  }
}

/** Start of an answer that is not JSON, for the error message. */
const DETAIL_CHARACTERS_MAXIMUM = 200

function members(text: string): Members {
  try {
    return asMembers(JSON.parse(text))
  } catch {
    return { detail: text.slice(0, DETAIL_CHARACTERS_MAXIMUM) }
  }
}

function causeOf(error: unknown): string {
  // fetch gives the reason in the cause
  const { cause } = error as { readonly cause?: { readonly code?: string; readonly message?: string } }
  return cause?.code ?? cause?.message ?? String(error)
}
