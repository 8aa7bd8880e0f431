/** Server-sent events of one request: a bounded queue, comments while nothing happens, and an end. */
import type { Clock } from '../sys/clock.ts'
import { type Channel, type ChannelOptions, createChannel } from './channel.ts'

export interface EventStreamOptions extends Pick<ChannelOptions<string>, 'signal' | 'room' | 'onCutOff' | 'onClosed'> {
  readonly clock: Clock
  /** Unread characters after which the stream ends: its reader is too slow. */
  readonly unreadMaximum: number
  /** When the stream ends at the latest, in milliseconds from now. */
  readonly endsAfterMilliseconds: number
  /** What is sent every 15 seconds; a comment by default. */
  readonly keepalive?: () => string
}

const KEEPALIVE_MILLISECONDS = 15_000
/** Proxies that buffer would hold back events. */
export const EVENT_STREAM_HEADERS = { 'x-accel-buffering': 'no' } as const

/** Ends with the signal, with its time, and when its reader is too slow. */
export function openEventStream({
  clock,
  unreadMaximum,
  endsAfterMilliseconds,
  keepalive = () => ': keepalive\n\n',
  onClosed,
  ...options
}: EventStreamOptions): Channel<string> {
  let cancelKeepalive = () => {}
  let cancelEnd = () => {}
  const channel = createChannel<string>({
    ...options,
    sizeMaximum: unreadMaximum,
    sizeOf: (text) => text.length,
    onClosed: () => {
      cancelKeepalive()
      cancelEnd()
      onClosed()
    },
  })
  const keepAlive = () => {
    cancelKeepalive = clock.after(KEEPALIVE_MILLISECONDS, () => {
      if (channel.push(keepalive())) keepAlive()
    })
  }
  if (options.signal.aborted) return channel
  cancelEnd = clock.after(endsAfterMilliseconds, () => channel.end())
  keepAlive()
  return channel
}
