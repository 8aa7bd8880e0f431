/** A client for NBD servers on this host, over a UNIX socket. It reads and writes disks, and queries which parts hold
 *  data or have changed. The servers are QEMU and qemu-nbd. */
import type { Socket } from 'node:net'
import { connectLocalSocket } from '../drivers/hypervisor/local-socket.ts'
import {
  ByteQueue,
  CHUNK_ERROR,
  CHUNK_TYPE,
  CLIENT_FLAGS,
  COMMAND,
  counted,
  FLAG_DONE,
  GREETING_BYTES,
  INFO_EXPORT,
  MAGIC,
  number32,
  OPTION,
  OPTION_ERROR,
  OPTION_REPLY,
  OPTION_REPLY_BYTES,
  optionFrame,
  requestFrame,
  SIMPLE_REPLY_BYTES,
  STRUCTURED_REPLY_BYTES,
} from './nbd-wire.ts'

/** Context for the parts of the disk that read as zeros. */
export const ALLOCATION = 'base:allocation'
const ALLOCATION_ZERO = 2
/** Context for the parts that the bitmap has recorded as written. */
export const bitmapContext = (bitmap: string): string => `qemu:dirty-bitmap:${bitmap}`
const BITMAP_DIRTY = 1

export interface DiskRange {
  readonly offset: number
  readonly length: number
}

export interface NbdDisk {
  readonly sizeBytes: number
  /** At most READ_BYTES_MAXIMUM bytes. Reads into `place` if it is given; it must have this length. */
  read(offset: number, length: number, place?: Buffer): Promise<Buffer>
  write(offset: number, bytes: Buffer): Promise<void>
  zero(offset: number, length: number): Promise<void>
  /** Resolves when everything written is on the disk. */
  flush(): Promise<void>
  /** In order. `context` must be one of those requested at the opening. */
  ranges(context: string): Promise<DiskRange[]>
  close(): void
}

export interface NbdOptions {
  readonly socket: string
  readonly exportName: string
  readonly contexts?: readonly string[]
}

/** Limit of QEMU. */
export const READ_BYTES_MAXIMUM = 32 * 1024 * 1024
const REPLY_BYTES_MAXIMUM = READ_BYTES_MAXIMUM + 64
const STATUS_BYTES_MAXIMUM = 2 ** 31
const NAMES_BYTES_MAXIMUM = 65_536
/** Size of the buffer for one read from the socket. */
const RECEIVE_BYTES = 262_144

export class NbdError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'NbdError'
  }
}

/** NbdError when the server does not have the export or a context, or does not speak the protocol. */
export async function openNbd({ socket: path, exportName, contexts = [] }: NbdOptions): Promise<NbdDisk> {
  const incoming = new ByteQueue()
  const socket = await connectLocalSocket(path, {
    buffer: Buffer.allocUnsafe(RECEIVE_BYTES),
    callback(length, buffer) {
      incoming.push(Buffer.from(buffer.buffer, buffer.byteOffset, length))
      return true
    },
  })
  socket.on('error', (cause) => incoming.fail(new NbdError(`the connection to ${path} is broken`, { cause })))
  socket.once('close', () => incoming.fail(new NbdError(`${path} closed the connection`)))
  try {
    const { sizeBytes, contextIds } = await negotiate(socket, incoming, exportName, contexts)
    return new Disk(socket, incoming, sizeBytes, contextIds)
  } catch (error) {
    socket.destroy()
    throw error
  }
}

interface Negotiation {
  readonly sizeBytes: number
  readonly contextIds: ReadonlyMap<string, number>
}

async function negotiate(
  socket: Socket,
  incoming: ByteQueue,
  exportName: string,
  contexts: readonly string[],
): Promise<Negotiation> {
  const greeting = await incoming.take(GREETING_BYTES)
  if (greeting.readBigUInt64BE(0) !== MAGIC.greeting || greeting.readBigUInt64BE(8) !== MAGIC.option)
    throw new NbdError('this is no NBD server')
  socket.write(number32(CLIENT_FLAGS))

  async function request(option: number, data: Buffer): Promise<{ type: number; data: Buffer }[]> {
    socket.write(optionFrame(option, data))
    const replies: { type: number; data: Buffer }[] = []
    for (;;) {
      const head = await incoming.take(OPTION_REPLY_BYTES)
      const [type, length] = [head.readUInt32BE(12), head.readUInt32BE(16)]
      if (head.readBigUInt64BE(0) !== MAGIC.optionReply || length > NAMES_BYTES_MAXIMUM)
        throw new NbdError('the NBD server answers something else')
      const body = await incoming.take(length)
      if (type === OPTION_REPLY.ack) return replies
      if (type >= OPTION_ERROR) throw new NbdError(body.toString() || `the NBD server refuses option ${option}`)
      replies.push({ type, data: body })
    }
  }

  await request(OPTION.structuredReply, Buffer.alloc(0))
  const contextIds = new Map<string, number>()
  if (contexts.length > 0) {
    const query = Buffer.concat([counted(exportName), number32(contexts.length), ...contexts.map(counted)])
    for (const { type, data } of await request(OPTION.setMetaContext, query))
      if (type === OPTION_REPLY.metaContext) contextIds.set(data.toString('utf8', 4), data.readUInt32BE(0))
    const missing = contexts.find((context) => !contextIds.has(context))
    if (missing !== undefined) throw new NbdError(`the export has no ${missing}`)
  }
  const infos = await request(OPTION.go, Buffer.concat([counted(exportName), Buffer.alloc(2)]))
  const info = infos.find(({ type, data }) => type === OPTION_REPLY.info && data.readUInt16BE(0) === INFO_EXPORT)
  if (info === undefined) throw new NbdError('the NBD server does not describe the export')
  return { sizeBytes: Number(info.data.readBigUInt64BE(2)), contextIds }
}

interface Pending {
  readonly offset: number
  /** Data of a read that has arrived. Each part arrives once, as data or as a hole. */
  readonly bytes: Buffer | undefined
  readonly statuses: Map<number, Buffer>
  error?: Error
  readonly finish: (error: Error | undefined) => void
}

class Disk implements NbdDisk {
  readonly sizeBytes: number
  readonly #socket: Socket
  readonly #contextIds: ReadonlyMap<string, number>
  readonly #pending = new Map<bigint, Pending>()
  #lastHandle = 0n
  #failure: Error | undefined

  constructor(socket: Socket, incoming: ByteQueue, sizeBytes: number, contextIds: ReadonlyMap<string, number>) {
    this.sizeBytes = sizeBytes
    this.#socket = socket
    this.#contextIds = contextIds
    this.#receive(incoming).catch((error: unknown) => {
      this.#failure = error instanceof Error ? error : new Error(String(error))
      socket.destroy()
      for (const { finish } of this.#pending.values()) finish(this.#failure)
      this.#pending.clear()
    })
  }

  async read(offset: number, length: number, bytes = Buffer.allocUnsafe(length)): Promise<Buffer> {
    await this.#send(COMMAND.read, { offset, length, bytes })
    return bytes
  }

  async write(offset: number, data: Buffer): Promise<void> {
    await this.#send(COMMAND.write, { offset, length: data.length, data })
  }

  async zero(offset: number, length: number): Promise<void> {
    await this.#send(COMMAND.writeZeroes, { offset, length })
  }

  async flush(): Promise<void> {
    await this.#send(COMMAND.flush, { offset: 0, length: 0 })
  }

  async ranges(context: string): Promise<DiskRange[]> {
    const id = this.#contextIds.get(context)
    if (id === undefined) throw new NbdError(`${context} was not asked for`)
    const isWanted = (flags: number) =>
      context === ALLOCATION ? (flags & ALLOCATION_ZERO) === 0 : (flags & BITMAP_DIRTY) !== 0
    const ranges: { offset: number; length: number }[] = []
    for (let offset = 0; offset < this.sizeBytes; ) {
      const length = Math.min(STATUS_BYTES_MAXIMUM, this.sizeBytes - offset)
      const described = (await this.#send(COMMAND.blockStatus, { offset, length })).get(id)
      if (described === undefined || described.length < 8) throw new NbdError(`no answer for ${context}`)
      for (let at = 0; at + 8 <= described.length; at += 8) {
        const [extent, flags] = [described.readUInt32BE(at), described.readUInt32BE(at + 4)]
        if (extent === 0) throw new NbdError('an extent of no length')
        const last = ranges.at(-1)
        if (isWanted(flags) && last !== undefined && last.offset + last.length === offset) last.length += extent
        else if (isWanted(flags)) ranges.push({ offset, length: extent })
        offset += extent
      }
    }
    return ranges
  }

  close(): void {
    if (this.#failure === undefined)
      this.#socket.end(requestFrame({ command: COMMAND.disconnect, handle: 0n, offset: 0, length: 0 }))
    this.#failure ??= new NbdError('the disk was closed')
  }

  #send(
    command: number,
    { offset, length, bytes, data }: { offset: number; length: number; bytes?: Buffer; data?: Buffer },
  ): Promise<ReadonlyMap<number, Buffer>> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) return reject(this.#failure)
      const handle = ++this.#lastHandle
      const statuses = new Map<number, Buffer>()
      const finish = (error: Error | undefined) => (error === undefined ? resolve(statuses) : reject(error))
      this.#pending.set(handle, { offset, bytes, statuses, finish })
      this.#socket.write(requestFrame({ command, handle, offset, length }))
      if (data !== undefined) this.#socket.write(data)
    })
  }

  async #receive(incoming: ByteQueue): Promise<never> {
    for (;;) {
      const magic = await incoming.take(4)
      if (magic.readUInt32BE() === MAGIC.simpleReply) {
        const head = await incoming.take(SIMPLE_REPLY_BYTES - 4)
        const code = head.readUInt32BE(0)
        this.#finish(head.readBigUInt64BE(4), code === 0 ? undefined : new NbdError(`the NBD server: error ${code}`))
        continue
      }
      if (magic.readUInt32BE() !== MAGIC.structuredReply) throw new NbdError('the NBD server sends something else')
      const head = await incoming.take(STRUCTURED_REPLY_BYTES - 4)
      const [flags, type] = [head.readUInt16BE(0), head.readUInt16BE(2)]
      const [handle, length] = [head.readBigUInt64BE(4), head.readUInt32BE(12)]
      if (length > REPLY_BYTES_MAXIMUM) throw new NbdError('the NBD server sends too much')
      const pending = this.#pending.get(handle)
      if (pending === undefined) throw new NbdError('the NBD server answers what nobody asked')
      if (type === CHUNK_TYPE.offsetData) await takeData(pending, length, incoming)
      else take(pending, type, await incoming.take(length))
      if ((flags & FLAG_DONE) !== 0) this.#finish(handle, pending.error)
    }
  }

  #finish(handle: bigint, error: Error | undefined): void {
    const pending = this.#pending.get(handle)
    this.#pending.delete(handle)
    pending?.finish(error)
  }
}

/** Copies a part of the read straight to its destination. */
async function takeData(pending: Pending, length: number, incoming: ByteQueue): Promise<void> {
  const offset = Number((await incoming.take(8)).readBigUInt64BE())
  await incoming.takeInto(placeOf(pending, offset, length - 8))
}

/** The part of the read buffer for a part of the disk. */
function placeOf({ bytes, offset }: Pending, from: number, length: number): Buffer {
  const at = from - offset
  if (bytes === undefined || at < 0 || length < 0 || at + length > bytes.length)
    throw new NbdError('the NBD server sends what was not read')
  return bytes.subarray(at, at + length)
}

/** Handles the next part of the answer. */
function take(pending: Pending, type: number, payload: Buffer): void {
  if ((type & CHUNK_ERROR) !== 0) {
    pending.error = new NbdError(payload.toString('utf8', 6) || `the NBD server: error ${payload.readUInt32BE(0)}`)
  } else if (type === CHUNK_TYPE.blockStatus) {
    pending.statuses.set(payload.readUInt32BE(0), payload.subarray(4))
  } else if (type === CHUNK_TYPE.offsetHole) {
    const length = payload.readUInt32BE(8)
    placeOf(pending, Number(payload.readBigUInt64BE(0)), length).fill(0)
  } else if (type !== CHUNK_TYPE.none) {
    throw new NbdError(`the NBD server sends a reply of type ${type}`)
  }
}
