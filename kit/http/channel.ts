/** A bounded queue between several writers and one response: the reader waits, the writers never do. */

export interface Channel<T> extends AsyncIterable<T> {
  /** False when the channel has ended. A channel that exceeds its bound ends: its reader is too slow. */
  push(item: T): boolean
  /** The reader still gets what is queued. */
  end(): void
}

/** What several channels may hold together. */
export interface Room {
  /** The holder has this much more, or less. Those that have most give it up until the rest is within the bound. */
  change(holder: Holder, by: number): void
}

interface Holder {
  /** Drops everything that it has. */
  giveUp(): void
}

export interface ChannelOptions<T> {
  readonly sizeMaximum: number
  /** Shared with other channels; only the bound of this one when absent. */
  readonly room?: Room | undefined
  readonly sizeOf: (item: T) => number
  /** Ends the channel, dropping what is queued. */
  readonly signal: AbortSignal
  /** Called once, when the channel ends because its reader is too slow. */
  readonly onCutOff?: (() => void) | undefined
  /** Called once, when the reader has left or has read everything; never before this channel has been returned. */
  readonly onClosed: () => void
}

export function createRoom(sizeMaximum: number): Room {
  const sizes = new Map<Holder, number>()
  let total = 0
  return {
    change(holder, by) {
      const size = (sizes.get(holder) ?? 0) + by
      if (size === 0) sizes.delete(holder)
      else sizes.set(holder, size)
      total += by
      while (total > sizeMaximum) {
        const [largest] = [...sizes].reduce((one, other) => (other[1] > one[1] ? other : one))
        largest.giveUp()
      }
    },
  }
}

/** Ends with the signal at the latest; `onClosed` is called once, however it ends. */
export function createChannel<T>({
  sizeMaximum,
  room,
  sizeOf,
  signal,
  onCutOff = () => {},
  onClosed,
}: ChannelOptions<T>): Channel<T> {
  const queue: T[] = []
  let size = 0
  let hasEnded = false
  let wake = () => {}
  const resize = (by: number) => {
    size += by
    room?.change(holder, by)
  }
  const end = () => {
    hasEnded = true
    wake()
  }
  let isClosed = false
  const close = () => {
    if (isClosed) return
    isClosed = true
    signal.removeEventListener('abort', drop)
    onClosed()
  }
  function drop(): void {
    queue.length = 0
    resize(-size)
    end()
    close()
  }
  let isCutOff = false
  const cutOff = () => {
    if (!isCutOff) onCutOff()
    isCutOff = true
    end()
  }
  const holder: Holder = {
    giveUp() {
      cutOff()
      drop()
    },
  }
  if (signal.aborted) {
    end()
    queueMicrotask(close) // whoever makes the channel has it by then
  } else signal.addEventListener('abort', drop, { once: true })

  return {
    push(item) {
      if (hasEnded) return false
      queue.push(item)
      resize(sizeOf(item))
      if (size > sizeMaximum) cutOff()
      else wake()
      return !hasEnded
    },
    end,
    async *[Symbol.asyncIterator]() {
      try {
        for (;;) {
          const item = queue.shift()
          if (item !== undefined) {
            yield item
            if (!isClosed) resize(-sizeOf(item)) // it has been written, and not only queued
          } else if (hasEnded) return
          else
            await new Promise<void>((resolve) => {
              wake = resolve
            })
        }
      } finally {
        drop()
      }
    },
  }
}
