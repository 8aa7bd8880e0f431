/** A terminal on the serial console of a server: sends keys as they are typed and shows the output of the guest.
 *  Reconnects automatically after a lost connection, and after the 30 minutes that a stream lasts. Ctrl-] exits. */
import type { Clock } from '../kit/sys/clock.ts'
import { newUuid, type Random } from '../kit/sys/random.ts'
import type { Terminal } from '../kit/sys/terminal.ts'
import { type Api, parseJson } from './api.ts'
import { events } from '../client/events.ts'
import { EXIT, Failure } from './exit.ts'

export interface ConsoleParts {
  readonly api: Api
  readonly terminal: Terminal
  readonly clock: Clock
  readonly random: Random
  /** Exits the console. */
  readonly signal: AbortSignal
  /** Keeps the console open after the end of the input, until the signal. */
  readonly staysOpen: boolean
}

const ESCAPE = 0x1d
const INPUT_BYTES_MAXIMUM = 4096
/** Time during which keys are collected: the service accepts 50 requests a second. */
const GATHER_MILLISECONDS = 30
const RECONNECT_MILLISECONDS = 500
const RECONNECTS_MAXIMUM = 60
/** Length of shown output to search for in the tail of the next connection. */
const OVERLAP_BYTES = 256

/** Resolves when the user or the signal has ended it. Throws a Failure when the service refuses. */
export async function attach(parts: ConsoleParts, serverId: string): Promise<void> {
  const { terminal } = parts
  const leaving = new AbortController()
  const signal = AbortSignal.any([parts.signal, leaving.signal])
  if (terminal.isInputTerminal) terminal.writeError('Connected. Press Ctrl-] to exit.\r\n')
  terminal.setRaw(true)
  try {
    const quiet = silence(parts)
    const typing = type(parts, serverId, () => leaving.abort())
      .then(() => (terminal.isInputTerminal || parts.staysOpen ? undefined : quiet.wait(signal)))
      .then(() => (terminal.isInputTerminal || parts.staysOpen ? undefined : leaving.abort()))
      .catch((error: unknown) => {
        leaving.abort()
        if (!parts.signal.aborted) throw error
      })
    await Promise.race([follow(parts, serverId, signal, quiet.broken), typing.then(() => aborted(signal))])
  } finally {
    leaving.abort()
    terminal.setRaw(false)
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) =>
    signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve(), { once: true }),
  )

/** Idle time after the end of a pipe before the console is closed, so that the guest's answer is still shown. */
const QUIET_MILLISECONDS = 1_000

/** Waits until nothing was shown for a while. */
function silence({ clock }: ConsoleParts): { broken(): void; wait(signal: AbortSignal): Promise<void> } {
  let brokenAt = clock.monotonicMilliseconds()
  return {
    broken: () => void (brokenAt = clock.monotonicMilliseconds()),
    async wait(signal) {
      const began = clock.monotonicMilliseconds()
      for (;;) {
        const left = Math.max(began, brokenAt) + QUIET_MILLISECONDS - clock.monotonicMilliseconds()
        if (left <= 0 || signal.aborted) return
        await clock.sleep(left, signal)
      }
    },
  }
}

async function follow(
  { api, terminal, clock }: ConsoleParts,
  serverId: string,
  signal: AbortSignal,
  onShown: () => void,
): Promise<void> {
  let last = Buffer.alloc(0)
  const show = (bytes: Buffer) => {
    if (bytes.length === 0) return
    onShown()
    terminal.write(bytes)
    last = Buffer.concat([last, bytes]).subarray(-OVERLAP_BYTES)
  }
  for (let lost = 0; !signal.aborted; ) {
    try {
      const response = await api.open({ method: 'GET', path: `/v1/servers/${serverId}/console/stream`, signal })
      for await (const { event, data } of events(response, signal)) {
        lost = 0
        if (event === 'output') show(Buffer.from(data, 'base64'))
        if (event === 'tail') show(unseen(Buffer.from(data, 'base64'), last))
        if (event === 'status') showStatus(terminal, parseJson(data) as ConsoleStatus) // ConsoleStatus of the contract
      }
    } catch (error) {
      if (signal.aborted) return
      const isPassing =
        !(error instanceof Failure) || error.code === EXIT.unreachable || /^(429|5\d\d)/.test(error.message)
      if (!isPassing || (lost += 1) > RECONNECTS_MAXIMUM) throw error
      if (lost === 1) terminal.writeError('\r\n[connection lost, reconnecting]\r\n')
    }
    await clock.sleep(RECONNECT_MILLISECONDS, signal)
  }
}

/** The part of a tail after the output that was shown already. */
function unseen(tail: Buffer, shown: Buffer): Buffer {
  const at = shown.length === 0 ? -1 : tail.lastIndexOf(shown)
  return at < 0 ? tail : tail.subarray(at + shown.length)
}

interface ConsoleStatus {
  readonly writable: boolean
  readonly server_state: string
  readonly reason: string | null
}

function showStatus(terminal: Terminal, { writable, server_state, reason }: ConsoleStatus): void {
  if (!writable)
    terminal.writeError(
      `\r\n[the server is ${server_state}${reason === null ? '' : `: ${reason.replaceAll('_', ' ')}`}]\r\n`,
    )
}

/** Sends keys until the escape key; at the end of a pipe, until everything is sent. */
async function type(
  { api, terminal, clock, random, signal }: ConsoleParts,
  serverId: string,
  leave: () => void,
): Promise<void> {
  const sessionId = newUuid(random)
  let pending: Buffer = Buffer.alloc(0)
  let sending = Promise.resolve()
  const send = async () => {
    if (pending.length === 0) return
    await clock.sleep(GATHER_MILLISECONDS, signal)
    while (pending.length > 0 && !signal.aborted) {
      const part = pending.subarray(0, INPUT_BYTES_MAXIMUM)
      await sendPart(part)
      pending = pending.subarray(part.length)
    }
  }
  const sendPart = async (part: Buffer) => {
    try {
      await api.send({
        method: 'POST',
        path: `/v1/servers/${serverId}/console/input`,
        body: { session_id: sessionId, data: part.toString('base64') },
        signal,
      })
    } catch (error) {
      if (!(error instanceof Failure) || !/^(409|429|503)/.test(error.message)) throw error
      // Input that cannot be sent now is reported once and dropped, as on a disconnected line.
      terminal.writeError(`\r\n[not sent: ${error.message.split('\n')[0]}]\r\n`)
    }
  }
  for await (const chunk of terminal.input) {
    const bytes = Buffer.from(chunk)
    const end = terminal.isInputTerminal ? bytes.indexOf(ESCAPE) : -1
    pending = Buffer.concat([pending, end < 0 ? bytes : bytes.subarray(0, end)])
    sending = sending.then(send)
    if (end < 0 && terminal.isInputTerminal) continue
    await sending
    if (end >= 0) return leave()
  }
  await sending
}
