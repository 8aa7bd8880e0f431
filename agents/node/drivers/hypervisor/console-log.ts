/** The file to which QEMU writes a guest's output, even while no agent runs. The file only grows. Output that is no
 *  longer needed is deallocated from its start, because truncation could lose output that QEMU writes at the same time.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { runProgram } from '../../run-program.ts'
import { CONSOLE_TAIL_BYTES, type ConsolePosition } from './hypervisor.ts'
import { GUEST_FILES } from './qemu-arguments.ts'

/** Limit of the bytes that are read at once, and of those that are kept. */
const LOG_BYTES_MAXIMUM = 1024 * 1024
/** File systems deallocate whole blocks only. */
const BLOCK_BYTES = 4096

export class ConsoleLog {
  readonly path: string
  /** Name of the log file, as in ConsolePosition. */
  #name = ''
  /** Bytes of the log that were read. */
  #offset = 0
  /** Bytes of the log that were deallocated. */
  #freed = 0

  constructor(folder: string) {
    this.path = join(folder, GUEST_FILES.consoleLog)
  }

  /** The last CONSOLE_TAIL_BYTES of the log. */
  history(): Buffer {
    return this.#read(CONSOLE_TAIL_BYTES)
  }

  /** The end of the last read. A different file is a different log; a guest that migrates gets one on the new host. */
  position(): ConsolePosition {
    return { log: this.#name, end: this.#offset }
  }

  /** Output since the last read, at most the last LOG_BYTES_MAXIMUM of it. */
  unread(): Buffer {
    return this.#read(LOG_BYTES_MAXIMUM)
  }

  /** Limits the log's disk usage. Rejects when the file system cannot deallocate parts of a file. */
  async trim(): Promise<void> {
    const end = Math.floor((this.#offset - CONSOLE_TAIL_BYTES) / BLOCK_BYTES) * BLOCK_BYTES
    if (end - this.#freed < LOG_BYTES_MAXIMUM) return
    this.#freed = end
    await runProgram('fallocate', ['--punch-hole', '--offset', '0', '--length', String(end), this.path])
  }

  #read(bytesMaximum: number): Buffer {
    let file: number
    try {
      file = openSync(this.path, 'r')
    } catch {
      return Buffer.alloc(0) // no guest has written yet
    }
    try {
      const { size, ino, birthtimeMs } = fstatSync(file)
      this.#name = `${ino.toString(36)}x${Math.round(birthtimeMs).toString(36)}`
      const start = Math.max(this.#offset, size - bytesMaximum)
      const bytes = Buffer.alloc(Math.max(0, size - start))
      const length = readSync(file, bytes, 0, bytes.length, start)
      this.#offset = start + length
      return bytes.subarray(0, length)
    } finally {
      closeSync(file)
    }
  }
}
