/** The operator listener: the operator API's document, and what monitoring requests from a process: /metrics, /livez,
 *  /readyz. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { OpenApiDocument } from '../../../kit/http/openapi.ts'
import { textAsked, textsOf } from '../../../kit/http/openapi-examples.ts'
import { answerProbe, type ProbeOptions } from '../../../kit/http/probes.ts'

/** Answers requests that are not the operator API's; true when it answered. */
export function createOperatorPages(
  document: OpenApiDocument,
  probes: ProbeOptions,
): (request: IncomingMessage, response: ServerResponse) => boolean {
  const texts = textsOf(document)
  return (request, response) => {
    if ((request.method === 'GET' || request.method === 'HEAD') && /^\/openapi\.json(\?|$)/.test(request.url ?? '')) {
      response.writeHead(200, { 'content-type': 'application/json' }).end(texts[textAsked(request.url)])
      return true
    }
    return answerProbe(request, response, probes)
  }
}
