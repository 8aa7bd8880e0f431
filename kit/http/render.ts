/** Converts answers, refusals and bugs to responses. Every failure leaves here as a problem document, and only here. */
import { defined } from '../../domain/defined.ts'
import { Problem, Unavailable } from '../../domain/problem.ts'
import type { Answer, Cookie } from './call.ts'
import type { HttpResponse } from './exchange.ts'
import type { Route } from './route.ts'

export interface RenderOptions {
  /** Sent with every response. */
  readonly headers: Readonly<Record<string, string>>
  /** Cookies are sent back over HTTPS only. */
  readonly isSecure: boolean
}

/** The headers of every answer of the API: nothing is cached on the way, and a browser that shows it runs nothing. */
export const API_HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
} as const

export function renderAnswer(answer: Answer, route: Route, options: RenderOptions): HttpResponse {
  const headers: Record<string, string | readonly string[]> = { ...API_HEADERS, ...options.headers, ...answer.headers }
  if ('cookies' in answer && answer.cookies !== undefined && answer.cookies.length > 0) {
    headers['set-cookie'] = answer.cookies.map((cookie) => renderCookie(cookie, options.isSecure))
  }
  if ('stream' in answer) {
    headers['content-type'] = route.mediaType
    return { status: answer.status, headers, body: answer.stream }
  }
  const body =
    'json' in answer ? answer.json : 'body' in answer && answer.body !== undefined ? encode(answer.body, route) : ''
  if (body.length > 0) headers['content-type'] ??= route.mediaType
  return { status: answer.status, headers, body }
}

const encode = (body: unknown, route: Route): string =>
  typeof body === 'string' && route.mediaType !== 'application/json' ? body : JSON.stringify(body)

/** `challenge` is sent with 401: how to authenticate, and what was wrong with the token that was sent. */
export function renderProblem(
  problem: Problem,
  headers: Readonly<Record<string, string>>,
  challenge = 'Bearer',
): HttpResponse {
  const { retryAfterSeconds, allow } = problem.members
  return {
    status: problem.status,
    headers: {
      ...API_HEADERS,
      ...headers,
      'content-type': 'application/problem+json',
      ...(retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }),
      ...defined({ allow: allow?.join(', ') }),
      ...(problem.status === 401 ? { 'www-authenticate': challenge } : {}),
    },
    body: JSON.stringify(problem.toDocument()),
  }
}

/** Converts anything thrown to the Problem that the caller sees. An error that is not a refusal reveals nothing of its
 *  cause, only the request id. */
export function toProblem(error: unknown, requestId: string): Problem {
  if (error instanceof Problem) return error
  if (error instanceof Unavailable)
    return new Problem(503, 'A part of the service that this needs does not answer now. Try again later.', {}, error)
  return new Problem(
    500,
    `Something went wrong on our side. When you ask for help, name the request ${requestId}.`,
    {},
    error,
  )
}

function renderCookie(cookie: Cookie, isSecure: boolean): string {
  return [
    `${cookie.name}=${encodeURIComponent(cookie.value)}`,
    'Path=/',
    `Max-Age=${cookie.maxAgeSeconds}`,
    'SameSite=Lax',
    ...(cookie.isHttpOnly ? ['HttpOnly'] : []),
    ...(isSecure ? ['Secure'] : []),
  ].join('; ')
}
