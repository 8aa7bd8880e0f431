/** The console as text, for programs that poll instead of following a stream: what the guest has written since a
 *  position, at once or when a text appears. A position counts the bytes of the host's log of that console, so that any
 *  API server finds it again in the last 64 KiB, regardless of what the guest writes. */
import type { Clock } from '../../kit/sys/clock.ts'
import type { ConsoleStatus } from '../../resources/console/index.ts'
import { type Console, CONSOLE_TAIL_BYTES, type ConsoleEvent } from './console.ts'

export const CONSOLE_READ_BYTES_MAXIMUM = 16_384
/** How long to wait for more output after the first of it appears. */
const QUIET_MILLISECONDS = 200

export interface ConsoleRead {
  readonly text: string
  readonly position: string
  /** Whether it contains the text that was waited for; true when none was. */
  readonly is_found: boolean
  /** Whether more output follows it already. */
  readonly has_more: boolean
  /** Whether output between the position and the text is lost. */
  readonly is_incomplete: boolean
  readonly connected: boolean
  readonly server_state: ConsoleStatus['server_state']
}

export interface ConsoleReading {
  readonly since: string | undefined
  readonly waitFor: string | undefined
  readonly waitMilliseconds: number
  readonly signal: AbortSignal
}

/** Answers when there is new output or the awaited text, else when the time is up. */
export async function readConsole(
  console: Console,
  clock: Clock,
  { since, waitFor, waitMilliseconds, signal }: ConsoleReading,
): Promise<ConsoleRead> {
  let written = NOTHING
  let status: Omit<ConsoleStatus, 'stream_ends_at'> | undefined
  let isOver = false
  let changed = () => {}
  const leave = console.join((event) => {
    if (event.event === 'end') isOver = true
    else if (event.event === 'status') ({ status } = event)
    else written = after(written, event)
    changed()
  })
  const isDone = () => {
    if (isOver) return true
    if (status === undefined) return false
    const { bytes } = newBytes(written, since)
    return waitFor === undefined ? bytes.length > 0 : bytes.includes(waitFor)
  }
  try {
    const end = clock.monotonicMilliseconds() + waitMilliseconds
    while (!isDone() && !signal.aborted && clock.monotonicMilliseconds() < end) {
      const waiting = new AbortController()
      changed = () => waiting.abort()
      await clock.sleep(end - clock.monotonicMilliseconds(), AbortSignal.any([waiting.signal, signal]))
    }
    if (waitMilliseconds > 0 && !isOver) await clock.sleep(QUIET_MILLISECONDS, signal)
  } finally {
    leave()
  }
  return answerOf(written, status, { since, waitFor })
}

/** What is known of the output: its last bytes, and at which position of which log they end. */
interface Output {
  readonly bytes: Buffer
  readonly log: string
  readonly end: number
}

const NOTHING: Output = { bytes: Buffer.alloc(0), log: '', end: 0 }

function after(written: Output, { type, data, log, end }: Extract<ConsoleEvent, { event: 'bytes' }>): Output {
  const bytes = Buffer.from(data, 'base64')
  const isSame = log === written.log || written.log === ''
  const isNext = type === 'output' && isSame && (log === '' || end - bytes.length === written.end)
  return { bytes: isNext ? Buffer.concat([written.bytes, bytes]).subarray(-CONSOLE_TAIL_BYTES) : bytes, log, end }
}

function answerOf(
  written: Output,
  status: Omit<ConsoleStatus, 'stream_ends_at'> | undefined,
  { since, waitFor }: Pick<ConsoleReading, 'since' | 'waitFor'>,
): ConsoleRead {
  const { bytes, isKnown } = newBytes(written, since)
  // the first reader wants the end, others continue from their position
  const shown =
    since === undefined
      ? bytes.subarray(-CONSOLE_READ_BYTES_MAXIMUM)
      : wholeCharacters(bytes, CONSOLE_READ_BYTES_MAXIMUM)
  const remaining = since === undefined ? 0 : bytes.length - shown.length
  return {
    text: shown.toString('utf8'),
    position: written.log === '' ? '' : `${written.log}-${written.end - remaining}`,
    is_found: waitFor === undefined || shown.includes(waitFor),
    has_more: remaining > 0,
    is_incomplete: !isKnown || (since === undefined && shown.length < bytes.length),
    connected: status?.connected ?? false,
    server_state: status?.server_state ?? 'deleting',
  }
}

/** The first bytes, at most `most`, without part of a character at the end. */
function wholeCharacters(bytes: Buffer, most: number): Buffer {
  if (bytes.length <= most) return bytes
  const isContinued = (at: number) => ((bytes[at] ?? 0) & 0xc0) === 0x80
  let end = most
  while (end > most - 3 && isContinued(end)) end--
  return bytes.subarray(0, isContinued(end) ? most : end) // bytes that are not UTF-8 are cut anywhere
}

/** The output after the position; everything there is when it no longer contains the position. */
function newBytes(
  { bytes, log, end }: Output,
  since: string | undefined,
): { readonly bytes: Buffer; readonly isKnown: boolean } {
  if (since === undefined || since === '') return { bytes, isKnown: true }
  const [name, count] = since.split('-')
  const after = end - Number(count)
  const isKnown = name === log && after >= 0 && after <= bytes.length
  return { bytes: isKnown ? bytes.subarray(bytes.length - after) : bytes, isKnown }
}
