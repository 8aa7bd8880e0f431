/** Copies of disks from other hosts and from backups, which take longer than a turn. They stop with the agent; the next
 *  agent starts them again. */
import { DamagedObject } from '../../../kit/chunks/seal.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import { SourceLost } from '../drivers/storage/volume-store.ts'
import { DiskTooLarge, ImageRefused } from '../images/import/index.ts'

export type CopyState =
  | { readonly is: 'running'; readonly progress?: string }
  /** This agent does not retry a final failure. */
  | {
      readonly is: 'failed'
      readonly reason: string
      readonly isFinal?: boolean
      /** Size of the disk, when it is larger than the current limit. */
      readonly neededGibibytes?: number
    }

interface Copy {
  /** Source of the copy. */
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

  /** Starts a copy; does nothing while a copy from the same source runs or has just failed. Ends a copy from another
   *  source first. */
  async begin(
    name: string,
    origin: string,
    work: (signal: AbortSignal, report: (progress: string) => void) => Promise<void>,
  ): Promise<void> {
    if (this.#copies.get(name)?.origin === origin) return
    await this.end(name)
    const copy: Copy = { origin, stop: new AbortController(), state: { is: 'running' }, ended: Promise.resolve() }
    this.#copies.set(name, copy)
    const report = (progress: string) => {
      if (copy.state.is !== 'running' || copy.state.progress === progress) return
      copy.state = { is: 'running', progress }
      this.#emit(name)
    }
    copy.ended = work(copy.stop.signal, report)
      .then(
        () => void this.#forget(name, copy),
        (error: unknown) => {
          const isFinal = error instanceof DamagedObject || error instanceof ImageRefused || error instanceof SourceLost
          const size = error instanceof DiskTooLarge ? { neededGibibytes: error.neededGibibytes } : {}
          const reason = error instanceof Error ? error.message : String(error)
          copy.state = { is: 'failed', reason, isFinal, ...size }
          if (!isFinal) this.#clock.after(RETRY_MILLISECONDS, () => this.#forget(name, copy))
        },
      )
      .then(() => this.#emit(name))
  }

  /** Resolves when no copy runs. */
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
    for (const listener of Array.from(this.#listeners)) listener(name)
  }
}
