/** Signed requests to an S3 server, whose certificate may be signed by its own authority. Connections are reused; large
 *  bodies are streamed. */
import { Agent as PlainAgent, type IncomingMessage, request as sendPlain } from 'node:http'
import { Agent as SecureAgent, request as sendSecure } from 'node:https'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type S3Credentials, type S3Request, signRequest } from '../chunks/sign-request.ts'
import { readWhole } from '../http/bounded.ts'
import { escapeForSignature } from './signature.ts'
import { byTheMachine, type Clock } from '../sys/clock.ts'

export interface StoreAddress {
  /** `http(s)://host[:port]`. */
  readonly url: string
  /** PEM of the authority of its certificate; null when that is publicly trusted. */
  readonly authority: string | null
  /** Without a region: the default region of S3 servers. */
  readonly credentials: Omit<S3Credentials, 'region'> & Partial<Pick<S3Credentials, 'region'>>
  readonly clock: Clock
  /** Its connections, by `openConnections` for this address: shared by callers. Absent: new ones. */
  readonly connections?: StoreConnections
}

export type StoreConnections = PlainAgent

export interface StoreRequest extends Pick<S3Request, 'method' | 'headers' | 'body'> {
  /** Unescaped segments; undefined and empty for the server itself. */
  readonly path?: string
  /** Without a value: an empty text. */
  readonly query?: Readonly<Record<string, string>>
  /** Used instead of `body`. */
  readonly stream?: { readonly content: Readable; readonly bytes: number }
}

export interface StoreAnswer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly text: string
}

export interface StoreExchange {
  /** Resolves with the head of every answer; its body must be read or destroyed. */
  ask(request: StoreRequest, signal?: AbortSignal): Promise<IncomingMessage>
  /** Resolves with the complete answer, within the time. */
  askWhole(request: StoreRequest, milliseconds?: number): Promise<StoreAnswer>
}

/** S3 servers accept any. */
const REGION = 'us-east-1'
const CONNECTIONS_MAXIMUM = 64
/** Timeout without a byte in either direction. */
const IDLE_MILLISECONDS = 120_000
const WHOLE_MILLISECONDS = 20_000
const ANSWER_BYTES_MAXIMUM = 8 * 1024 * 1024

const isSecureUrl = (url: string): boolean => new URL(url).protocol === 'https:'

/** Connections to one server, which stay open between requests. Whoever opens exchanges again and again opens these
 *  once. */
export function openConnections({ url, authority }: Pick<StoreAddress, 'url' | 'authority'>): StoreConnections {
  const options = { keepAlive: true, maxSockets: CONNECTIONS_MAXIMUM }
  return isSecureUrl(url)
    ? new SecureAgent({ ...options, ...(authority === null ? {} : { ca: authority }) })
    : new PlainAgent(options)
}

export function openExchange(address: StoreAddress): StoreExchange {
  const { url, credentials, clock } = address
  const isSecure = isSecureUrl(url)
  const agent = address.connections ?? openConnections(address)

  const ask = ({ method, path = '', query = {}, headers = {}, body, stream }: StoreRequest, signal?: AbortSignal) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const target = new URL(`/${path.split('/').map(escapeForSignature).join('/')}`, url)
      target.search = Object.entries(query)
        .toSorted(([one], [other]) => (one < other ? -1 : 1))
        .map(([name, value]) => `${escapeForSignature(name)}=${escapeForSignature(value)}`)
        .join('&')
      const signed = signRequest(
        { method, url: target, headers, ...(body && { body }), isStreamed: stream !== undefined },
        { region: REGION, ...credentials },
        byTheMachine(clock.now()),
      )
      const request = (isSecure ? sendSecure : sendPlain)(target, {
        method,
        agent,
        timeout: IDLE_MILLISECONDS,
        ...(signal && { signal }),
        headers: { ...signed, 'content-length': stream?.bytes ?? body?.length ?? 0 },
      })
      request.once('timeout', () => request.destroy(new Error('the store does not answer')))
      request.once('response', resolve)
      request.on('error', reject)
      if (stream === undefined) request.end(body)
      // An error of one breaks the other too; the caller gets that of the request.
      else pipeline(stream.content, request).catch((error: unknown) => reject(error))
    })
  return {
    ask,
    async askWhole(request, milliseconds = WHOLE_MILLISECONDS) {
      const late = new AbortController()
      const cancel = clock.after(milliseconds, () => late.abort(new Error('the store does not answer in time')))
      try {
        const answer = await ask(request, late.signal)
        const text = (await readWhole(answer, ANSWER_BYTES_MAXIMUM)).toString()
        return { status: answer.statusCode ?? 0, headers: answer.headers, text }
      } finally {
        cancel()
      }
    },
  }
}
