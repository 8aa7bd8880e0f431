/** The door before an engine that answers without reading what it was sent. */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { Agent, request as httpsRequest } from 'node:https'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startDoor } from '../../../embedded/object-storage/door.ts'
import { openDoorMetrics } from '../../../embedded/object-storage/metrics.ts'
import { openCertificates } from '../../../embedded/kubernetes/server/certificates.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { openRegistry } from '../../../kit/sys/metrics.ts'
import { systemRandom } from '../../../kit/sys/random.ts'

const SIGNED = 'AWS4-HMAC-SHA256 Credential=KEY1/20260101/us-east-1/s3/aws4_request,SignedHeaders=host,Signature=00'

/** Answers each connection's first request when its head is there, and leaves the body; what comes then counts as the
 *  next request, as a parser would take it. */
async function openLazyEngine(socketPath: string) {
  const heads: string[][] = []
  const server = createServer((socket) => {
    const seen: string[] = []
    heads.push(seen)
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      seen.push(String(chunk).split('\r\n')[0] ?? '')
      if (String(chunk).includes('HTTP/1.1')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    })
  })
  server.listen(socketPath)
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return heads
}

async function openDoor() {
  const folder = await mkdtemp(join(tmpdir(), 'door-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const parts = { clock: systemClock, random: systemRandom, log: silentLog }
  const certificates = await openCertificates({ ...parts, folder, hosts: ['localhost'] })
  const heads = await openLazyEngine(join(folder, 's3'))
  const usage = {
    measured: { at: new Date(), buckets: 1 },
    bytes: () => 0,
    reserve: () => () => {},
    measure: async () => {},
  }
  const tenant = { id: 'ada', bucketPrefix: 'one-', quotaBytes: 1_000, usage, active: 0, writing: 0 }
  const tenants = { byKey: () => tenant, find: () => tenant, list: () => [tenant] }
  const door = await startDoor({
    ...parts,
    ...{ host: '127.0.0.1', port: 0, socketPath: join(folder, 's3'), sizeOf: async () => 0 },
    certificate: certificates.certificate,
    key: certificates.key,
    tenants: tenants as never, // what requests look at
    metrics: openDoorMetrics(openRegistry({ isProcessWide: false }), {
      tenants: tenants as never,
      isEngineUp: async () => true,
    }),
  })
  onTestFinished(() => door.stop())
  const agent = new Agent({ ca: certificates.authority, keepAlive: true })
  onTestFinished(() => agent.destroy())
  const send = async (method: string, body: string) => {
    const headers = { authorization: SIGNED, ...(body === '' ? {} : { 'content-length': body.length }) }
    const request = httpsRequest({ agent, host: 'localhost', port: door.port, method, path: '/one-b/a', headers })
    request.end(body)
    const [answer] = await once(request, 'response')
    answer.resume()
    await once(answer, 'end')
    return answer.statusCode as number // of Node's response
  }
  return { send, heads }
}

test('no request goes by a connection that has carried a body', async () => {
  const { send, heads } = await openDoor()
  for (const [method, body] of [
    ['GET', ''],
    ['GET', ''],
    ['PUT', 'GET / HTTP/1.1\r\n\r\n'],
    ['GET', ''],
    ['DELETE', 'x'],
    ['GET', ''],
  ] as const)
    expect(await send(method, body)).toBe(200)
  const kept = heads.filter((seen) => seen.length > 0 && seen.every((head) => head.startsWith('GET /one-b/a ')))
  expect(kept.flat()).toHaveLength(4)
  for (const seen of heads.filter((each) => !kept.includes(each)))
    expect(seen.filter((head) => head.includes(' /one-b/a '))).toHaveLength(1)
})
