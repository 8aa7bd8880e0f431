/** The traffic of a benchmark's guest, started in its namespace: answers echoes and receives streams, and on orders as
 *  lines of JSON starts them itself, or sends requests to a web server. Ends with its input. */
import { connect, createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { exitProcess, printLine, standardStreams } from '../kit/sys/process.ts'

const ECHO_PORT = 1000
const STREAM_PORT = 1001
const CHUNK = Buffer.alloc(64 * 1024)

const connected = (address: string, port: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: address, port }, () => resolve(socket))
    socket.setNoDelay(true).once('error', reject)
  })

/** Writes for so long, and returns the bytes that the other side has received by its own report. */
async function stream({ address, seconds }: { readonly address: string; readonly seconds: number }) {
  const socket = await connected(address, STREAM_PORT)
  const answer = new Promise<number>((resolve, reject) => {
    let text = ''
    socket.on('data', (data) => (text += data)).once('end', () => resolve(Number(text)))
    socket.once('error', reject)
  })
  const startedAt = clock.monotonicMilliseconds()
  while (clock.monotonicMilliseconds() - startedAt < seconds * 1_000)
    if (!socket.write(CHUNK)) await new Promise((resolve) => socket.once('drain', resolve))
  socket.end()
  return { bytes: await answer, seconds: (clock.monotonicMilliseconds() - startedAt) / 1_000 }
}

/** The microseconds of each echo of one byte. */
async function echo({ address, times }: { readonly address: string; readonly times: number }) {
  const socket = await connected(address, ECHO_PORT)
  const taken: number[] = []
  for (let time = 0; time < times; time++) {
    const startedAt = clock.monotonicMilliseconds()
    socket.write('x')
    await new Promise((resolve) => socket.once('data', resolve))
    taken.push((clock.monotonicMilliseconds() - startedAt) * 1_000)
  }
  socket.destroy()
  return taken
}

/** One request after the other on each of so many connections. Returns the milliseconds of each; a page ends with its
 *  last word. */
async function requests(order: {
  readonly address: string
  readonly port: number
  readonly connections: number
  readonly seconds: number
}) {
  const milliseconds: number[] = []
  const startedAt = clock.monotonicMilliseconds()
  const isOver = () => clock.monotonicMilliseconds() - startedAt >= order.seconds * 1_000
  const one = async () => {
    const socket = await connected(order.address, order.port)
    do {
      const askedAt = clock.monotonicMilliseconds()
      socket.write(`GET / HTTP/1.1\r\nHost: ${order.address}\r\n\r\n`)
      await page(socket)
      milliseconds.push(clock.monotonicMilliseconds() - askedAt)
    } while (!isOver())
    socket.destroy()
  }
  await Promise.all(Array.from({ length: order.connections }, one))
  return { milliseconds, seconds: (clock.monotonicMilliseconds() - startedAt) / 1_000 }
}

const page = (socket: Socket): Promise<void> =>
  new Promise((resolve, reject) => {
    let text = ''
    const end = (error?: Error) => {
      socket.off('data', read).off('close', close)
      if (error === undefined) resolve()
      else reject(error)
    }
    const close = () => end(new Error('the connection was closed'))
    const read = (data: Buffer) => {
      text += data.toString()
      if (!text.endsWith(' page')) return
      end(text.startsWith('HTTP/1.1 200 ') ? undefined : new Error(text))
    }
    socket.on('data', read).once('close', close)
  })

createServer((socket) =>
  socket
    .setNoDelay(true)
    .on('error', () => {})
    .pipe(socket),
).listen(ECHO_PORT)
createServer({ allowHalfOpen: true }, (socket) => {
  let bytes = 0
  socket.on('error', () => {}).on('data', (data) => (bytes += data.length))
  socket.once('end', () => socket.end(String(bytes)))
}).listen(STREAM_PORT)

const orders = { stream, echo, requests }
for await (const line of createInterface({ input: standardStreams().input })) {
  // the benchmark writes it
  const { do: what, ...order } = JSON.parse(line) as { readonly do: keyof typeof orders }
  const answer = await orders[what](order as never).catch((error: unknown) => ({ error: String(error) }))
  printLine(JSON.stringify(answer))
}
exitProcess(0)
