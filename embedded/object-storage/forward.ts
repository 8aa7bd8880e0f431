/** Hands a request through as it came, and its answer back. Bodies pass through; none is held but a small one, which
 *  goes on in one piece when it is there. */
import { type Agent, type IncomingMessage, request as sendRequest, type ServerResponse } from 'node:http'
import type { Transform } from 'node:stream'
import type { Clock } from '../../kit/sys/clock.ts'
import { answerClient, withoutHops } from './answer.ts'
import type { FrontEndMetrics } from './metrics.ts'
import { pass } from './pass.ts'
import { Refusal } from './request.ts'
import { markRead, noteAnnounced } from './targets.ts'

/** What is held of a body. */
const SMALL_BYTES_MAXIMUM = 16 * 1024
const SERVER_ERROR = 500

/** What goes to the engine: as it came, or signed again. */
export interface Outgoing {
  readonly target: string
  readonly rawHeaders: readonly string[]
  /** That the body goes through. */
  readonly chunks?: Transform | undefined
}

export interface Progress {
  readonly outgoing: Outgoing

  /** A success says that the whole body was read. */
  readonly isBodyReadBySuccess: boolean
  /** Of the body; a client that sends more has said less than the truth. Undefined where the quota does not count
   *  it. */
  readonly bytesMaximum: number | undefined
  /** A body that is held whole, and goes on when this throws nothing; as another one if it says so. */
  readonly check?: (body: Buffer) => (Outgoing & { readonly body: Buffer }) | undefined
  /** Of a whole text that is answered with success. */
  readonly rewrite?: (text: string) => string
  /** The engine is there and waits for the body. */
  readonly begin: () => void
  readonly answered: (status: number) => void
  /** What the client is answered when the engine has failed. */
  readonly failure: () => Refusal
}

/** Hands the request to the engine and its answer back; one that comes before the end of the body ends when the client
 *  has sent on for a while, because it would not hear it otherwise. Throws while nothing has been answered; later the
 *  connection breaks, which no client takes for an end. */
export async function forward(
  { metrics, clock }: { readonly metrics: FrontEndMetrics; readonly clock: Clock },
  agent: Agent,
  request: IncomingMessage,
  response: ServerResponse,
  { outgoing, isBodyReadBySuccess, bytesMaximum = Number.POSITIVE_INFINITY, check, ...progress }: Progress,
): Promise<void> {
  const { rewrite, begin, answered, failure } = progress
  const isHeld = check !== undefined || (outgoing.chunks === undefined && isSmall(request))
  let received = 0
  let refuseMore = (_error: Error): void => {}
  // A small one is of a length that was said, and ends there.
  if (!isHeld)
    request.on('data', (chunk: Buffer) => {
      metrics.received(chunk.length)
      received += chunk.length
      if (received > bytesMaximum) refuseMore(new Refusal(400, 'IncompleteBody', 'The body is longer than announced.'))
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
    // After its answer the engine may do with the connection what it likes.
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
      resolve(answerClient(answer, { request, response, rewrite, clock, sent: metrics.sent }))
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

/** Throws when the client breaks off. `count` learns of each piece. */
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
      // All requests close; an error takes longer to make than all else here.
      if (!isWhole) reject(new Error('the client has gone'))
    })
  })
