/** Forwards a request unchanged, and its response. Bodies are streamed, except for small ones, which are read
 *  completely and sent in one piece. */
import { type Agent, type IncomingMessage, request as sendRequest, type ServerResponse } from 'node:http'
import type { Transform } from 'node:stream'
import type { Clock } from '../../kit/sys/clock.ts'
import { answerClient, withoutHops } from './answer.ts'
import type { FrontEndMetrics } from './metrics.ts'
import { pass } from './pass.ts'
import { S3Refusal } from './request.ts'
import { markRead, noteAnnounced } from './targets.ts'

/** Limit of the bodies that are read completely. */
const SMALL_BYTES_MAXIMUM = 16 * 1024
const SERVER_ERROR = 500

/** The request for the engine: unchanged, or signed again. */
export interface Outgoing {
  readonly target: string
  readonly rawHeaders: readonly string[]
  /** Transforms the body. */
  readonly chunks?: Transform | undefined
}

export interface Progress {
  readonly outgoing: Outgoing

  /** The caller has proven that it has the secret of the key. */
  readonly isProven: boolean
  /** A success means that the server has read the complete body. */
  readonly isBodyReadBySuccess: boolean
  /** Limit of the body; a client that sends more has declared a wrong length. Undefined when the quota does not apply.
   */
  readonly bytesMaximum: number | undefined
  /** Checks a body that was read completely. The request continues unless this throws; a returned value replaces it. */
  readonly check?: (body: Buffer) => (Outgoing & { readonly body: Buffer }) | undefined
  /** Rewrites the complete text of a successful response. */
  readonly rewrite?: (text: string) => string
  /** Called when the engine is ready for the body. */
  readonly begin: () => void
  readonly answered: (status: number) => void
  /** Called when the complete response was written: the client may still send. */
  readonly written: () => void
  /** The client's response when the engine has failed. */
  readonly failure: () => S3Refusal
}

/** Forwards the request to the engine and its response to the client. After an early response the client's body is
 *  still read for a while, because the client would otherwise not read the response. Throws before the response has
 *  started; later the connection is broken off, which no client mistakes for the end. */
export async function forward(
  { metrics, clock }: { readonly metrics: FrontEndMetrics; readonly clock: Clock },
  agent: Agent,
  request: IncomingMessage,
  response: ServerResponse,
  { outgoing, isBodyReadBySuccess, bytesMaximum = Number.POSITIVE_INFINITY, check, ...progress }: Progress,
): Promise<void> {
  const { rewrite, isProven, begin, answered, written, failure } = progress
  const isHeld = check !== undefined || (outgoing.chunks === undefined && isSmall(request))
  let received = 0
  let refuseMore = (_error: Error): void => {}
  // A small body has a declared length and ends there.
  if (!isHeld)
    request.on('data', (chunk: Buffer) => {
      metrics.received(chunk.length)
      received += chunk.length
      if (received > bytesMaximum)
        refuseMore(new S3Refusal(400, 'IncompleteBody', 'The body is longer than announced.'))
    })
  begin()
  const held = isHeld ? await wholeOf(request, metrics.received) : undefined
  const { target, rawHeaders, chunks, body } = { ...outgoing, body: held, ...(held && check?.(held)) }
  return new Promise((resolve, reject) => {
    const upstream = sendRequest({
      agent,
      method: request.method ?? '',
      path: target,
      headers: withoutHops(rawHeaders),
    })
    const fail = (error: Error): void => {
      upstream.destroy()
      if (response.headersSent) response.destroy()
      reject(error)
    }
    refuseMore = fail
    let isAnswerWhole = () => false
    // After its complete response, the engine may close the connection in any way.
    upstream.on('error', (error) => {
      if (!isAnswerWhole()) fail(error)
    })
    upstream.once('response', (answer) => {
      isAnswerWhole = () => answer.complete
      const { statusCode = 502 } = answer
      answered(statusCode)
      if (isBodyReadBySuccess && statusCode === 200 && request.complete && upstream.writableFinished)
        markRead(upstream.socket)
      noteAnnounced(upstream.socket, answer.rawHeaders)
      if (statusCode === SERVER_ERROR) return void fail(failure())
      resolve(answerClient(answer, { request, response, rewrite, isProven, clock, sent: metrics.sent, written }))
    })
    response.once('close', () => {
      if (!response.writableFinished) upstream.destroy()
    })
    if (body !== undefined) return void (body.length === 0 ? upstream.end() : upstream.end(body))
    request.once('error', (error) => {
      if (!response.headersSent) fail(error)
    })
    upstream.once('close', () => request.resume())
    if (chunks !== undefined) return void request.pipe(chunks.once('error', fail)).pipe(upstream)
    request.once('end', () => upstream.end())
    pass(request, upstream)
  })
}

const isSmall = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) <= SMALL_BYTES_MAXIMUM

/** Reads the body. Throws when the client disconnects. `count` gets the size of each piece. */
const wholeOf = (request: IncomingMessage, count: (bytes: number) => void): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let isWhole = false
    request.on('data', (chunk: Buffer) => {
      count(chunk.length)
      chunks.push(chunk)
    })
    request.once('end', () => {
      isWhole = true
      resolve(chunks.length === 1 ? (chunks[0] ?? Buffer.of()) : Buffer.concat(chunks))
    })
    request.once('error', reject).once('close', () => {
      // Every request closes, so the error is only created when it is needed: that is expensive.
      if (!isWhole) reject(new Error('the client has gone'))
    })
  })
