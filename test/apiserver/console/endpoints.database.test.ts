/** The console through the API, with a host that the test plays. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ConsoleLine } from '../../../apiserver/console/console.ts'
import type { AgentConnections } from '../../../apiserver/console/consoles.ts'
import { type Channel, createChannel } from '../../../kit/http/channel.ts'
import type { HttpRequest } from '../../../kit/http/exchange.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { useDatabase } from '../../database.ts'
import { type Cloud, openCloud, PASSWORD, type Person, PUBLIC_KEY } from '../cloud.ts'

const database = useDatabase()
let cloud: Cloud
let ada: Person
let id = ''

/** The host: lines that it says to each connection, bytes that it was given. */
const host = {
  connections: [] as Channel<ConsoleLine>[],
  opened: 0,
  written: [] as string[],
  outcome: 'written' as 'written' | 'stopped' | 'unreachable',
  isUp: true,
  /** What the guest has written since its log began. */
  log: 'a',
  end: 5,
}
const agents: AgentConnections = {
  async *follow(_node, _instance, signal) {
    if (!host.isUp) throw new Error('connection refused')
    host.opened++
    const lines: Channel<ConsoleLine> = createChannel({
      sizeMaximum: 1e9,
      sizeOf: () => 1,
      signal,
      onClosed: () => host.connections.splice(host.connections.indexOf(lines), 1),
    })
    host.connections.push(lines)
    lines.push({ type: 'tail', data: base64('boot\n'), log: host.log, end: host.end })
    lines.push({ type: 'status', connected: true, running: true })
    yield* lines
  },
  async write(_node, _instance, bytes) {
    if (host.outcome === 'written') host.written.push(Buffer.from(bytes).toString())
    return host.outcome
  },
}
const base64 = (text: string) => Buffer.from(text).toString('base64')
function print(text: string): void {
  host.end += Buffer.byteLength(text)
  host.connections[0]?.push({ type: 'output', data: base64(text), log: host.log, end: host.end })
}

beforeAll(async () => {
  cloud = await openCloud(database.db, { agents })
  ada = await cloud.signUp('ada@example.com')
  await ada.send('POST', '/v1/ssh-keys', { body: { name: 'key', public_key: PUBLIC_KEY } })
  id = (
    await ada.send('POST', '/v1/servers', {
      body: { zone: cloud.zone, hostname: 'web', plan: 'tiny', template: 'tiny-linux' },
    })
  ).body['server'].id
})
beforeEach(() => report('started'))
afterAll(() => cloud.close())

/** What the controller would report. */
async function report(state: 'started' | 'stopped', nodeName = cloud.node): Promise<void> {
  cloud.caches
    .of(Server)
    .apply(
      await cloud.admin.patch(
        Server,
        { namespace: accountNamespace(ada.accountId), name: id },
        { status: { state, nodeName } },
        'status',
      ),
    )
}

interface Event {
  readonly event: string
  readonly data: string
}
/** Opens a stream; `next` reads its next event. */
async function watch(token: string, headers: HttpRequest['headers'] = { authorization: `Bearer ${token}` }) {
  const stop = new AbortController()
  const response = await cloud.app.customers({
    method: 'GET',
    target: `/v1/servers/${id}/console/stream`,
    headers,
    remoteAddress: '192.0.2.9',
    signal: stop.signal,
  })
  const chunks = (response.body as AsyncIterable<string>)[Symbol.asyncIterator]()
  return {
    response,
    async next(): Promise<Event> {
      const { value, done } = await chunks.next()
      if (done) return { event: 'closed', data: '' }
      const [, event = '', data = ''] = /^event: (\w+)\ndata: (.*)\n\n$/.exec(String(value)) ?? []
      return { event, data: event === 'status' ? data : Buffer.from(data, 'base64').toString() }
    },
    close: () => stop.abort(),
  }
}
const until = async (isTrue: () => boolean) => expect.poll(isTrue).toBe(true)

describe('read', () => {
  const read = async (query = '') =>
    (await ada.send('GET', `/v1/servers/${id}/console/output${query}`)).body['console'] as {
      text: string
      position: string
      is_found: boolean
      has_more: boolean
      is_incomplete: boolean
    }
  test('answers the end, then what comes after a position, as soon as a text is there', async () => {
    const first = await read()
    expect(first).toMatchObject({
      text: 'boot\n',
      is_found: true,
      has_more: false,
      is_incomplete: false,
      connected: true,
      server_state: 'started',
    })
    const stream = await watch(await ada.token('read_write')) // keeps the connection to the host
    await stream.next()
    const waiting = read(`?since=${first.position}&wait_for=login:&wait=30`)
    await until(() => host.connections.length === 1)
    print('start\n')
    print('login: ')
    const second = await waiting
    expect(second).toMatchObject({ text: 'start\nlogin: ', is_found: true })
    expect(await read(`?since=${second.position}`)).toMatchObject({ text: '', is_found: true })
    expect(await read(`?since=${second.position}&wait_for=never&wait=1`)).toMatchObject({ text: '', is_found: false })
    print('x'.repeat(20_000))
    const third = await read(`?since=${second.position}`)
    expect([third.text.length, third.has_more]).toEqual([16_384, true])
    stream.close()
  })
  test('distinguishes repeated output, omits nothing, and cuts no character', async () => {
    const stream = await watch(await ada.token('read_write'))
    await stream.next()
    const prompt = '# '.repeat(100)
    let { position } = await read()
    for (const _ of [1, 2, 3]) {
      print(prompt)
      const next = await read(`?since=${position}&wait=5`)
      expect(next).toMatchObject({ text: prompt, is_incomplete: false })
      ;({ position } = next)
    }
    const text = `${'x'.repeat(16_383)}\u20ac and on`
    print(text)
    const first = await read(`?since=${position}&wait_for=and%20on&wait=5`)
    expect([first.text, first.has_more]).toEqual(['x'.repeat(16_383), true])
    expect(await read(`?since=${first.position}`)).toMatchObject({ text: '\u20ac and on', has_more: false })
    // The host has read past something that nobody here got: what is known begins anew behind it.
    host.end += 1_000
    print('after the gap')
    expect(await read(`?since=${first.position}&wait_for=gap&wait=1`)).toMatchObject({ is_found: true })
    stream.close()
  })
  test('says when what was read before is no longer there, and is refused to tokens that only read', async () => {
    for (const lost of ['b-5', 'a-99'])
      expect(await read(`?since=${lost}`)).toMatchObject({ text: 'boot\n', is_incomplete: true })
    const response = await cloud.app.customers({
      method: 'GET',
      target: `/v1/servers/${id}/console/output`,
      headers: { authorization: `Bearer ${await ada.token('read')}` },
      remoteAddress: '192.0.2.9',
      signal: new AbortController().signal,
    })
    expect(response.status).toBe(403)
  })
})

describe('stream', () => {
  test('gives the tail, the status, then output; everyone who watches shares one connection to the host', async () => {
    const token = await ada.token('read_write')
    host.opened = 0
    const first = await watch(token)
    expect(first.response.headers['content-type']).toBe('text/event-stream')
    expect(await first.next()).toEqual({ event: 'tail', data: 'boot\n' })
    const status = await first.next()
    expect(JSON.parse(status.data)).toEqual({
      connected: true,
      server_state: 'started',
      writable: true,
      reason: null,
      stream_ends_at: expect.any(String),
    })
    print('login: ')
    expect(await first.next()).toEqual({ event: 'output', data: 'login: ' })

    const second = await watch(token)
    expect(await second.next()).toEqual({ event: 'tail', data: 'boot\nlogin: ' })
    expect((await second.next()).event).toBe('status')
    print('root')
    expect(await Promise.all([first.next(), second.next()])).toEqual([
      { event: 'output', data: 'root' },
      { event: 'output', data: 'root' },
    ])
    expect(host.opened).toBe(1)

    first.close()
    expect((await first.next()).event).toBe('closed')
    expect(host.connections.length).toBe(1)
    second.close()
    await second.next()
    await until(() => host.connections.length === 0)
  })

  test('says that the host is lost, comes back with a new tail, and follows the state of the server', async () => {
    const stream = await watch(await ada.token('read_write'))
    await stream.next()
    await stream.next()
    host.connections[0]?.end()
    expect(JSON.parse((await stream.next()).data)).toMatchObject({
      connected: false,
      writable: false,
      reason: 'host_unreachable',
    })
    expect(await stream.next()).toEqual({ event: 'tail', data: 'boot\n' })
    expect(JSON.parse((await stream.next()).data)).toMatchObject({ connected: true, writable: true })
    host.connections[0]?.push({ type: 'status', connected: true, running: false })
    expect(JSON.parse((await stream.next()).data)).toMatchObject({
      writable: false,
      reason: 'server_stopped',
      server_state: 'started',
    })
    await report('stopped')
    expect(JSON.parse((await stream.next()).data)).toMatchObject({ server_state: 'stopped', reason: 'server_stopped' })
    stream.close()
    await stream.next()
  })

  test('of a stopped server whose host does not answer is there all the same', async () => {
    await report('stopped')
    host.isUp = false
    const stream = await watch(await ada.token('read_write'))
    expect(await stream.next()).toEqual({ event: 'tail', data: '' })
    expect(JSON.parse((await stream.next()).data)).toMatchObject({
      connected: false,
      server_state: 'stopped',
      writable: false,
      reason: 'server_stopped',
    })
    host.isUp = true
    stream.close()
    await stream.next()
  })

  test('is written down once, and cut off from a watcher that does not read', async () => {
    const stream = await watch(await ada.token('read_write'))
    expect(await cloud.auditOf({ ...stream.response, body: {}, text: '' })).toMatchObject([
      { action: 'server.console_session', outcome: 'success', resource_id: id },
    ])
    const quick = await watch(await ada.token('read_write'))
    for (let sent = 0; sent < 200; sent++) print(sent === 199 ? 'last' : 'x'.repeat(16_000))
    for (let data = ''; data !== 'last'; ) {
      const next = await quick.next()
      expect(next.event).not.toBe('closed')
      data = next.data
    }
    quick.close()
    let events = 0
    while ((await stream.next()).event !== 'closed') events++
    expect(events).toBeLessThan(200)
    await quick.next()
    await until(() => host.connections.length === 0)
  })

  test('ends for clients that lose the right to it, and continues for others', async () => {
    const [demoted, removed, leaving, staying] = await Promise.all(
      ['demoted', 'removed', 'leaving', 'staying'].map((name) => cloud.join(ada.accountId, `${name}@example.com`)),
    )
    if (!demoted || !removed || !leaving || !staying) throw new Error('four people were asked for')
    const signedIn = await cloud.send('POST', '/v1/auth/login', { body: { email: leaving.email, password: PASSWORD } })
    const cookie = [signedIn.headers['set-cookie'] ?? []].flat().map((set) => set.split(';')[0])
    const streams = await Promise.all([
      watch(await demoted.token('read_write')),
      watch(await removed.token('read_write')),
      watch('', { cookie: cookie.join('; ') }),
      watch(await staying.token('read_write')),
    ])
    expect(streams.map(({ response }) => response.status)).toEqual([200, 200, 200, 200])
    const ended = new Set<number>()
    const reading = streams.map(async (stream, index) => {
      while ((await stream.next()).event !== 'closed');
      ended.add(index)
    })
    const member = (person: Person) => `/v1/account/members/${person.userId}`
    await ada.send('PATCH', member(demoted), { body: { role: 'viewer' } })
    await ada.send('DELETE', member(removed))
    await leaving.send('POST', '/v1/accounts/active', { body: { account_id: leaving.accountId } })
    await expect.poll(() => [...ended].sort()).toEqual([0, 1, 2])
    print('still there')
    streams[3].close()
    await Promise.all(reading)
  })
})

describe('input', () => {
  const session = (last: number) => `00000000-0000-4000-8000-${String(last).padStart(12, '0')}`
  const type = (text: string, sessionId: string, by: Person = ada) =>
    by.send('POST', `/v1/servers/${id}/console/input`, { body: { session_id: sessionId, data: base64(text) } })

  test('reaches the guest as it is; only the first of a session is written down', async () => {
    host.written = []
    const replies = []
    for (const text of ['hostname\n', '\u0003', 'ä']) replies.push(await type(text, session(1)))
    replies.push(await type('x', session(2)))
    expect(replies.map((reply) => reply.status)).toEqual([204, 204, 204, 204])
    expect(host.written).toEqual(['hostname\n', '\u0003', 'ä', 'x'])
    const entries = await Promise.all(replies.map((reply) => cloud.auditOf(reply)))
    expect(entries.map((all) => all.map((entry) => entry.action))).toEqual([
      ['server.console_session'],
      [],
      [],
      ['server.console_session'],
    ])
  })

  test.each([
    ['no session', { data: 'aGk=' }, 'session_id'],
    ['a session that is no UUID', { session_id: 'x', data: 'aGk=' }, 'session_id'],
    ['no base64', { session_id: session(3), data: '%%%' }, 'data'],
    ['too much', { session_id: session(3), data: Buffer.alloc(4097).toString('base64') }, 'data'],
  ])('%s is 400', async (_what, body, field) => {
    expect((await ada.send('POST', `/v1/servers/${id}/console/input`, { body })).body).toMatchObject({
      status: 400,
      errors: [{ field }],
    })
  })

  test('4096 bytes are taken at once', async () => {
    expect(
      (
        await ada.send('POST', `/v1/servers/${id}/console/input`, {
          body: { session_id: session(4), data: Buffer.alloc(4096, 'x').toString('base64') },
        })
      ).status,
    ).toBe(204)
  })

  test('a stopped server is 409, a host that does not answer 503; each is written down as failed', async () => {
    host.outcome = 'unreachable'
    const unreachable = await type('x', session(1))
    expect([unreachable.status, unreachable.body['reason']]).toEqual([503, 'host_unreachable'])
    host.outcome = 'stopped'
    expect((await type('x', session(1))).body).toMatchObject({ status: 409, reason: 'server_stopped' })
    host.outcome = 'written'
    await report('stopped')
    const stopped = await type('x', session(5))
    expect(stopped.body).toMatchObject({ status: 409, reason: 'server_stopped' })
    expect(await cloud.auditOf(stopped)).toMatchObject([{ action: 'server.console_session', outcome: 'failed' }])
  })

  test('more than fifty at once are 429 with the wait', async () => {
    cloud.hurry()
    const replies = await Promise.all(Array.from({ length: 60 }, () => type('x', session(6))))
    const refused = replies.filter((reply) => reply.status === 429)
    expect(refused.length).toBeGreaterThan(0)
    expect(refused[0]?.headers['retry-after']).toBe('1')
  })
})
