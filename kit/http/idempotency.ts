/** Requests that may be repeated without being executed again: a POST with an Idempotency-Key is executed once for each
 *  key of an account or an operator. A repetition gets the first answer, without its secrets. A refused request changed
 *  nothing, so its key is free again. */
import { createHash } from 'node:crypto'
import { badField, conflict, Problem } from '../../domain/problem.ts'
import { isUuid } from '../../domain/uuid.ts'
import type { Customer, Operator } from './call.ts'
import type { HttpResponse } from './exchange.ts'
import { isSignedIn, type StepContext } from './step.ts'
import { API_HEADERS } from './render.ts'
import type { Route } from './route.ts'

/** The record of a key. Keys are forgotten after a day. */
export type KeyRecord =
  | { readonly is: 'new' }
  /** Under way, or its end was never recorded. */
  | { readonly is: 'open'; readonly hash: string }
  | { readonly is: 'answered'; readonly hash: string; readonly status: number; readonly body: string }

export interface KeyOf {
  /** Whose key it is: others may choose the same. */
  readonly holder: { readonly accountId: string } | { readonly operator: string }
  readonly key: string
}

export interface IdempotencyKeys {
  /** Takes the key for a request with the hash, or returns its holder. */
  take(key: KeyOf, hash: string, now: Date): Promise<KeyRecord>
  answered(key: KeyOf, answer: { readonly status: number; readonly body: string }): Promise<void>
  release(key: KeyOf): Promise<void>
}

const HEADER = 'idempotency-key'

/** Sessions are for people, whose routes return secrets that must not be stored: of customers, only routes for programs
 *  accept keys. Of operators, all that name their caller do. */
export const takesIdempotencyKey = (route: Route): boolean =>
  route.method === 'POST' &&
  (route.credentials.includes('token') ||
    (route.credentials.includes('operator') && !route.credentials.includes('public'))) &&
  route.readsBodyAs === 'json' &&
  route.budget !== 'console'

/** The key of the request; undefined when none was sent or none is accepted. Throws a Problem (400). */
export function idempotencyKeyOf({ route, request, caller }: StepContext): KeyOf | undefined {
  const key = request.header(HEADER)
  if (key === undefined || !takesIdempotencyKey(route) || caller.kind === 'public') return undefined
  if (!isUuid(key)) throw badField('Idempotency-Key', 'must be a UUID')
  return { holder: holderOf(caller), key: key.toLowerCase() }
}

/** Names of the management cluster may look like ids of the staff. */
const holderOf = (caller: Customer | Operator): KeyOf['holder'] =>
  isSignedIn(caller)
    ? { accountId: caller.accountId }
    : { operator: caller.staff === undefined ? `operator:${caller.name}` : `staff:${caller.staff.id}` }

export interface Once {
  readonly keys: IdempotencyKeys
  readonly key: KeyOf
  readonly now: Date
  /** Whether a failure guarantees that nothing was done. */
  readonly isRefusal: (error: unknown) => boolean
}

/** Executes the request, or returns its first answer. Throws a Problem: 422 for another request under the key, 409
 *  while the first one is open. */
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

/** The part of an answer that may be stored: secrets are shown once. */
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
