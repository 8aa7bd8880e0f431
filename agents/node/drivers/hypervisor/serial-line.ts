/** The serial line of a running guest, as two files: its output is followed in its log, and input goes into a pipe that
 *  QEMU reads. Writing to a file never blocks. On a socket a slow reader blocks the guest, and a guest that is moved
 *  while blocked, to a host where nobody listens yet, would stay blocked for ever. */
import { constants, openSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import type { Clock } from '../../../../kit/sys/clock.ts'
import type { Logger } from '../../../../kit/sys/log.ts'
import { Outages } from '../../../../kit/sys/outages.ts'
import { runProgram } from '../../run-program.ts'
import type { ConsoleLog } from './console-log.ts'
import { GUEST_FILES } from './qemu-arguments.ts'

/** Interval between reads of the log; it doubles each time that there is nothing to read. Polling needs no inotify
 *  watch, of which a host has a limited number. */
const READ_MILLISECONDS = { least: 20, most: 320 }
/** Input that the guest has not taken yet. */
const TYPED_BYTES_MAXIMUM = 256 * 1024

export interface SerialLineOptions {
  /** The guest's. */
  readonly folder: string
  readonly log: ConsoleLog
  readonly onOutput: (bytes: Buffer) => void
  readonly clock: Clock
  readonly logger: Logger
}

export interface SerialLine {
  /** Writes the bytes as input. False when the guest does not take them. */
  write(bytes: Buffer): boolean
  /** Passes on the output so far. */
  read(): void
  /** Reads for the last time and closes. */
  close(): void
}

/** Makes the pipe for a guest to be started. The answer is QEMU's standard input, to be closed by whoever starts it. It
 *  is open for writing too, so that the pipe does not end with the agent. */
export async function openInputPipe(folder: string): Promise<number> {
  const path = join(folder, GUEST_FILES.consoleInput)
  await runProgram('mkfifo', ['--mode=600', path])
  return openSync(path, 'r+')
}

/** Follows the log from where it was read last. */
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
