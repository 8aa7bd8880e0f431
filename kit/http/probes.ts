/** What a machine asks of every process: /metrics (Prometheus), /livez (it runs), /readyz (it can do its work). */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Registry } from '../sys/metrics.ts'

export interface ProbeOptions {
  readonly metrics: Registry
  /** What is missing for the process to do its work; empty when nothing is. */
  readonly missing: () => Promise<readonly string[]> | readonly string[]
}

/** Answers a probe and says with true that it did. */
export function answerProbe(
  request: IncomingMessage,
  response: ServerResponse,
  { metrics, missing }: ProbeOptions,
): boolean {
  const path = (request.url ?? '').split('?')[0]
  if (request.method !== 'GET') return false
  const say = (status: number, type: string, text: string) =>
    void response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(text)
  if (path === '/livez') say(200, 'text/plain', 'ok\n')
  else if (path === '/readyz') {
    Promise.resolve()
      .then(missing)
      .then(
        (names) =>
          names.length === 0
            ? say(200, 'text/plain', 'ok\n')
            : say(503, 'text/plain', names.map((name) => `not ready: ${name}\n`).join('')),
        () => say(503, 'text/plain', 'not ready\n'),
      )
  } else if (path === '/metrics') {
    metrics.metrics().then(
      (text) => say(200, metrics.contentType, text),
      () => say(500, 'text/plain', 'metrics failed\n'),
    )
  } else return false
  return true
}

export interface ProbeServer {
  readonly url: string
  stop(): Promise<void>
}

/** Serves the probes alone, for processes without an API. Port 0 takes a free one. */
export async function startProbes(
  options: ProbeOptions & { readonly host: string; readonly port: number },
): Promise<ProbeServer> {
  const server = createServer((request, response) => {
    if (!answerProbe(request, response, options)) response.writeHead(404).end()
  })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(options.port, options.host, resolve))
  const { port } = server.address() as AddressInfo // a listening TCP server has one
  return {
    url: `http://${options.host}:${port}`,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
