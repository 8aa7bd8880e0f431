/** The proxy to what is in playgrounds, with a tunnel and an API that only answer what the test says. */
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openAppsListener, routeOf } from '../../../../hosting/processes/guests/apps.ts'
import { readRoutes, targetOf } from '../../../../hosting/core/reading/guests/routes.ts'
import { probePort } from '../../../../embedded/kit/ports.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'

const NAME = 'pg-0123456789'
const HOST = `web.${NAME}.apps.test`
const service = { name: 'web', port: { name: 'http' } }
const ingress = {
  metadata: { namespace: 'default' },
  spec: { rules: [{ host: HOST, http: { paths: [{ path: '/', pathType: 'Prefix', backend: { service } }] } }] },
}
const ANSWERS: Readonly<Record<string, object>> = {
  '/apis/networking.k8s.io/v1/ingresses?limit=100': { items: [ingress] },
  '/api/v1/namespaces/default/services/web': { spec: { clusterIP: '10.96.0.7', ports: [{ port: 80, name: 'http' }] } },
}
const client = {
  open: () => Promise.reject(new Error('not here')),
  send: async (url: string) => ({ status: 200, text: JSON.stringify(ANSWERS[url.slice('https://api'.length)] ?? {}) }),
  close() {},
}
const api = { url: 'https://api', client }

let folder: string
let port: number
const asked: string[] = []
const stop: (() => Promise<void>)[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-apps-'))
  const app = createServer((seen, answer) => answer.end(`${seen.method} ${seen.url} ${seen.headers.host}`))
  await new Promise<void>((resolve) => app.listen(0, '127.0.0.1', resolve))
  const tunnel = createServer()
  tunnel.on('connect', ({ url }, socket: Socket) => {
    asked.push(url ?? '')
    const upstream = connect((app.address() as AddressInfo).port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      upstream.pipe(socket).pipe(upstream)
    })
  })
  await new Promise<void>((resolve) => tunnel.listen(join(folder, 'tunnel.sock'), resolve))
  port = await probePort('127.0.0.1', 0)
  const door = await openAppsListener({
    host: '127.0.0.1',
    port,
    domain: 'apps.test',
    clock,
    log,
    playground: (name) =>
      name === NAME
        ? {
            routes: () => readRoutes(api),
            target: (route) => targetOf(api, route),
            tunnel: join(folder, 'tunnel.sock'),
          }
        : undefined,
  })
  for (const server of [app, tunnel]) stop.push(async () => void server.close())
  stop.push(
    () => door.stop(),
    () => rm(folder, { recursive: true }),
  )
})
afterAll(async () => {
  for (const each of stop) await each()
})

const get = (host: string, path = '/') =>
  new Promise<string>((resolve, reject) => {
    request({ host: '127.0.0.1', port, path, headers: { host } }, (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (part: string) => (text += part))
      answer.once('end', () => resolve(`${answer.statusCode} ${text.trim()}`))
    })
      .once('error', reject)
      .end()
  })

test('a request goes to the service that an Ingress names, and nowhere else', async () => {
  expect(await get(`${HOST}:${port}`, '/shop?x=1')).toBe(`200 GET /shop?x=1 ${HOST}:${port}`)
  expect(asked).toEqual(['10.96.0.7:80'])
  expect(await get(`other.${NAME}.apps.test`)).toMatch(/^404 No Ingress/)
  expect(await get('web.pg-9999999999.apps.test')).toMatch(/^404 There is no such playground/)
  expect(await get('169.254.169.254')).toMatch(/^404 There is no such playground/)
  expect(asked).toHaveLength(1)
})

const route = (host: string, path: string, isExact = false) => ({
  host,
  path,
  isExact,
  namespace: 'default',
  service: `${host}${path}`,
  port: { number: 80 },
})

test.each([
  ['a.b', '/x/y', 'a.b/x', 'the longest path'],
  ['a.b', '/xy', 'a.b/', 'a path is no prefix of a longer word'],
  ['c.b', '/x', '*.b/', 'a star is one label'],
  ['d.c.b', '/', undefined, 'and not two'],
  ['a.b', '/e', 'a.b/e', 'an exact path'],
  ['a.b', '/e/f', 'a.b/', 'which is for nothing below it'],
])('%s%s goes to %s: %s', (host, path, service, _why) => {
  const routes = [route('*.b', '/'), route('a.b', '/'), route('a.b', '/x'), route('a.b', '/e', true)]
  expect(routeOf(routes, host, path)?.service).toBe(service)
})
