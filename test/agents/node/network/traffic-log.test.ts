import { appendFile, mkdtemp, open, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { addFrames, countTraffic, FRAME_BYTES_KEPT } from '../../../../agents/node/drivers/network/traffic-log.ts'

const OWN = '02:00:00:00:00:01'
const FILE_HEADER = Buffer.alloc(24, 1)
const frame = (length: number, isOwn: boolean): Buffer => {
  const record = Buffer.alloc(16 + FRAME_BYTES_KEPT)
  record.writeUInt32LE(0x6b000100, 0) // a second whose lowest byte is zero
  record.writeUInt32LE(FRAME_BYTES_KEPT, 8)
  record.writeUInt32LE(length, 12)
  Buffer.from(isOwn ? '020000000001' : '525500000002', 'hex').copy(record, 16 + 6)
  return record
}
const start = { offset: 24, receivedBytes: 0, transmittedBytes: 0 }

describe('frames', () => {
  it('are what the guest sent, and everything else what it received', () => {
    expect(addFrames(start, Buffer.concat([frame(60, true), frame(1_500, false), frame(40, true)]), OWN)).toEqual({
      offset: 24 + 90,
      receivedBytes: 1_500,
      transmittedBytes: 100,
    })
  })
  it('are counted once, however the file is cut into readings', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 14, max: 65_535 }), fc.boolean()), { maxLength: 20 }),
        fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1 }),
        (frames, cuts) => {
          const bytes = Buffer.concat(frames.map(([length, isOwn]) => frame(length, isOwn)))
          let counted = start
          for (let end = 0, turn = 0; end < bytes.length; turn++) {
            end = Math.min(bytes.length, end + (cuts[turn % cuts.length] ?? 1))
            counted = addFrames(counted, bytes.subarray(counted.offset - 24, end), OWN)
          }
          const sum = (isOwn: boolean) =>
            frames.filter(([, own]) => own === isOwn).reduce((total, [length]) => total + length, 0)
          expect(counted).toEqual({ offset: 24 + bytes.length, transmittedBytes: sum(true), receivedBytes: sum(false) })
        },
      ),
    )
  })
  it('after a hole are found again', () => {
    for (const hole of [1, 29, 30, 4_096]) {
      expect(addFrames(start, Buffer.concat([Buffer.alloc(hole), frame(60, true), frame(70, false)]), OWN)).toEqual({
        offset: 24 + hole + 60,
        transmittedBytes: 60,
        receivedBytes: 70,
      })
    }
  })
})

describe('the file of an interface', () => {
  let folder: string
  const files = () => ({ file: join(folder, 'net0.pcap'), countFile: join(folder, 'net0.json'), macAddress: OWN })
  beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), 'svccloud-traffic-'))))
  afterEach(() => rm(folder, { recursive: true }))

  it('that is not there yet has no traffic', async () => {
    expect(await countTraffic(files())).toMatchObject({ receivedBytes: 0, transmittedBytes: 0 })
  })

  it(
    'is emptied once enough was counted; who writes on at its own ' + 'place is counted on, also by the next agent',
    async () => {
      const { file, countFile } = files()
      const frames = (count: number) => Buffer.concat(Array.from({ length: count }, () => frame(100, true)))
      await writeFile(file, Buffer.concat([FILE_HEADER, frames(10)]))
      expect(await countTraffic(files())).toMatchObject({ transmittedBytes: 1_000 })
      expect((await stat(file)).size).toBeGreaterThan(0)
      await appendFile(file, frames(10_000))
      const size = (await stat(file)).size
      expect(await countTraffic(files())).toMatchObject({ transmittedBytes: 1_001_000 })
      expect((await stat(file)).size).toBe(0)
      expect(JSON.parse(await readFile(countFile, 'utf8'))).toMatchObject({ offset: size, transmittedBytes: 1_001_000 })
      const log = await open(file, 'r+')
      await log.write(frames(3), 0, 90, size + 30) // one frame came while the file was being emptied
      await log.close()
      expect(await countTraffic(files())).toMatchObject({ transmittedBytes: 1_001_300 })
    },
  )
})
