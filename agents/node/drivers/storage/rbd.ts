/** Volumes as images of a Ceph cluster (RBD), which every host of the pool reaches. A record on the host's own disk
 *  lists the volumes that it holds; everything else is noted in the image. Images that are created from a template or a
 *  snapshot share data with it, and get their own copy when it is removed. */
import { mkdir, realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { syncToDisk, UNFINISHED } from '../../../../kit/sys/durable-file.ts'
import { Unavailable } from '../../../../domain/problem.ts'
import { DiskReads } from '../../disk-reads.ts'
import type { CephPool } from './ceph-pool.ts'
import { copyServedDisk, flattenDisk } from './copy-disk.ts'
import type { DiskServer } from './disk-server.ts'
import { readRbdPath } from './rbd-path.ts'
import { labelOf, type LabelledSnapshot, namedRoom, readLabels } from './snapshot-label.ts'
import type { RemoteStore } from './joined.ts'
import { RECORD, readRecord, recordedNames, writeRecord } from './volume-record.ts'
import {
  type DiskPoints,
  type HeldSnapshot,
  type HeldVolume,
  type NewVolume,
  type ServedDisk,
  type SnapshotInGuest,
  type SnapshotOf,
  SourceLost,
  type TakeInGuest,
  type VolumeOwner,
} from './volume-store.ts'

export interface RbdOptions {
  /** Holds the records. */
  readonly folder: string
  readonly server: DiskServer
  /** The host's pool, as soon as it answers. */
  readonly pools: readonly CephPool[]
}

const ImageNote = z.looseObject({ source: z.strictObject({ name: z.string(), version: z.string() }).optional() })
type ImageNote = Pick<HeldVolume, 'source'>

const noted = ({ source }: ImageNote): ImageNote => (source === undefined ? {} : { source })

export async function openRbdVolumes({ folder, server, pools }: RbdOptions): Promise<RemoteStore> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  return new RbdVolumes(await realpath(folder), server, pools)
}

class RbdVolumes implements RemoteStore {
  readonly #folder: string
  readonly #server: DiskServer
  readonly #pools: readonly CephPool[]
  /** Reads of snapshots. */
  readonly #reads = new DiskReads()

  constructor(folder: string, server: DiskServer, pools: readonly CephPool[]) {
    this.#folder = folder
    this.#server = server
    this.#pools = pools
  }

  get pools(): readonly string[] {
    return this.#pools.map(({ id }) => id)
  }

  async holds(name: string): Promise<boolean> {
    return (await readRecord(this.#folder, name)) !== undefined
  }

  async inspect(name: string): Promise<HeldVolume | undefined> {
    const known = await readRecord(this.#folder, name)
    const size = known === undefined ? undefined : await this.#poolOf(known.pool)?.inspect(name)
    return known === undefined || size === undefined ? undefined : { ...known, ...size }
  }

  async list(): Promise<readonly HeldVolume[]> {
    const records = await Promise.all((await recordedNames(this.#folder)).map((name) => readRecord(this.#folder, name)))
    return records.filter((record) => record !== undefined)
  }

  async create(volume: NewVolume, signal?: AbortSignal): Promise<void> {
    const { name, sizeGibibytes, source, pool: id } = volume
    if ((await this.inspect(name)) !== undefined) return
    const pool = this.#requirePool(id)
    const origin = source === undefined ? volume.origin : { name: source.name, version: source.version }
    const about = noted(origin === undefined ? {} : { source: origin })
    // Written first, so that the next attempt finds the rest of an interrupted one.
    await writeRecord(this.#folder, { name, sizeGibibytes, ...about, pool: pool.id })
    const unfinished = `${name}${UNFINISHED}`
    for (const each of [name, unfinished]) await pool.remove(each)
    await this.#begin(pool, unfinished, volume, signal)
    await pool.grow(unfinished, sizeGibibytes)
    await pool.note(unfinished, JSON.stringify(about))
    await pool.rename(unfinished, name)
  }

  async isInPool(name: string, pool: string): Promise<boolean> {
    return (await this.#poolOf(pool)?.inspect(name)) !== undefined
  }

  async adopt(name: string, id: string): Promise<void> {
    const pool = this.#poolOf(id)
    const size = await pool?.inspect(name)
    if (pool === undefined || size === undefined) return
    // exact optional fields are beyond zod's types
    const about = ImageNote.parse(JSON.parse((await pool.noteOf(name)) ?? '{}')) as ImageNote
    await writeRecord(this.#folder, { name, ...size, ...noted(about), pool: id })
  }

  async grow(
    name: string,
    sizeGibibytes: number,
    by?: (path: string, sizeGibibytes: number) => Promise<void>,
  ): Promise<void> {
    const volume = await this.inspect(name)
    if (volume === undefined || volume.sizeGibibytes >= sizeGibibytes) return
    const pool = this.#requirePool(volume.pool)
    await (by === undefined ? pool.grow(name, sizeGibibytes) : by(pool.pathOf(name), sizeGibibytes))
  }

  async snapshots(name: string): Promise<readonly HeldSnapshot[]> {
    return (await this.#labelled(name)).map(({ label: _label, ...snapshot }) => snapshot)
  }

  async roomOfSnapshots(name: string): Promise<ReadonlyMap<string, number>> {
    const known = await readRecord(this.#folder, name)
    return namedRoom((await this.#poolOf(known?.pool)?.roomBySnapshot(name)) ?? new Map())
  }

  async takeSnapshot(name: string, snapshot: string, by?: TakeInGuest): Promise<void> {
    const volume = await this.inspect(name)
    if (volume === undefined) throw new Error(`volume ${name} is not here`)
    if ((await this.#labelled(name)).some((known) => known.name === snapshot)) return
    const pool = this.#requirePool(volume.pool)
    const { sizeGibibytes } = volume
    const label = (isFrozen: boolean) => labelOf({ name: snapshot, isFrozen, sizeGibibytes })
    await (by === undefined ? pool.takeSnapshot(name, label(false)) : by(pool.pathOf(name), label))
  }

  async removeSnapshot(name: string, snapshot: string, by?: SnapshotInGuest): Promise<void> {
    const pool = await this.#placeOf(name)
    for (const { label } of (await this.#labelled(name)).filter((known) => known.name === snapshot)) {
      await pool.separate(name, label)
      await (by === undefined ? pool.removeSnapshot(name, label) : by(pool.pathOf(name), label))
    }
  }

  async remove(name: string): Promise<void> {
    await this.#server.stop(name)
    const known = await readRecord(this.#folder, name)
    if (known === undefined) return
    const pool = this.#requirePool(known.pool)
    for (const each of [name, `${name}${UNFINISHED}`]) await pool.remove(each)
    await this.#forget(name)
  }

  async release(name: string): Promise<void> {
    await this.#server.stop(name)
    await this.#forget(name)
  }

  async serve(name: string, key: string): Promise<Omit<ServedDisk, 'key'>> {
    if ((await this.inspect(name)) === undefined) throw new Error(`volume ${name} is not here`)
    return this.#server.serve(name, await this.checkedPathOf(name), key)
  }

  stopServing(name: string): Promise<void> {
    return this.#server.stop(name)
  }

  servedAt(name: string): Omit<ServedDisk, 'key'> | undefined {
    return this.#server.at(name)
  }

  async pathOf(name: string): Promise<string> {
    return (await this.#placeOf(name)).pathOf(name)
  }

  nameOf(path: string): string | undefined {
    return readRbdPath(path)?.image
  }

  async checkedPathOf(name: string): Promise<string> {
    return (await this.#placeOf(name)).programPathOf(name)
  }

  /** The cluster accepts writes of any client, and lets two alternate. It knows all clients but does not report those
   *  that only read, so this host's reads are stopped here. */
  async requireClosed(name: string): Promise<void> {
    await this.#reads.end(name)
    const writers = await (await this.#placeOf(name)).writers(name)
    if (writers.length > 0) throw new Unavailable(`disk ${name}, which ${writers.join(' and ')} has open`, undefined)
  }

  async ownerOf(name: string, pool?: string): Promise<VolumeOwner | undefined> {
    return (pool === undefined ? await this.#placeOf(name) : this.#requirePool(pool)).ownerOf(name)
  }

  async changeOwner(name: string, known: VolumeOwner | undefined, next: VolumeOwner | undefined): Promise<boolean> {
    return (await this.#placeOf(name)).changeOwner(name, known, next)
  }

  async removeUnusedTemplates(): Promise<readonly string[]> {
    return (await Promise.all(this.#pools.map((pool) => pool.removeUnusedTemplates()))).flat()
  }

  async pointsOf(name: string): Promise<DiskPoints> {
    const pool = await this.#placeOf(name)
    return {
      list: () => pool.snapshots(name),
      take: (point) => pool.takeSnapshot(name, point),
      async remove(point) {
        if ((await pool.snapshots(name)).includes(point)) await pool.removeSnapshot(name, point)
      },
      pathOf: (point) => pool.programPathOf(name, point),
      changed: (since, point) => pool.changed(name, since, point),
    }
  }

  async copySnapshot({ volume, pool, snapshot }: SnapshotOf, to: string, signal?: AbortSignal): Promise<void> {
    const place = this.#requirePool(pool)
    const from = place.programPathOf(volume, await this.#findLabel(place, { volume, snapshot }))
    await this.#reads.run(volume, signal ?? new AbortController().signal, (either) =>
      flattenDisk(from, { to, signal: either }),
    )
  }

  async #begin(pool: CephPool, unfinished: string, volume: NewVolume, signal?: AbortSignal): Promise<void> {
    const { snapshotOf, write, copyOf, from, source, sizeGibibytes, fill } = volume
    const to = pool.programPathOf(unfinished)
    if (snapshotOf !== undefined) {
      const snapshot = await this.#findLabel(pool, snapshotOf)
      return pool.clone(unfinished, { image: snapshotOf.volume, snapshot })
    }
    if (write !== undefined) return write(to, signal)
    if (copyOf !== undefined) return flattenDisk(copyOf, { to, signal })
    if (from !== undefined) return copyServedDisk(from, { to, folder: this.#folder, signal })
    if (source?.disk !== undefined)
      return pool.clone(unfinished, await pool.templateOf({ ...source, disk: source.disk }))
    await pool.create(unfinished, sizeGibibytes)
    await fill?.(to, signal)
  }

  async #findLabel(pool: CephPool, { volume, snapshot }: SnapshotOf): Promise<string> {
    const found = readLabels(await pool.snapshots(volume)).find(({ name }) => name === snapshot)
    if (found === undefined) throw new SourceLost(`volume ${volume} has no snapshot ${snapshot}`)
    return found.label
  }

  async #labelled(name: string): Promise<readonly LabelledSnapshot[]> {
    const known = await readRecord(this.#folder, name)
    return readLabels((await this.#poolOf(known?.pool)?.snapshots(name)) ?? [])
  }

  #poolOf(id: string | undefined): CephPool | undefined {
    return this.#pools.find((pool) => pool.id === id)
  }

  #requirePool(id: string | undefined): CephPool {
    const pool = this.#poolOf(id)
    if (pool === undefined) throw new Error(`pool ${id} is not mounted`)
    return pool
  }

  /** The pool of the volume. */
  async #placeOf(name: string): Promise<CephPool> {
    return this.#requirePool((await readRecord(this.#folder, name))?.pool)
  }

  async #forget(name: string): Promise<void> {
    await rm(join(this.#folder, `${name}${RECORD}`), { force: true })
    await syncToDisk(this.#folder)
  }
}
