/** Answers of the engine, on their way to the client. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { readWhole } from '../../kit/http/bounded.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { pass } from './pass.ts'

/** Of a refused body, so that the client reads why. */
const DRAIN_BYTES_MAXIMUM = 2 * 1024 * 1024
const DRAIN_MILLISECONDS = 2_000
/** Of a thousand keys, each of them escaped. */
const REWRITTEN_BYTES_MAXIMUM = 16 * 1024 * 1024
/** Of one connection, and not of the request. */
const HOP_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'expect',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
])

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Of a whole text that is answered with success. */
  readonly rewrite: ((text: string) => string) | undefined
  readonly clock: Clock
  /** Learns of each piece. */
  readonly sent: (bytes: number) => void
}

/** Hands it on. Throws while nothing has been answered; later the connection breaks. */
export async function answerClient(
  answer: IncomingMessage,
  { request, response, rewrite, clock, sent }: Exchange,
): Promise<void> {
  const { statusCode = 502, statusMessage = '' } = answer
  if (rewrite !== undefined && statusCode === 200) {
    const text = (await readWhole(answer, REWRITTEN_BYTES_MAXIMUM)).toString()
    return answerWith(response, answer, Buffer.from(rewrite(text)))
  }
  // An answer before the end of the body is the last one on its connection.
  const isEarly = !request.complete
  response.writeHead(statusCode, statusMessage, [
    ...forClients(answer.rawHeaders),
    ...(isEarly ? ['Connection', 'close'] : []),
  ])
  await new Promise<void>((resolve, reject) => {
    answer.once('error', (error) => {
      response.destroy()
      reject(error)
    })
    answer.once('end', resolve)
    pass(answer, response, sent)
  })
  if (isEarly) await drain(request, clock)
  response.end()
}

/** In one piece, of another length than the engine said. */
function answerWith(response: ServerResponse, { rawHeaders }: IncomingMessage, body: Buffer): void {
  const headers = withoutHops(rawHeaders).flatMap((name, index, all) =>
    index % 2 === 0 && name.toLowerCase() !== 'content-length' ? [name, all[index + 1] ?? ''] : [],
  )
  response.writeHead(200, [...headers, 'Content-Length', String(body.length)]).end(body)
}

/** How a client sent an object is not how it is encoded: those who read it could not decode it. */
const forClients = (rawHeaders: readonly string[]): string[] =>
  withoutHops(rawHeaders).flatMap((name, index, all) => {
    if (index % 2 > 0) return []
    const value = all[index + 1] ?? ''
    if (name.toLowerCase() !== 'content-encoding') return [name, value]
    const codings = value.split(',').filter((coding) => coding.trim().toLowerCase() !== 'aws-chunked')
    return codings.length === 0 ? [] : [name, codings.join(',').trim()]
  })

export function withoutHops(rawHeaders: readonly string[]): string[] {
  const kept: string[] = []
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? ''
    if (!HOP_HEADERS.has(name.toLowerCase())) kept.push(name, rawHeaders[index + 1] ?? '')
  }
  return kept
}

/** What the client still sends is read, to a bound. */
export function drain(request: IncomingMessage, clock: Clock, bytesMaximum = DRAIN_BYTES_MAXIMUM): Promise<void> {
  if (request.complete || request.destroyed) return Promise.resolve()
  return new Promise((resolve) => {
    let bytes = 0
    const cancel = clock.after(DRAIN_MILLISECONDS, resolve)
    const done = () => {
      cancel()
      resolve()
    }
    request.once('end', done).once('close', done).once('error', done)
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > bytesMaximum) done()
    })
  })
}
