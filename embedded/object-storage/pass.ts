/** Bodies that pass through. Each piece of one is memory outside of the heap of V8, which collects garbage when there
 *  is much of that: what passes is freed when it has passed, or nearly half of the time goes into collections. */
import type { Readable, Writable } from 'node:stream'

/** Piece by piece, as fast as it is taken. Nobody else may keep a piece. `count` learns of each; the end is the
 *  caller's. */
export function pass(from: Readable, to: Writable, count?: (bytes: number) => void): void {
  from.on('data', (piece: Buffer) => {
    count?.(piece.length)
    if (to.writableEnded || to.destroyed) return
    // What could not be written may still be on its way.
    const isMoreWanted = to.write(piece, (error) => {
      if (!error) release(piece)
    })
    if (!isMoreWanted) from.pause()
  })
  to.on('drain', () => from.resume())
}

/** Of a connection whose reader copies what it is given, as that of HTTP does. Answers it. */
export function releaseRead<Read extends Readable>(connection: Read): Read {
  const push = connection.push.bind(connection)
  connection.push = (piece: unknown, encoding?: BufferEncoding) => {
    const isMoreWanted = push(piece, encoding)
    if (piece instanceof Uint8Array && connection.readableLength === 0) release(piece)
    return isMoreWanted
  }
  return connection
}

/** What others have a part of stays. */
function release({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0)
}
