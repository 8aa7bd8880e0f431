/** Follows the stream of changes through lost connections. Knows no types of the API, and not how to connect. */
import { events } from './events.ts'
import { spread, type Timer, timer as realTimer } from './timer.ts'

export interface StreamPart {
  /** `reset` or `change`. */
  readonly event: string
  /** JSON. */
  readonly data: string
  /** Of everything that was received so far; empty before the first. */
  readonly cursor: string
}

export interface FollowOptions {
  /** Connects, and continues from the cursor unless it is empty. An error with `retryAfterSeconds` says when the next
   *  attempt may come. */
  readonly open: (cursor: string, signal: AbortSignal) => Promise<Response>
  /** Of an earlier stream. */
  readonly cursor?: string | undefined
  /** Called with each failure, and how many there were in a row. Whatever it throws ends the iteration. */
  readonly onLost?: ((error: unknown, failures: number) => void) | undefined
  /** Ends the iteration. */
  readonly signal?: AbortSignal | undefined
  /** For programs with their own time. */
  readonly timer?: Timer | undefined
}

/** The service sends something every 15 seconds: a connection that is silent for longer is lost. */
const SILENCE_MILLISECONDS = 45_000
const PAUSE_LEAST_MILLISECONDS = 500
const PAUSE_MOST_MILLISECONDS = 30_000
/** A service that asks for more is asked again nevertheless. */
const WANTED_MOST_MILLISECONDS = 600_000

/** Reconnects until the signal aborts, which is not an error, or `onLost` throws. */
export async function* follow({
  open,
  cursor: from = '',
  onLost,
  signal = new AbortController().signal,
  timer = realTimer,
}: FollowOptions): AsyncGenerator<StreamPart, void, undefined> {
  let cursor = from
  let failures = 0
  while (!signal.aborted) {
    const connection = connect(signal, timer)
    let wanted = 0
    try {
      for await (const { event, data, id } of events(await open(cursor, connection.signal), connection.signal)) {
        connection.heard()
        failures = 0
        if (id !== '') cursor = id
        if (event === '') continue
        yield { event, data, cursor }
        connection.heard() // whoever reads may have taken long
      }
    } catch (error) {
      if (signal.aborted) return
      onLost?.(error, ++failures)
      wanted = wantedMilliseconds(error)
    } finally {
      connection.end()
    }
    const most = Math.min(PAUSE_MOST_MILLISECONDS, PAUSE_LEAST_MILLISECONDS * 2 ** Math.max(0, failures - 1))
    await timer.pause(wanted + spread(most), signal).catch(() => {}) // aborted
  }
}

function wantedMilliseconds(error: unknown): number {
  // of any error
  const { retryAfterSeconds: seconds } = { ...(error as { readonly retryAfterSeconds?: unknown } | null) }
  return typeof seconds === 'number' ? Math.min(WANTED_MOST_MILLISECONDS, seconds * 1_000) : 0
}

/** The seconds of Retry-After; undefined without it, and for a date. */
export function retryAfterSeconds(headers: Headers): number | undefined {
  const seconds = Number(headers.get('retry-after') || Number.NaN)
  return seconds >= 0 && Number.isFinite(seconds) ? seconds : undefined
}

/** A signal for one connection: it aborts with the other, and when nothing is heard for long. */
function connect(signal: AbortSignal, timer: Timer) {
  const connection = new AbortController()
  const leave = () => connection.abort(signal.reason)
  if (signal.aborted) leave()
  signal.addEventListener('abort', leave, { once: true })
  let heardAt = timer.milliseconds()
  const listen = async () => {
    while (!connection.signal.aborted) {
      const rest = heardAt + SILENCE_MILLISECONDS - timer.milliseconds()
      if (rest > 0) await timer.pause(rest, connection.signal)
      else connection.abort(new Error('the stream of changes is silent'))
    }
  }
  listen().catch(() => {}) // the connection has ended
  return {
    signal: connection.signal,
    heard: () => void (heardAt = timer.milliseconds()),
    end() {
      signal.removeEventListener('abort', leave)
      connection.abort()
    },
  }
}
