/** The monitoring endpoints of every process: /metrics (Prometheus), /livez (it runs), /readyz (it can do its work). */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Registry } from '../sys/metrics.ts'
import { closeNow, listen } from '../sys/listen.ts'

export type MetricsAccess = 'allowed' | 'unauthenticated' | 'forbidden'

export interface ProbeOptions {
  readonly metrics: Registry
  /** What the process still lacks to do its work; empty when nothing. */
  readonly missing: () => Promise<readonly string[]> | readonly string[]
  /** Judges the Authorization header of a reader of the metrics; everybody may read when absent. A rejection is 503. */
  readonly metricsAccess?: ((authorization: string | undefined) => Promise<MetricsAccess>) | undefined
}

/** Answers a probe; true when it answered. */
export function answerProbe(
  request: IncomingMessage,
  response: ServerResponse,
  { metrics, missing, metricsAccess = async () => 'allowed' }: ProbeOptions,
): boolean {
  const path = (request.url ?? '').split('?')[0]
  if (request.method !== 'GET' && request.method !== 'HEAD') return false
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
    metricsAccess(request.headers.authorization).then(
      (access) => {
        if (access === 'unauthenticated') {
          response.setHeader('www-authenticate', 'Bearer')
          say(401, 'text/plain', 'a bearer token is needed\n')
        } else if (access === 'forbidden') say(403, 'text/plain', 'this token may not read the metrics\n')
        else
          metrics.metrics().then(
            (text) => say(200, metrics.contentType, text),
            () => say(500, 'text/plain', 'metrics failed\n'),
          )
      },
      () => say(503, 'text/plain', 'the management cluster does not say who may read\n'),
    )
  } else return false
  return true
}

export interface ProbeServer {
  readonly url: string
  stop(): Promise<void>
}

/** Serves only the probes, for processes without an API. Port 0 picks a free one. */
export async function startProbes(
  options: ProbeOptions & { readonly host: string; readonly port: number },
): Promise<ProbeServer> {
  const server = createServer((request, response) => {
    if (!answerProbe(request, response, options)) response.writeHead(404).end()
  })
  const port = await listen(server, { host: options.host, port: options.port })
  return {
    url: `http://${options.host}:${port}`,
    stop: () => closeNow(server),
  }
}
