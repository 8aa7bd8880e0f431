/** Many connections that count what they receive: the same code for the product and for its peer. */
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

const CONNECTIONS_AT_ONCE = 50

export interface Viewers {
  /** Resolves when every connection has received the text once more. */
  all(text: string): Promise<void>
  close(): void
}

export interface ViewersOptions {
  readonly port: number
  readonly count: number
  /** Of the server; without TLS when absent. */
  readonly ca?: string
  /** Sent first on the connection with the number. */
  readonly greeting: (number: number) => string
}

export async function openViewers({ port, count, ca, greeting }: ViewersOptions): Promise<Viewers> {
  const sockets: Socket[] = []
  let [wanted, waiting] = ['', 0]
  let done = () => {}
  const open = (number: number) =>
    new Promise<void>((resolve, reject) => {
      const host = '127.0.0.1'
      const opened = () => {
        socket.write(greeting(number))
        if (greeting(number) === '') resolve()
      }
      const socket = ca === undefined ? connect({ host, port }, opened) : connectTls({ host, port, ca }, opened)
      sockets.push(socket)
      let tail = ''
      socket.setEncoding('latin1')
      socket.on('data', (text: string) => {
        resolve() // the head of the answer
        if (wanted === '') return
        tail += text
        if (!tail.includes(wanted)) {
          tail = tail.slice(-wanted.length)
          return
        }
        tail = ''
        waiting -= 1
        if (waiting === 0) done()
      })
      socket.once('error', reject)
    })
  for (let from = 0; from < count; from += CONNECTIONS_AT_ONCE)
    await Promise.all(
      Array.from({ length: Math.min(CONNECTIONS_AT_ONCE, count - from) }, (_, index) => open(from + index)),
    )
  return {
    all(text) {
      wanted = text
      waiting = count
      return new Promise((resolve) => (done = resolve))
    },
    close: () => {
      for (const socket of sockets) socket.destroy()
    },
  }
}
