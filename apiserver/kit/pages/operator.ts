/** The operator listener: the operator API's document, and what a machine asks of a process: /metrics, /livez, /readyz.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { OpenApiDocument } from '../../../kit/http/openapi.ts'
import { answerProbe, type ProbeOptions } from '../../../kit/http/probes.ts'

/** Answers what is not the operator API's and says with true that it did. */
export function createOperatorPages(
  document: OpenApiDocument,
  probes: ProbeOptions,
): (request: IncomingMessage, response: ServerResponse) => boolean {
  const text = JSON.stringify(document)
  return (request, response) => {
    if ((request.method === 'GET' || request.method === 'HEAD') && request.url === '/openapi.json') {
      response.writeHead(200, { 'content-type': 'application/json' }).end(text)
      return true
    }
    return answerProbe(request, response, probes)
  }
}
