/** What servers for the platform answer, whatever they are asked. */
import { afterEach, expect, test } from 'vitest'
import { startControl as startPlanes } from '../../../hosting/core/control-server.ts'
import { Refused } from '../../../hosting/core/refused.ts'
import type { ControlPlanes } from '../../../integrations/control-planes/control.ts'
import { startControlServer } from '../../../kit/http/control-server.ts'
import { silentLog as log } from '../../../kit/sys/log.ts'
import { Gauge, openRegistry } from '../../../kit/sys/metrics.ts'

const metrics = openRegistry({ isProcessWide: false })
new Gauge({ name: 'things', help: 'Things', registers: [metrics] }).set(3)
const host = '127.0.0.1'
const [token, other] = ['the right token', 'another token']
const stops: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

/** Returns status and text of an answer. */
async function ask(port: number, path: string, { secret = token, ...init }: RequestInit & { secret?: string } = {}) {
  const answer = await fetch(`http://${host}:${port}${path}`, {
    ...init,
    headers: { authorization: `Bearer ${secret}` },
  })
  return [answer.status, await answer.text()] as const
}

test('only who has the token is answered, and a failure asks to try again', async () => {
  const server = await startControlServer(
    { host, port: 0, token, metrics, log },
    async (_, { pathname, searchParams }) => {
      if (pathname === '/fails') throw new Error('a secret detail')
      return { status: 202, text: `${pathname} ${searchParams.get('of')}` }
    },
  )
  stops.push(server.stop)
  const { port } = server
  expect(await ask(port, '/thing?of=it')).toEqual([202, '/thing it'])
  expect(await ask(port, '/thing', { secret: other })).toEqual([401, ''])
  expect(await ask(port, '/metrics', { secret: other })).toEqual([401, ''])
  expect((await ask(port, '/metrics'))[1]).toContain('things 3')
  expect(await ask(port, '/metrics', { method: 'POST' })).toEqual([202, '/metrics null'])
  expect(await ask(port, '/fails')).toEqual([503, 'try again'])
})

test('calls of a host of control planes are judged before they are made', async () => {
  const made: unknown[] = []
  const planes = {
    async get(id: string) {
      made.push(id)
      if (id.startsWith('0')) throw new Refused('gone', 'the control plane')
      return undefined
    },
  } as unknown as ControlPlanes // the one call that is made
  const { port, stop } = await startPlanes({ port: 0, token, planes, metrics, log })
  stops.push(stop)
  const call = (name: string, body: string, method = 'POST') =>
    ask(port, `/calls/${name}`, method === 'GET' ? {} : { method, body })
  const [known, gone] = ['11111111-1111-4111-8111-111111111111', '01111111-1111-4111-8111-111111111111']
  expect(await call('get', JSON.stringify([known]))).toEqual([200, ''])
  expect((await call('get', JSON.stringify([gone])))[0]).toBe(409)
  expect((await call('get', '["'))[0]).toBe(400)
  expect((await call('get', '[]'))[0]).toBe(400)
  expect((await call('toString', '[]'))[0]).toBe(404)
  expect((await call('get', '', 'GET'))[0]).toBe(405)
  expect(made).toEqual([known, gone])
})
