import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ConsoleLine as Line } from '../../../agents/node/drivers/hypervisor/console-line.ts'
import { type AgentCertificate, openCertificate } from '../../../agents/node/serve/certificate.ts'
import type { ServedConsole } from '../../../agents/node/serve/console.ts'
import { type Listener, type ListenerOptions, startListener } from '../../../agents/node/serve/listener.ts'
import { NO_COUNTERS } from '../../../domain/usage/rules.ts'
import { USAGE_FIELDS, USAGE_FIELDS_HEADER } from '../../../resources/instance/index.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { systemRandom } from '../../../kit/sys/random.ts'

let folder: string
let certificate: AgentCertificate
let listener: Listener
let line: Line
let typed: string

const READ = { instance: 'web', epoch: 'e', counters: { ...NO_COUNTERS, diskReadBytes: 7 } }
const LOAD = { cpuMilliseconds: 5, memoryUsedBytes: null }
const options = (): ListenerOptions => ({
  host: '127.0.0.1',
  port: 0,
  certificate,
  clock: systemClock,
  log: silentLog,
  isAuthorized: async (authorization) => authorization === 'Bearer good',
  consoleOf: (name) => (name === 'web' ? line : undefined),
  usage: async () => [{ ...READ, load: LOAD }],
})

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-listener-'))
  certificate = await openCertificate(folder, systemClock, systemRandom)
  line = new Line(Buffer.from('before'))
  typed = ''
  listener = await startListener(options())
})
afterEach(async () => {
  await listener.stop()
  await rm(folder, { recursive: true })
})

const run = () => line.running(1, (bytes) => ((typed += bytes.toString()), true))
const open = (method: string, path = '/v1/instances/web/console', body?: Buffer, token = 'good', more = {}) =>
  new Promise<{ status: number; text: () => string; ended: Promise<void>; destroy: () => void; fingerprint: string }>(
    (resolve, reject) => {
      const call = request(
        `${listener.url}${path}`,
        { method, agent: false, rejectUnauthorized: false, headers: { ...more, authorization: `Bearer ${token}` } },
        (response) => {
          let text = ''
          response.setEncoding('utf8').on('data', (chunk: string) => void (text += chunk))
          const raw = (response.socket as TLSSocket).getPeerX509Certificate()?.raw ?? Buffer.alloc(0)
          resolve({
            status: response.statusCode ?? 0,
            text: () => text,
            ended: new Promise((done) => response.once('close', () => done())),
            destroy: () => call.destroy(),
            fingerprint: createHash('sha256').update(raw).digest('hex'),
          })
        },
      )
      call.once('error', reject)
      call.end(body)
    },
  )
const linesOf = (text: string): ServedConsole[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((each) => JSON.parse(each))
const base64 = (text: string) => Buffer.from(text).toString('base64')
const until = (isTrue: () => boolean) => expect.poll(isTrue).toBe(true)

describe('the console of a guest', () => {
  it('sends the tail, the status, then what happens, and its own end', async () => {
    const stream = await open('GET')
    expect(stream.fingerprint).toBe(certificate.fingerprint)
    await until(() => linesOf(stream.text()).length === 2)
    run()
    line.append(Buffer.alloc(20_000, 'x'))
    line.stopped()
    line.removed()
    await stream.ended
    expect(linesOf(stream.text())).toEqual([
      { type: 'tail', data: base64('before'), log: 'memory', end: 6 },
      { type: 'status', connected: false, running: false, incarnation: 0 },
      { type: 'status', connected: true, running: true, incarnation: 1 },
      { type: 'output', data: base64('x'.repeat(16_384)), log: 'memory', end: 16_390 },
      { type: 'output', data: base64('x'.repeat(3_616)), log: 'memory', end: 20_006 },
      { type: 'status', connected: false, running: false, incarnation: 1 },
      { type: 'end', reason: 'removed' },
    ])
  })

  it('keeps the last 64 KiB', async () => {
    line.append(Buffer.alloc(100_000, 'a'))
    line.append(Buffer.from('end'))
    const stream = await open('GET')
    await until(() => linesOf(stream.text()).length === 2)
    const tail = linesOf(stream.text())[0]
    expect(tail?.type === 'tail' && Buffer.from(tail.data, 'base64').toString()).toBe(`${'a'.repeat(65_533)}end`)
    stream.destroy()
  })

  it('ends its streams when the agent stops', async () => {
    const stream = await open('GET')
    await listener.stop()
    await stream.ended
    expect(linesOf(stream.text()).at(-1)).toEqual({ type: 'end', reason: 'agent_stopping' })
  })

  it('bounds its streams', async () => {
    const streams = await Promise.all(Array.from({ length: 16 }, () => open('GET')))
    expect((await open('GET')).status).toBe(429)
    streams[0]?.destroy()
    await expect.poll(async () => (await open('GET')).status).toBe(200)
  })

  it('releases the stream of a reader that stops reading', async () => {
    await listener.stop()
    // what comes later comes a hundred times sooner
    const clock = { ...systemClock, after: (late: number, work: () => void) => systemClock.after(late / 100, work) }
    listener = await startListener({ ...options(), clock })
    const silent = request(`${listener.url}/v1/instances/web/console`, {
      agent: false,
      rejectUnauthorized: false,
      headers: { authorization: 'Bearer good' },
    })
    silent.on('error', () => {}).end()
    await new Promise((resolve) => silent.once('response', resolve)) // its head is read, its body never is
    const others = await Promise.all(Array.from({ length: 15 }, () => open('GET')))
    expect((await open('GET')).status).toBe(429)
    line.append(Buffer.alloc(16_000_000, 'x'))
    await Promise.all(others.map(({ ended }) => ended)) // they are too far behind, and were informed
    for (const stream of await Promise.all(Array.from({ length: 15 }, () => open('GET'))))
      expect(stream.status).toBe(200)
    await expect.poll(async () => (await open('GET')).status).toBe(200)
    silent.destroy()
  })

  it('takes input in whole, while a guest runs', async () => {
    expect((await open('POST', undefined, Buffer.from('x'))).status).toBe(409)
    line.running(1, undefined)
    expect((await open('POST', undefined, Buffer.from('x'))).status).toBe(503)
    run()
    expect((await open('POST', undefined, Buffer.from('ls\n'))).status).toBe(204)
    expect((await open('POST', undefined, Buffer.alloc(4_096, 'y'))).status).toBe(204)
    expect((await open('POST', undefined, Buffer.alloc(4_097, 'z'))).status).toBe(413)
    expect((await open('POST', undefined, Buffer.alloc(0))).status).toBe(400)
    expect(typed).toBe(`ls\n${'y'.repeat(4_096)}`)
  })

  it('is for callers with the token, and for instances of this node', async () => {
    expect((await open('GET', undefined, undefined, 'bad')).status).toBe(401)
    expect((await open('GET', '/v1/instances/other/console')).status).toBe(404)
    expect((await open('GET', '/')).status).toBe(404)
    expect((await open('DELETE')).status).toBe(405)
  })
})

it('reports to callers with the token what the guests have transferred', async () => {
  const answer = await open('GET', '/v1/usage')
  await answer.ended
  expect(answer.status).toBe(200)
  expect(JSON.parse(answer.text())).toEqual({
    guests: [READ],
  })
  const newer = await open('GET', '/v1/usage', undefined, 'good', { [USAGE_FIELDS_HEADER]: USAGE_FIELDS })
  await newer.ended
  expect(JSON.parse(newer.text()), 'a controller of this release').toEqual({ guests: [{ ...READ, load: LOAD }] })
  expect((await open('GET', '/v1/usage', undefined, 'bad')).status).toBe(401)
})

it('a certificate is kept, and renewed when it expires', async () => {
  expect((await openCertificate(folder, systemClock, systemRandom)).fingerprint).toBe(certificate.fingerprint)
  const later = { ...systemClock, now: () => new Date(systemClock.now().getTime() + 3_400 * 86_400_000) }
  expect((await openCertificate(folder, later, systemRandom)).fingerprint).not.toBe(certificate.fingerprint)
})
