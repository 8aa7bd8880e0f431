/** One server's console, shared by everyone who watches it: one connection to the host, one tail, one encoding of every
 *  chunk. */
import type { ConsoleStatus } from '../../resources/console/index.ts'
import type { ServerState } from '../../resources/server/index.ts'
import { backoffMilliseconds } from '../../kit/sys/backoff.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Random } from '../../kit/sys/random.ts'

/** The end of some output, in bytes from the start of one log of the host. `name` identifies the log; it is empty until
 *  the host reports it. */
interface ConsolePosition {
  readonly log: string
  readonly end: number
}

/** A line of the host's stream. `data` is base64. */
export type ConsoleLine =
  | ({ readonly type: 'tail' | 'output'; readonly data: string } & ConsolePosition)
  | { readonly type: 'status'; readonly connected: boolean; readonly running: boolean }
  | { readonly type: 'ping' | 'end' }

/** Where a server runs, as the API knows it. */
export interface Whereabouts {
  readonly state: ServerState
  /** Undefined before placement. */
  readonly node: string | undefined
}

/** Each stream adds its own end. */
type Status = Omit<ConsoleStatus, 'stream_ends_at'>

/** What watchers get: tail and output, also as encoded server-sent events, and the status, to which each stream adds
 *  its own end. */
export type ConsoleEvent =
  | ({
      readonly event: 'bytes'
      readonly type: 'tail' | 'output'
      readonly data: string
      readonly text: string
    } & ConsolePosition)
  | { readonly event: 'status'; readonly status: Status }
  /** The server is deleted. */
  | { readonly event: 'end' }

export interface ConsoleOptions {
  readonly clock: Clock
  readonly random: Random
  /** The lines of the host's stream; ends or throws with the connection. */
  readonly follow: (node: string, signal: AbortSignal) => AsyncIterable<ConsoleLine>
  /** Calls back now and on every change of the whereabouts, with undefined when the server is deleted, until the
   *  returned function is called. */
  readonly watch: (changed: (now: Whereabouts | undefined) => void) => () => void
  /** The last watcher has left, and the connection to the host is closed. */
  readonly onEmpty: () => void
}

export interface Console {
  /** Tail and status come first, once the host has answered or is unreachable; then every event, until the returned
   *  function is called. */
  join(watcher: (event: ConsoleEvent) => void): () => void
  readonly watchers: number
}

export const CONSOLE_TAIL_BYTES = 65_536
const RECONNECT = { baseMilliseconds: 500, maximumMilliseconds: 10_000 }

/** The watchers, and what was sent to them. */
function openAudience(statusNow: () => Status) {
  const watchers = new Set<(event: ConsoleEvent) => void>()
  let tail: Buffer = Buffer.alloc(0)
  let at: ConsolePosition = { log: '', end: 0 }
  /** Watchers get their tail only once the host has answered or was unreachable. */
  let hasMet = false
  let shown = ''

  const send = (event: ConsoleEvent) => {
    for (const watcher of watchers) watcher(event)
  }
  const greet = (watcher: (event: ConsoleEvent) => void) => {
    watcher(bytes('tail', tail.toString('base64'), at))
    watcher({ event: 'status', status: statusNow() })
  }
  const showStatus = () => {
    const status = statusNow()
    const text = JSON.stringify(status)
    if (text === shown) return
    shown = text
    if (hasMet) send({ event: 'status', status })
    else for (const watcher of watchers) greet(watcher)
    hasMet = true
  }
  return {
    size: () => watchers.size,
    add(watcher: (event: ConsoleEvent) => void): void {
      watchers.add(watcher)
      if (hasMet) greet(watcher)
    },
    /** Reports whether it was the last one. */
    remove: (watcher: (event: ConsoleEvent) => void): boolean => watchers.delete(watcher) && watchers.size === 0,
    /** Call it once the host has answered or is unreachable. */
    showStatus,
    /** The server has changed. */
    refreshStatus() {
      if (hasMet) showStatus()
    },
    showTail(data: string, position: ConsolePosition): void {
      tail = Buffer.from(data, 'base64')
      at = position
      // After a reconnect the new tail contains the missed output.
      if (hasMet) send(bytes('tail', data, at))
    },
    showOutput(data: string, position: ConsolePosition): void {
      at = position
      tail = Buffer.concat([tail, Buffer.from(data, 'base64')]).subarray(-CONSOLE_TAIL_BYTES)
      send(bytes('output', data, at))
    },
    end: () => send({ event: 'end' }),
  }
}

/** Follows the server from host to host until it is closed. */
export function openConsole(options: ConsoleOptions): Console {
  let now: Whereabouts | undefined
  let host: HostStatus | undefined
  let lost: 'host_unreachable' | 'moved' = 'host_unreachable'
  let running: AbortController | undefined
  let stopWatching = () => {}
  let nudge = new AbortController()
  const audience = openAudience(() => statusOf(now, host, lost))

  function take(line: ConsoleLine): void {
    if (line.type === 'status') {
      host = line
      audience.showStatus()
    } else if (line.type === 'tail') audience.showTail(line.data, line)
    else if (line.type === 'output') audience.showOutput(line.data, line)
  }

  async function follow(signal: AbortSignal): Promise<void> {
    for (let failures = 0; !signal.aborted; failures++) {
      const node = now?.node
      const untilMoved = AbortSignal.any([signal, nudge.signal])
      if (node !== undefined && (await relay(() => options.follow(node, untilMoved), take))) failures = 0
      if (signal.aborted) return
      host = undefined
      lost = node === undefined || now?.node === node ? 'host_unreachable' : 'moved'
      audience.showStatus()
      await options.clock.sleep(
        backoffMilliseconds(failures, RECONNECT, options.random),
        AbortSignal.any([signal, nudge.signal]),
      )
      if (nudge.signal.aborted) nudge = new AbortController()
    }
  }

  function start(): void {
    running = new AbortController()
    stopWatching = options.watch((changed) => {
      const hasMoved = now !== undefined && now.node !== changed?.node
      now = changed
      if (changed === undefined) return audience.end()
      // A host that the server has left may keep its stream open but send no more output.
      if (hasMoved) nudge.abort()
      audience.refreshStatus()
    })
    void follow(running.signal)
  }

  return {
    get watchers() {
      return audience.size()
    },
    join(watcher) {
      audience.add(watcher)
      if (running === undefined) start()
      return () => {
        if (!audience.remove(watcher)) return
        running?.abort()
        stopWatching()
        options.onEmpty()
      }
    },
  }
}

/** Returns whether any line came. A broken connection is shown as a status, and the caller retries it. */
async function relay(follow: () => AsyncIterable<ConsoleLine>, take: (line: ConsoleLine) => void): Promise<boolean> {
  let hasCome = false
  try {
    for await (const line of follow()) {
      hasCome = true
      take(line)
    }
  } catch {
    return hasCome
  }
  return hasCome
}

interface HostStatus {
  readonly connected: boolean
  readonly running: boolean
}

const bytes = (type: 'tail' | 'output', data: string, { log, end }: ConsolePosition): ConsoleEvent => ({
  event: 'bytes',
  type,
  data,
  log,
  end,
  text: `event: ${type}\ndata: ${data}\n\n`,
})

function statusOf(
  now: Whereabouts | undefined,
  host: HostStatus | undefined,
  lost: 'host_unreachable' | 'moved',
): Status {
  const state = now?.state ?? 'deleting'
  const writable = host?.connected === true && host.running
  const isStopped = host === undefined ? state !== 'started' && state !== 'stopping' : !host.running
  return {
    connected: host?.connected ?? false,
    server_state: state,
    writable,
    reason: writable ? null : isStopped ? 'server_stopped' : lost,
  }
}
