/** Bodies that pass through: whole, no faster than they are taken, and freed behind. */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable, Writable } from 'node:stream'
import { expect, onTestFinished, test } from 'vitest'
import { pass, releaseRead } from '../../../embedded/object-storage/pass.ts'

const PIECE_BYTES = 16 * 1024
const digest = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')
/** Each has its memory for itself. */
const newPieces = (count: number): Buffer[] =>
  Array.from({ length: count }, () => Buffer.from(new Uint8Array(randomBytes(PIECE_BYTES)).buffer))
const isFreed = ({ buffer }: Buffer): boolean => (buffer as ArrayBuffer).detached // made above

test('passes a body on whole, piece by piece as it is taken, and frees what has been taken', async () => {
  const pieces = newPieces(64)
  const sent = digest(Buffer.concat(pieces))
  const taken: Buffer[] = []
  let waiting = 0
  const to = new Writable({
    highWaterMark: 2 * PIECE_BYTES,
    write(chunk: Buffer, _encoding, done) {
      waiting = Math.max(waiting, to.writableLength)
      // Late: whoever frees it before has it written as zeros.
      setTimeout(() => {
        taken.push(Buffer.from(chunk))
        done()
      }, 1)
    },
  })
  let counted = 0
  const from = Readable.from(pieces, { objectMode: false })
  pass(from, to, (bytes) => void (counted += bytes))
  from.once('end', () => to.end())
  await once(to, 'finish')
  expect(digest(Buffer.concat(taken))).toBe(sent)
  expect(counted).toBe(64 * PIECE_BYTES)
  expect(waiting).toBeLessThanOrEqual(3 * PIECE_BYTES)
  expect(pieces.filter((piece) => !isFreed(piece))).toEqual([])
})

test('frees nothing that others have a part of, and nothing whose writing failed', async () => {
  const shared = Buffer.alloc(2 * PIECE_BYTES)
  const parts = [shared.subarray(0, PIECE_BYTES), shared.subarray(PIECE_BYTES)]
  const well = new PassThrough().resume()
  const from = Readable.from(parts, { objectMode: false })
  pass(from, well)
  await once(from, 'end')
  expect(isFreed(shared)).toBe(false)

  const [piece] = newPieces(1)
  const broken = new Writable({ write: (_chunk, _encoding, done) => done(new Error('it broke')) })
  pass(Readable.from([piece], { objectMode: false }), broken)
  await once(broken, 'error')
  expect(piece && isFreed(piece)).toBe(false)
})

test('frees what a reader of a connection has read, and not what waits for one', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'pass-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const bytes = 64 * PIECE_BYTES
  const server = createServer((socket) => socket.end(Buffer.alloc(bytes, 7))).listen(join(folder, 's'))
  onTestFinished(() => void server.close())
  const connection = releaseRead(connect(join(folder, 's')))
  await once(connection, 'readable') // by now some of it waits
  const [read, counts]: [Buffer[], number[]] = [[], []]
  connection.on('data', (chunk: Buffer) => {
    expect(chunk.every((byte) => byte === 7)).toBe(true)
    read.push(chunk)
    counts.push(chunk.length)
  })
  await once(connection, 'end')
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(bytes)
  expect(read.slice(1).filter((chunk) => !isFreed(chunk))).toEqual([])
})
