/** Volumes as qcow2 files: overlays of their template's disk, which keeps its place for as long as they live. A record
 *  on the host's own disk says
 *  which it holds; of what lies in a pool it says no more than where, and a record in the pool says the rest to every
 *  host. */
import { mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { syncToDisk, UNFINISHED, writeDurably } from '../../../../kit/sys/durable-file.ts'
import { runProgram } from '../../run-program.ts'
import { KEY_FILE, keyFileText } from '../hypervisor/qemu-migration.ts'
import { type DiskServer, EXPORT } from './disk-server.ts'
import type { Pool } from './pool.ts'
import type { HeldVolume, NewVolume, ServedDisk, VolumeStore } from './volume-store.ts'

export interface Qcow2Options {
  readonly folder: string
  readonly server: DiskServer
  readonly pools?: readonly Pool[]
}

const DISK = '.qcow2'
const RECORD = '.json'
const KEYS_PREFIX = 'keys-'
const CREATE_TIMEOUT_MILLISECONDS = 300_000
const COPY_TIMEOUT_MILLISECONDS = 24 * 3_600_000

const Record = z.strictObject({
  name: z.string(),
  sizeGibibytes: z.int(),
  source: z.strictObject({ name: z.string(), version: z.string() }).optional(),
  pool: z.string().optional(),
})

const readRecord = async (folder: string, name: string): Promise<HeldVolume | undefined> => {
  const text = await readFile(join(folder, `${name}${RECORD}`), 'utf8').catch(() => undefined)
  // exact optional fields are beyond zod's types
  return text === undefined ? undefined : (Record.parse(JSON.parse(text)) as HeldVolume)
}
const writeRecord = (folder: string, record: HeldVolume) =>
  writeDurably(join(folder, `${record.name}${RECORD}`), JSON.stringify(record))
const diskOf = (folder: string, name: string) => join(folder, `${name}${DISK}`)

/** Removes what an agent that was killed left unfinished. */
export async function openQcow2Volumes({ folder, server, pools = [] }: Qcow2Options): Promise<VolumeStore> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const root = await realpath(folder)
  for (const name of await readdir(root))
    if (name.endsWith(UNFINISHED) || name.startsWith(KEYS_PREFIX)) await rm(join(root, name), { recursive: true })
  return new Qcow2Volumes(root, server, pools)
}

class Qcow2Volumes implements VolumeStore {
  readonly #root: string
  readonly #server: DiskServer
  readonly #pools: readonly Pool[]

  constructor(root: string, server: DiskServer, pools: readonly Pool[]) {
    this.#root = root
    this.#server = server
    this.#pools = pools
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
    const names = (await readdir(this.#root))
      .filter((file) => file.endsWith(RECORD))
      .map((file) => file.slice(0, -RECORD.length))
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
    const record = { name, sizeGibibytes, ...(origin === undefined ? {} : { source: origin }) }
    if (pool !== undefined) {
      await rm(join(place, `${name}${RECORD}`), { force: true })
      await writeRecord(this.#root, { ...record, pool }) // so that the rest of an interrupted copy is found
    }
    if (volume.from === undefined) await this.#makeOverlay(unfinished, volume)
    else await this.#copy(unfinished, volume.from, signal)
    await syncToDisk(unfinished)
    await rename(unfinished, diskOf(place, name))
    // The record beside the disk states that it is there: written last, removed first.
    await writeRecord(place, record)
  }

  async isInPool(name: string, pool: string): Promise<boolean> {
    return (await this.#recordInPool(name, pool)) !== undefined
  }

  async adopt(name: string, pool: string): Promise<void> {
    const shared = await this.#recordInPool(name, pool)
    if (shared !== undefined) await writeRecord(this.#root, { ...shared, pool })
  }

  async grow(name: string, sizeGibibytes: number): Promise<void> {
    const volume = await this.inspect(name)
    const place = this.#placeOf(volume?.pool)
    if (volume === undefined || place === undefined || volume.sizeGibibytes >= sizeGibibytes) return
    // The record follows the disk, so a resize that a crash interrupted is repeated, which changes nothing.
    await runProgram('qemu-img', ['resize', '-q', '-f', 'qcow2', diskOf(place, name), `${sizeGibibytes}G`], {
      timeoutMilliseconds: CREATE_TIMEOUT_MILLISECONDS,
    })
    await syncToDisk(diskOf(place, name))
    const { pool: _pool, ...record } = volume
    await writeRecord(place, { ...record, sizeGibibytes })
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

  async #copy(unfinished: string, { host, port, key }: ServedDisk, signal?: AbortSignal): Promise<void> {
    const keys = await mkdtemp(join(this.#root, KEYS_PREFIX))
    try {
      await writeFile(join(keys, KEY_FILE), keyFileText(key), { mode: 0o600 })
      await runProgram(
        'qemu-img',
        [
          'convert',
          '-q',
          '--object',
          `tls-creds-psk,id=key,dir=${keys.replaceAll(',', ',,')},endpoint=client`,
          '--image-opts',
          `driver=nbd,server.type=inet,server.host=${host},server.port=${port},export=${EXPORT},tls-creds=key`,
          '-O',
          'qcow2',
          unfinished,
        ],
        { timeoutMilliseconds: COPY_TIMEOUT_MILLISECONDS, ...(signal === undefined ? {} : { signal }) },
      )
    } finally {
      await rm(keys, { recursive: true, force: true })
    }
  }

  /** The host holds it no longer; its data in the folder `place` go first, if there is one. */
  async #remove(name: string, place: string | undefined): Promise<void> {
    await this.#server.stop(name)
    if (place !== undefined) {
      for (const file of [`${name}${RECORD}`, `${name}${DISK}`, `${name}${DISK}${UNFINISHED}`])
        await rm(join(place, file), { force: true })
      await syncToDisk(place)
    }
    await rm(join(this.#root, `${name}${RECORD}`), { force: true })
    await syncToDisk(this.#root)
  }
}
