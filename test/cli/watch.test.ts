/** How changes are watched, against a service that streams as configured. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../kit/sys/clock.ts'
import { runLine } from './run-line.ts'

/** Watches a connection that is silent. */
const SILENCE_MILLISECONDS = 40_000

const closing: (() => void)[] = []
afterEach(() => closing.splice(0).forEach((close) => close()))

/** Answers each request by the next text, and ends after the last. A number refuses. Pauses are noted, and short. */
async function watchThrough(line: readonly string[], ...script: readonly (string | number)[]) {
  const asked: string[] = []
  const pauses: number[] = []
  const clock: Clock = {
    ...systemClock,
    sleep(milliseconds, signal) {
      if (milliseconds >= SILENCE_MILLISECONDS) return systemClock.sleep(milliseconds, signal)
      pauses.push(milliseconds)
      return systemClock.sleep(1, signal)
    },
  }
  const over = new AbortController()
  const service = createServer((request, response) => {
    const next = script[asked.length]
    asked.push(request.url ?? '')
    if (next === undefined) {
      response.writeHead(503).end()
      return over.abort()
    }
    if (typeof next === 'number')
      return response
        .writeHead(next, { 'content-type': 'application/json', 'retry-after': '20' })
        .end(JSON.stringify({ title: 'Refused' }))
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(next)
  })
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve))
  closing.push(() => service.close())
  const { port } = service.address() as AddressInfo // it listens on a port
  const environment = {
    SVCCLOUD_URL: `http://127.0.0.1:${port}`,
    SVCCLOUD_TOKEN: 'token',
    XDG_CONFIG_HOME: '/nonexistent',
  }
  return { ...(await runLine(['watch', ...line], { environment, signal: over.signal, clock })), asked, pauses }
}
const change = (type: string, is: string, item: object | null) =>
  `event: change\ndata: ${JSON.stringify({ type, id: 'i1', is, item })}\n\n`
const RESET = (reason: string, id: string) => `event: reset\ndata: {"reason":"${reason}"}\nid: ${id}\n\n`

test('prints a line for each change, and continues with the newest cursor when the connection is lost', async () => {
  const { code, out, error, asked } = await watchThrough(
    [],
    RESET('start', 'c1') +
      change('server', 'set', { hostname: 'web', state: 'started' }) +
      `: keepalive\nid: c2\n\n${change('operation', 'set', { kind: 'server.start', status: 'running' })}`,
    503,
    change('server', 'removed', null),
  )
  expect(out).toBe('server  i1  set  web  started\noperation  i1  set  server.start  running\nserver  i1  removed\n')
  expect(asked.slice(0, 3)).toEqual(['/v1/changes?', '/v1/changes?cursor=c2', '/v1/changes?cursor=c2'])
  expect(error).toContain('connection lost')
  expect(code).toBe(0)
})

test('says that changes are missing, and prints events as they are with -o json', async () => {
  const text = RESET('cursor_too_old', 'c1') + change('ssh_key', 'set', { name: 'a\u001b[2J' })
  const table = await watchThrough([], text)
  expect([table.out, table.error]).toEqual([
    'ssh_key  i1  set  a [2J\n',
    expect.stringContaining('Changes are missing'),
  ])
  const json = await watchThrough(['-o', 'json'], text)
  expect(
    json.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown),
  ).toEqual([
    { event: 'reset', reason: 'cursor_too_old' },
    { event: 'change', type: 'ssh_key', id: 'i1', is: 'set', item: { name: 'a\u001b[2J' } },
  ])
})

test('asks for the types that were named, and refuses others', async () => {
  const { asked } = await watchThrough(['server', 'ssh-key'], '')
  expect(asked[0]).toBe('/v1/changes?type=server&type=ssh_key')
  expect(await watchThrough(['serfer'])).toMatchObject({ code: 4, error: expect.stringContaining('server') })
})

test('ends with a refusal that waiting does not cure', async () => {
  expect(await watchThrough([], 403)).toMatchObject({ code: 2, asked: ['/v1/changes?'] })
})

test('comes back when the service says', async () => {
  const { pauses } = await watchThrough([], 429, RESET('start', 'c1'))
  expect(pauses[0]).toBeGreaterThanOrEqual(20_000)
  expect(pauses[1]).toBeLessThan(1_000)
})
