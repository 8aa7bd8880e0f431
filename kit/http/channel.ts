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
export const createChannel = <T>(options: ChannelOptions<T>): Channel<T> => new Queue(options)

class Queue<T> implements Channel<T>, Holder {
  readonly #options: ChannelOptions<T>
  readonly #items: T[] = []
  #size = 0
  #hasEnded = false
  #isCutOff = false
  #isClosed = false
  #wake = () => {}

  constructor(options: ChannelOptions<T>) {
    this.#options = options
    const { signal } = options
    if (signal.aborted) {
      this.end()
      queueMicrotask(() => this.#close()) // whoever makes the channel has it by then
    } else signal.addEventListener('abort', this.#drop, { once: true })
  }

  push(item: T): boolean {
    if (this.#hasEnded) return false
    this.#items.push(item)
    this.#resize(this.#options.sizeOf(item))
    if (this.#size > this.#options.sizeMaximum) this.#cutOff()
    else this.#wake()
    return !this.#hasEnded
  }

  end(): void {
    this.#hasEnded = true
    this.#wake()
  }

  giveUp(): void {
    this.#cutOff()
    this.#drop()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    try {
      for (;;) {
        const item = this.#items.shift()
        if (item !== undefined) {
          yield item
          if (!this.#isClosed) this.#resize(-this.#options.sizeOf(item)) // it has been written, and not only queued
        } else if (this.#hasEnded) return
        else
          await new Promise<void>((resolve) => {
            this.#wake = resolve
          })
      }
    } finally {
      this.#drop()
    }
  }

  #resize(by: number): void {
    this.#size += by
    this.#options.room?.change(this, by)
  }

  #cutOff(): void {
    if (!this.#isCutOff) this.#options.onCutOff?.()
    this.#isCutOff = true
    this.end()
  }

  readonly #drop = (): void => {
    this.#items.length = 0
    this.#resize(-this.#size)
    this.end()
    this.#close()
  }

  #close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#options.signal.removeEventListener('abort', this.#drop)
    this.#options.onClosed()
  }
}
