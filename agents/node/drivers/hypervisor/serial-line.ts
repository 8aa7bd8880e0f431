/** The serial line of a running guest, as two files. Its output is followed in its log, and input goes into a pipe that
 *  QEMU reads. Writing to a file never blocks. On a socket, a slow reader blocks the guest. If a blocked guest moves to
 *  a host where nobody listens yet, it stays blocked for ever. */
import { constants, openSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import type { Clock } from '../../../../kit/sys/clock.ts'
import type { Logger } from '../../../../kit/sys/log.ts'
import { Outages } from '../../../../kit/sys/outages.ts'
import { runProgram } from '../../run-program.ts'
import type { ConsoleLog } from './console-log.ts'
import { GUEST_FILES } from './qemu-arguments.ts'

/** Interval between reads of the log. It doubles after each read that finds nothing. Polling needs no inotify watch, of
 *  which a host has a limited number. */
const READ_MILLISECONDS = { least: 20, most: 320 }
/** Limit of input that the guest has not read. */
const TYPED_BYTES_MAXIMUM = 256 * 1024

export interface SerialLineOptions {
  /** The guest's folder. */
  readonly folder: string
  readonly log: ConsoleLog
  readonly onOutput: (bytes: Buffer) => void
  readonly clock: Clock
  readonly logger: Logger
}

export interface SerialLine {
  /** Writes the bytes as input. False when the guest does not read its input. */
  write(bytes: Buffer): boolean
  /** Passes on new output. */
  read(): void
  /** Reads a last time and closes. */
  close(): void
}

/** Creates the pipe for a guest that is about to start. Returns QEMU's standard input; the caller that starts QEMU
 *  closes it. It is also open for writing, so that the pipe stays open when the agent exits. */
export async function openInputPipe(folder: string): Promise<number> {
  const path = join(folder, GUEST_FILES.consoleInput)
  await runProgram('mkfifo', ['--mode=600', path])
  return openSync(path, 'r+')
}

/** Follows the log from the end of the last read. */
export function openSerialLine({ folder, log, onOutput, clock, logger }: SerialLineOptions): SerialLine {
  const input = openInput(folder)
  const outages = new Outages({ log: logger, clock }, 'console log is not trimmed')
  let pauseMilliseconds = READ_MILLISECONDS.least
  let cancelLook = () => {}

  function read(): boolean {
    const bytes = log.unread()
    if (bytes.length > 0) onOutput(bytes)
    return bytes.length > 0
  }
  function look(): void {
    pauseMilliseconds = read() ? READ_MILLISECONDS.least : Math.min(2 * pauseMilliseconds, READ_MILLISECONDS.most)
    void outages.attempt(() => log.trim(), { file: log.path })
    lookLater()
  }
  function lookLater(): void {
    cancelLook()
    cancelLook = clock.after(pauseMilliseconds, look)
  }

  look()
  return {
    write(bytes) {
      if (input?.writable !== true || input.writableLength + bytes.length > TYPED_BYTES_MAXIMUM) return false
      input.write(bytes)
      pauseMilliseconds = READ_MILLISECONDS.least
      lookLater()
      return true
    },
    read: () => void read(),
    close() {
      cancelLook()
      input?.destroy()
      read()
    },
  }
}

/** Undefined when nobody reads it. */
function openInput(folder: string): Socket | undefined {
  let file: number
  try {
    file = openSync(join(folder, GUEST_FILES.consoleInput), constants.O_WRONLY | constants.O_NONBLOCK)
  } catch {
    return undefined
  }
  const socket = new Socket({ fd: file, readable: false, writable: true })
  socket.on('error', () => socket.destroy())
  return socket
}
