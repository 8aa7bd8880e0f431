/** What the API of a customer's cluster answers is that customer's to decide: it is read within bounds. */
import type { ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { type Client, openClient } from '../../../hosting/core/https-client.ts'
import { listAll } from '../../../hosting/core/kube-api.ts'
import { TooLong } from '../../../kit/http/bounded.ts'
import { openHttpsTransport } from '../../../kit/kube/https-transport.ts'
import { type Certificate, makeCertificate } from '../../../kit/sys/certificate.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { systemRandom } from '../../../kit/sys/random.ts'

let certificate: Certificate
beforeAll(async () => {
  certificate = await makeCertificate({
    commonName: '127.0.0.1',
    hosts: ['127.0.0.1'],
    days: 1,
    isClient: true,
    now: systemClock.now(),
    random: systemRandom,
  })
})

let server: Server
let url: string
let client: Client
/** Of each object in the lists. */
let objectBytes: number
/** Page sizes that were asked for. */
let limits: number[]

beforeEach(async () => {
  limits = []
  server = createServer({ cert: certificate.certificate, key: certificate.key }, (request, response) => {
    const query = new URL(request.url ?? '', 'https://x').searchParams
    if (!query.has('limit')) {
      const more = () => void response.write(Buffer.alloc(1024 ** 2, ' '), (error) => error == null && more())
      return more()
    }
    const [limit, from] = [Number(query.get('limit')), Number(query.get('continue') ?? 0)]
    limits.push(limit)
    const to = Math.min(40, from + limit)
    response.write(`{"metadata":${JSON.stringify(to < 40 ? { continue: String(to) } : {})},"items":[`)
    const write = (at: number): void => {
      if (at === to) return void response.end(']}')
      const item = JSON.stringify({ at, is: 'x'.repeat(objectBytes) })
      response.write(`${at === from ? '' : ','}${item}`, (error) => error == null && write(at + 1))
    }
    write(from)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  client = openClient(certificate.certificate, certificate, { clock: systemClock })
})
afterEach(() => {
  client.close()
  server.closeAllConnections()
  server.close()
})

const list = () => listAll({ url, client }, '/api/v1/pods', z.object({ at: z.number() }), 1_000)

test('an answer without end ends', async () => {
  await expect(client.send(`${url}/readyz`)).rejects.toThrow(TooLong)
})

test('one that trickles ends too, and so many are under way at a time', async () => {
  const open = new Set<ServerResponse>()
  let most = 0
  server.removeAllListeners('request')
  server.on('request', (_request, response) => {
    open.add(response)
    most = Math.max(most, open.size)
    const again = setInterval(() => open.size >= 8 && response.write(' '), 50)
    response.once('close', () => {
      clearInterval(again)
      open.delete(response)
      // The last of eight are not waited for by the others.
      for (const each of open) each.write(' ')
    })
  })
  const asked = Array.from({ length: 16 }, () => client.send(`${url}/readyz`, { wholeMilliseconds: 1_000 }))
  const ended = await Promise.allSettled(asked)
  expect(ended.map((each) => (each.status === 'rejected' ? String(each.reason) : 'answered'))).toEqual(
    asked.map(() => 'Error: no whole answer in time'),
  )
  expect(most).toBe(8)
})

test('so does a line of a watch', { timeout: 60_000 }, async () => {
  const { transport, close } = openHttpsTransport({ url, ca: certificate.certificate })
  const lines = (await transport({ method: 'GET', path: '/api/v1/pods?watch=true', headers: {} })).lines()
  await expect(lines[Symbol.asyncIterator]().next()).rejects.toThrow(TooLong)
  await close()
})

test('a list is read in pages', async () => {
  objectBytes = 10
  expect((await list()).map(({ at }) => at)).toEqual(Array.from({ length: 40 }, (_, at) => at))
  expect(limits).toEqual([500])
})

test('of large objects it is read in smaller ones', async () => {
  objectBytes = 300 * 1024
  expect((await list()).map(({ at }) => at)).toEqual(Array.from({ length: 40 }, (_, at) => at))
  expect(limits).toEqual([500, 63, 8, 8, 8, 8, 8])
})

test('a list that is longer than can be read is refused', { timeout: 60_000 }, async () => {
  objectBytes = 1.3 * 1024 ** 2
  await expect(list()).rejects.toThrow('more than')
})
