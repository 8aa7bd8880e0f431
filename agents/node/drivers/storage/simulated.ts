/** Simulated volumes, in memory only. The map is the simulated host's disk: it outlives the agents that use it. */
import { isDeepStrictEqual } from 'node:util'
import { defined } from '../../../../domain/defined.ts'
import {
  type HeldSnapshot,
  type HeldVolume,
  type ServedDisk,
  type SnapshotOf,
  SourceLost,
  type VolumeOwner,
  type VolumeStore,
} from './volume-store.ts'

/** State that simulated hosts share. */
export interface SimulatedStorage {
  /** Volumes in each pool, by name. */
  readonly pools: ReadonlyMap<string, Map<string, HeldVolume>>
  /** Owners of volumes in pools, by the volume's name. */
  readonly owners: Map<string, VolumeOwner>
  /** Volumes that hosts serve, by host and port. */
  readonly served: Map<string, { readonly volume: HeldVolume; readonly key: string }>
}

/** A volume as the host's disk or the pool stores it. */
type KeptVolume = HeldVolume & { readonly snapshots?: readonly HeldSnapshot[] }

export const newSimulatedStorage = (...pools: readonly string[]): SimulatedStorage => ({
  pools: new Map(pools.map((id) => [id, new Map()])),
  owners: new Map(),
  served: new Map(),
})

const FIRST_PORT = 10_809

export interface SimulatedVolumesOptions {
  readonly storage?: SimulatedStorage
  /** The pools that the host has mounted; all when absent. */
  readonly mounted?: readonly string[]
  readonly host?: string
}

/** Volumes on the host's disk and in the pools that it has mounted. */
function simulatedPlaces(
  held: Map<string, HeldVolume>,
  poolOf: (id: string | undefined) => Map<string, HeldVolume> | undefined,
) {
  /** The stored volume. */
  const keptIn = (name: string, pool: string | undefined): KeptVolume | undefined =>
    pool === undefined ? held.get(name) : poolOf(pool)?.get(name)
  const inspect = (name: string): HeldVolume | undefined => {
    const pool = held.get(name)?.pool
    const lying = keptIn(name, pool)
    if (lying === undefined) return undefined
    const { snapshots: _kept, ...volume } = lying
    return pool === undefined ? volume : { ...volume, pool }
  }
  const snapshotsOf = (name: string): readonly HeldSnapshot[] => keptIn(name, held.get(name)?.pool)?.snapshots ?? []
  const keep = (name: string, snapshots: readonly HeldSnapshot[]) => {
    const pool = held.get(name)?.pool
    const lying = keptIn(name, pool)
    const record: KeptVolume | undefined = lying && { ...lying, snapshots }
    if (record !== undefined) (pool === undefined ? held : poolOf(pool))?.set(name, record)
  }
  return { keptIn, inspect, snapshotsOf, keep }
}

/** An agent's view of the host's disk. The agent's servers stop with it. */
export function simulatedVolumes(
  held: Map<string, HeldVolume>,
  {
    storage = newSimulatedStorage(),
    mounted = [...storage.pools.keys()],
    host = 'simulated',
  }: SimulatedVolumesOptions = {},
): VolumeStore {
  const poolOf = (id: string | undefined) =>
    id !== undefined && mounted.includes(id) ? storage.pools.get(id) : undefined
  const { keptIn, inspect, snapshotsOf, keep } = simulatedPlaces(held, poolOf)
  const requireSnapshot = ({ volume, pool, snapshot }: SnapshotOf) => {
    if (!keptIn(volume, pool)?.snapshots?.some(({ name }) => name === snapshot))
      throw new SourceLost(`volume ${volume} has no snapshot ${snapshot}`)
  }
  const pathOf = (name: string) => ['', 'simulated', ...[held.get(name)?.pool ?? []].flat(), name].join('/')
  const serving = simulatedServing(storage, host, inspect)
  return {
    pools: mounted,
    list: async () => [...held.values()].map((known) => inspect(known.name) ?? known),
    inspect: async (name) => inspect(name),
    async create({ name, sizeGibibytes, source, origin, pool, from, fill, snapshotOf }, signal) {
      if (inspect(name) !== undefined) return
      if (pool !== undefined && poolOf(pool) === undefined) throw new Error(`pool ${pool} is not mounted`)
      if (from !== undefined) requireServed(storage, from)
      if (snapshotOf !== undefined) requireSnapshot(snapshotOf)
      await fill?.(name, signal)
      const begun = source === undefined ? origin : { name: source.name, version: source.version }
      const record = { name, sizeGibibytes, ...defined({ source: begun }) }
      poolOf(pool)?.set(name, record)
      held.set(name, { ...record, ...defined({ pool }) })
    },
    isInPool: async (name, pool) => poolOf(pool)?.has(name) === true,
    async adopt(name, pool) {
      const shared = poolOf(pool)?.get(name)
      if (shared !== undefined) held.set(name, { ...shared, pool })
    },
    async grow(name, sizeGibibytes, by) {
      const volume = inspect(name)
      if (volume === undefined || volume.sizeGibibytes >= sizeGibibytes) return
      await by?.(pathOf(name), sizeGibibytes)
      const { pool } = volume
      const lying = keptIn(name, pool)
      if (lying !== undefined) (pool === undefined ? held : poolOf(pool))?.set(name, { ...lying, sizeGibibytes })
    },
    ...simulatedSnapshots({ inspect, pathOf, snapshotsOf, keep }),
    copySnapshot: async (of) => requireSnapshot(of),
    async remove(name) {
      await serving.stopServing(name)
      if (poolOf(held.get(name)?.pool)?.delete(name) === true) storage.owners.delete(name)
      held.delete(name)
    },
    async release(name) {
      await serving.stopServing(name)
      held.delete(name)
    },
    ...serving,
    pathOf: async (name) => pathOf(name),
    nameOf: (path) => path.split('/').at(-1),
    checkedPathOf: async (name) => pathOf(name),
    roomOfSnapshots: async () => new Map<string, number>(),
    pointsOf: async () => undefined,
    ...simulatedOwners(held, storage.owners),
    requireClosed: async () => undefined,
  }
}

const simulatedOwners = (
  held: ReadonlyMap<string, HeldVolume>,
  owners: Map<string, VolumeOwner>,
): Pick<VolumeStore, 'ownerOf' | 'changeOwner'> => ({
  ownerOf: async (name, pool) => ((pool ?? held.get(name)?.pool) === undefined ? undefined : owners.get(name)),
  async changeOwner(name, known, next) {
    if (held.get(name)?.pool === undefined) return true
    if (!isDeepStrictEqual(owners.get(name), known)) return false
    if (next === undefined) owners.delete(name)
    else owners.set(name, next)
    return true
  },
})

/** How snapshots are stored with their volume. */
interface Keeping {
  readonly inspect: (name: string) => HeldVolume | undefined
  readonly pathOf: (name: string) => string
  readonly snapshotsOf: (name: string) => readonly HeldSnapshot[]
  readonly keep: (name: string, snapshots: readonly HeldSnapshot[]) => void
}

const simulatedSnapshots = ({
  inspect,
  pathOf,
  snapshotsOf,
  keep,
}: Keeping): Pick<VolumeStore, 'snapshots' | 'takeSnapshot' | 'removeSnapshot'> => ({
  snapshots: async (name) => snapshotsOf(name),
  async takeSnapshot(name, snapshot, by) {
    const volume = inspect(name)
    if (volume === undefined) throw new Error(`volume ${name} is not here`)
    if (snapshotsOf(name).some((each) => each.name === snapshot)) return
    let isFrozen = false
    await by?.(pathOf(name), (is) => {
      isFrozen = is
      return snapshot
    })
    keep(name, [...snapshotsOf(name), { name: snapshot, sizeGibibytes: volume.sizeGibibytes, isFrozen }])
  },
  async removeSnapshot(name, snapshot, by) {
    if (!snapshotsOf(name).some((each) => each.name === snapshot)) return
    await by?.(pathOf(name), snapshot)
    keep(
      name,
      snapshotsOf(name).filter((each) => each.name !== snapshot),
    )
  },
})

/** The disks that an agent serves to others, until it ends. */
function simulatedServing(
  storage: SimulatedStorage,
  host: string,
  inspect: (name: string) => HeldVolume | undefined,
): Pick<VolumeStore, 'serve' | 'stopServing' | 'servedAt'> {
  const mine = new Map<string, Omit<ServedDisk, 'key'>>()
  const stopServing = async (name: string) => {
    const at = mine.get(name)
    if (at !== undefined) storage.served.delete(`${at.host}:${at.port}`)
    mine.delete(name)
  }
  return {
    async serve(name, key) {
      const volume = inspect(name)
      if (volume === undefined) throw new Error(`volume ${name} is not here`)
      await stopServing(name)
      const at = { host, port: freePort(storage, host) }
      storage.served.set(`${host}:${at.port}`, { volume, key })
      mine.set(name, at)
      return at
    },
    stopServing,
    servedAt: (name) => mine.get(name),
  }
}

function requireServed({ served }: SimulatedStorage, { host, port, key }: ServedDisk): void {
  if (served.get(`${host}:${port}`)?.key !== key) throw new Error('nobody serves the disk')
}

function freePort({ served }: SimulatedStorage, host: string): number {
  let port = FIRST_PORT
  while (served.has(`${host}:${port}`)) port += 1
  return port
}
