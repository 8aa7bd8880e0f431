/** Requests that may be sent again without being done again: a POST with an Idempotency-Key is carried out once for
 *  each key of an account. What it answered is answered again, without its secrets; what refused it changed nothing,
 *  so the key is free again. */
import { createHash } from 'node:crypto'
import { badField, conflict, Problem } from '../../domain/problem.ts'
import { isUuid } from '../../domain/uuid.ts'
import type { HttpResponse } from './exchange.ts'
import { isSignedIn, type StepContext } from './step.ts'
import { API_HEADERS } from './render.ts'
import type { Route } from './route.ts'

/** What is remembered of a key. Keys are forgotten after a day. */
export type Remembered =
  | { readonly is: 'new' }
  /** Under way, or its end was never written down. */
  | { readonly is: 'open'; readonly hash: string }
  | { readonly is: 'answered'; readonly hash: string; readonly status: number; readonly body: string }

export interface KeyOf {
  readonly accountId: string
  readonly key: string
}

export interface IdempotencyKeys {
  /** Takes the key for a request of the hash, or says who has it. */
  take(key: KeyOf, hash: string, now: Date): Promise<Remembered>
  answered(key: KeyOf, answer: { readonly status: number; readonly body: string }): Promise<void>
  release(key: KeyOf): Promise<void>
}

const HEADER = 'idempotency-key'

/** Sessions are for people, whose routes show secrets that must not be kept: only routes that programs call take
 *  keys. */
export const takesIdempotencyKey = (route: Route): boolean =>
  route.method === 'POST' &&
  route.credentials.includes('token') &&
  route.readsBodyAs === 'json' &&
  route.budget !== 'console'

/** The key of the request; undefined where none was sent or none is taken. Throws a Problem (400). */
export function idempotencyKeyOf({ route, request, caller }: StepContext): KeyOf | undefined {
  const key = request.header(HEADER)
  if (key === undefined || !takesIdempotencyKey(route) || !isSignedIn(caller)) return undefined
  if (!isUuid(key)) throw badField('Idempotency-Key', 'must be a UUID')
  return { accountId: caller.accountId, key: key.toLowerCase() }
}

export interface Once {
  readonly keys: IdempotencyKeys
  readonly key: KeyOf
  readonly now: Date
  /** Whether a failure says for certain that nothing was done. */
  readonly isRefusal: (error: unknown) => boolean
}

/** Carries the request out, or answers what it answered the first time. Throws a Problem: 422 for another request under
 *  the key, 409 while the first one is open. */
export async function once(
  { keys, key, now, isRefusal }: Once,
  context: StepContext,
  carryOut: () => Promise<HttpResponse>,
): Promise<HttpResponse> {
  const hash = hashOf(context)
  const known = await keys.take(key, hash, now)
  if (known.is !== 'new' && known.hash !== hash)
    throw new Problem(422, 'This Idempotency-Key was used for another request.', { reason: 'idempotency_key_reused' })
  if (known.is === 'open')
    throw conflict(
      'operation_in_progress',
      'The first request with this Idempotency-Key has not been answered. Wait; when it stays so, look whether ' +
        'it was carried out before you send another.',
    )
  if (known.is === 'answered') {
    return {
      status: known.status,
      headers: {
        ...API_HEADERS,
        ...context.headers,
        ...(known.body === '' ? {} : { 'content-type': 'application/json' }),
        'idempotent-replayed': 'true',
      },
      body: known.body,
    }
  }
  let response: HttpResponse
  try {
    response = await carryOut()
  } catch (error) {
    if (isRefusal(error)) await keys.release(key)
    throw error
  }
  const { status, body } = response
  const text = typeof body === 'string' ? body : body instanceof Uint8Array ? Buffer.from(body).toString() : ''
  await keys.answered(key, { status, body: withoutSecrets(context.route, text) })
  return response
}

/** What may be kept of an answer: secrets are shown once. */
function withoutSecrets({ secretFields }: Route, text: string): string {
  if (secretFields.length === 0 || text === '') return text
  const answer: unknown = JSON.parse(text)
  if (typeof answer !== 'object' || answer === null) return text
  return JSON.stringify(Object.fromEntries(Object.entries(answer).filter(([name]) => !secretFields.includes(name))))
}

const hashOf = ({ route, params, query, body }: StepContext): string =>
  createHash('sha256')
    .update(JSON.stringify([route.id, params, query, body]))
    .digest('hex')
