/** Copies of disks from other hosts, which take longer than a turn. They end with the agent; the next one begins them
 *  anew. */
import type { Clock } from '../../../kit/sys/clock.ts'

export type CopyState = { readonly is: 'running' } | { readonly is: 'failed'; readonly reason: string }

interface Copy {
  /** Where from. */
  readonly origin: string
  readonly stop: AbortController
  state: CopyState
  ended: Promise<void>
}

const RETRY_MILLISECONDS = 2_000

export class Copies {
  readonly #clock: Clock
  readonly #copies = new Map<string, Copy>()
  readonly #listeners = new Set<(name: string) => void>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  state(name: string): CopyState | undefined {
    return this.#copies.get(name)?.state
  }

  /** Begins; free while a copy from there is under way or has just failed. One from elsewhere is ended first. */
  async begin(name: string, origin: string, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    if (this.#copies.get(name)?.origin === origin) return
    await this.end(name)
    const copy: Copy = { origin, stop: new AbortController(), state: { is: 'running' }, ended: Promise.resolve() }
    this.#copies.set(name, copy)
    copy.ended = work(copy.stop.signal)
      .then(
        () => void this.#forget(name, copy),
        (error: unknown) => {
          copy.state = { is: 'failed', reason: error instanceof Error ? error.message : String(error) }
          this.#clock.after(RETRY_MILLISECONDS, () => this.#forget(name, copy))
        },
      )
      .then(() => this.#emit(name))
  }

  /** Resolves when nothing copies any more. */
  async end(name: string): Promise<void> {
    const copy = this.#copies.get(name)
    this.#copies.delete(name)
    copy?.stop.abort()
    await copy?.ended
  }

  onChange(listener: (name: string) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  #forget(name: string, copy: Copy): void {
    if (this.#copies.get(name) !== copy) return
    this.#copies.delete(name)
    this.#emit(name)
  }

  #emit(name: string): void {
    for (const listener of [...this.#listeners]) listener(name)
  }
}
