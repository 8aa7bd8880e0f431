/** Requests of customers, and what was answered: everything is remembered for the checks. */
import type { HttpResponse } from '../../kit/http/exchange.ts'
import type { Account } from './ledgers.ts'
import type { World } from './world.ts'

export type { Account } from './ledgers.ts'

export interface Exchange {
  readonly account: string
  readonly method: string
  readonly path: string
  readonly status: number
  readonly requestId: string
  readonly reason: string | undefined
}

/** What is read of the body of an answer. */
export interface AnswerBody {
  readonly operation?: { readonly id: string }
}

/** Sends what the account asks for, and remembers what was answered; undefined when no answer came. */
export type Send = (account: Account, method: string, path: string, body?: unknown) => Promise<AnswerBody | undefined>

export interface History {
  readonly exchanges: Exchange[]
  /** Every operation that an answer promised: id to the account that was promised it. */
  readonly operations: Map<string, string>
  readonly foreignReads: { readonly status: number; readonly path: string }[]
}

const ANSWER_MILLISECONDS = 30_000

/** The answer, or undefined when none came: the API is down, or died on the way. */
export async function ask(
  world: World,
  account: Account,
  method: string,
  path: string,
  body?: unknown,
): Promise<{ response: HttpResponse; json: any } | undefined> {
  // tests read many shapes
  const api = world.api()
  if (api === undefined) return undefined
  const call = api({
    method,
    target: path,
    remoteAddress: '192.0.2.1',
    signal: new AbortController().signal,
    headers: {
      authorization: `Bearer ${account.token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const response = await Promise.race([
    call,
    new Promise<undefined>((resolve) => void world.scheduler.after(ANSWER_MILLISECONDS, () => resolve(undefined))),
  ])
  if (response === undefined) return undefined
  const text = typeof response.body === 'string' ? response.body : ''
  return { response, json: text === '' ? undefined : JSON.parse(text) }
}
