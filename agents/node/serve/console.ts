/** The console of one guest as a stream of lines, and input to it. First the tail, then a status, then output and
 *  statuses as they occur, a ping when nothing else was sent, and an end when the agent closes the stream. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { drained } from '../../../kit/sys/drain.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { ConsolePosition, ConsoleStatus, GuestConsole } from '../drivers/hypervisor/hypervisor.ts'

const PING_MILLISECONDS = 10_000
const CHUNK_BYTES_MAXIMUM = 16_384
/** A reader that is this far behind restarts from the tail. */
const UNREAD_BYTES_MAXIMUM = 1024 * 1024
export const INPUT_BYTES_MAXIMUM = 4_096

export type ServedConsole =
  | ({ readonly type: 'tail' | 'output'; readonly data: string } & ConsolePosition)
  | { readonly type: 'status'; readonly connected: boolean; readonly running: boolean; readonly incarnation: number }
  | { readonly type: 'ping' }
  | { readonly type: 'end'; readonly reason: 'removed' | 'agent_stopping' | 'slow_client' }

/** Sends the stream; resolves when either side has ended it. */
export function streamConsole(
  console: GuestConsole,
  response: ServerResponse,
  clock: Clock,
  stopping: AbortSignal,
): Promise<void> {
  return new Promise((resolve) => {
    let cancelPing = () => {}
    let isBehind = false
    let isOver = false
    /** Waits for the reader, but not forever if it reads nothing. */
    const awaitReader = async () => {
      if (isBehind) return
      isBehind = true
      isBehind = !(await drained(response, 'drain', clock))
    }
    const send = (line: ServedConsole) => {
      if (isOver) return
      if (!response.write(`${JSON.stringify(line)}\n`)) void awaitReader()
      cancelPing()
      cancelPing = clock.after(PING_MILLISECONDS, () => send({ type: 'ping' }))
      if (response.writableLength > UNREAD_BYTES_MAXIMUM && line.type !== 'end') end('slow_client')
    }
    const sendOutput = (bytes: Buffer) => {
      const { log, end } = console.position()
      for (let at = 0; at < bytes.length; at += CHUNK_BYTES_MAXIMUM) {
        const chunk = bytes.subarray(at, at + CHUNK_BYTES_MAXIMUM)
        send({ type: 'output', data: chunk.toString('base64'), log, end: end - bytes.length + at + chunk.length })
      }
    }
    const sendStatus = ({ isConnected, isRunning, incarnation }: ConsoleStatus) =>
      send({ type: 'status', connected: isConnected, running: isRunning, incarnation })
    const leave = () => {
      cancelPing()
      unsubscribe()
      stopping.removeEventListener('abort', stop)
      resolve()
    }
    const end = (reason: Extract<ServedConsole, { type: 'end' }>['reason']) => {
      if (isOver) return
      unsubscribe()
      send({ type: 'end', reason })
      isOver = true
      response.end()
      void drained(response, 'finish', clock)
    }
    const stop = () => end('agent_stopping')

    response.writeHead(200, { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' })
    response.once('close', leave)
    const unsubscribe = console.subscribe((event) => {
      if (event.type === 'output') sendOutput(event.bytes)
      else if (event.type === 'status') sendStatus(event.status)
      else end('removed')
    })
    send({ type: 'tail', data: console.tail().toString('base64'), ...console.position() })
    sendStatus(console.status())
    stopping.addEventListener('abort', stop, { once: true })
    if (stopping.aborted) stop()
  })
}

export type InputRefusal = {
  readonly status: 400 | 409 | 413 | 503
  readonly reason: 'empty' | 'server_stopped' | 'too_large' | 'not_connected'
}

/** Types the body on the console. Undefined when it was accepted. */
export async function takeInput(console: GuestConsole, request: IncomingMessage): Promise<InputRefusal | undefined> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request) {
    const bytes: Buffer = chunk // a request without an encoding yields bytes
    length += bytes.length
    if (length > INPUT_BYTES_MAXIMUM) return { status: 413, reason: 'too_large' }
    chunks.push(bytes)
  }
  if (length === 0) return { status: 400, reason: 'empty' }
  if (!console.status().isRunning) return { status: 409, reason: 'server_stopped' }
  return console.write(Buffer.concat(chunks)) ? undefined : { status: 503, reason: 'not_connected' }
}
