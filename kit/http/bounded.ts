/** Reads what another process sends, within bounds: the process may be faulty, or controlled by an attacker. */
/** A response or request without an encoding, or the body of one. */
export type Bytes = AsyncIterable<Uint8Array>

/** The body of an answer without one. */
export const NOTHING: Bytes = {
  async *[Symbol.asyncIterator]() {},
}

/** The sender sent more than it may; nothing of it is kept. */
export class TooLong extends Error {
  constructor(bytesMaximum: number) {
    super(`more than ${bytesMaximum} bytes were sent`)
    this.name = 'TooLong'
  }
}

/** The complete content of a stream of bytes. Ends the stream and throws TooLong when there is more. */
export async function readWhole(stream: Bytes, bytesMaximum: number): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const bytes of stream) {
    length += bytes.length
    if (length > bytesMaximum) throw new TooLong(bytesMaximum)
    chunks.push(bytes)
  }
  return Buffer.concat(chunks)
}

/** The same, as text. */
export const readText = async (stream: Bytes, bytesMaximum: number): Promise<string> =>
  (await readWhole(stream, bytesMaximum)).toString()

/** The same; undefined when there is more. */
export const textWithin = (stream: Bytes, bytesMaximum: number): Promise<string | undefined> =>
  readText(stream, bytesMaximum).catch((error: unknown) => {
    if (error instanceof TooLong) return undefined
    throw error
  })

const LINE_FEED = 0x0a

/** The lines of a stream of bytes, without their ends; what follows the last end is dropped. Ends the stream and throws
 *  TooLong when a line is longer. */
export async function* readLines(stream: Bytes, bytesMaximum: number): AsyncGenerator<string, void> {
  let chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of stream) {
    let rest = chunk
    for (let end = rest.indexOf(LINE_FEED); end >= 0; end = rest.indexOf(LINE_FEED)) {
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

/** Passes on each line of a connection as it arrives, until the connection ends. A connection with a longer line is
 *  closed. */
export async function forEachLine(
  connection: Bytes & { destroy(): unknown },
  bytesMaximum: number,
  take: (line: string) => void,
): Promise<void> {
  try {
    for await (const line of readLines(connection, bytesMaximum)) take(line)
  } catch {
    connection.destroy()
  }
}
