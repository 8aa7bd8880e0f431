/** Passes the engine's response to the client. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { readWhole } from '../../kit/http/bounded.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { pass } from './pass.ts'

/** Limits for reading the rest of a body after its response. Many clients read the response only after they have sent
 *  the complete body, and a connection that is closed before loses it. */
const DRAIN_MILLISECONDS = 30_000
/** The limits for a sender that has not proven that it has the secret of the key. */
const UNPROVEN_DRAIN_MILLISECONDS = 2_000
const UNPROVEN_DRAIN_BYTES_MAXIMUM = 64 * 1024
/** Enough for a thousand escaped keys. */
const REWRITTEN_BYTES_MAXIMUM = 16 * 1024 * 1024
/** Headers of one connection, not of the request. */
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
  /** Rewrites the complete text of a successful response. */
  readonly rewrite: ((text: string) => string) | undefined
  /** The caller has proven that it has the secret of the key. */
  readonly isProven: boolean
  readonly clock: Clock
  /** Called with the size of each piece. */
  readonly sent: (bytes: number) => void
  /** Called when the complete response was written: the client may still send. */
  readonly written: () => void
}

/** Passes the response on. Throws before the response has started; later the connection is closed. */
export async function answerClient(
  answer: IncomingMessage,
  { request, response, rewrite, isProven, clock, sent, written }: Exchange,
): Promise<void> {
  const { statusCode = 502, statusMessage = '' } = answer
  if (rewrite !== undefined && statusCode === 200) {
    const text = (await readWhole(answer, REWRITTEN_BYTES_MAXIMUM)).toString()
    answerWith(response, answer, Buffer.from(rewrite(text)))
    return written()
  }
  // A response before the end of the body is the last one on its connection.
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
  written()
  if (isEarly) await drain(request, clock, { isProven })
  response.end()
}

/** Sends a complete body, whose length differs from the engine's header. */
function answerWith(response: ServerResponse, { rawHeaders }: IncomingMessage, body: Buffer): void {
  const headers = withoutHops(rawHeaders).flatMap((name, index, all) =>
    index % 2 === 0 && name.toLowerCase() !== 'content-length' ? [name, all[index + 1] ?? ''] : [],
  )
  response.writeHead(200, [...headers, 'Content-Length', String(body.length)]).end(body)
}

/** Removes the client's transfer coding from the object's encoding: readers could not decode it. */
const forClients = (rawHeaders: readonly string[]): string[] =>
  withoutHops(rawHeaders).flatMap((name, index, all) => {
    if (index % 2 > 0) return []
    const value = all[index + 1] ?? ''
    if (name.toLowerCase() !== 'content-encoding') return [name, value]
    const codings = value.split(',').filter((coding) => coding.trim().toLowerCase() !== 'aws-chunked')
    return codings.length === 0 ? [] : [name, codings.join(',').trim()]
  })

export function withoutHops(rawHeaders: readonly string[]): string[] {
  const headers: string[] = []
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? ''
    if (!HOP_HEADERS.has(name.toLowerCase())) headers.push(name, rawHeaders[index + 1] ?? '')
  }
  return headers
}

/** Reads what the client still sends, after the complete response was written, up to a limit. */
export function drain(request: IncomingMessage, clock: Clock, { isProven }: { readonly isProven: boolean }) {
  if (request.complete || request.destroyed) return Promise.resolve()
  const bytesMaximum = isProven ? Number.POSITIVE_INFINITY : UNPROVEN_DRAIN_BYTES_MAXIMUM
  return new Promise<void>((resolve) => {
    let bytes = 0
    const cancel = clock.after(isProven ? DRAIN_MILLISECONDS : UNPROVEN_DRAIN_MILLISECONDS, resolve)
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
