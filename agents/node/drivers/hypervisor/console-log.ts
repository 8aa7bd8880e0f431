/** The file to which QEMU writes a guest's output, with and without an agent. It only grows; output that is no longer
 *  needed is deallocated from its beginning, because truncating the file could lose output that is written meanwhile.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { runProgram } from '../../run-program.ts'
import { CONSOLE_TAIL_BYTES, type ConsolePosition } from './hypervisor.ts'
import { GUEST_FILES } from './qemu-arguments.ts'

/** Limit of what is read at once, and kept. */
const LOG_BYTES_MAXIMUM = 1024 * 1024
/** File systems deallocate whole blocks only. */
const BLOCK_BYTES = 4096

export class ConsoleLog {
  readonly path: string
  /** Of the file. */
  #name = ''
  /** Bytes of the log that were read. */
  #offset = 0
  /** Bytes of it that were deallocated. */
  #freed = 0

  constructor(folder: string) {
    this.path = join(folder, GUEST_FILES.consoleLog)
  }

  /** The log's length in bytes, deallocated ones included. */
  history(): Buffer {
    return this.#read(CONSOLE_TAIL_BYTES)
  }

  /** Where the last reading ended. Another file, as a guest has on another host, is another log. */
  position(): ConsolePosition {
    return { log: this.#name, end: this.#offset }
  }

  /** What was written since the last reading, at most the last LOG_BYTES_MAXIMUM of it. */
  unread(): Buffer {
    return this.#read(LOG_BYTES_MAXIMUM)
  }

  /** Bounds the log's disk usage. Rejects when the file system cannot deallocate parts of a file. */
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
      return Buffer.alloc(0) // no guest wrote yet
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
