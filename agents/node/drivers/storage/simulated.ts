/** Volumes that are only remembered. The map is the simulated host's disk: it outlives the agents that use it. */
import type { HeldVolume, NewVolume, ServedDisk, VolumeStore } from './volume-store.ts'

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
  /** When absent other hosts are out of sight: a copy from one is made without looking for it. */
  readonly storage?: SimulatedStorage
  /** Called when a volume has changed. */
  readonly onChange?: () => void
  /** The pools that the host has mounted; all when absent. */
  readonly mounted?: readonly string[]
  readonly host?: string
}

/** An agent's view of the host's disk `held`: what it serves ends with it. */
export const simulatedVolumes = (held: Map<string, HeldVolume>, options: SimulatedVolumesOptions = {}): VolumeStore =>
  new SimulatedVolumes(held, options)

class SimulatedVolumes implements VolumeStore {
  readonly pools: readonly string[]
  readonly #held: Map<string, HeldVolume>
  readonly #storage: SimulatedStorage
  readonly #isAlone: boolean
  readonly #host: string
  readonly #onChange: () => void
  readonly #served = new Map<string, Omit<ServedDisk, 'key'>>()

  constructor(held: Map<string, HeldVolume>, options: SimulatedVolumesOptions) {
    this.#held = held
    this.#isAlone = options.storage === undefined
    this.#storage = options.storage ?? newSimulatedStorage()
    this.#host = options.host ?? 'simulated'
    this.#onChange = options.onChange ?? (() => {})
    this.pools = options.mounted ?? [...this.#storage.pools.keys()]
  }

  async list(): Promise<readonly HeldVolume[]> {
    return [...this.#held.values()].map((known) => this.#find(known.name) ?? known)
  }

  async inspect(name: string): Promise<HeldVolume | undefined> {
    return this.#find(name)
  }

  async create({ name, sizeGibibytes, source, origin, pool, from }: NewVolume): Promise<void> {
    if (this.#find(name) !== undefined) return
    if (pool !== undefined && this.#poolOf(pool) === undefined) throw new Error(`pool ${pool} is not mounted`)
    if (from !== undefined && !this.#isServed(from)) throw new Error('nobody serves the disk')
    const begun = source === undefined ? origin : { name: source.name, version: source.version }
    const record = { name, sizeGibibytes, ...(begun === undefined ? {} : { source: begun }) }
    this.#poolOf(pool)?.set(name, record)
    this.#hold(name, { ...record, ...(pool === undefined ? {} : { pool }) })
  }

  async isInPool(name: string, pool: string): Promise<boolean> {
    return this.#poolOf(pool)?.has(name) === true
  }

  async adopt(name: string, pool: string): Promise<void> {
    const shared = this.#poolOf(pool)?.get(name)
    if (shared !== undefined) this.#hold(name, { ...shared, pool })
  }

  async grow(name: string, sizeGibibytes: number): Promise<void> {
    const volume = this.#find(name)
    if (volume === undefined || volume.sizeGibibytes >= sizeGibibytes) return
    const { pool, ...record } = { ...volume, sizeGibibytes }
    this.#poolOf(pool)?.set(name, record)
    this.#hold(name, { ...volume, sizeGibibytes })
  }

  async remove(name: string): Promise<void> {
    await this.stopServing(name)
    this.#poolOf(this.#held.get(name)?.pool)?.delete(name)
    this.#hold(name, undefined)
  }

  async release(name: string): Promise<void> {
    await this.stopServing(name)
    this.#hold(name, undefined)
  }

  async serve(name: string, key: string): Promise<Omit<ServedDisk, 'key'>> {
    const volume = this.#find(name)
    if (volume === undefined) throw new Error(`volume ${name} is not here`)
    await this.stopServing(name)
    const { served } = this.#storage
    let port = FIRST_PORT
    while (served.has(`${this.#host}:${port}`)) port += 1
    served.set(`${this.#host}:${port}`, { volume, key })
    this.#served.set(name, { host: this.#host, port })
    return { host: this.#host, port }
  }

  async stopServing(name: string): Promise<void> {
    const at = this.#served.get(name)
    if (at !== undefined) this.#storage.served.delete(`${at.host}:${at.port}`)
    this.#served.delete(name)
  }

  servedAt(name: string): Omit<ServedDisk, 'key'> | undefined {
    return this.#served.get(name)
  }

  async pathOf(name: string): Promise<string> {
    const pool = this.#held.get(name)?.pool
    return pool === undefined ? `/simulated/${name}` : `/simulated/${pool}/${name}`
  }

  #isServed({ host, port, key }: ServedDisk): boolean {
    return this.#isAlone || this.#storage.served.get(`${host}:${port}`)?.key === key
  }

  #hold(name: string, volume: HeldVolume | undefined): void {
    if (volume === undefined) this.#held.delete(name)
    else this.#held.set(name, volume)
    this.#onChange()
  }

  #poolOf(id: string | undefined): Map<string, HeldVolume> | undefined {
    return id !== undefined && this.pools.includes(id) ? this.#storage.pools.get(id) : undefined
  }

  #find(name: string): HeldVolume | undefined {
    const known = this.#held.get(name)
    if (known?.pool === undefined) return known
    const shared = this.#poolOf(known.pool)?.get(name)
    return shared === undefined ? undefined : { ...shared, pool: known.pool }
  }
}
