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
  const poolOf = (id: string | undefined) => pools.find((pool) => pool.id === id)
  /** Where the data of a volume are; undefined when its pool is not mounted. */
  const placeOf = (pool: string | undefined) => (pool === undefined ? root : poolOf(pool)?.folder)

  async function inPool(name: string, pool: string): Promise<HeldVolume | undefined> {
    const place = placeOf(pool)
    return place === undefined ? undefined : readRecord(place, name)
  }

  async function inspect(name: string): Promise<HeldVolume | undefined> {
    const known = await readRecord(root, name)
    if (known?.pool === undefined) return known
    const shared = await inPool(name, known.pool)
    return shared === undefined ? undefined : { ...shared, pool: known.pool }
  }

  async function fill(
    unfinished: string,
    { source, sizeGibibytes, pool, from }: NewVolume,
    signal?: AbortSignal,
  ): Promise<void> {
    if (from !== undefined) return copy(unfinished, from, signal)
    const disk =
      source === undefined ? undefined : pool === undefined ? source.disk : await poolOf(pool)?.backingOf(source)
    const backing = disk === undefined ? [] : ['-b', disk, '-F', 'qcow2']
    await runProgram('qemu-img', ['create', '-q', '-f', 'qcow2', ...backing, unfinished, `${sizeGibibytes}G`], {
      timeoutMilliseconds: CREATE_TIMEOUT_MILLISECONDS,
    })
  }

  async function copy(unfinished: string, { host, port, key }: ServedDisk, signal?: AbortSignal): Promise<void> {
    const keys = await mkdtemp(join(root, KEYS_PREFIX))
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

  async function take(name: string, place: string | undefined): Promise<void> {
    await server.stop(name)
    if (place !== undefined) {
      for (const file of [`${name}${RECORD}`, `${name}${DISK}`, `${name}${DISK}${UNFINISHED}`])
        await rm(join(place, file), { force: true })
      await syncToDisk(place)
    }
    await rm(join(root, `${name}${RECORD}`), { force: true })
    await syncToDisk(root)
  }

  return {
    get pools() {
      return pools.map(({ id }) => id)
    },
    inspect,
    async list() {
      const names = (await readdir(root))
        .filter((file) => file.endsWith(RECORD))
        .map((file) => file.slice(0, -RECORD.length))
      return (await Promise.all(names.map(async (name) => (await inspect(name)) ?? readRecord(root, name)))).filter(
        (volume) => volume !== undefined,
      )
    },
    async create(volume, signal) {
      const { name, sizeGibibytes, source, pool } = volume
      if ((await inspect(name)) !== undefined) return
      const place = placeOf(pool)
      if (place === undefined) throw new Error(`pool ${pool} is not mounted`)
      const unfinished = `${diskOf(place, name)}${UNFINISHED}`
      const origin = source === undefined ? volume.origin : { name: source.name, version: source.version }
      const record = { name, sizeGibibytes, ...(origin === undefined ? {} : { source: origin }) }
      if (pool !== undefined) {
        await rm(join(place, `${name}${RECORD}`), { force: true })
        await writeRecord(root, { ...record, pool }) // so that what is left of a copy that was cut short is found
      }
      await fill(unfinished, volume, signal)
      await syncToDisk(unfinished)
      await rename(unfinished, diskOf(place, name))
      // The record beside the disk says that it is there: written last, removed first.
      await writeRecord(place, record)
    },
    isInPool: async (name, pool) => (await inPool(name, pool)) !== undefined,
    async adopt(name, pool) {
      const shared = await inPool(name, pool)
      if (shared !== undefined) await writeRecord(root, { ...shared, pool })
    },
    async grow(name, sizeGibibytes) {
      const volume = await inspect(name)
      const place = placeOf(volume?.pool)
      if (volume === undefined || place === undefined || volume.sizeGibibytes >= sizeGibibytes) return
      // Once more after a crash is the same again: the record follows the disk.
      await runProgram('qemu-img', ['resize', '-q', '-f', 'qcow2', diskOf(place, name), `${sizeGibibytes}G`], {
        timeoutMilliseconds: CREATE_TIMEOUT_MILLISECONDS,
      })
      await syncToDisk(diskOf(place, name))
      const { pool: _pool, ...record } = volume
      await writeRecord(place, { ...record, sizeGibibytes })
    },
    async remove(name) {
      await take(name, placeOf((await readRecord(root, name))?.pool))
    },
    async release(name) {
      const isShared = (await readRecord(root, name))?.pool !== undefined
      await take(name, isShared ? undefined : root)
    },
    async serve(name, key) {
      const volume = await inspect(name)
      const place = placeOf(volume?.pool)
      if (volume === undefined || place === undefined) throw new Error(`volume ${name} is not here`)
      return server.serve(name, diskOf(place, name), key)
    },
    stopServing: (name) => server.stop(name),
    servedAt: (name) => server.at(name),
    async pathOf(name) {
      const known = await readRecord(root, name)
      return diskOf(placeOf(known?.pool) ?? root, name)
    },
  }
}
