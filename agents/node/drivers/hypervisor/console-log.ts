/** The file in which QEMU keeps a guest's console output, with and without an agent; kept short by the agent. A byte that an agent was too slow
 *  to take off the line may stand in it twice. */
import { closeSync, fstatSync, openSync, readSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CONSOLE_TAIL_BYTES } from './hypervisor.ts'
import { GUEST_FILES } from './qemu-arguments.ts'

const LOG_BYTES_MAXIMUM = 1024 * 1024
/** What came before the log was last cut. */
const EARLIER_FILE = 'console.earlier'

export class ConsoleLog {
  readonly #log: string
  readonly #earlier: string
  /** How much of the log its reader has. */
  #offset = 0

  constructor(folder: string) {
    this.#log = join(folder, GUEST_FILES.consoleLog)
    this.#earlier = join(folder, EARLIER_FILE)
  }

  /** The end of all that was ever written. */
  history(): Buffer {
    const earlier = readTail(this.#earlier, 0)
    return Buffer.concat([earlier.bytes, this.unread()]).subarray(-CONSOLE_TAIL_BYTES)
  }

  /** What was written since the last reading, at most the tail of it. */
  unread(): Buffer {
    const { bytes, size } = readTail(this.#log, this.#offset)
    this.#offset = size
    return bytes
  }

  /** Bytes that were read off the line itself: the log holds them too. Cuts the log when it is long. */
  passed(length: number, tail: () => Buffer): void {
    this.#offset += length
    if (this.#offset < LOG_BYTES_MAXIMUM) return
    writeFileSync(this.#earlier, tail())
    truncateSync(this.#log, 0)
    this.#offset = 0
  }
}

/** The end of the file behind the offset, and the file's size. While no agent ran it may have grown beyond all memory. */
function readTail(path: string, offset: number): { readonly bytes: Buffer; readonly size: number } {
  let file: number
  try {
    file = openSync(path, 'r')
  } catch {
    return { bytes: Buffer.alloc(0), size: 0 } // no guest wrote yet
  }
  try {
    const { size } = fstatSync(file)
    const start = Math.max(offset, size - CONSOLE_TAIL_BYTES)
    const bytes = Buffer.alloc(Math.max(0, size - start))
    return { bytes: bytes.subarray(0, readSync(file, bytes, 0, bytes.length, start)), size }
  } finally {
    closeSync(file)
  }
}
