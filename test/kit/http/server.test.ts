/** The service behind real sockets: what slow, broken and vanishing clients get, and how it stops. */
import { connect } from 'node:net'
import { request } from 'node:http'
import { afterEach, expect, test } from 'vitest'
import type { HttpResponse, HttpService } from '../../../kit/http/exchange.ts'
import { type RunningServer, type ServerOptions, startServer } from '../../../kit/http/server.ts'
import { type Clock, systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { systemRandom } from '../../../kit/sys/random.ts'

/** Lets what comes later come a hundred times sooner. */
const hurriedClock: Clock = {
  ...systemClock,
  after: (milliseconds, work) => systemClock.after(milliseconds / 100, work),
}

let server: RunningServer | undefined
afterEach(async () => {
  await server?.stop(0)
  server = undefined
})
const start = async (service: HttpService, more: Partial<ServerOptions> = {}): Promise<RunningServer> =>
  (server = await startServer({
    host: '127.0.0.1',
    port: 0,
    service,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    ...more,
  }))
const json = (status: number, value: unknown): HttpResponse => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(value),
})

/** Sends text as it is and answers everything that comes back until the connection ends. */
function speak(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let heard = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(text))
    socket
      .setEncoding('utf8')
      .on('data', (chunk) => void (heard += chunk))
      .on('close', () => resolve(heard))
      .on('error', reject)
  })
}

test('while it drains it serves on, and every connection ends with its next answer', async () => {
  const { port, drain } = await start(async () => json(200, { ok: true }))
  const headersOf = async () => (await fetch(`http://127.0.0.1:${port}/v1/x`)).headers.get('connection')
  expect(await headersOf()).toBe('keep-alive')
  drain()
  for (const _ of [1, 2]) expect(await headersOf()).toBe('close')
})

test('behind HTTPS everything, pages too, asks browsers to come back over HTTPS only', async () => {
  for (const isSecure of [true, false]) {
    await server?.stop(0)
    const { port } = await start(async () => json(200, {}), {
      isSecure,
      pages: (page, response) => page.url === '/page' && (response.writeHead(200, { 'x-page': '1' }).end(), true),
    })
    for (const path of ['/page', '/v1/x']) {
      const { headers } = await fetch(`http://127.0.0.1:${port}${path}`)
      expect(headers.get('strict-transport-security')).toBe(isSecure ? 'max-age=31536000' : null)
      expect(headers.get('x-page')).toBe(path === '/page' ? '1' : null)
    }
  }
})

test('a request arrives whole, a response leaves with its length', async () => {
  const { port } = await start(async (incoming) => {
    const chunks: Uint8Array[] = []
    if (typeof incoming.body === 'object' && !(incoming.body instanceof Uint8Array))
      for await (const chunk of incoming.body) chunks.push(chunk)
    return json(200, {
      method: incoming.method,
      target: incoming.target,
      from: incoming.remoteAddress,
      body: Buffer.concat(chunks).toString(),
    })
  })
  const response = await fetch(`http://127.0.0.1:${port}/v1/x?y=1`, { method: 'POST', body: 'ä'.repeat(100_000) })
  expect(await response.json()).toEqual({
    method: 'POST',
    target: '/v1/x?y=1',
    from: '127.0.0.1',
    body: 'ä'.repeat(100_000),
  })
  expect(response.headers.get('content-length')).toMatch(/^\d+$/)
})

test.each([
  ['is no HTTP', 'HELLO\r\n\r\n', 400],
  ['has too large headers', `GET / HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`, 431],
  ['has two lengths', 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab', 400],
  [
    'has a length and is chunked',
    'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    400,
  ],
])('what %s gets a problem document and the end of the connection', async (_what, text, status) => {
  const { port } = await start(async () => json(200, {}))
  const heard = await speak(port, text)
  expect(heard).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
  expect(heard).toMatch(/x-request-id: [0-9a-f-]{36}\r\n/)
  expect(JSON.parse(heard.slice(heard.indexOf('\r\n\r\n')))).toMatchObject({ type: 'about:blank', status })
})

test('a response before the end of the body ends the connection', async () => {
  const { port } = await start(async () => json(413, {}))
  const heard = await speak(port, `POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n${'x'.repeat(1000)}`)
  expect(heard).toMatch(/^HTTP\/1.1 413 /)
  expect(heard.toLowerCase()).toContain('connection: close')
})

test('the head of a stream arrives before its first chunk, and the stream notices when its client leaves', async () => {
  const ended = Promise.withResolvers<void>()
  const first = Promise.withResolvers<void>()
  const { port } = await start(async ({ signal }) => ({
    status: 200,
    headers: { 'content-type': 'text/event-stream' },
    body: (async function* () {
      try {
        await first.promise
        while (!signal.aborted) {
          yield ': hello\n\n'
          await systemClock.sleep(5, signal)
        }
      } finally {
        ended.resolve()
      }
    })(),
  }))
  const head = Promise.withResolvers<void>()
  const client = request({ port, host: '127.0.0.1', path: '/' }, (response) => {
    head.resolve()
    response.once('data', () => client.destroy())
  }).on('error', () => {})
  client.end()
  await head.promise
  first.resolve()
  await ended.promise
})

test('a stream whose client stops reading ends after a while, and lets its connection go', async () => {
  const ended = Promise.withResolvers<void>()
  let written = 0
  server = await startServer({
    host: '127.0.0.1',
    port: 0,
    service: async () => ({
      status: 200,
      headers: {},
      body: (async function* () {
        try {
          for (;;) {
            yield 'x'.repeat(65_536)
            written += 1
          }
        } finally {
          ended.resolve()
        }
      })(),
    }),
    clock: hurriedClock,
    random: systemRandom,
    log: silentLog,
  })
  const closed = Promise.withResolvers<void>()
  const socket = connect(server.port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'))
  socket.on('error', () => {}).on('close', () => closed.resolve())
  await ended.promise // nothing was read
  expect(written).toBeGreaterThan(0)
  socket.resume()
  await closed.promise
})

test('stopping refuses new connections, ends streams, and lets a running request finish', async () => {
  const release = Promise.withResolvers<void>()
  const began = Promise.withResolvers<void>()
  const running = await start(async (incoming) => {
    if (incoming.target === '/stream')
      return {
        status: 200,
        headers: {},
        body: (async function* () {
          yield 'x'
          await systemClock.sleep(600_000, incoming.signal)
        })(),
      }
    began.resolve()
    await release.promise
    return json(200, { ok: true })
  })
  const slow = fetch(`http://127.0.0.1:${running.port}/slow`)
  const stream = await fetch(`http://127.0.0.1:${running.port}/stream`)
  await began.promise
  const stopped = running.stop(60_000)
  expect(await stream.text()).toBe('x')
  await expect(fetch(`http://127.0.0.1:${running.port}/late`)).rejects.toThrow()
  release.resolve()
  expect(await (await slow).json()).toEqual({ ok: true })
  await stopped
  server = undefined
})

test('a port that is taken is said at once', async () => {
  const { port } = await start(async () => json(200, {}))
  await expect(
    startServer({
      host: '127.0.0.1',
      port,
      service: async () => json(200, {}),
      clock: systemClock,
      random: systemRandom,
      log: silentLog,
    }),
  ).rejects.toThrow('EADDRINUSE')
})

const REFUSED = 'HTTP/1.1 '
test.each([
  [
    '417 for another expectation',
    417,
    'POST /v1/x HTTP/1.1\r\nHost: a\r\nExpect: the-moon\r\nContent-Length: 0\r\n\r\n',
  ],
  ['400 for two hosts', 400, 'GET /v1/x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n'],
  ['400 for no host', 400, 'GET /v1/x HTTP/1.1\r\n\r\n'],
  [
    '400 for another transfer coding',
    400,
    'POST /v1/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
  ],
  ['400 for what is no HTTP', 400, 'HELO there\r\n\r\n'],
  ['431 for large headers', 431, `GET /v1/x HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`],
])('%s, as a problem with a request id, and the connection ends', async (_what, status, text) => {
  let calls = 0
  const { port } = await start(async () => {
    calls++
    return json(200, {})
  })
  const heard = await speak(port, text)
  const [head = '', document = ''] = heard.split('\r\n\r\n')
  expect(head.startsWith(`${REFUSED}${status} `), heard).toBe(true)
  expect(head.toLowerCase()).toMatch(/x-request-id: [0-9a-f-]{36}/)
  expect(head.toLowerCase()).toContain('content-type: application/problem+json')
  expect(JSON.parse(document)).toMatchObject({ type: 'about:blank', status, detail: expect.any(String) })
  expect(calls).toBe(0)
})

test('HEAD is answered as GET without the body, and a stream ends with its head', async () => {
  let isEnded = false
  async function* stream() {
    try {
      yield 'data'
    } finally {
      isEnded = true
    }
  }
  const { port } = await start(async ({ target }) =>
    target === '/stream'
      ? { status: 200, headers: { 'content-type': 'text/event-stream' }, body: stream() }
      : json(200, { ok: true }),
  )
  const head = await fetch(`http://127.0.0.1:${port}/v1/x`, { method: 'HEAD' })
  expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, '11', ''])
  const streamed = await fetch(`http://127.0.0.1:${port}/stream`, { method: 'HEAD' })
  expect([streamed.status, await streamed.text(), isEnded]).toEqual([200, '', false])
})
