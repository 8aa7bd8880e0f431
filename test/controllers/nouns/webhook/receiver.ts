/** A receiver of webhooks as a customer would write it: it verifies each request by the published algorithm, and keeps
 *  what came. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { type HostileServer, startHostileServer } from '../../../agents/node/images/import/hostile-server.ts'

export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
  readonly id: string
  readonly event: { readonly id: string; readonly type: string; readonly [member: string]: unknown }
}

export interface Receiver extends Pick<HostileServer, 'answerNames' | 'internalConnections' | 'trust'> {
  readonly received: Received[]
  /** Address of the receiver, with a path that its answers can depend on. */
  url(path?: string): string
  close(): Promise<void>
}

/** `answer` is called with each request; without an answer by it, the receiver is silent. */
export async function startReceiver(
  answer: (request: Received, response: ServerResponse) => void = (_request, response) => response.end(),
): Promise<Receiver> {
  const received: Received[] = []
  const server = await startHostileServer((request, response) => {
    void read(request).then((body) => {
      // A batch of audit entries is one document a line.
      const event = JSON.parse(body.split('\n')[0] ?? '') as Received['event']
      const each = { path: request.url ?? '', headers: request.headers, body, id: event.id, event }
      received.push(each)
      answer(each, response)
    })
  })
  return {
    ...server,
    received,
    url: (path = '/') => `https://images.test:${server.port}${path}`,
  }
}

async function read(request: IncomingMessage): Promise<string> {
  let body = ''
  for await (const chunk of request as AsyncIterable<Buffer>) body += chunk.toString()
  return body
}

/** By the algorithm of https://www.standardwebhooks.com, written from its text. */
export function isVerified({ headers, body }: Pick<Received, 'body' | 'headers'>, secret: string): boolean {
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  const content = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${body}`
  const right = createHmac('sha256', key).update(content).digest()
  return String(headers['webhook-signature'])
    .split(' ')
    .some((signature) => {
      const [version, value = ''] = signature.split(',')
      const given = Buffer.from(value, 'base64')
      return version === 'v1' && given.length === right.length && timingSafeEqual(given, right)
    })
}
