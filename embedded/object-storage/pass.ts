/** Streams bodies. Each piece is memory outside of V8's heap, and much of it triggers garbage collections. So each
 *  piece is freed once it was written; otherwise collections take nearly half of the time. */
import type { Readable, Writable } from 'node:stream'

/** Passes pieces as fast as `to` accepts them. Nobody else may keep a piece. `count` gets the size of each; the caller
 *  handles the end. */
export function pass(from: Readable, to: Writable, count?: (bytes: number) => void): void {
  from.on('data', (piece: Buffer) => {
    count?.(piece.length)
    if (to.writableEnded || to.destroyed) return
    // The piece may still be in use after a failed write.
    const isMoreWanted = to.write(piece, (error) => {
      if (!error) release(piece)
    })
    if (!isMoreWanted) from.pause()
  })
  to.on('drain', () => from.resume())
}

/** For a connection whose reader copies its input, like that of HTTP. Returns the connection. */
export function releaseRead<Read extends Readable>(connection: Read): Read {
  const push = connection.push.bind(connection)
  connection.push = (piece: unknown, encoding?: BufferEncoding) => {
    const isMoreWanted = push(piece, encoding)
    if (piece instanceof Uint8Array && connection.readableLength === 0) release(piece)
    return isMoreWanted
  }
  return connection
}

/** A buffer that others share is not freed. */
function release({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0)
}
