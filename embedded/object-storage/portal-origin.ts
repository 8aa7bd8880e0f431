/** Pages of the portal upload objects. Browsers allow that only when the server says so (CORS). It is said to the
 *  portal's own origin, for what its pages send with signed addresses, and to nobody else. */
import type { IncomingMessage, ServerResponse } from 'node:http'

/** What pages send. They download by opening an address, for which browsers ask nothing. */
const METHOD = 'PUT'
const HEADERS = 'content-type, if-none-match'
const REMEMBERED_SECONDS = 600

/** Answers a browser that asks whether a page of the portal may upload; true when it did. Else marks the answer as one
 *  that a page of the portal may read. */
export function answerPortal(
  { method, headers }: Pick<IncomingMessage, 'method' | 'headers'>,
  response: ServerResponse,
  portalOrigin: string | null,
): boolean {
  if (portalOrigin === null || headers.origin !== portalOrigin) return false
  const isAsking = method === 'OPTIONS'
  if ((isAsking ? headers['access-control-request-method'] : method) !== METHOD) return false
  response.setHeader('access-control-allow-origin', portalOrigin).setHeader('vary', 'Origin')
  if (!isAsking) return false
  response
    .writeHead(204, {
      'access-control-allow-methods': METHOD,
      'access-control-allow-headers': HEADERS,
      'access-control-max-age': String(REMEMBERED_SECONDS),
    })
    .end()
  return true
}
