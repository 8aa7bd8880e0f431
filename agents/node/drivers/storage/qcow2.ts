/** Volumes as qcow2 files. They are overlays of their template's disk, which must stay at its path as long as they
 *  exist. A record on the host's own disk lists the volumes that it holds. For a volume in a pool it only names the
 *  pool; a record in the pool has the rest, for every host. */
import { chmod, mkdir, readdir, realpath, rename, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { defined } from '../../../../domain/defined.ts'
import { Unavailable } from '../../../../domain/problem.ts'
import { syncToDisk, UNFINISHED } from '../../../../kit/sys/durable-file.ts'
import { runProgram } from '../../run-program.ts'
import {
  COPY_TIMEOUT_MILLISECONDS,
  copyServedDisk,
  CREATE_TIMEOUT_MILLISECONDS,
  flattenDisk,
  KEYS_PREFIX,
} from './copy-disk.ts'
import type { DiskServer } from './disk-server.ts'
import { OWNER } from './owner-file.ts'
import type { Pool } from './pool.ts'
import { mustOpenNothingElse } from './qcow2-header.ts'
import { formatOf } from './rbd-path.ts'
import { listSnapshots, removeSnapshotClosed, takeSnapshotClosed } from './qcow2-snapshots.ts'
import { roomBySnapshot } from './qcow2-room.ts'
import { labelOf, type LabelledSnapshot, namedRoom } from './snapshot-label.ts'
import { readRecord, RECORD, recordedNames, writeRecord } from './volume-record.ts'
import {
  type HeldSnapshot,
  type HeldVolume,
  type NewVolume,
  type ServedDisk,
  type SnapshotInGuest,
  type SnapshotOf,
  SourceLost,
  type TakeInGuest,
  type VolumeOwner,
  type VolumeStore,
} from './volume-store.ts'

export interface Qcow2Options {
  readonly folder: string
  readonly server: DiskServer
  readonly pools?: readonly Pool[]
  /** Holds the templates. Disks outside of pools may be overlays of these only. */
  readonly imageFolder: string
}

const DISK = '.qcow2'
const OWNER_ONLY = 0o600

const diskOf = (folder: string, name: string) => join(folder, `${name}${DISK}`)

const resizeClosed = async (path: string, sizeGibibytes: number): Promise<void> =>
  void (await runProgram('qemu-img', ['resize', '-q', '-f', 'qcow2', path, `${sizeGibibytes}G`], {
    timeoutMilliseconds: CREATE_TIMEOUT_MILLISECONDS,
  }))

/** First removes what a killed agent left unfinished. */
export async function openQcow2Volumes({
  folder,
  server,
  pools = [],
  imageFolder,
}: Qcow2Options): Promise<VolumeStore> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const root = await realpath(folder)
  for (const name of await readdir(root))
    if (name.endsWith(UNFINISHED) || name.startsWith(KEYS_PREFIX)) await rm(join(root, name), { recursive: true })
  return new Qcow2Volumes(root, server, pools, imageFolder)
}

class Qcow2Volumes implements VolumeStore {
  readonly #root: string
  readonly #server: DiskServer
  readonly #pools: readonly Pool[]
  readonly #imageFolder: string

  constructor(root: string, server: DiskServer, pools: readonly Pool[], imageFolder: string) {
    this.#root = root
    this.#server = server
    this.#pools = pools
    this.#imageFolder = imageFolder
  }

  get pools(): readonly string[] {
    return this.#pools.map(({ id }) => id)
  }

  async inspect(name: string): Promise<HeldVolume | undefined> {
    const known = await readRecord(this.#root, name)
    if (known?.pool === undefined) return known
    const shared = await this.#recordInPool(name, known.pool)
    return shared === undefined ? undefined : { ...shared, pool: known.pool }
  }

  async list(): Promise<readonly HeldVolume[]> {
    const names = await recordedNames(this.#root)
    const volumes = await Promise.all(
      names.map(async (name) => (await this.inspect(name)) ?? readRecord(this.#root, name)),
    )
    return volumes.filter((volume) => volume !== undefined)
  }

  async create(volume: NewVolume, signal?: AbortSignal): Promise<void> {
    const { name, sizeGibibytes, source, pool } = volume
    if ((await this.inspect(name)) !== undefined) return
    const place = this.#placeOf(pool)
    if (place === undefined) throw new Error(`pool ${pool} is not mounted`)
    const unfinished = `${diskOf(place, name)}${UNFINISHED}`
    const origin = source === undefined ? volume.origin : { name: source.name, version: source.version }
    const record = { name, sizeGibibytes, ...defined({ source: origin }) }
    if (pool !== undefined) {
      await rm(join(place, `${name}${RECORD}`), { force: true })
      await writeRecord(this.#root, { ...record, pool }) // written first, so that an interrupted copy is found
    }
    const { snapshotOf } = volume
    const write = volume.write ?? (snapshotOf && ((to, stop) => this.copySnapshot(snapshotOf, to, stop)))
    if (write !== undefined) {
      await write(unfinished, signal)
      await resizeClosed(unfinished, sizeGibibytes)
    } else if (volume.copyOf !== undefined) await this.#copyFile(unfinished, volume.copyOf, volume)
    else if (volume.from === undefined) {
      await rm(unfinished, { force: true }) // left by an earlier attempt
      await this.#makeOverlay(unfinished, volume)
      await volume.fill?.(unfinished, signal)
    } else await copyServedDisk(volume.from, { to: unfinished, folder: this.#root, signal })
    await chmod(unfinished, OWNER_ONLY)
    await syncToDisk(unfinished)
    await rename(unfinished, diskOf(place, name))
    // The record beside the disk marks it as complete: written last, removed first.
    await writeRecord(place, record)
  }

  async isInPool(name: string, pool: string): Promise<boolean> {
    return (await this.#recordInPool(name, pool)) !== undefined
  }

  async adopt(name: string, pool: string): Promise<void> {
    const shared = await this.#recordInPool(name, pool)
    if (shared !== undefined) await writeRecord(this.#root, { ...shared, pool })
  }

  async grow(
    name: string,
    sizeGibibytes: number,
    by: (path: string, sizeGibibytes: number) => Promise<void> = resizeClosed,
  ): Promise<void> {
    const volume = await this.inspect(name)
    const place = this.#placeOf(volume?.pool)
    if (volume === undefined || place === undefined || volume.sizeGibibytes >= sizeGibibytes) return
    if (by === resizeClosed) await this.#check(diskOf(place, name))
    // The record is written after the disk, so an interrupted resize is repeated, which changes nothing.
    await by(diskOf(place, name), sizeGibibytes)
    await syncToDisk(diskOf(place, name))
    const { pool: _pool, ...record } = volume
    await writeRecord(place, { ...record, sizeGibibytes })
  }

  async snapshots(name: string): Promise<readonly HeldSnapshot[]> {
    return (await this.#labelled(name)).map(({ label: _label, ...snapshot }) => snapshot)
  }

  async roomOfSnapshots(name: string): Promise<ReadonlyMap<string, number>> {
    if ((await this.inspect(name)) === undefined) return new Map()
    const room = await roomBySnapshot(await this.checkedPathOf(name))
    return namedRoom(room ?? new Map())
  }

  async takeSnapshot(name: string, snapshot: string, by: TakeInGuest = takeSnapshotClosed): Promise<void> {
    const volume = await this.inspect(name)
    if (volume === undefined) throw new Error(`volume ${name} is not here`)
    if ((await this.#labelled(name)).some((known) => known.name === snapshot)) return
    const { sizeGibibytes } = volume
    await by(await this.pathOf(name), (isFrozen) => labelOf({ name: snapshot, isFrozen, sizeGibibytes }))
    await syncToDisk(await this.pathOf(name))
  }

  async removeSnapshot(name: string, snapshot: string, by: SnapshotInGuest = removeSnapshotClosed): Promise<void> {
    for (const known of await this.#labelled(name))
      if (known.name === snapshot) await by(await this.pathOf(name), known.label)
  }

  async #labelled(name: string): Promise<readonly LabelledSnapshot[]> {
    return (await this.inspect(name)) === undefined ? [] : listSnapshots(await this.checkedPathOf(name))
  }

  async remove(name: string): Promise<void> {
    await this.#remove(name, this.#placeOf((await readRecord(this.#root, name))?.pool))
  }

  async release(name: string): Promise<void> {
    const isShared = (await readRecord(this.#root, name))?.pool !== undefined
    await this.#remove(name, isShared ? undefined : this.#root)
  }

  async serve(name: string, key: string): Promise<Omit<ServedDisk, 'key'>> {
    const volume = await this.inspect(name)
    const place = this.#placeOf(volume?.pool)
    if (volume === undefined || place === undefined) throw new Error(`volume ${name} is not here`)
    await this.#check(diskOf(place, name))
    return this.#server.serve(name, diskOf(place, name), key)
  }

  stopServing(name: string): Promise<void> {
    return this.#server.stop(name)
  }

  servedAt(name: string): Omit<ServedDisk, 'key'> | undefined {
    return this.#server.at(name)
  }

  async pathOf(name: string): Promise<string> {
    const known = await readRecord(this.#root, name)
    return diskOf(this.#placeOf(known?.pool) ?? this.#root, name)
  }

  nameOf(path: string): string | undefined {
    return path.endsWith(DISK) ? basename(path, DISK) : undefined
  }

  async checkedPathOf(name: string): Promise<string> {
    const path = await this.pathOf(name)
    await this.#check(path)
    return path
  }

  /** None: bitmaps in the file record changes. */
  async pointsOf(): Promise<undefined> {}

  async ownerOf(name: string, pool?: string): Promise<VolumeOwner | undefined> {
    return (await this.#requirePoolOf(name, pool))?.ownerOf(name)
  }

  async changeOwner(name: string, known: VolumeOwner | undefined, next: VolumeOwner | undefined): Promise<boolean> {
    return (await this.#requirePoolOf(name))?.changeOwner(name, known, next) ?? true
  }

  /** Undefined for volumes on the host's own disks. */
  async #requirePoolOf(name: string, known?: string): Promise<Pool | undefined> {
    const id = known ?? (await readRecord(this.#root, name))?.pool
    if (id === undefined) return undefined
    const pool = this.#poolOf(id)
    if (pool === undefined) throw new Unavailable(`pool ${id}`, undefined)
    return pool
  }

  /** Nothing to check: QEMU locks files that it has open. */
  async requireClosed(): Promise<void> {}

  #check(path: string): Promise<void> {
    return mustOpenNothingElse(path, [this.#imageFolder, ...this.#pools.map(({ templates }) => templates)])
  }

  #poolOf(id: string): Pool | undefined {
    return this.#pools.find((pool) => pool.id === id)
  }

  /** The folder of a volume's data; undefined when its pool is not mounted. */
  #placeOf(pool: string | undefined): string | undefined {
    return pool === undefined ? this.#root : this.#poolOf(pool)?.folder
  }

  async #recordInPool(name: string, pool: string): Promise<HeldVolume | undefined> {
    const place = this.#placeOf(pool)
    return place === undefined ? undefined : readRecord(place, name)
  }

  async #makeOverlay(unfinished: string, { source, sizeGibibytes, pool }: NewVolume): Promise<void> {
    const disk = source && (pool === undefined ? source.disk : await this.#poolOf(pool)?.backingOf(source))
    const backing = disk === undefined ? [] : ['-b', disk, '-F', 'qcow2']
    await runProgram('qemu-img', ['create', '-q', '-f', 'qcow2', ...backing, unfinished, `${sizeGibibytes}G`], {
      timeoutMilliseconds: CREATE_TIMEOUT_MILLISECONDS,
    })
  }

  async #copyFile(unfinished: string, from: string, { sizeGibibytes }: NewVolume): Promise<void> {
    await flattenDisk(from, { to: unfinished })
    await runProgram('qemu-img', ['resize', '-q', '-f', 'qcow2', unfinished, `${sizeGibibytes}G`], {
      timeoutMilliseconds: CREATE_TIMEOUT_MILLISECONDS,
    })
  }

  /** The file may be in use, even by a guest of another host, because a snapshot's content never changes. */
  async copySnapshot({ volume, pool, snapshot }: SnapshotOf, to: string, signal?: AbortSignal): Promise<void> {
    const place = this.#placeOf(pool)
    if (place === undefined) throw new Error(`pool ${pool} is not mounted`)
    const path = diskOf(place, volume)
    await this.#check(path)
    const found = (await listSnapshots(path)).find(({ name }) => name === snapshot)
    if (found === undefined) throw new SourceLost(`volume ${volume} has no snapshot ${snapshot}`)
    await runProgram(
      'qemu-img',
      ['convert', '-q', '-U', '-f', 'qcow2', '-l', `snapshot.name=${found.label}`, '-O', formatOf(to), path, to],
      { timeoutMilliseconds: COPY_TIMEOUT_MILLISECONDS, ...defined({ signal }) },
    )
  }

  /** Removes the record of the volume. If `place` is given, first removes its data from that folder. */
  async #remove(name: string, place: string | undefined): Promise<void> {
    await this.#server.stop(name)
    if (place !== undefined) {
      for (const file of [`${name}${RECORD}`, `${name}${DISK}`, `${name}${DISK}${UNFINISHED}`, `${name}${OWNER}`])
        await rm(join(place, file), { force: true })
      await syncToDisk(place)
    }
    await rm(join(this.#root, `${name}${RECORD}`), { force: true })
    await syncToDisk(this.#root)
  }
}
