/** Plain reads over real sockets: what a client that has the answer gets, and one that accepts less bytes. */
import { request } from 'node:http'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { codingOf, represent } from '../../../kit/http/representation.ts'
import { type RunningServer, startServer } from '../../../kit/http/server.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { systemRandom } from '../../../kit/sys/random.ts'

const JSON_TYPE = { 'content-type': 'application/json' }
const long = Buffer.from(JSON.stringify({ items: Array.from({ length: 100 }, (_, at) => ({ name: `web-${at}` })) }))
const ANSWERS: Readonly<Record<string, Parameters<typeof represent>[1]>> = {
  '/long': { status: 200, headers: JSON_TYPE, body: long },
  '/text': { status: 200, headers: JSON_TYPE, body: long.toString() },
  '/short': { status: 200, headers: JSON_TYPE, body: '{}' },
  '/versioned': { status: 200, headers: { ...JSON_TYPE, etag: '"7"' }, body: long },
  '/refused': { status: 404, headers: { 'content-type': 'application/problem+json' }, body: long },
}

let server: RunningServer
beforeAll(async () => {
  server = await startServer({
    host: '127.0.0.1',
    port: 0,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    service: async ({ target, headers }) =>
      represent(
        { header: (name) => headers[name]?.toString() },
        ANSWERS[target] ?? { status: 404, headers: {}, body: '' },
      ),
  })
})
afterAll(() => server.stop(0))

interface Reply {
  readonly status: number | undefined
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly bytes: Buffer
}

/** Without the decompression of `fetch`. */
const get = (path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Reply> =>
  new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port: server.port, path, headers, method }, async (response) => {
      const chunks: Buffer[] = []
      for await (const chunk of response) chunks.push(chunk as Buffer) // node:http reads bytes
      resolve({ status: response.statusCode, headers: response.headers, bytes: Buffer.concat(chunks) })
    })
      .on('error', reject)
      .end()
  })
const tagOf = async (path: string): Promise<string> => String((await get(path)).headers['etag'])

describe('a client that has the answer', () => {
  test('gets 304 without a body, a type or a length', async () => {
    const tag = await tagOf('/long')
    expect(tag).toMatch(/^W\/"[\w-]{22}"$/)
    const { status, headers, bytes } = await get('/long', { 'if-none-match': tag })
    expect([status, bytes.length]).toEqual([304, 0])
    expect(headers).toMatchObject({ etag: tag, vary: 'accept-encoding' })
    expect(headers).not.toHaveProperty('content-length')
    expect(headers).not.toHaveProperty('content-type')
  })

  test('may name several, and a strong form of it', async () => {
    const tag = await tagOf('/long')
    expect((await get('/long', { 'if-none-match': `"other", ${tag.slice(2)}` })).status).toBe(304)
    expect((await get('/long', { 'if-none-match': '"other", W/"more"' })).status).toBe(200)
    expect((await get('/long', { 'if-none-match': '*' })).status).toBe(200)
  })

  test('bytes decide, whatever they are stored in; other bytes have another tag', async () => {
    expect(await tagOf('/text')).toBe(await tagOf('/long'))
    expect(await tagOf('/short')).not.toBe(await tagOf('/long'))
  })

  test('an answer with the tag of a version keeps it and is always sent: the state may have changed', async () => {
    expect(await tagOf('/versioned')).toBe('"7"')
    for (const tag of ['"7"', 'W/"7"', await tagOf('/long')])
      expect((await get('/versioned', { 'if-none-match': tag })).status).toBe(200)
  })

  test('a refusal has no tag', async () => {
    const { headers } = await get('/refused', { 'accept-encoding': 'gzip', 'if-none-match': await tagOf('/long') })
    expect(headers).not.toHaveProperty('etag')
    expect(headers).not.toHaveProperty('content-encoding')
  })
})

describe('a client that accepts compressed answers', () => {
  test.each([
    ['gzip', gunzipSync],
    ['br', brotliDecompressSync],
  ] as const)('gets the same bytes by %s, every time', async (coding, decompress) => {
    for (const path of ['/long', '/text', '/long', '/versioned']) {
      const { headers, bytes } = await get(path, { 'accept-encoding': coding })
      expect(headers).toMatchObject({
        'content-encoding': coding,
        'content-length': String(bytes.length),
        vary: 'accept-encoding',
      })
      expect(bytes.length).toBeLessThan(long.length / 2)
      expect(decompress(bytes)).toEqual(long)
    }
    expect((await get('/long', { 'accept-encoding': coding })).headers['etag']).toBe(await tagOf('/long'))
  })

  test('short answers, and those for clients that accept nothing, are sent as they are', async () => {
    for (const [path, accepted] of [
      ['/short', 'gzip'],
      ['/long', 'identity'],
      ['/long', 'gzip;q=0, br;q=0'],
    ] as const) {
      const { headers, bytes } = await get(path, { 'accept-encoding': accepted })
      expect(headers).not.toHaveProperty('content-encoding')
      expect(headers['vary']).toBe('accept-encoding')
      expect(JSON.parse(bytes.toString())).toBeDefined()
    }
  })

  test('HEAD has the headers of GET', async () => {
    const [head, whole] = [
      await get('/long', { 'accept-encoding': 'gzip' }, 'HEAD'),
      await get('/long', { 'accept-encoding': 'gzip' }),
    ]
    expect(head.bytes).toHaveLength(0)
    for (const name of ['etag', 'content-encoding', 'content-length', 'vary'])
      expect(head.headers[name]).toBe(whole.headers[name])
  })
})

test.each([
  [undefined, undefined],
  ['', undefined],
  ['gzip', 'gzip'],
  ['deflate, zstd', undefined],
  ['gzip, deflate, br', 'br'],
  ['GZIP', 'gzip'],
  ['br;q=0.2, gzip;q=0.8', 'gzip'],
  ['br; q=0, *', 'gzip'],
  ['*', 'br'],
  ['*;q=0', undefined],
  ['gzip;q=0', undefined],
  ['gzip;q=nonsense', undefined],
])('accepting %j, the coding is %j', (accepted, coding) => {
  expect(codingOf(accepted)).toBe(coding)
})
