/** A connection to a database of Open vSwitch or OVN: JSON-RPC by RFC 7047 and ovsdb-server(7). */
import { createConnection, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { Unavailable } from '../../../domain/problem.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { TableUpdates } from './copy.ts'
import type { OvsdbTls } from './tls.ts'

export type OvsdbOperation = Readonly<Record<string, unknown>>

export interface OvsdbResult {
  readonly rows?: readonly Readonly<Record<string, unknown>>[]
  readonly uuid?: readonly [string, string]
  readonly count?: number
}

/** The server's error for a transaction that it did not carry out. */
export class Refused extends Error {
  /** In the words of RFC 7047, as in `constraint violation`. */
  readonly reason: string
  constructor(reason: string, details: string) {
    super(`the network's database refused: ${reason} ${details}`)
    this.name = 'Refused'
    this.reason = reason
  }
}

export interface OvsdbConnection {
  /** Answers the server's result. Throws Unavailable when the server does not answer, after which the connection is
   *  closed, and Refused with the server's error. `hear` gets the answer before any notification that came after it. */
  call(method: string, params: readonly unknown[], hear?: (answer: unknown) => void): Promise<unknown>
  /** Carries out all operations or none. Throws as `call` does. */
  transact(database: string, operations: readonly OvsdbOperation[]): Promise<readonly OvsdbResult[]>
  isOver(): boolean
  close(): void
}

export interface ConnectionOptions {
  readonly clock: Clock
  /** For remotes of `ssl:`. */
  readonly tls?: OvsdbTls | undefined
  /** How long a call may take. */
  readonly callMilliseconds?: number
  /** Notifications of the server, in its order and before the answer to the call that caused them. */
  readonly onNotice?: (method: string, params: readonly unknown[]) => void
  /** Called once, however the connection ends. */
  readonly onEnd?: () => void
}

/** The limit of a message, in characters: a hundred thousand ports are less. */
const MESSAGE_CHARACTERS_MAXIMUM = 256 * 1024 * 1024
const CALL_TIMEOUT_MILLISECONDS = 30_000
/** How often the connection is probed with an echo. */
const PROBE_MILLISECONDS = 5_000

interface Message {
  readonly id: number | string | null
  readonly method?: string
  readonly params?: readonly unknown[]
  readonly result?: unknown
  readonly error?: unknown
}

interface Waiting {
  readonly hear: ((answer: unknown) => void) | undefined
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
  readonly cancel: () => void
}

/** `unix:<path>`, `tcp:<host>:<port>` or `ssl:<host>:<port>`, whose server must have a certificate for that host.
 *  Connects at once; calls wait until it is connected. */
export function connectOvsdb(
  remote: string,
  { clock, tls, callMilliseconds = CALL_TIMEOUT_MILLISECONDS, onNotice, onEnd }: ConnectionOptions,
): OvsdbConnection {
  const socket = socketOf(remote, tls)
  const waiting = new Map<number, Waiting>()
  let calls = 0
  let isOver = false
  let stopProbing = () => {}
  const send = (message: Message) => void socket.write(JSON.stringify(message))
  const end = (cause: unknown) => {
    if (isOver) return
    isOver = true
    stopProbing()
    for (const { reject, cancel } of waiting.values()) {
      cancel()
      reject(new Unavailable("the network's database", cause))
    }
    waiting.clear()
    socket.destroy()
    onEnd?.()
  }
  const call: OvsdbConnection['call'] = (method, params, hear) =>
    new Promise((resolve, reject) => {
      if (isOver) return reject(new Unavailable("the network's database"))
      const id = ++calls
      const cancel = clock.after(callMilliseconds, () => end(new Error(`${method} took too long`)))
      waiting.set(id, { hear, resolve, reject, cancel })
      send({ id, method, params })
    })
  const probe = () => {
    stopProbing = clock.after(PROBE_MILLISECONDS, () => void call('echo', []).then(probe, () => {}))
  }
  const hear = (message: Message) => {
    // The server probes the connection.
    if (message.method === 'echo') return send({ id: message.id, result: message.params, error: null })
    if (message.method !== undefined) return onNotice?.(message.method, message.params ?? [])
    const known = waiting.get(Number(message.id))
    waiting.delete(Number(message.id))
    known?.cancel()
    if (message.error != null) return known?.reject(new Refused('call', JSON.stringify(message.error)))
    known?.hear?.(message.result)
    known?.resolve(message.result)
  }
  socket.on('error', end)
  socket.on('close', () => end(undefined))
  socket.on('data', messages(hear, end))
  probe()
  return {
    call,
    async transact(database, operations) {
      // As RFC 7047 says.
      const answers = (await call('transact', [database, ...operations])) as readonly (OvsdbResult & {
        readonly error?: string
        readonly details?: string
      })[]
      const refused = answers.find((answer) => answer?.error !== undefined)
      if (refused?.error !== undefined) throw new Refused(refused.error, refused.details ?? '')
      return answers
    },
    isOver: () => isOver,
    close: () => end(undefined),
  }
}

/** No known transaction: the server sends everything. */
const NONE = '00000000-0000-0000-0000-000000000000'

export interface Monitor {
  readonly database: string
  /** Id of the monitor, on its connection. */
  readonly id: string
  /** The monitored columns and conditions, by table. */
  readonly requests: Readonly<Record<string, unknown>>
}

/** `take` gets the rows that exist, before the `update3` notifications of later changes: both may arrive at once, and
 *  an older value must not follow a newer one. Throws as `call` does. */
export async function monitor(
  connection: OvsdbConnection,
  { database, id, requests }: Monitor,
  take: (updates: TableUpdates) => void,
): Promise<void> {
  await connection.call('monitor_cond_since', [database, id, requests, NONE], (answer) => {
    const [, , updates] = answer as readonly [boolean, string, TableUpdates] // as ovsdb-server(7) says
    take(updates)
  })
}

function socketOf(remote: string, tls: OvsdbTls | undefined): Socket {
  const [kind = '', ...rest] = remote.split(':')
  const bare = rest.slice(0, -1).join(':')
  const address = { host: bare.replace(/^\[|\]$/g, ''), port: Number(rest.at(-1)) }
  if (kind === 'unix') return createConnection({ path: rest.join(':') })
  if (kind === 'tcp') return createConnection(address)
  if (kind === 'ssl' && tls !== undefined)
    return connectTls({ ...address, key: tls.key, cert: tls.certificate, ca: tls.authority })
  throw new Error(`${remote} is none of unix:<path>, tcp:<host>:<port> and, with certificates, ssl:<host>:<port>`)
}

/** Objects follow each other without a separator: a message ends where its first brace is closed. */
function messages(hear: (message: Message) => void, giveUp: (error: unknown) => void): (bytes: Buffer) => void {
  const decoder = new TextDecoder()
  let pieces: string[] = []
  let length = 0
  let depth = 0
  let isString = false
  let isEscaped = false
  return (bytes) => {
    const text = decoder.decode(bytes, { stream: true })
    length += text.length
    if (length > MESSAGE_CHARACTERS_MAXIMUM) return giveUp(new Error('the answer is too large'))
    let start = 0
    for (let at = 0; at < text.length; at++) {
      const character = text[at]
      if (isEscaped) isEscaped = false
      else if (isString && character === '\\') isEscaped = true
      else if (character === '"') isString = !isString
      else if (!isString && character === '{') depth++
      else if (!isString && character === '}' && --depth === 0) {
        const message = [...pieces, text.slice(start, at + 1)].join('')
        pieces = []
        start = at + 1
        length = text.length - start
        hear(JSON.parse(message) as Message) // as RFC 7047 says
      }
    }
    pieces.push(text.slice(start))
  }
}
