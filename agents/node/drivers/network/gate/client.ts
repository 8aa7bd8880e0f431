/** The agent's side of the gate: starts the process if it does not run, and lets it join guests. */
import { spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { forEachLine } from '../../../../../kit/http/bounded.ts'
import type { Clock } from '../../../../../kit/sys/clock.ts'
import type { Logger } from '../../../../../kit/sys/log.ts'
import { environment, nodeBinary } from '../../../../../kit/sys/process.ts'
import { connectLocalSocket } from '../../hypervisor/local-socket.ts'
import { gateSocket, GUEST_NAME_BYTES_MAXIMUM } from '../user-mode.ts'

export interface Gate {
  /** Resolves when the frames of the guest's interfaces go through the gate. Rejects when the gate cannot be started.
   */
  join(guest: string): Promise<void>
  /** Called when the gate is a new process; guests must be joined to it again. */
  onRestart(listener: () => void): void
  close(): void
}

const PROGRAM = join(import.meta.dirname, 'main.ts')
const POLL_MILLISECONDS = 50
const START_MILLISECONDS = 30_000
const JOIN_MILLISECONDS = 10_000

export interface GateOptions {
  /** Holds one folder per guest. */
  readonly folder: string
  readonly clock: Clock
  readonly log: Logger
}

/** The process is started, or connected to, for the first guest that needs it. */
export function openGate(options: GateOptions): Gate {
  const { clock, log } = options
  const waiting = new Map<string, Set<() => void>>()
  const listeners: (() => void)[] = []
  let isClosed = false
  let connection: Promise<Socket> | undefined
  const listen = (socket: Socket): Socket => {
    if (isClosed) socket.destroy()
    void forEachLine(socket, GUEST_NAME_BYTES_MAXIMUM, (guest) => {
      for (const done of waiting.get(guest) ?? []) done()
      waiting.delete(guest)
    })
    socket.once('close', () => {
      connection = undefined
      if (!isClosed) void restart()
    })
    return socket
  }
  const connected = (): Promise<Socket> => {
    connection ??= connectOrStart(options).then(listen, (error: unknown) => {
      connection = undefined
      throw error
    })
    return connection
  }
  const restart = async (): Promise<void> => {
    log.info('the gate of guests has ended, and is started again')
    try {
      await connected()
      for (const listener of listeners) listener()
    } catch (error) {
      log.error('the gate of guests does not start: they send nothing', { error })
      await clock.sleep(START_MILLISECONDS)
      if (!isClosed) await restart()
    }
  }
  return {
    async join(guest) {
      const socket = await connected()
      await new Promise<void>((resolve, reject) => {
        const tooLate = clock.after(JOIN_MILLISECONDS, () => reject(new Error(`${guest} was not joined to the gate`)))
        const done = () => {
          tooLate()
          resolve()
        }
        waiting.set(guest, new Set([...(waiting.get(guest) ?? []), done]))
        socket.write(`${guest}\n`)
      })
    },
    onRestart: (listener) => void listeners.push(listener),
    close() {
      isClosed = true
      void connection?.then(
        (socket) => socket.destroy(),
        () => undefined,
      )
    },
  }
}

/** The process outlives the agent, in its own session. */
async function connectOrStart({ folder, clock }: GateOptions): Promise<Socket> {
  const connect = () => connectLocalSocket(gateSocket(folder)).catch(() => undefined)
  const known = await connect()
  if (known !== undefined) return known
  const child = spawn(nodeBinary(), [PROGRAM, folder], {
    cwd: dirname(folder),
    detached: true,
    stdio: 'ignore',
    env: { PATH: environment()['PATH'] },
  })
  child.on('error', () => {}) // the connection then fails
  child.unref()
  const deadline = clock.monotonicMilliseconds() + START_MILLISECONDS
  while (clock.monotonicMilliseconds() < deadline) {
    const socket = await connect()
    if (socket !== undefined) return socket
    await clock.sleep(POLL_MILLISECONDS)
  }
  throw new Error('the gate of guests does not answer')
}
