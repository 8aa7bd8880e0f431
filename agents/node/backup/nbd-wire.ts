/** Numbers and frames of the NBD protocol, "fixed newstyle" with structured replies, as `doc/proto.md` of the NBD
 *  project defines them. */

export const MAGIC = {
  greeting: 0x4e42444d41474943n,
  option: 0x49484156454f5054n,
  optionReply: 0x0003e889045565a9n,
  request: 0x25609513,
  simpleReply: 0x67446698,
  structuredReply: 0x668e33ef,
} as const
/** Fixed newstyle, and no padding after the export's description. */
export const CLIENT_FLAGS = 3
export const OPTION = { go: 7, structuredReply: 8, setMetaContext: 10 } as const
export const OPTION_REPLY = { ack: 1, info: 3, metaContext: 4 } as const
/** Option replies with this bit are errors. */
export const OPTION_ERROR = 0x80000000
export const INFO_EXPORT = 0
export const COMMAND = { read: 0, write: 1, disconnect: 2, flush: 3, writeZeroes: 6, blockStatus: 7 } as const
export const CHUNK_TYPE = { none: 0, offsetData: 1, offsetHole: 2, blockStatus: 5 } as const
/** Reply chunks with this bit are errors. */
export const CHUNK_ERROR = 0x8000
export const FLAG_DONE = 1
export const GREETING_BYTES = 18
export const OPTION_REPLY_BYTES = 20
export const SIMPLE_REPLY_BYTES = 16
export const STRUCTURED_REPLY_BYTES = 20

export function optionFrame(option: number, data: Buffer): Buffer {
  const frame = Buffer.alloc(16)
  frame.writeBigUInt64BE(MAGIC.option, 0)
  frame.writeUInt32BE(option, 8)
  frame.writeUInt32BE(data.length, 12)
  return Buffer.concat([frame, data])
}

export interface NbdRequest {
  readonly command: number
  readonly handle: bigint
  readonly offset: number
  readonly length: number
}

export function requestFrame({ command, handle, offset, length }: NbdRequest): Buffer {
  const frame = Buffer.alloc(28)
  frame.writeUInt32BE(MAGIC.request, 0)
  frame.writeUInt16BE(command, 6)
  frame.writeBigUInt64BE(handle, 8)
  frame.writeBigUInt64BE(BigInt(offset), 16)
  frame.writeUInt32BE(length, 24)
  return frame
}

/** A string after its length. */
export function counted(text: string): Buffer {
  const bytes = Buffer.from(text)
  return Buffer.concat([number32(bytes.length), bytes])
}

export function number32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** Queue of incoming bytes. The reader takes pieces of the length that the protocol announces. Long pieces go straight
 *  to their destination. */
export class ByteQueue {
  readonly #parts: Buffer[] = []
  #failure: Error | undefined
  #wake: (() => void) | undefined
  /** Remaining part of the destination of the next bytes. */
  #place: Buffer | undefined

  /** The caller may reuse the buffer afterwards. */
  push(part: Buffer): void {
    const placed = this.#place === undefined ? 0 : part.copy(this.#place)
    if (placed > 0) this.#place = this.#place?.subarray(placed)
    if (placed < part.length) {
      this.#parts.push(Buffer.from(part.subarray(placed)))
    }
    this.#wake?.()
  }

  fail(error: Error): void {
    this.#failure ??= error
    this.#wake?.()
  }

  /** Throws when the connection has ended before the bytes arrived. */
  async take(count: number): Promise<Buffer> {
    const bytes = Buffer.allocUnsafe(count)
    await this.takeInto(bytes)
    return bytes
  }

  /** Fills the place. Throws when the connection has ended before the bytes arrived. */
  async takeInto(place: Buffer): Promise<void> {
    this.#place = place.subarray(this.#takeHeld(place))
    try {
      while (this.#place.length > 0) {
        if (this.#failure !== undefined) throw this.#failure
        await new Promise<void>((resolve) => void (this.#wake = resolve))
      }
    } finally {
      this.#place = undefined
    }
  }

  /** Returns how many of the bytes had arrived already. */
  #takeHeld(place: Buffer): number {
    let offset = 0
    while (offset < place.length) {
      const part = this.#parts.shift()
      if (part === undefined) break
      const copied = part.copy(place, offset)
      offset += copied
      if (copied < part.length) this.#parts.unshift(part.subarray(copied))
    }
    return offset
  }
}
