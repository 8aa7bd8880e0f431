/** Traffic of an interface that nothing else counts: user-mode networking has no device on the host. QEMU writes down
 *  the length of every frame (`filter-dump`, a pcap file for each direction); the agent adds them up and empties the
 *  file. The sum is written down before the file is emptied, so that no kill counts a frame twice. QEMU goes on writing
 *  at its own place: the emptied part is a hole. Frames that come at the moment of emptying are not counted.
 *  Nothing that a guest sends decides what is counted: the direction is the file's, and of a frame's own bytes one is
 *  kept, which is too little to forge a record with. */
import { constants, open, readFile } from 'node:fs/promises'
import { z } from 'zod'
import { writeDurably } from '../../../../kit/sys/durable-file.ts'

/** How much QEMU keeps of each frame; it cannot be told to keep nothing. */
export const FRAME_BYTES_KEPT = 1
const FILE_HEADER_BYTES = 24
const RECORD_HEADER_BYTES = 16
const READ_BYTES = 1_048_576
/** The file is emptied when so much of it was counted. */
const EMPTY_BYTES = 65_536

export interface Traffic {
  readonly receivedBytes: number
  readonly transmittedBytes: number
}

const Counted = z.strictObject({
  /** How far the file was counted. */
  offset: z.int().min(0),
  /** The length of all frames so far. */
  frameBytes: z.int().min(0),
})
type Counted = z.infer<typeof Counted>
const NOTHING: Counted = { offset: FILE_HEADER_BYTES, frameBytes: 0 }

/** Adds the whole frames of the bytes, which begin with a record. Sizes are those of whole frames, as counters of Linux
 *  give them. */
export function addFrames({ offset, frameBytes }: Counted, bytes: Buffer): Counted {
  let sum = frameBytes
  let at = 0
  while (at + RECORD_HEADER_BYTES + FRAME_BYTES_KEPT <= bytes.length) {
    // Frames that came while the file was being emptied left a hole. Every header has the same number here, so its end
    // is found again.
    if (bytes.readUInt32LE(at + 8) !== FRAME_BYTES_KEPT) {
      at++
      continue
    }
    sum += bytes.readUInt32LE(at + 12)
    at += RECORD_HEADER_BYTES + FRAME_BYTES_KEPT
  }
  return { offset: offset + at, frameBytes: sum }
}

/** The bytes of all frames of one direction, with what is new in its file; `countFile` keeps the sum. Zero before there
 *  is a file. One call at a time. */
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

async function readCounted(countFile: string): Promise<Counted> {
  const text = await readFile(countFile, 'utf8').catch(() => undefined)
  return text === undefined ? NOTHING : Counted.parse(JSON.parse(text))
}
