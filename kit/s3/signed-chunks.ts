/** Bodies in chunks that are signed one by one: each is verified with the key of the sender, and signed again with
 *  another key of the same secret. Every byte except those of signatures stays where it is. */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { Transform, type TransformCallback } from 'node:stream'
import { invalidRequest, S3Refusal } from './refusal.ts'

export interface ChunkSigner {
  readonly key: Buffer
  /** In the format of a string to sign. */
  readonly scope: string
  /** Hexadecimal: the signature of the header, on which the signature of the first chunk depends. */
  readonly seed: string
}

/** Clients use 64 or 128 KiB. */
export const CHUNK_BYTES_MAXIMUM = 1024 * 1024
const LINE_BYTES_MAXIMUM = 1_024
const TRAILERS_MAXIMUM = 8
const NOTHING = createHash('sha256').digest('hex')
const HEAD = /^([0-9a-fA-F]{1,8});chunk-signature=([0-9a-f]{64})$/
const TRAILER = /^(x-amz-(?:checksum-[a-z0-9]+|trailer-signature)) *: *([!-~]*) *$/
const END = Buffer.from('\r\n')

const sha256 = (content: Buffer | string): string => createHash('sha256').update(content).digest('hex')

/** `instant` is that of the request. Fails with the Refusal for a chunk that is not signed with the key. */
export class ChunksAnew extends Transform {
  readonly #instant: string
  readonly #from: ChunkSigner
  readonly #to: ChunkSigner
  #lastFrom: string
  #lastTo: string
  #rest = Buffer.alloc(0)
  #part: 'head' | 'data' | 'trailers' | 'end' = 'head'
  #bytes = 0
  #claimed = ''
  #trailers: string[] = []

  constructor(instant: string, from: ChunkSigner, to: ChunkSigner) {
    super()
    this.#instant = instant
    this.#from = from
    this.#to = to
    this.#lastFrom = from.seed
    this.#lastTo = to.seed
  }

  override _transform(piece: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#rest = Buffer.concat([this.#rest, piece])
    try {
      while (this.#step());
      done()
    } catch (error) {
      done(error instanceof Error ? error : new Error(String(error)))
    }
  }

  override _flush(done: TransformCallback): void {
    const isWhole = this.#part === 'end' && this.#rest.length === 0
    done(isWhole ? null : new S3Refusal(400, 'IncompleteBody', 'The body ends before its last chunk.'))
  }

  /** Whether there were enough bytes for one. */
  #step(): boolean {
    if (this.#part === 'end') {
      if (this.#rest.length > 0) throw malformed()
      return false
    }
    if (this.#part === 'data') return this.#takeData()
    const end = this.#rest.indexOf(END)
    if (end < 0 && this.#rest.length > LINE_BYTES_MAXIMUM) throw malformed()
    if (end < 0) return false
    const line = this.#rest.subarray(0, end).toString('latin1')
    this.#rest = this.#rest.subarray(end + END.length)
    if (this.#part === 'head') this.#takeHead(line)
    else this.#takeTrailer(line)
    return true
  }

  #takeHead(line: string): void {
    const [, size, signature] = HEAD.exec(line) ?? []
    if (size === undefined || signature === undefined) throw malformed()
    this.#bytes = Number.parseInt(size, 16)
    if (this.#bytes > CHUNK_BYTES_MAXIMUM)
      throw invalidRequest(`A signed chunk has at most ${CHUNK_BYTES_MAXIMUM} bytes here.`)
    this.#claimed = signature
    if (this.#bytes > 0) this.#part = 'data'
    else {
      this.push(`${size};chunk-signature=${this.#sign('PAYLOAD', [NOTHING, NOTHING])}\r\n`)
      this.#part = 'trailers'
    }
  }

  #takeData(): boolean {
    const end = this.#bytes + END.length
    if (this.#rest.length < end) return false
    const data = Buffer.from(this.#rest.subarray(0, this.#bytes))
    if (!this.#rest.subarray(this.#bytes, end).equals(END)) throw malformed()
    this.#rest = this.#rest.subarray(end)
    const signature = this.#sign('PAYLOAD', [NOTHING, sha256(data)])
    this.push(`${data.length.toString(16)};chunk-signature=${signature}\r\n`)
    this.push(data)
    this.push(END)
    this.#part = 'head'
    return true
  }

  #takeTrailer(line: string): void {
    if (line === '') {
      this.push(END)
      this.#part = 'end'
      return
    }
    const [, name = '', value = ''] = TRAILER.exec(line) ?? []
    if (name === '' || this.#trailers.length >= TRAILERS_MAXIMUM) throw malformed()
    if (name !== 'x-amz-trailer-signature') {
      this.#trailers.push(`${name}:${value}\n`)
      this.push(`${line}\r\n`)
      return
    }
    this.#claimed = value
    this.push(`${name}:${this.#sign('TRAILER', [sha256(this.#trailers.join(''))])}\r\n`)
  }

  /** Verifies the sender's signature, and returns the new one. */
  #sign(kind: 'PAYLOAD' | 'TRAILER', digests: readonly string[]): string {
    const by = ({ key, scope }: ChunkSigner, last: string): string =>
      createHmac('sha256', key)
        .update([`AWS4-HMAC-SHA256-${kind}`, this.#instant, scope, last, ...digests].join('\n'))
        .digest('hex')
    const expected = by(this.#from, this.#lastFrom)
    const claimed = Buffer.from(this.#claimed)
    if (claimed.length !== expected.length || !timingSafeEqual(claimed, Buffer.from(expected)))
      throw new S3Refusal(403, 'SignatureDoesNotMatch', 'A chunk of the body has another signature.')
    this.#lastFrom = expected
    this.#lastTo = by(this.#to, this.#lastTo)
    return this.#lastTo
  }
}

const malformed = () => invalidRequest('The body is not in signed chunks.')
