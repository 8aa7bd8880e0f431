/** Names that customers choose, with a real name server and a real receiver. */
import { createSocket } from 'node:dgram'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { sendToPublic } from '../../../integrations/public-internet/send.ts'
import { systemClock as clock } from '../../../kit/sys/clock.ts'
import {
  type HostileServer,
  INTERNAL,
  PUBLIC,
  startHostileServer,
} from '../../agents/node/images/import/hostile-server.ts'

const END = { timeout: 120_000 }
let server: HostileServer

beforeAll(async () => {
  server = await startHostileServer((_request, response) => response.end())
})
afterAll(() => server.close())

const send = (host: string, trust = server.trust) =>
  sendToPublic({
    method: 'POST',
    url: `https://${host}:${server.port}/`,
    headers: {},
    body: '{}',
    timeoutMilliseconds: 60_000,
    clock,
    trust,
  })

test('a name is resolved by the name servers, never from files of this machine', async () => {
  server.answerNames(PUBLIC)
  expect(await send('images.test')).toBe(200)
  server.answerNames(INTERNAL)
  // The system resolves this one to an address that is trusted here.
  await expect(send('localhost')).rejects.toThrow('localhost is not a public address')
  expect(server.internalConnections()).toBe(0)
})

test('all addresses of a name must be public, of either kind', async () => {
  server.answerNames(`${PUBLIC} ::1`)
  await expect(send('images.test')).rejects.toThrow('images.test is not a public address')
  server.answerNames('::1')
  await expect(send('images.test')).rejects.toThrow('images.test is not a public address')
})

test('names whose servers are silent end with the reason, however many there are', END, async () => {
  const silent = createSocket('udp4')
  await new Promise<void>((resolve) => silent.bind(0, PUBLIC, resolve))
  onTestFinished(() => new Promise((resolve) => silent.close(() => resolve())))
  const trust = { ...server.trust, nameServer: `${PUBLIC}:${silent.address().port}` }
  // More than the process has threads.
  const names = Array.from({ length: 16 }, (_, index) => `slow${index}.test`)
  const ends = await Promise.allSettled(names.map((name) => send(name, trust)))
  expect(ends.map((end) => (end.status === 'rejected' ? String(end.reason) : end.value))).toEqual(
    names.map((name) => `Error: the name ${name} could not be resolved`),
  )
})

test('a name without an address is a plain reason', async () => {
  server.answerNames('')
  await expect(send('images.test')).rejects.toThrow('images.test has no address')
})

/** The type of the record that a query asks for. */
function typeOf(query: Buffer): number {
  let at = 12
  while (query.readUInt8(at) > 0) at += query.readUInt8(at) + 1
  return query.readUInt16BE(at + 1)
}
const AAAA = 28

test('a name server that is silent about IPv6 is not asked again once there is an address', async () => {
  server.answerNames(PUBLIC)
  const [host = '', port = ''] = (server.trust.nameServer ?? '').split(':')
  const [names, asking] = [createSocket('udp4'), createSocket('udp4')]
  const askers = new Map<number, number>()
  let giveUp = () => {}
  let questions = 0
  names.on('message', (query, from) => {
    askers.set(query.readUInt16BE(0), from.port)
    if (typeOf(query) !== AAAA) asking.send(query, Number(port), host)
    else if ((questions += 1) > 1) giveUp()
  })
  asking.on('message', (answer) => names.send(answer, askers.get(answer.readUInt16BE(0)) ?? 0, PUBLIC))
  await new Promise<void>((resolve) => names.bind(0, PUBLIC, resolve))
  onTestFinished(() => {
    names.close()
    asking.close()
  })
  const status = await sendToPublic({
    method: 'POST',
    url: `https://images.test:${server.port}/`,
    headers: {},
    body: '{}',
    timeoutMilliseconds: 60_000,
    clock: { after: (_milliseconds, work) => ((giveUp = work), () => {}) },
    trust: {
      ...server.trust,
      addresses: [PUBLIC, '::ffff:127.0.0.1'],
      nameServer: `${PUBLIC}:${names.address().port}`,
    },
  })
  expect(status).toBe(200)
  expect(questions).toBe(1)
})
