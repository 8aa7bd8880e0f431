/** The peer of streams to many: every line in the messages that it receives is sent unchanged to every connection.
 *  Started with fork; reports its port. With a certificate and a key it uses TLS. */
import { fork } from 'node:child_process'
import { createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { AddressInfo } from 'node:net'
import { onParentMessage, sendToParent } from '../kit/sys/process.ts'

export interface FanOut {
  readonly port: number
  /** To every connection. */
  send(text: string): void
  close(): void
}

interface Pair {
  readonly key: string
  readonly certificate: string
}

export async function openFanOut(pair?: Pair): Promise<FanOut> {
  const child = fork(import.meta.filename, { execArgv: [] })
  child.send({ pair })
  const port = await new Promise<number>((resolve, reject) => {
    child.once('message', (message) => resolve((message as { readonly port: number }).port)) // its only message
    child.once('exit', (code) => reject(new Error(`the relay ended with ${code}`)))
  })
  return { port, send: (text) => void child.send({ text }), close: () => void child.kill('SIGTERM') }
}

if (import.meta.main) {
  const sockets = new Set<Socket>()
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket)).on('error', () => {})
    socket.resume()
  }
  onParentMessage((message) => {
    const { pair, text } = message as { readonly pair?: Pair; readonly text?: string } // from openFanOut
    if (text !== undefined) {
      for (const socket of sockets) socket.write(text)
      return
    }
    const server =
      pair === undefined ? createServer(keep) : createTlsServer({ key: pair.key, cert: pair.certificate }, keep)
    server.listen(0, '127.0.0.1', () => sendToParent({ port: (server.address() as AddressInfo).port })) // it listens
  })
}
