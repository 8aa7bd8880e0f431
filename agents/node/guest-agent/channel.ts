/** A client of the QEMU guest agent, over the socket of a guest's virtio port: one command after the other. The wire
 *  format is in the "QEMU Guest Agent Protocol Reference". The other end belongs to the customer: it may send nothing,
 *  anything, too much, or never stop. */
import type { Socket } from 'node:net'
import { z } from 'zod'
import { defined } from '../../../domain/defined.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import { connectLocalSocket } from '../drivers/hypervisor/local-socket.ts'
import { tryJson } from '../../../kit/http/json.ts'

export interface GuestAgent {
  /** The command's `return`, as the guest sends it; the caller must check it. GuestAgentFailed when the agent refuses,
   *  sends something else, or does not answer in time. After a failure the channel cannot be used. */
  execute(command: string, input?: Readonly<Record<string, unknown>>): Promise<unknown>
  close(): void
}

export interface GuestAgentOptions {
  readonly socket: string
  readonly clock: Clock
  /** Limit for all commands together, from now on. */
  readonly timeoutMilliseconds: number
}

export class GuestAgentFailed extends Error {
  /** Nothing serves the port: the guest no longer exists. */
  readonly isGone: boolean
  constructor(message: string, options?: ErrorOptions & { readonly isGone?: boolean }) {
    super(message, options)
    this.name = 'GuestAgentFailed'
    this.isGone = options?.isGone ?? false
  }
}

/** Limit for one greeting of the agent. Data that is written before the guest has opened the port is lost. So short
 *  waits and repeated greetings find a guest that has just booted; one long wait does not. */
const GREETING_MILLISECONDS = 5_000
/** Limit of one answer, and of the data before it. */
const ANSWER_BYTES_MAXIMUM = 65_536
const REFUSAL_CHARACTERS_MAXIMUM = 200
/** Never part of JSON: it makes the other side discard what an earlier client sent incompletely. */
const SENTINEL = 0xff
const LINE_FEED = 0x0a

const Refusal = z.looseObject({ error: z.looseObject({ desc: z.string() }) })
const Returned = z.looseObject({ return: z.unknown() })

/** Connects to an agent that answers a greeting. GuestAgentFailed when none does in time. */
export async function openGuestAgent({
  socket: path,
  clock,
  timeoutMilliseconds,
}: GuestAgentOptions): Promise<GuestAgent> {
  const socket = await connectLocalSocket(path).catch((cause: unknown) => {
    throw new GuestAgentFailed('the port of the guest agent cannot be reached', { cause, isGone: isAbsent(cause) })
  })
  const incoming = readAnswers(socket)
  const giveUpAfter = (milliseconds: number) =>
    clock.after(milliseconds, () => {
      incoming.fail('the guest agent does not answer')
      socket.destroy()
    })
  const cancel = giveUpAfter(timeoutMilliseconds)
  const cancelGreeting = giveUpAfter(GREETING_MILLISECONDS)
  const close = () => {
    cancel()
    cancelGreeting()
    socket.destroy()
  }
  const send = (command: string, input?: Readonly<Record<string, unknown>>): string =>
    `${JSON.stringify({ execute: command, ...defined({ arguments: input }) })}\n`
  try {
    const id = clock.now().getTime()
    const answer = incoming.next({ afterSentinel: true })
    socket.write(Buffer.concat([Buffer.of(SENTINEL), Buffer.from(send('guest-sync-delimited', { id }))]))
    if ((await answer) !== id) throw new GuestAgentFailed('the guest agent answers something else')
    cancelGreeting()
  } catch (error) {
    close()
    throw error
  }
  return {
    execute(command, input) {
      const answer = incoming.next()
      socket.write(send(command, input))
      return answer
    },
    close,
  }
}

const isAbsent = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ECONNREFUSED')

interface Answers {
  /** The next answer. Only one call may wait at a time. */
  next(options?: { readonly afterSentinel?: boolean }): Promise<unknown>
  fail(why: string): void
}

interface Waiting {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
  isInAnswer: boolean
}

/** Data that arrives while nobody waits for it is discarded. */
function readAnswers(socket: Socket): Answers {
  let waiting: Waiting | undefined
  let failure: GuestAgentFailed | undefined
  let line = Buffer.alloc(0)
  let bytes = 0

  const end = (act: (own: Waiting) => void) => {
    const own = waiting
    waiting = undefined
    line = Buffer.alloc(0)
    if (own !== undefined) act(own)
  }
  const fail = (error: GuestAgentFailed) => {
    failure ??= error
    end(({ reject }) => reject(error))
  }

  function receive(chunk: Buffer): void {
    if (waiting === undefined) return
    bytes += chunk.length
    if (bytes > ANSWER_BYTES_MAXIMUM) {
      fail(new GuestAgentFailed(`the guest agent answers with more than ${ANSWER_BYTES_MAXIMUM} bytes`))
      return void socket.destroy()
    }
    let rest = chunk
    if (!waiting.isInAnswer) {
      const start = rest.lastIndexOf(SENTINEL)
      if (start < 0) return
      waiting.isInAnswer = true
      rest = rest.subarray(start + 1)
    }
    line = Buffer.concat([line, rest])
    const at = line.indexOf(LINE_FEED)
    if (at < 0) return
    const answer = parse(line.subarray(0, at).toString())
    if (answer instanceof GuestAgentFailed) end(({ reject }) => reject(answer))
    else end(({ resolve }) => resolve(answer.value))
  }

  socket.on('data', receive)
  socket.on('error', () => socket.destroy())
  socket.once('close', () => fail(new GuestAgentFailed('the port of the guest agent was closed')))
  return {
    next: ({ afterSentinel = false } = {}) =>
      new Promise((resolve, reject) => {
        if (failure !== undefined) return reject(failure)
        bytes = 0
        waiting = { resolve, reject, isInAnswer: !afterSentinel }
      }),
    fail: (why) => fail(new GuestAgentFailed(why)),
  }
}

function parse(text: string): { readonly value: unknown } | GuestAgentFailed {
  const answer = tryJson(text)
  const refusal = Refusal.safeParse(answer).data?.error.desc
  if (refusal !== undefined)
    return new GuestAgentFailed(`the guest agent refuses: ${refusal.slice(0, REFUSAL_CHARACTERS_MAXIMUM)}`)
  const returned = Returned.safeParse(answer).data
  return returned === undefined
    ? new GuestAgentFailed('the guest agent answers something else')
    : { value: returned.return }
}
