/** What the host passes on of machines of databases, over real sockets. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { archiveRelay, parseHostPort } from '../../../agents/node/serve/archive-relay.ts'
import { systemClock } from '../../../kit/sys/clock.ts'

let store: Server
let door: Server
let mark: string

const portOf = (server: Server): number => (server.address() as AddressInfo).port
const listening = async (take: (socket: Socket) => void): Promise<Server> => {
  const server = createServer({ allowHalfOpen: true }, take)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

beforeEach(async () => {
  mark = 'of a database'
  store = await listening((socket) => {
    let text = ''
    socket.on('data', (bytes) => (text += String(bytes)))
    socket.on('end', () => socket.end(`stored ${text}`))
  })
  const isDatabase = (given: string) => given === 'of a database'
  const relay = archiveRelay({ host: '127.0.0.1', port: portOf(store), isDatabase, clock: systemClock })
  door = await listening((socket) => relay(socket, mark))
})
afterEach(() => {
  store.close()
  door.close()
})

/** What the guest reads until the end. */
async function say(text: string): Promise<string> {
  const socket = connect(portOf(door), '127.0.0.1')
  let heard = ''
  socket.on('data', (bytes) => (heard += String(bytes)))
  socket.on('error', () => {})
  socket.end(text)
  await once(socket, 'close')
  return heard
}

test('passes on what a database says, and the answer, which may come when it has said all', async () => {
  const long = 'x'.repeat(1_000_000)
  expect(await say(long)).toBe(`stored ${long}`)
})

test('lets no other guest to the store', async () => {
  mark = 'of a customer'
  expect(await say('let me in')).toBe('')
})

test('ends at once when there is no store', async () => {
  store.close()
  await once(store, 'close')
  expect(await say('anybody there?')).toBe('')
})

test.each([
  ['127.0.0.1:9000', { host: '127.0.0.1', port: 9000 }],
  ['objects.example:443', { host: 'objects.example', port: 443 }],
  ['[fd00::1]:443', { host: 'fd00::1', port: 443 }],
  ['objects.example', undefined],
  ['objects.example:0', undefined],
  ['fd00::1:443', undefined],
  ['objects.example:70000', undefined],
])('the address %s is %j', (text, expected) => expect(parseHostPort(text)).toEqual(expected))
