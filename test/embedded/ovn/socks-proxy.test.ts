import { spawn } from 'node:child_process'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openSocksProxy } from '../../../embedded/ovn/socks-proxy.ts'
import { nodeBinary } from '../../../kit/sys/process.ts'

const PROXY = join(import.meta.dirname, '../../../cli/proxy.ts')

let servers: Server[] = []
const listen = async (server: Server, host = '127.0.0.1'): Promise<number> => {
  servers.push(server)
  server.listen(0, host)
  await once(server, 'listening')
  return (server.address() as AddressInfo).port // it listens on TCP
}
let proxyPort: number
let echoPort: number
beforeEach(async () => {
  proxyPort = await listen(
    createServer({ allowHalfOpen: true, pauseOnConnect: true }, openSocksProxy(['127.0.0.0/30', '::1/128']).serve),
  )
  echoPort = await listen(createServer({ allowHalfOpen: true }, (socket) => void socket.pipe(socket)))
})
afterEach(() => {
  for (const server of servers) server.close()
  servers = []
})

/** What the program of the command line prints, its complaints and its exit code. */
async function through(host: string, port: number, input: string) {
  const child = spawn(nodeBinary(), [PROXY, '127.0.0.1', String(proxyPort), host, String(port)])
  child.stdin.on('error', () => {}) // it may not read what it is given
  child.stdin.end(input)
  const ended = once(child, 'exit')
  const [printed, complaint] = await Promise.all([text(child.stdout), text(child.stderr)])
  const [code] = (await ended) as [number]
  return { printed, complaint, code }
}

it('joins what comes to a server, to the last byte', async () => {
  const input = 'x'.repeat(1_000_000)
  const { printed, ...rest } = await through('127.0.0.1', echoPort, input)
  expect({ ...rest, characters: printed.length }).toEqual({ complaint: '', code: 0, characters: input.length })
})

it('reaches no other address, and no name', async () => {
  const other = await listen(
    createServer((socket) => void socket.pipe(socket)),
    '127.0.0.4',
  )
  for (const host of ['127.0.0.4', 'localhost'])
    expect(await through(host, other, 'hello')).toMatchObject({
      printed: '',
      complaint: expect.stringMatching(/answers 2/),
    })
})

it('says that nobody listens', async () => {
  expect(await through('127.0.0.2', 1, '')).toMatchObject({ complaint: expect.stringMatching(/answers 5/) })
})

it.each([
  ['one that asks for a password', [5, 1, 2], [5, 0xff]],
  ['another version', [4, 1, 0], [5, 0xff]],
])('refuses %s', async (_what, said, answered) => {
  const socket = connect(proxyPort, '127.0.0.1')
  socket.write(Buffer.from(said))
  const [answer] = (await once(socket, 'data')) as [Buffer]
  expect([...answer]).toEqual(answered)
  socket.destroy()
})

it('takes an IPv6 address in its own form, and refuses to listen for others', async () => {
  const port = await listen(
    createServer((socket) => void socket.end('six')),
    '::1',
  )
  const ask = async (command: number) => {
    const socket = connect(proxyPort, '127.0.0.1')
    socket.write(Buffer.from([5, 1, 0]))
    await once(socket, 'data')
    const request = Buffer.alloc(22)
    request.set([5, command, 0, 4])
    request[19] = 1
    request.writeUInt16BE(port, 20)
    socket.write(request)
    const bytes = Buffer.concat(await socket.toArray())
    return { code: bytes[1], rest: bytes.subarray(10).toString() }
  }
  expect(await ask(1)).toEqual({ code: 0, rest: 'six' })
  expect(await ask(2)).toEqual({ code: 7, rest: '' })
})
