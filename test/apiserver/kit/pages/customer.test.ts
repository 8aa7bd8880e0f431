import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PAGES } from '../../../../apiserver/identity/pages.ts'
import { createPages } from '../../../../apiserver/kit/pages/customer.ts'
import { openApiDocument } from '../../../../kit/http/openapi.ts'
import { type RunningServer, startServer } from '../../../../kit/http/server.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { silentLog } from '../../../../kit/sys/log.ts'
import { systemRandom } from '../../../../kit/sys/random.ts'
import { ROUTES } from '../../../../resources/index.ts'

let server: RunningServer
let origin = ''

beforeAll(async () => {
  const document = openApiDocument(ROUTES, { title: 'svccloud', description: '', version: '0', serverUrl: '/' })
  server = await startServer({
    host: '127.0.0.1',
    port: 0,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    pages: createPages({ document, random: systemRandom, pages: PAGES }),
    service: async () => ({ status: 404, headers: { 'x-answered-by': 'api' }, body: '' }),
  })
  origin = `http://127.0.0.1:${server.port}`
})
afterAll(() => server.stop(0))

describe('every page', () => {
  test.each([
    '/docs',
    '/docs/start.js',
    '/docs/swagger-ui.css',
    '/docs/swagger-ui-bundle.js',
    '/openapi.json',
    ...PAGES.map((page) => page.path),
  ])('%s is there, with a request id and nothing sniffed', async (path) => {
    const response = await fetch(`${origin}${path}`)
    expect(response.status).toBe(200)
    expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    expect(response.headers.get('x-powered-by')).toBeNull()
    expect((await response.text()).length).toBeGreaterThan(0)
  })

  test('the documentation sends requests with the token that was entered, or with the session', async () => {
    const script = await (await fetch(`${origin}/docs/start.js`)).text()
    let options: { requestInterceptor: (request: object) => object; supportedSubmitMethods?: unknown } | undefined
    runInNewContext(script, {
      SwaggerUIBundle: (given: typeof options) => void (options = given),
      document: { cookie: 'a=b; svccloud_csrf=c%3Dd' },
    })
    expect(options).not.toHaveProperty('supportedSubmitMethods')
    expect(options?.requestInterceptor({ headers: {} })).toEqual({ headers: { 'X-CSRF-Token': 'c=d' } })
    const withToken = { headers: { Authorization: 'Bearer t' } }
    expect(options?.requestInterceptor(withToken)).toEqual(withToken)
    expect((await fetch(`${origin}/docs`)).headers.get('content-security-policy')).toContain("connect-src 'self'")
  })

  test.each(['/docs', ...PAGES.map((page) => page.path)])(
    '%s runs and loads nothing from elsewhere and is framed by nobody',
    async (path) => {
      const response = await fetch(`${origin}${path}`)
      const policy = response.headers.get('content-security-policy') ?? ''
      expect(policy).toContain("default-src 'none'")
      expect(policy).toContain("frame-ancestors 'none'")
      expect(policy).not.toMatch(/script-src[^;]*'unsafe/)
      expect(await response.text()).not.toMatch(/(src|href)="(https?:)?\/\//)
    },
  )
})

test('the root redirects to the documentation', async () => {
  const response = await fetch(`${origin}/`, { redirect: 'manual' })
  expect([response.status, response.headers.get('location')]).toEqual([302, '/docs'])
})

test('the document is sent again only when it has changed', async () => {
  const first = await fetch(`${origin}/openapi.json`)
  expect(await first.json()).toMatchObject({ openapi: '3.1.0' })
  const again = await fetch(`${origin}/openapi.json`, { headers: { 'if-none-match': first.headers.get('etag') ?? '' } })
  expect(again.status).toBe(304)
})

test('the document is served without examples to those who generate clients', async () => {
  const read = async (path: string) => (await (await fetch(`${origin}${path}`)).json()) as object
  const whole = JSON.stringify(await read('/openapi.json?examples=yes'))
  expect(whole).toContain('"example":')
  const bare = await read('/openapi.json?examples=no')
  expect(JSON.stringify(bare)).not.toMatch(/"examples?":/)
  expect(bare).toEqual(JSON.parse(whole, (key, value: unknown) => (/^examples?$/.test(key) ? undefined : value)))
})

test.each([
  ['GET', '/docs/package.json'],
  ['GET', '/docs/../package.json'],
  ['GET', '/docs/%2e%2e/package.json'],
  ['POST', '/docs'],
  ['GET', '/v1/servers'],
  ['GET', '/docs/'],
])('%s %s is the API to answer', async (method, path) => {
  expect((await fetch(`${origin}${path}`, { method })).headers.get('x-answered-by')).toBe('api')
})
