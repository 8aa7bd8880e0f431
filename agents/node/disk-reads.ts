/** Reads of disks that no guest has open. They are stopped when a guest is about to open the disk. */
import { Unavailable } from '../../domain/problem.ts'

export class DiskReads {
  readonly #running = new Map<string, Set<{ readonly stop: AbortController; readonly ended: Promise<void> }>>()

  /** Start it while the disk is locked and no guest has it. The signal aborts when a guest needs the disk. */
  async run<Result>(
    volume: string,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    const read = { stop: new AbortController(), ended }
    const reads = this.#running.get(volume) ?? new Set()
    this.#running.set(volume, reads.add(read))
    try {
      return await work(AbortSignal.any([signal, read.stop.signal]))
    } catch (error) {
      throw read.stop.signal.aborted ? (read.stop.signal.reason as Unavailable) : error // `end` below set the reason
    } finally {
      reads.delete(read)
      if (reads.size === 0) this.#running.delete(volume)
      resolve()
    }
  }

  /** Resolves when nothing reads the disk. */
  async end(volume: string): Promise<void> {
    const reads = [...(this.#running.get(volume) ?? [])]
    for (const { stop } of reads) stop.abort(new Unavailable('the disk, which is needed by its guest', undefined))
    await Promise.all(reads.map(({ ended }) => ended))
  }
}
