/** Counts the traffic of an interface in user-mode networking, which has no device on the host that would count it.
 *  QEMU records the length of every frame (`filter-dump`, a pcap file for each direction). The agent adds the lengths
 *  up and empties the file. It writes the sum before it empties the file, so that a kill cannot count a frame twice.
 *  QEMU continues to write at its own offset, so the emptied part is a hole. Frames that arrive while the file is being
 *  emptied are not counted. Nothing that a guest sends decides what is counted: the file determines the direction, and
 *  only one byte of each frame is kept, which is too little to forge a record. */
import { constants, open, readFile } from 'node:fs/promises'
import { z } from 'zod'
import { writeDurably } from '../../../../kit/sys/durable-file.ts'

/** How many bytes of each frame QEMU keeps; the minimum is 1. */
export const FRAME_BYTES_KEPT = 1
const FILE_HEADER_BYTES = 24
const RECORD_HEADER_BYTES = 16
const READ_BYTES = 1_048_576
/** The file is emptied when this many bytes of it were counted. */
const EMPTY_BYTES = 65_536

export interface Traffic {
  readonly receivedBytes: number
  readonly transmittedBytes: number
}

const TrafficCount = z.strictObject({
  /** End of the counted part of the file. */
  offset: z.int().min(0),
  /** The length of all frames so far. */
  frameBytes: z.int().min(0),
})
type TrafficCount = z.infer<typeof TrafficCount>
const NOTHING: TrafficCount = { offset: FILE_HEADER_BYTES, frameBytes: 0 }

/** Adds the complete frames in the bytes, which start with a record. Sizes are those of complete frames, as in the
 *  counters of Linux. */
export function addFrames({ offset, frameBytes }: TrafficCount, bytes: Buffer): TrafficCount {
  let sum = frameBytes
  let at = 0
  while (at + RECORD_HEADER_BYTES + FRAME_BYTES_KEPT <= bytes.length) {
    // Frames that arrived while the file was being emptied left a hole. Every header has the same number at this
    // offset, so the end of the hole can be found.
    if (bytes.readUInt32LE(at + 8) !== FRAME_BYTES_KEPT) {
      at++
      continue
    }
    sum += bytes.readUInt32LE(at + 12)
    at += RECORD_HEADER_BYTES + FRAME_BYTES_KEPT
  }
  return { offset: offset + at, frameBytes: sum }
}

/** The bytes of all frames of one direction, including new ones in its file; `countFile` stores the sum. Zero before
 *  the file exists. One call at a time. */
export async function countFrames({
  file,
  countFile,
}: {
  readonly file: string
  readonly countFile: string
}): Promise<number> {
  let counted = await readCounted(countFile)
  const log = await open(file, constants.O_RDWR | constants.O_NOFOLLOW).catch(() => undefined)
  if (log === undefined) return counted.frameBytes
  try {
    const from = counted.offset
    const buffer = Buffer.alloc(READ_BYTES)
    for (;;) {
      const { bytesRead } = await log.read(buffer, 0, READ_BYTES, counted.offset)
      const next = addFrames(counted, buffer.subarray(0, bytesRead))
      const isStuck = next.offset === counted.offset
      counted = next
      if (isStuck || bytesRead < READ_BYTES) break
    }
    if (counted.offset - from >= EMPTY_BYTES) {
      await writeDurably(countFile, JSON.stringify(counted))
      await log.truncate(0)
    }
  } finally {
    await log.close()
  }
  return counted.frameBytes
}

async function readCounted(countFile: string): Promise<TrafficCount> {
  const text = await readFile(countFile, 'utf8').catch(() => undefined)
  return text === undefined ? NOTHING : TrafficCount.parse(JSON.parse(text))
}
