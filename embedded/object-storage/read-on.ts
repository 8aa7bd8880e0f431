/** A connection that goes on reading when nobody reads what it writes: a server that answers before it has read a body
 *  closes then, and the answer waits to be read while writing fails. */
import type { Socket } from 'node:net'

type Done = (error?: Error | null) => void

const HAS_CLOSED: readonly (string | undefined)[] = ['EPIPE', 'ECONNRESET']

/** What cannot be written is left out; how the connection ends is up to what is read. */
const unlessClosed =
  (done: Done): Done =>
  (error) => {
    // Sockets fail with errno errors.
    const isClosed = HAS_CLOSED.includes((error as NodeJS.ErrnoException | null | undefined)?.code)
    done(isClosed ? null : error)
  }

/** Of one with TLS too. Answers it. */
export function readOn(socket: Socket): Socket {
  const [write, writev] = [socket._write.bind(socket), socket._writev?.bind(socket)]
  socket._write = (chunk, encoding, done) => write(chunk, encoding, unlessClosed(done))
  if (writev !== undefined) socket._writev = (chunks, done) => writev(chunks, unlessClosed(done))
  return socket
}
