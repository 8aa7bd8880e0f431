import { appendFile, mkdtemp, open, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { addFrames, countFrames, FRAME_BYTES_KEPT } from '../../../../agents/node/drivers/network/traffic-log.ts'

const FILE_HEADER = Buffer.alloc(24, 1)
const RECORD_BYTES = 16 + FRAME_BYTES_KEPT
/** As QEMU writes it: of a frame its first bytes, as many as it has. */
const frame = (length: number, content = 0): Buffer => {
  const record = Buffer.alloc(16 + Math.min(length, FRAME_BYTES_KEPT), content)
  record.writeUInt32LE(0x6b000100, 0) // a second whose lowest byte is zero
  record.writeUInt32LE(17, 4)
  record.writeUInt32LE(Math.min(length, FRAME_BYTES_KEPT), 8)
  record.writeUInt32LE(length, 12)
  return record
}
const start = { offset: 24, frameBytes: 0 }

describe('frames', () => {
  it('are counted once, however the file is cut into readings', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 1, max: 65_535 }), fc.integer({ min: 0, max: 255 })), { maxLength: 20 }),
        fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1 }),
        (frames, cuts) => {
          const bytes = Buffer.concat(frames.map(([length, content]) => frame(length, content)))
          let counted = start
          for (let end = 0, cut = 0; end < bytes.length; cut++) {
            end = Math.min(bytes.length, end + (cuts[cut % cuts.length] ?? 1))
            counted = addFrames(counted, bytes.subarray(counted.offset - 24, end))
          }
          const sum = frames.reduce((total, [length]) => total + length, 0)
          expect(counted).toEqual({ offset: 24 + bytes.length, frameBytes: sum })
        },
      ),
    )
  })
  it('of fewer bytes than an Ethernet header hide no other: the guest chooses what they hold', () => {
    // Read as a record, a frame of ten such bytes would swallow the one after it.
    const forged = Buffer.alloc(10)
    forged.writeUInt32LE(FRAME_BYTES_KEPT, 2)
    const record = Buffer.concat([frame(10).subarray(0, 16), forged.subarray(0, FRAME_BYTES_KEPT)])
    const pairs = Array.from({ length: 100 }, () => Buffer.concat([record, frame(1_500)]))
    expect(addFrames(start, Buffer.concat(pairs)).frameBytes).toBe(100 * 1_510)
  })
  it('without a byte hide no other', () => {
    expect(addFrames(start, Buffer.concat([frame(0), frame(60), frame(0), frame(70)])).frameBytes).toBe(130)
  })
  it('after a hole are found again', () => {
    for (const hole of [1, 16, 17, 29, 4_096]) {
      expect(addFrames(start, Buffer.concat([Buffer.alloc(hole), frame(60), frame(70)]))).toEqual({
        offset: 24 + hole + 2 * RECORD_BYTES,
        frameBytes: 130,
      })
    }
  })
})

describe('the file of an interface', () => {
  let folder: string
  const files = () => ({ file: join(folder, 'net0.pcap'), countFile: join(folder, 'net0.json') })
  beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), 'svccloud-traffic-'))))
  afterEach(() => rm(folder, { recursive: true }))

  it('that is not there yet has no traffic', async () => {
    expect(await countFrames(files())).toBe(0)
  })

  it('is emptied once enough was counted, and frames that follow are counted, also by the next agent', async () => {
    const { file, countFile } = files()
    const frames = (count: number) => Buffer.concat(Array.from({ length: count }, () => frame(100)))
    await writeFile(file, Buffer.concat([FILE_HEADER, frames(10)]))
    expect(await countFrames(files())).toBe(1_000)
    expect((await stat(file)).size).toBeGreaterThan(0)
    await appendFile(file, frames(10_000))
    const size = (await stat(file)).size
    expect(await countFrames(files())).toBe(1_001_000)
    expect((await stat(file)).size).toBe(0)
    expect(JSON.parse(await readFile(countFile, 'utf8'))).toMatchObject({ offset: size, frameBytes: 1_001_000 })
    const log = await open(file, 'r+')
    // One frame came while the file was being emptied.
    await log.write(frames(3), 0, 3 * RECORD_BYTES, size + RECORD_BYTES)
    await log.close()
    expect(await countFrames(files())).toBe(1_001_300)
  })
})
