/** A bounded queue between several writers and one response: the reader waits, the writers never do. */

export interface Channel<T> extends AsyncIterable<T> {
  /** False when the channel has ended. A channel that exceeds its bound ends: its reader is too slow. */
  push(item: T): boolean
  /** The reader still gets what is queued. */
  end(): void
}

export interface ChannelOptions<T> {
  readonly sizeMaximum: number
  readonly sizeOf: (item: T) => number
  /** Ends the channel, dropping what is queued. */
  readonly signal: AbortSignal
  /** Called once, when the reader has left or has read everything. */
  readonly onClosed: () => void
}

/** Ends with the signal at the latest; `onClosed` is called once, however it ends. */
export function createChannel<T>({ sizeMaximum, sizeOf, signal, onClosed }: ChannelOptions<T>): Channel<T> {
  const queue: T[] = []
  let size = 0
  let hasEnded = false
  let wake = () => {}
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
    end()
    close()
  }
  if (signal.aborted) end()
  else signal.addEventListener('abort', drop, { once: true })

  return {
    push(item) {
      if (hasEnded) return false
      queue.push(item)
      size += sizeOf(item)
      if (size > sizeMaximum) end()
      else wake()
      return true
    },
    end,
    async *[Symbol.asyncIterator]() {
      try {
        for (;;) {
          const item = queue.shift()
          if (item !== undefined) {
            size -= sizeOf(item)
            yield item
          } else if (hasEnded) return
          else
            await new Promise<void>((resolve) => {
              wake = resolve
            })
        }
      } finally {
        hasEnded = true
        close()
      }
    },
  }
}
