/** A client of the QEMU Machine Protocol: commands with timeouts, and events. The wire format is in the QEMU manual,
 *  "QMP protocol specification". */
import type { Socket } from 'node:net'
import { defined } from '../../../../domain/defined.ts'
import type { Clock } from '../../../../kit/sys/clock.ts'
import { connectLocalSocket } from './local-socket.ts'

export interface QmpEvent {
  readonly name: string
  readonly data: Readonly<Record<string, unknown>>
}

export class QmpError extends Error {
  /** QEMU's error class, or `Timeout`, `Closed`. */
  readonly reason: string
  constructor(reason: string, message: string) {
    super(message)
    this.name = 'QmpError'
    this.reason = reason
  }
}

export interface Qmp {
  /** The command's `return`. QmpError when QEMU refuses, does not answer in time, or the connection is lost. */
  execute(command: string, input?: Readonly<Record<string, unknown>>, timeoutMilliseconds?: number): Promise<unknown>
  close(): void
}

export interface QmpOptions {
  readonly clock: Clock
  readonly onEvent: (event: QmpEvent) => void
  /** Called once, regardless of which side closed. */
  readonly onClose: () => void
}

const COMMAND_TIMEOUT_MILLISECONDS = 5_000
/** QEMU's longest regular answers are a few hundred KiB. */
const LINE_CHARACTERS_MAXIMUM = 8 * 1024 * 1024

interface Pending {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
  readonly cancelTimer: () => void
}

/** Connects and leaves negotiation mode. QEMU serves one client per socket: a second connection waits until the
 *  timeout. */
export async function connectQmp(path: string, options: QmpOptions): Promise<Qmp> {
  const socket = await connectLocalSocket(path)
  const qmp = speak(socket, options)
  try {
    await qmp.greeting
    await qmp.execute('qmp_capabilities')
    return qmp
  } catch (error) {
    qmp.close()
    throw error
  }
}

function speak(socket: Socket, { clock, onEvent, onClose }: QmpOptions): Qmp & { readonly greeting: Promise<unknown> } {
  const pending = new Map<string, Pending>()
  let lastId = 0
  let text = ''

  const answerTo = (id: string, timeoutMilliseconds: number): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const cancelTimer = clock.after(timeoutMilliseconds, () => {
        pending.delete(id)
        reject(new QmpError('Timeout', `QEMU did not answer within ${timeoutMilliseconds} ms`))
      })
      pending.set(id, { resolve, reject, cancelTimer })
    })
  const complete = (id: string, act: (waiting: Pending) => void) => {
    const waiting = pending.get(id)
    if (waiting === undefined) return // the caller has given up
    pending.delete(id)
    waiting.cancelTimer()
    act(waiting)
  }

  function receive(line: string): void {
    const message: QmpMessage = JSON.parse(line)
    if (message.QMP !== undefined) complete(GREETING, (waiting) => waiting.resolve(message.QMP))
    else if (message.event !== undefined) onEvent({ name: message.event, data: message.data ?? {} })
    else if (message.error !== undefined)
      complete(message.id ?? '', (waiting) =>
        waiting.reject(new QmpError(message.error?.class ?? 'GenericError', message.error?.desc ?? 'refused')),
      )
    else complete(message.id ?? '', (waiting) => waiting.resolve(message.return))
  }

  socket.setEncoding('utf8')
  socket.on('data', (chunk: string) => {
    const lines = (text + chunk).split('\n')
    text = lines.pop() ?? ''
    if (text.length > LINE_CHARACTERS_MAXIMUM) return void socket.destroy()
    for (const line of lines) if (line.trim() !== '') receive(line)
  })
  socket.on('error', () => socket.destroy())
  socket.once('close', () => {
    for (const id of Array.from(pending.keys()))
      complete(id, (waiting) => waiting.reject(new QmpError('Closed', 'QEMU closed the connection')))
    onClose()
  })

  return {
    greeting: answerTo(GREETING, COMMAND_TIMEOUT_MILLISECONDS),
    execute(command, input, timeoutMilliseconds = COMMAND_TIMEOUT_MILLISECONDS) {
      if (socket.destroyed) return Promise.reject(new QmpError('Closed', 'the connection to QEMU is closed'))
      const id = String(++lastId)
      const answer = answerTo(id, timeoutMilliseconds)
      socket.write(`${JSON.stringify({ execute: command, ...defined({ arguments: input }), id })}\n`)
      return answer
    },
    close: () => void socket.destroy(),
  }
}

const GREETING = 'greeting'

interface QmpMessage {
  readonly QMP?: unknown
  readonly event?: string
  readonly data?: Readonly<Record<string, unknown>>
  readonly error?: { readonly class?: string; readonly desc?: string }
  readonly return?: unknown
  readonly id?: string
}
