/** Measures how much space the snapshots of a volume use, from time to time and beside the reconciles. The value
 *  changes with every write of a guest, and takes a while to measure. */
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Logger } from '../../../kit/sys/log.ts'
import { Outages } from '../../../kit/sys/outages.ts'
import type { HeldSnapshot, VolumeStore } from '../drivers/storage/volume-store.ts'

const LOOK_MILLISECONDS = 600_000

interface Measure {
  readonly begunAt: number
  /** Names of the measured snapshots. */
  readonly names: string
  bytes: ReadonlyMap<string, number>
}

export class SnapshotRoom {
  readonly #volumes: Pick<VolumeStore, 'roomOfSnapshots'>
  readonly #clock: Clock
  readonly #outages: Outages
  readonly #measures = new Map<string, Measure>()
  readonly #listeners = new Set<(volume: string) => void>()

  constructor(options: { readonly volumes: VolumeStore; readonly clock: Clock; readonly log: Logger }) {
    this.#volumes = options.volumes
    this.#clock = options.clock
    this.#outages = new Outages(options, 'room of snapshots not measured')
  }

  /** The snapshots with their known sizes. Starts a measurement when the last one is old or covers other snapshots. */
  of(volume: string, snapshots: readonly HeldSnapshot[]): readonly HeldSnapshot[] {
    if (snapshots.length === 0) {
      this.#measures.delete(volume)
      this.#outages.over(volume)
      return snapshots
    }
    const names = snapshots.map(({ name }) => name).join()
    const known = this.#measures.get(volume)
    const now = this.#clock.monotonicMilliseconds()
    if (known === undefined || known.names !== names || now - known.begunAt >= LOOK_MILLISECONDS)
      this.#begin(volume, { begunAt: now, names, bytes: known?.bytes ?? new Map() })
    return snapshots.map((snapshot) => {
      const usedBytes = known?.bytes.get(snapshot.name)
      return usedBytes === undefined ? snapshot : { ...snapshot, usedBytes }
    })
  }

  onChange(listener: (volume: string) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  #begin(volume: string, measure: Measure): void {
    this.#measures.set(volume, measure)
    this.#volumes.roomOfSnapshots(volume).then(
      (bytes) => {
        this.#outages.over(volume)
        const isSame =
          bytes.size === measure.bytes.size && [...bytes].every(([name, room]) => measure.bytes.get(name) === room)
        measure.bytes = bytes
        if (!isSame) for (const listener of Array.from(this.#listeners)) listener(volume)
      },
      (error: unknown) => this.#outages.failed(error, { volume }, volume),
    )
  }
}
