/** Waiting for a reader, but not for ever: one that stops reading its stream would keep its connection, and the source
 *  of the stream, even after it lost the right to read. */
import type { Writable } from 'node:stream'
import type { Clock } from './clock.ts'

/** How long a reader may leave written data unread. */
const DRAIN_TIMEOUT_MILLISECONDS = 30_000

/** Resolves with true when the stream has flushed what was written (`drain`), or everything (`finish`); with false when
 *  it was closed, or its reader took too long: then the stream is destroyed. */
export function drained(stream: Writable, event: 'drain' | 'finish', clock: Clock): Promise<boolean> {
  if (stream.destroyed) return Promise.resolve(false)
  return new Promise((resolve) => {
    const end = (isDrained: boolean) => {
      cancel()
      stream.off(event, onDrained).off('close', onClosed)
      resolve(isDrained)
    }
    const onDrained = () => end(true)
    const onClosed = () => end(false)
    const cancel = clock.after(DRAIN_TIMEOUT_MILLISECONDS, () => {
      stream.destroy()
      end(false)
    })
    stream.once(event, onDrained).once('close', onClosed)
  })
}
