/** A connection to a database of Open vSwitch or OVN: JSON-RPC as RFC 7047 says it, as much of it as transactions
 *  need. */
import { createConnection, type Socket } from 'node:net'
import { Unavailable } from '../../domain/problem.ts'

export type OvsdbOperation = Readonly<Record<string, unknown>>

export interface OvsdbResult {
  readonly rows?: readonly Readonly<Record<string, unknown>>[]
  readonly uuid?: readonly [string, string]
  readonly count?: number
}

export interface Ovsdb {
  /** All operations or none. Throws Unavailable when the server does not answer, and Error with what it says when it
   *  refuses. */
  transact(database: string, operations: readonly OvsdbOperation[]): Promise<readonly OvsdbResult[]>
  close(): void
}

/** Answers larger than this are not ours. */
const MESSAGE_CHARACTERS_MAXIMUM = 64 * 1024 * 1024

/** `unix:<path>` or `tcp:<host>:<port>`. Connects when it is first asked, and again when the connection was lost. */
export function openOvsdb(remote: string): Ovsdb {
  let current: Connection | undefined
  return {
    async transact(database, operations) {
      if (current === undefined || current.isOver()) current = connect(remote)
      // as RFC 7047 says
      const answers = (await current.call('transact', [database, ...operations])) as readonly (OvsdbResult & {
        readonly error?: string
        readonly details?: string
      })[]
      const refused = answers.find((answer) => answer?.error !== undefined)
      if (refused !== undefined)
        throw new Error(`the network's database refused: ${refused.error} ${refused.details ?? ''}`)
      return answers
    },
    close: () => current?.close(),
  }
}

interface Connection {
  call(method: string, params: readonly unknown[]): Promise<unknown>
  isOver(): boolean
  close(): void
}

interface Message {
  readonly id: number | string | null
  readonly method?: string
  readonly params?: readonly unknown[]
  readonly result?: unknown
  readonly error?: unknown
}

function connect(remote: string): Connection {
  const socket = socketOf(remote)
  const waiting = new Map<
    number,
    { readonly resolve: (result: unknown) => void; readonly reject: (error: unknown) => void }
  >()
  let calls = 0
  let isOver = false
  const end = (cause: unknown) => {
    isOver = true
    for (const { reject } of waiting.values()) reject(new Unavailable("the network's database", cause))
    waiting.clear()
    socket.destroy()
  }
  socket.on('error', end)
  socket.on('close', () => end(undefined))
  socket.on(
    'data',
    messages((message) => {
      // The server asks whether anybody is there.
      if (message.method === 'echo')
        return void socket.write(JSON.stringify({ id: message.id, result: message.params, error: null }))
      const call = waiting.get(Number(message.id))
      waiting.delete(Number(message.id))
      if (message.error != null)
        call?.reject(new Error(`the network's database refused: ${JSON.stringify(message.error)}`))
      else call?.resolve(message.result)
    }, end),
  )
  return {
    call: (method, params) =>
      new Promise((resolve, reject) => {
        const id = ++calls
        waiting.set(id, { resolve, reject })
        socket.write(JSON.stringify({ id, method, params }))
      }),
    isOver: () => isOver,
    close: () => end(undefined),
  }
}

function socketOf(remote: string): Socket {
  const [kind = '', ...rest] = remote.split(':')
  if (kind === 'unix') return createConnection({ path: rest.join(':') })
  if (kind === 'tcp')
    return createConnection({
      host: rest
        .slice(0, -1)
        .join(':')
        .replace(/^\[|\]$/g, ''),
      port: Number(rest.at(-1)),
    })
  throw new Error(`${remote} is neither unix:<path> nor tcp:<host>:<port>`)
}

/** Objects follow each other without anything in between: a message ends where its first brace is closed. */
function messages(hear: (message: Message) => void, giveUp: (error: unknown) => void): (bytes: Buffer) => void {
  const decoder = new TextDecoder()
  let text = ''
  let at = 0
  let depth = 0
  let isString = false
  let isEscaped = false
  return (bytes) => {
    text += decoder.decode(bytes, { stream: true })
    if (text.length > MESSAGE_CHARACTERS_MAXIMUM) return giveUp(new Error('the answer is too large'))
    for (; at < text.length; at++) {
      const character = text[at]
      if (isEscaped) isEscaped = false
      else if (isString && character === '\\') isEscaped = true
      else if (character === '"') isString = !isString
      else if (!isString && character === '{') depth++
      else if (!isString && character === '}' && --depth === 0) {
        const message = text.slice(0, at + 1)
        text = text.slice(at + 1)
        at = -1
        hear(JSON.parse(message) as Message) // as RFC 7047 says
      }
    }
  }
}
