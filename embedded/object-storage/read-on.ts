/** A connection that continues to read after its peer has stopped reading. A server that responds before it has read a
 *  body closes then; writing fails while its response is still unread. */
import type { Socket } from 'node:net'

type Callback = (error?: Error | null) => void

const HAS_CLOSED: readonly (string | undefined)[] = ['EPIPE', 'ECONNRESET']

/** Drops data that cannot be written; the data that are read decide how the connection ends. */
const unlessClosed =
  (done: Callback): Callback =>
  (error) => {
    // Sockets fail only with errno errors.
    const isClosed = HAS_CLOSED.includes((error as NodeJS.ErrnoException | null | undefined)?.code)
    done(isClosed ? null : error)
  }

/** Also for a connection with TLS. Returns the connection. */
export function readOn(socket: Socket): Socket {
  const [write, writev] = [socket._write.bind(socket), socket._writev?.bind(socket)]
  socket._write = (chunk, encoding, done) => write(chunk, encoding, unlessClosed(done))
  if (writev !== undefined) socket._writev = (chunks, done) => writev(chunks, unlessClosed(done))
  return socket
}
