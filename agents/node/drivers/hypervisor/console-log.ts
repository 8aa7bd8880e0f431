/** The file to which QEMU writes what a guest prints, with and without an agent. It only grows; what nobody will ask
 *  for again is given back to
 *  the disk from its beginning, because a file that is cut off loses what is written in that moment. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { runProgram } from '../../run-program.ts'
import { CONSOLE_TAIL_BYTES } from './hypervisor.ts'
import { GUEST_FILES } from './qemu-arguments.ts'

/** More than this is never read at once, and never kept. */
const LOG_BYTES_MAXIMUM = 1024 * 1024
/** What file systems give back is whole blocks. */
const BLOCK_BYTES = 4096

export class ConsoleLog {
  readonly path: string
  /** How much of the log its reader has. */
  #offset = 0
  /** How much of it the disk has again. */
  #freed = 0

  constructor(folder: string) {
    this.path = join(folder, GUEST_FILES.consoleLog)
  }

  /** The end of all that was ever written. */
  history(): Buffer {
    return this.#read(CONSOLE_TAIL_BYTES)
  }

  /** What was written since the last reading, at most the last LOG_BYTES_MAXIMUM of it. */
  unread(): Buffer {
    return this.#read(LOG_BYTES_MAXIMUM)
  }

  /** Keeps what the log takes of the disk within bounds. Rejects when the file system cannot give back a part of a
   *  file. */
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
      const { size } = fstatSync(file)
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
