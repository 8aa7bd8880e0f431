/** How a command waits for its operation, against a service that answers as configured. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../kit/sys/clock.ts'
import { runLine } from './run-line.ts'

const SERVER = '00000000-0000-4000-8000-000000000001'
const OPERATION = {
  id: '00000000-0000-4000-8000-000000000002',
  kind: 'server.start',
  status: 'running',
  step: 'boot',
  step_index: 0,
  step_count: 2,
  error: '',
}
const closing: (() => void)[] = []
afterEach(() => closing.splice(0).forEach((close) => close()))

type Scripted = readonly [status: number, operation: Partial<typeof OPERATION>]
const SUCCEEDED: Scripted = [200, { status: 'succeeded' }]
const refusal = (status: number): Scripted => [status, {}]

/** Starts a server and waits; each look at the operation is answered by the next of the script, by its last for
 *  ever. */
async function waitThrough(...script: readonly Scripted[]) {
  let looks = 0
  const service = createServer((request, response) => {
    const answer = (status: number, body: object, headers: object = {}) =>
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
    if (request.method === 'POST') return answer(202, { server: { id: SERVER }, operation: OPERATION })
    if (!request.url?.startsWith('/v1/operations/')) return answer(200, { server: { id: SERVER, hostname: 'web' } })
    const [status, operation] = script[looks] ?? script.at(-1) ?? SUCCEEDED
    looks += 1
    return status === 200
      ? answer(status, { operation: { ...OPERATION, ...operation } })
      : answer(status, { title: 'Refused', detail: 'Not now.' }, { 'retry-after': '7' })
  })
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve))
  closing.push(() => service.close())
  const { port } = service.address() as AddressInfo // it listens on a port
  const environment = {
    SVCCLOUD_URL: `http://127.0.0.1:${port}`,
    SVCCLOUD_TOKEN: 'token',
    XDG_CONFIG_HOME: '/nonexistent',
  }
  const pauses: number[] = []
  const sleep: Clock['sleep'] = (milliseconds, signal) => {
    pauses.push(milliseconds)
    return systemClock.sleep(1, signal)
  }
  const ended = await runLine(['server', 'start', SERVER], { environment, clock: { ...systemClock, sleep } })
  return { ...ended, looks, pauses }
}

test.each([
  ['succeeded', {}, 0, ''],
  ['failed', { error: 'No room.' }, 5, `svccloud: operation ${OPERATION.id} (server.start) failed: No room.\n`],
  ['cancelled', {}, 5, `svccloud: operation ${OPERATION.id} (server.start) was cancelled\n`],
])('an operation that %s ends the command with its code', async (status, more, code, error) => {
  const ended = await waitThrough([200, {}], [200, { status, ...more }])
  expect([ended.code, ended.error, ended.looks]).toEqual([code, error, 2])
})

test.each([[[500, 503, 502]], [[429, 429]]])('answers of %j are sat out', async (statuses) => {
  const ended = await waitThrough([200, {}], ...statuses.map(refusal), SUCCEEDED)
  expect([ended.code, ended.error, ended.looks]).toEqual([0, '', statuses.length + 2])
  // as long as each of them says
  expect(ended.pauses.filter((pause) => pause === 7_000).length).toBe(statuses.length)
})

test.each([
  [404, 1],
  [403, 2],
  [400, 3],
])('an answer of %d ends the wait at once with code %d', async (status, code) => {
  const ended = await waitThrough([200, {}], refusal(status), SUCCEEDED)
  expect([ended.code, ended.looks]).toEqual([code, 2])
})
