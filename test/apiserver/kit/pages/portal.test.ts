import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type IncomingHttpHeaders, request as send } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { cwd } from 'node:process'
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  openPortal,
  originsOf,
  type Portal,
  type PortalOptions,
  portalPages,
} from '../../../../apiserver/kit/pages/portal.ts'
import { type RunningServer, startServer } from '../../../../kit/http/server.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { silentLog } from '../../../../kit/sys/log.ts'
import { systemRandom } from '../../../../kit/sys/random.ts'

const SHARED = 'export const shared = 1\n'.repeat(100)
const FILES: Readonly<Record<string, string | Buffer>> = {
  stamp: 'a',
  'index.html': '<!doctype html><title>customers</title>',
  'operator.html': '<!doctype html><title>operators</title>',
  'theme.js': 'theme()',
  'notes.txt': 'for nobody',
  'assets/index-1.js': 'customers()',
  'assets/index-1.css': 'body{}',
  'assets/list-1.js': 'list()',
  'assets/operator-1.js': 'operators()',
  'assets/loose-1.js': 'loadedByNoPage()',
  'assets/shared-1.js': SHARED,
  'assets/shared-1.js.br': brotliCompressSync(SHARED),
  'assets/shared-1.js.gz': gzipSync(SHARED),
  '.vite/manifest.json': JSON.stringify({
    'index.html': {
      file: 'assets/index-1.js',
      isEntry: true,
      css: ['assets/index-1.css'],
      imports: ['_shared.js'],
      dynamicImports: ['nouns/server/list.tsx'],
    },
    'operator.html': { file: 'assets/operator-1.js', isEntry: true, imports: ['_shared.js'] },
    'nouns/server/list.tsx': { file: 'assets/list-1.js', imports: ['_shared.js'] },
    '_shared.js': { file: 'assets/shared-1.js' },
  }),
}

let folder = ''
let portal: Portal | undefined
const servers: RunningServer[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-portal-'))
  for (const [path, content] of Object.entries(FILES)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), content)
  }
  portal = await openPortal(folder)
})
afterAll(async () => {
  for (const server of servers) await server.stop(0)
  await rm(folder, { recursive: true, force: true })
})

async function serve(options: Partial<PortalOptions> = {}): Promise<number> {
  const server = await startServer({
    host: '127.0.0.1',
    port: 0,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    pages: portalPages({ portal, page: 'index.html', home: '/dashboard', ...options }, () => false),
    service: async () => ({ status: 404, headers: { 'content-type': 'application/problem+json' }, body: '{}' }),
  })
  servers.push(server)
  return server.port
}

interface Received {
  readonly status: number | undefined
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

const BROWSER = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

/** `fetch` would choose codings, follow redirects and refuse to name another host. */
const get = (port: number, path: string, headers: Record<string, string> = BROWSER, method = 'GET') =>
  new Promise<Received>((resolve, reject) => {
    const request = send({ host: '127.0.0.1', port, path, headers, method }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () =>
        resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks) }),
      )
    })
    request.on('error', reject).end()
  })

describe('the pages', () => {
  it.each(['/dashboard', '/login', '/login/mfa', '/verify-email', '/servers/0d1f?tab=console', '/v1x', '/documents'])(
    '%s is the page, with its policy',
    async (path) => {
      const { status, headers, body } = await get(await serve(), path)
      expect([status, body.toString()]).toEqual([200, FILES['index.html']])
      expect(headers).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy':
          "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
          "connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; " +
          "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
        'permissions-policy': 'camera=(), microphone=(), geolocation=(), payment=(), usb=()',
        'cache-control': 'no-cache',
        vary: 'Accept-Encoding, Accept',
      })
    },
  )

  it('may send requests to the named origins besides, and to no other', async () => {
    const connects = originsOf([
      'https://objects.example:9000',
      'https://a.objects.example/',
      'https://objects.example:9000/x',
    ])
    const { headers } = await get(await serve({ connects }), '/dashboard')
    expect(headers['content-security-policy']).toContain(
      "; connect-src 'self' https://a.objects.example https://objects.example:9000; worker-src",
    )
    expect(() => originsOf(["https://objects.example;script-src'"])).toThrow('content security policy')
  })

  it('begin at the dashboard', async () => {
    const { status, headers } = await get(await serve(), '/')
    expect([status, headers.location]).toEqual([302, '/dashboard'])
  })

  it.each([
    ['GET', '/v1/nothing', BROWSER],
    ['GET', '/v1', BROWSER],
    ['GET', '/mcp', BROWSER],
    ['GET', '/docs', BROWSER],
    ['GET', '/docs/nothing', BROWSER],
    ['GET', '/openapi.json', BROWSER],
    ['GET', '/.well-known/security', BROWSER],
    ['GET', '/livez', BROWSER],
    ['GET', '/readyz', BROWSER],
    ['GET', '/metrics', BROWSER],
    ['GET', '/nothing.js', BROWSER],
    ['GET', '/assets/index-0.js', BROWSER],
    ['POST', '/dashboard', BROWSER],
    ['GET', '/dashboard', { accept: 'application/json' }],
    ['GET', '/', { accept: '*/*' }],
    ['GET', '/servers', {}],
  ])('%s %s of %j is left to others', async (method, path, headers) => {
    const { status, headers: answered } = await get(await serve(), path, headers, method)
    expect([status, answered['content-type']]).toEqual([404, 'application/problem+json'])
  })

  it('are sent once', async () => {
    const port = await serve()
    const first = await get(port, '/dashboard')
    const again = await get(port, '/login', { ...BROWSER, 'if-none-match': first.headers.etag ?? '' })
    expect([again.status, again.body.length]).toEqual([304, 0])
    expect(again.headers['content-security-policy']).toBe(first.headers['content-security-policy'])
  })

  it('answer HEAD as GET, without the page', async () => {
    const { status, headers, body } = await get(await serve(), '/dashboard', BROWSER, 'HEAD')
    expect([status, headers['content-length'], body.length]).toEqual([200, '39', 0])
  })
})

describe('the files', () => {
  it('are kept for a year where their name has their digest, and checked each time otherwise', async () => {
    const port = await serve()
    const caching = async (path: string) => (await get(port, path, {})).headers['cache-control']
    expect(await caching('/assets/index-1.js')).toBe('public, max-age=31536000, immutable')
    expect(await caching('/theme.js')).toBe('no-cache')
  })

  it.each(['/assets/index-1.js', '/assets/index-1.css'])('%s has no headers of pages', async (path) => {
    const { headers } = await get(await serve(), path, {})
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-resource-policy': 'same-origin',
    })
    for (const name of ['content-security-policy', 'cross-origin-opener-policy', 'permissions-policy'])
      expect(headers).not.toHaveProperty(name)
  })

  it.each([
    ['br, gzip', 'br', brotliDecompressSync],
    ['gzip, deflate', 'gzip', gunzipSync],
    ['br;q=0, gzip', 'gzip', gunzipSync],
    ['identity', undefined, (bytes: Buffer) => bytes],
  ])('are compressed for a browser that accepts %s', async (accepted, coding, read) => {
    const { headers, body } = await get(await serve(), '/assets/shared-1.js', { 'accept-encoding': accepted })
    expect(headers).toMatchObject({ vary: 'Accept-Encoding', 'content-type': 'text/javascript; charset=utf-8' })
    expect(headers['content-encoding']).toBe(coding)
    expect(read(body).toString()).toBe(SHARED)
  })

  it.each([
    ['index.html', ['/assets/index-1.js', '/assets/list-1.js', '/assets/index-1.css'], ['/assets/operator-1.js']],
    ['operator.html', ['/assets/operator-1.js'], ['/assets/index-1.js', '/assets/list-1.js', '/assets/index-1.css']],
  ] as const)('of %s are not those of the other page', async (page, own, others) => {
    const port = await serve({ page })
    const statusOf = async (path: string) => (await get(port, path, {})).status
    for (const path of [...own, '/assets/shared-1.js', '/theme.js']) expect(await statusOf(path), path).toBe(200)
    for (const path of [
      ...others,
      '/assets/loose-1.js',
      '/stamp',
      '/notes.txt',
      '/.vite/manifest.json',
      '/assets/shared-1.js.br',
    ])
      expect(await statusOf(path), path).toBe(404)
  })
})

describe('the name of this machine', () => {
  const publicUrl = 'http://127.0.0.1:8080'

  it.each(['localhost:8080', '[::1]:8080'])('is that of the public URL, not %s', async (host) => {
    const { status, headers } = await get(await serve({ publicUrl }), '/login?error=provider_error', {
      ...BROWSER,
      host,
    })
    expect([status, headers.location]).toEqual([302, 'http://127.0.0.1:8080/login?error=provider_error'])
  })

  it.each([
    ['127.0.0.1:8080', publicUrl],
    ['localhost:9000', publicUrl],
    ['cloud.example:8080', publicUrl],
    ['localhost:8080', 'http://0.0.0.0:8080'],
    ['localhost:8080', 'https://cloud.example'],
    ['nonsense:x', publicUrl],
  ])('stays %s with the public URL %s', async (host, url) => {
    expect((await get(await serve({ publicUrl: url }), '/login', { ...BROWSER, host })).status).toBe(200)
  })
})

describe('a portal', () => {
  it('that is off is not there', async () => {
    expect(await openPortal('none')).toBeUndefined()
    const { status } = await get(await serve({ portal: undefined }), '/dashboard')
    expect(status).toBe(404)
  })

  it.each([(path: string) => `${path}/`, (path: string) => relative(cwd(), path)])(
    'is read from a folder however it is written',
    async (written) => {
      const port = await serve({ portal: await openPortal(written(folder)) })
      expect((await get(port, '/dashboard')).status).toBe(200)
    },
  )

  it('that the setting names and nobody built is refused', async () => {
    await expect(openPortal(join(folder, 'nothing'))).rejects.toThrow('ENOENT')
  })
})
