/** The stream of a console and its input: one request after the other, at most 4096 bytes each. What the terminal
 *  itself answers to the replayed tail is dropped. */
import type { Terminal } from '@xterm/xterm'
import { call, sessionLost } from '../../api/client.ts'
import { serverSentEvents } from '../../api/events.ts'
import { Refusal } from '../../api/refusal.ts'
import { after, pause, uuid } from '../../system.ts'

export type ConsoleState =
  | { readonly is: 'connecting' | 'reconnecting' | 'hidden' }
  | { readonly is: 'connected'; readonly isWritable: boolean }
  | { readonly is: 'absent'; readonly reason: 'server_stopped' | 'host_unreachable' | 'moved' }
  | { readonly is: 'refused'; readonly detail: string }

interface Status {
  readonly connected: boolean
  readonly writable: boolean
  readonly reason: 'server_stopped' | 'host_unreachable' | 'moved' | null
}

const COLLECT_MILLISECONDS = 30
const INPUT_BYTES_MAXIMUM = 4096
const RECONNECT_MILLISECONDS = 1_000
const HIDDEN_MILLISECONDS = 30_000
const BUSY_MILLISECONDS = 250

export class ConsoleSession {
  readonly #server: string
  readonly #terminal: Terminal
  readonly #tell: (state: ConsoleState) => void
  readonly #id = uuid()
  readonly #ended = new AbortController()
  #stream: AbortController | undefined
  #isTailShown = false
  #isWritable = false
  #waiting = ''
  #isSending = false
  #cancelHiding: () => void = () => undefined

  constructor(
    server: string,
    terminal: Terminal,
    tell: (state: ConsoleState) => void,
    /** Asked before several lines are typed at once. */
    ask: (text: string) => void,
  ) {
    this.#server = server
    this.#terminal = terminal
    this.#tell = tell
    terminal.onData((text) => {
      if (!this.#isTailShown || !this.#isWritable) return
      if (isPasteOfLines(text)) ask(withoutBrackets(text))
      else this.type(text)
    })
    document.addEventListener('visibilitychange', this.#onVisibility)
    void this.#readForever()
  }

  /** As if somebody typed it. */
  type(text: string): void {
    if (!this.#isWritable) return
    this.#waiting += text
    this.#terminal.focus()
    if (!this.#isSending) void this.#send()
  }

  fitGuest(): void {
    this.type(`stty rows ${String(this.#terminal.rows)} cols ${String(this.#terminal.cols)}\r`)
  }

  end(): void {
    this.#ended.abort()
    this.#stream?.abort()
    this.#cancelHiding()
    document.removeEventListener('visibilitychange', this.#onVisibility)
  }

  /** A hidden tab gives its connection back: a browser has six for a host. */
  readonly #onVisibility = (): void => {
    this.#cancelHiding()
    if (document.visibilityState === 'hidden')
      this.#cancelHiding = after(HIDDEN_MILLISECONDS, () => {
        this.#tell({ is: 'hidden' })
        this.#stream?.abort()
      })
  }

  async #readForever(): Promise<void> {
    while (!this.#ended.signal.aborted) {
      if (document.visibilityState !== 'hidden' && !sessionLost.get()) await this.#readOnce()
      this.#isWritable = false
      await pause(RECONNECT_MILLISECONDS, this.#ended.signal)
    }
  }

  async #readOnce(): Promise<void> {
    this.#stream = new AbortController()
    try {
      const response = await fetch(`/v1/servers/${encodeURIComponent(this.#server)}/console/stream`, {
        headers: { accept: 'text/event-stream' },
        signal: this.#stream.signal,
      })
      if (response.status === 401) sessionLost.set(true)
      if (!response.ok || response.body === null) return this.#tell(await refusedBy(response))
      for await (const { event, data } of serverSentEvents(response.body)) this.#receive(event, data)
    } catch {
      // the connection is lost, or was given back
    }
    if (!this.#ended.signal.aborted && document.visibilityState !== 'hidden') this.#tell({ is: 'reconnecting' })
  }

  #receive(event: string, data: string): void {
    if (event === 'tail') {
      this.#isTailShown = false
      this.#terminal.reset()
      this.#terminal.write(bytesOf(data), () => {
        this.#isTailShown = true
      })
    } else if (event === 'output') this.#terminal.write(bytesOf(data))
    else if (event === 'status') {
      const { connected, writable, reason } = JSON.parse(data) as Status // of our own origin
      this.#isWritable = connected && writable
      this.#tell(
        connected
          ? { is: 'connected', isWritable: writable }
          : reason === null
            ? { is: 'connecting' }
            : { is: 'absent', reason },
      )
    }
  }

  /** One request after the other: two at once may change places. */
  async #send(): Promise<void> {
    this.#isSending = true
    await pause(COLLECT_MILLISECONDS)
    while (this.#waiting !== '' && !this.#ended.signal.aborted) {
      const { bytes, length } = firstBytes(this.#waiting)
      try {
        await call('send_server_console_input', {
          path: { id: this.#server },
          body: { session_id: this.#id, data: base64Of(bytes) },
        })
        // more may have been typed meanwhile
        this.#waiting = this.#waiting.slice(length)
      } catch (error) {
        if (!(error instanceof Refusal) || error.status !== 429) {
          this.#waiting = ''
          break
        }
        await pause((error.retryAfterSeconds ?? 0) * 1000 + BUSY_MILLISECONDS)
      }
    }
    this.#isSending = false
  }
}

const isPasteOfLines = (text: string): boolean => /[\r\n]/.test(withoutBrackets(text).slice(0, -1)) && text.length > 2

const withoutBrackets = (text: string): string => text.replaceAll('\u001b[200~', '').replaceAll('\u001b[201~', '')

const bytesOf = (data: string): Uint8Array => Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0))
const base64Of = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes))

/** As many whole characters as fit into one request. */
export function firstBytes(text: string): { readonly bytes: Uint8Array; readonly length: number } {
  const target = new Uint8Array(INPUT_BYTES_MAXIMUM)
  const { read, written } = new TextEncoder().encodeInto(text, target)
  return { bytes: target.subarray(0, written), length: read }
}

async function refusedBy(response: Response): Promise<ConsoleState> {
  // a refusal is a problem
  const problem = (await response.json().catch(() => ({}))) as { readonly detail?: string }
  return { is: 'refused', detail: problem.detail ?? String(response.status) }
}
