/** Traffic of an interface that nothing else counts: user-mode networking has no device on the host. QEMU writes down
 *  the Ethernet header and
 *  the length of every frame (`filter-dump`, a pcap file); the agent adds them up and empties the file. What was
 *  counted is written down before
 *  the file is emptied, so that no kill counts a frame twice. QEMU goes on writing at its own place: the emptied part
 *  is a hole. Frames of the
 *  very moment of emptying are not counted. */
import { open, readFile } from 'node:fs/promises'
import { z } from 'zod'
import { writeDurably } from '../../../../kit/sys/durable-file.ts'

/** What QEMU is told to keep of each frame: the Ethernet header. */
export const FRAME_BYTES_KEPT = 14
const FILE_HEADER_BYTES = 24
const RECORD_HEADER_BYTES = 16
const READ_BYTES = 1_048_576
/** The file is emptied when so much of it was counted. */
const EMPTY_BYTES = 65_536
const MAC_BYTES = 6

export interface Traffic {
  readonly receivedBytes: number
  readonly transmittedBytes: number
}

const Counted = z.strictObject({
  /** How far the file was counted. */
  offset: z.int().min(0),
  receivedBytes: z.int().min(0),
  transmittedBytes: z.int().min(0),
})
type Counted = z.infer<typeof Counted>
const NOTHING: Counted = { offset: FILE_HEADER_BYTES, receivedBytes: 0, transmittedBytes: 0 }

/** Adds the whole frames of the bytes, which begin with a record. Frames that the guest's own address sent are
 *  transmitted; sizes are those
 *  of whole frames, as counters of Linux give them. */
export function addFrames(counted: Counted, bytes: Buffer, macAddress: string): Counted {
  const own = Buffer.from(macAddress.replaceAll(':', ''), 'hex')
  let { offset, receivedBytes, transmittedBytes } = counted
  let at = 0
  while (at + RECORD_HEADER_BYTES <= bytes.length) {
    // Frames that came while the file was being emptied left a hole. Every header says the same number here, so its end
    // is found again.
    if (bytes.readUInt32LE(at + 8) !== FRAME_BYTES_KEPT) {
      at++
      continue
    }
    const length = bytes.readUInt32LE(at + 12)
    const frame = at + RECORD_HEADER_BYTES
    if (frame + FRAME_BYTES_KEPT > bytes.length) break
    if (own.equals(bytes.subarray(frame + MAC_BYTES, frame + 2 * MAC_BYTES))) transmittedBytes += length
    else receivedBytes += length
    at = frame + FRAME_BYTES_KEPT
  }
  offset += at
  return { offset, receivedBytes, transmittedBytes }
}

/** Counts what is new in the file of the interface; `countFile` keeps the sum. Zero before there is a file. One call at
 *  a time. */
export async function countTraffic({
  file,
  countFile,
  macAddress,
}: {
  readonly file: string
  readonly countFile: string
  readonly macAddress: string
}): Promise<Traffic> {
  let counted = await readCounted(countFile)
  const log = await open(file, 'r+').catch(() => undefined)
  if (log === undefined) return counted
  try {
    const from = counted.offset
    const buffer = Buffer.alloc(READ_BYTES)
    for (;;) {
      const { bytesRead } = await log.read(buffer, 0, READ_BYTES, counted.offset)
      const next = addFrames(counted, buffer.subarray(0, bytesRead), macAddress)
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
  return counted
}

async function readCounted(countFile: string): Promise<Counted> {
  const text = await readFile(countFile, 'utf8').catch(() => undefined)
  return text === undefined ? NOTHING : Counted.parse(JSON.parse(text))
}
