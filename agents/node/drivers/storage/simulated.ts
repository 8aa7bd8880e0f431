/** Volumes that are only remembered. The map is the simulated host's disk: it outlives the agents that use it. */
import type { HeldVolume, ServedDisk, VolumeStore } from './volume-store.ts'

/** What simulated hosts share. */
export interface SimulatedStorage {
  /** What lies in each pool, by the volume's name. */
  readonly pools: ReadonlyMap<string, Map<string, HeldVolume>>
  /** What hosts serve, by host and port. */
  readonly served: Map<string, { readonly volume: HeldVolume; readonly key: string }>
}

export const newSimulatedStorage = (...pools: readonly string[]): SimulatedStorage => ({
  pools: new Map(pools.map((id) => [id, new Map()])),
  served: new Map(),
})

const FIRST_PORT = 10_809

export interface SimulatedVolumesOptions {
  readonly storage?: SimulatedStorage
  /** The pools that the host has mounted; all when absent. */
  readonly mounted?: readonly string[]
  readonly host?: string
}

/** An agent's view of the host's disk: what it serves ends with it. */
export function simulatedVolumes(
  held: Map<string, HeldVolume>,
  {
    storage = newSimulatedStorage(),
    mounted = [...storage.pools.keys()],
    host = 'simulated',
  }: SimulatedVolumesOptions = {},
): VolumeStore {
  const mine = new Map<string, Omit<ServedDisk, 'key'>>()
  const poolOf = (id: string | undefined) =>
    id !== undefined && mounted.includes(id) ? storage.pools.get(id) : undefined
  const inspect = (name: string): HeldVolume | undefined => {
    const known = held.get(name)
    if (known?.pool === undefined) return known
    const shared = poolOf(known.pool)?.get(name)
    return shared === undefined ? undefined : { ...shared, pool: known.pool }
  }
  const stopServing = async (name: string) => {
    const at = mine.get(name)
    if (at !== undefined) storage.served.delete(`${at.host}:${at.port}`)
    mine.delete(name)
  }
  return {
    pools: mounted,
    list: async () => [...held.values()].map((known) => inspect(known.name) ?? known),
    inspect: async (name) => inspect(name),
    async create({ name, sizeGibibytes, source, origin, pool, from }) {
      if (inspect(name) !== undefined) return
      if (pool !== undefined && poolOf(pool) === undefined) throw new Error(`pool ${pool} is not mounted`)
      if (from !== undefined) requireServed(storage, from)
      const begun = source === undefined ? origin : { name: source.name, version: source.version }
      const record = { name, sizeGibibytes, ...(begun === undefined ? {} : { source: begun }) }
      poolOf(pool)?.set(name, record)
      held.set(name, { ...record, ...(pool === undefined ? {} : { pool }) })
    },
    isInPool: async (name, pool) => poolOf(pool)?.has(name) === true,
    async adopt(name, pool) {
      const shared = poolOf(pool)?.get(name)
      if (shared !== undefined) held.set(name, { ...shared, pool })
    },
    async grow(name, sizeGibibytes) {
      const volume = inspect(name)
      if (volume === undefined || volume.sizeGibibytes >= sizeGibibytes) return
      const { pool, ...record } = { ...volume, sizeGibibytes }
      poolOf(pool)?.set(name, record)
      held.set(name, { ...volume, sizeGibibytes })
    },
    async remove(name) {
      await stopServing(name)
      poolOf(held.get(name)?.pool)?.delete(name)
      held.delete(name)
    },
    async release(name) {
      await stopServing(name)
      held.delete(name)
    },
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
    pathOf: async (name) => ['', 'simulated', ...[held.get(name)?.pool ?? []].flat(), name].join('/'),
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
