/** How long connections to engines and stores are kept, how many, and which go on. */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { S3Refusal } from '../../../embedded/object-storage/request.ts'
import { markRead, noteAnnounced, openTargets } from '../../../embedded/object-storage/targets.ts'

const answerWith = (more = ''): string => `HTTP/1.1 200 OK\r\n${more}Content-Length: 0\r\n\r\n`

/** Answers each piece that comes. */
async function openEngine(answer: (socket: Socket) => void = (socket) => void socket.write(answerWith())) {
  const folder = await mkdtemp(join(tmpdir(), 'targets-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const counts = { opened: 0, open: 0 }
  const server = createServer((socket) => {
    counts.opened += 1
    counts.open += 1
    socket.on('error', () => {}).once('close', () => (counts.open -= 1))
    socket.on('data', () => answer(socket))
  })
  const socketPath = join(folder, 's3')
  server.listen(socketPath)
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const targets = openTargets()
  onTestFinished(() => targets.stop())
  const begin = (hasBody: boolean): ClientRequest => {
    const headers = hasBody ? ['Content-Length', '1'] : []
    const request = httpRequest({
      agent: targets.of({ id: 'ada' }, { socketPath }, hasBody),
      method: hasBody ? 'PUT' : 'GET',
      headers,
    })
    request.end(hasBody ? 'x' : undefined)
    return request
  }
  /** Answers the connection once it is free or closed. */
  const send = async (hasBody: boolean): Promise<Socket> => {
    const request = begin(hasBody)
    const closed = once(request, 'close')
    const [answer] = (await once(request, 'response')) as [IncomingMessage]
    const { socket } = request
    if (socket === null) throw new Error('a request without a connection')
    if (hasBody) markRead(socket)
    noteAnnounced(socket, answer.rawHeaders)
    answer.resume()
    await closed
    await new Promise(setImmediate)
    return socket
  }
  return { begin, send, counts, targets }
}

test.for([true, false])(
  'a connection is free for ten seconds, and busy for longer (with bodies: %s)',
  async (hasBody) => {
    const { begin, send, counts } = await openEngine()
    const socket = await send(hasBody)
    expect([socket.destroyed, socket.timeout]).toEqual([false, 10_000])
    const next = begin(hasBody)
    const [taken] = (await once(next, 'socket')) as [Socket]
    expect([taken === socket, taken.timeout]).toEqual([true, 120_000])
    next.once('response', (answer: IncomingMessage) => {
      if (hasBody) markRead(socket)
      answer.resume()
    })
    await once(next, 'close')
    await expect.poll(() => socket.timeout).toBe(10_000)
    socket.emit('timeout')
    await expect.poll(() => counts).toEqual({ opened: 1, open: 0 })
  },
)

test('a connection is closed before the server does it that has said when', async () => {
  for (const [seconds, timeout, isKept] of [
    [1, 120_000, false],
    [2, 1_000, true],
    [60, 10_000, true],
  ] as const) {
    const { send, counts } = await openEngine((socket) => {
      socket.write(answerWith(`Keep-Alive: timeout=${seconds}\r\n`))
    })
    const socket = await send(false)
    expect([socket.timeout, socket.destroyed]).toEqual([timeout, !isKept])
    if (timeout < 10_000) await expect.poll(() => counts.open).toBe(0)
  }
})

test('sixteen connections to the engine of a tenant stay free after bodies, and as many without', async () => {
  const kept = 16
  for (const hasBody of [true, false]) {
    const { send, counts } = await openEngine()
    await Promise.all(Array.from({ length: 70 }, () => send(hasBody)))
    await expect.poll(() => counts).toEqual({ opened: 70, open: kept })
    await Promise.all(Array.from({ length: kept }, () => send(hasBody)))
    expect(counts).toEqual({ opened: 70, open: kept })
  }
})

test('what comes unasked is nobody’s answer', async () => {
  const sockets: Socket[] = []
  const { send, counts } = await openEngine((socket) => {
    sockets.push(socket)
    socket.write(answerWith())
  })
  const socket = await send(true)
  sockets[0]?.write(answerWith('X: 1\r\n'))
  // Long before its time is over.
  await expect.poll(() => socket.destroyed).toBe(true)
  expect((await send(true)) === socket).toBe(false)
  expect(counts.opened).toBe(2)
})

test('a connection that its server closes while it is free is not taken', async () => {
  const sockets: Socket[] = []
  const { send, counts } = await openEngine((socket) => {
    sockets.push(socket)
    socket.write(answerWith())
  })
  const [first, second] = await Promise.all([send(true), send(true)])
  sockets.at(-1)?.end()
  await expect.poll(() => counts.open).toBe(1)
  const next = await Promise.all([send(true), send(true)])
  expect(next.filter((socket) => socket === first || socket === second)).toHaveLength(1)
  expect(counts).toEqual({ opened: 3, open: 2 })
})

test('a silent engine fails its request, and is asked once', async () => {
  let asked = 0
  const { begin, counts } = await openEngine(() => {
    asked += 1
  })
  const request = begin(true)
  const failed = once(request, 'error')
  const [socket] = (await once(request, 'socket')) as [Socket]
  await expect.poll(() => asked).toBe(1)
  socket.emit('timeout')
  expect(String(await failed)).toContain('the engine does not answer')
  await expect.poll(() => counts).toEqual({ opened: 1, open: 0 })
  expect(asked).toBe(1)
})

test('there are no more than 4096 connections, and further clients are asked to come again', async () => {
  const targets = openTargets()
  const begin = () =>
    httpRequest({ agent: targets.of({ id: 'ada' }, { socketPath: '/nowhere/s3' }, false) }).on('error', () => {})
  const requests = Array.from({ length: 4_096 }, begin)
  expect(begin).toThrow(S3Refusal)
  await Promise.all(requests.map((request) => new Promise((resolve) => request.once('close', resolve))))
  expect(begin).not.toThrow()
  targets.stop()
})
