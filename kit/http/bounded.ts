/** What another process sends, read within bounds: it may be at fault, or in the hands of an attacker. */
import type { Readable } from 'node:stream'

/** The sender said more than it may; nothing of it is kept. */
export class TooLong extends Error {
  constructor(bytesMaximum: number) {
    super(`more than ${bytesMaximum} bytes were sent`)
    this.name = 'TooLong'
  }
}

/** The whole of a stream of bytes. Ends the stream and throws TooLong when there is more. */
export async function readWhole(stream: Readable, bytesMaximum: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of stream) {
    const bytes: Buffer = chunk // a stream without an encoding yields bytes
    length += bytes.length
    if (length > bytesMaximum) throw new TooLong(bytesMaximum)
    chunks.push(bytes)
  }
  return Buffer.concat(chunks)
}

/** The lines of a stream of bytes, without their ends; what follows the last end is dropped. Ends the stream and throws
 *  TooLong when a line is longer. */
export async function* readLines(stream: Readable, bytesMaximum: number): AsyncGenerator<string, void> {
  let chunks: Buffer[] = []
  let length = 0
  for await (const chunk of stream) {
    let rest: Buffer = chunk // a stream without an encoding yields bytes
    for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n')) {
      if (length + end > bytesMaximum) throw new TooLong(bytesMaximum)
      yield Buffer.concat([...chunks, rest.subarray(0, end)]).toString()
      chunks = []
      length = 0
      rest = rest.subarray(end + 1)
    }
    length += rest.length
    if (length > bytesMaximum) throw new TooLong(bytesMaximum)
    if (rest.length > 0) chunks.push(rest)
  }
}
