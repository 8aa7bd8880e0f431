/** The serial line of a guest that runs, as two files: what it prints is followed in its log, what is typed goes into a
 *  pipe that QEMU reads.
 *  A file takes everything at once. On a socket the guest waits for whoever reads too slowly, and one that is moved
 *  while it waits, to a host
 *  where nobody listens yet, waits for ever. */
import { constants, openSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import type { Clock } from '../../../../kit/sys/clock.ts'
import type { Logger } from '../../../../kit/sys/log.ts'
import { runProgram } from '../../run-program.ts'
import type { ConsoleLog } from './console-log.ts'
import { GUEST_FILES } from './qemu-arguments.ts'

/** The log is looked at again after so long when there is something to read, and after twice as long each time that
 *  there is not. Looked at, not
 *  watched, because a host has only so many watches, and a guest shall not be without its console for lack of one. */
const READ_MILLISECONDS = { least: 20, most: 320 }
/** Typed, and not taken by the guest yet. */
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
  /** Types the bytes. False when the guest does not take them. */
  write(bytes: Buffer): boolean
  /** Passes on what was printed by now. */
  read(): void
  /** Reads for the last time and lets go. */
  close(): void
}

/** Makes the pipe for a guest to be started. The answer is QEMU's standard input, to be closed by whoever starts it. It
 *  is open for writing too, so
 *  that the pipe does not end with the agent. */
export async function openInputPipe(folder: string): Promise<number> {
  const path = join(folder, GUEST_FILES.consoleInput)
  await runProgram('mkfifo', ['--mode=600', path])
  return openSync(path, 'r+')
}

/** Follows the log from where it was read last. */
export function openSerialLine({ folder, log, onOutput, clock, logger }: SerialLineOptions): SerialLine {
  const input = openInput(folder)
  let pauseMilliseconds = READ_MILLISECONDS.least
  let cancelLook = () => {}

  function read(): boolean {
    const bytes = log.unread()
    if (bytes.length > 0) onOutput(bytes)
    return bytes.length > 0
  }
  function look(): void {
    pauseMilliseconds = read() ? READ_MILLISECONDS.least : Math.min(2 * pauseMilliseconds, READ_MILLISECONDS.most)
    log.trim().catch((error: unknown) => logger.warn('console log is not trimmed', { file: log.path, error }))
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
