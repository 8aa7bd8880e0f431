/** The place of each tenant on the disk: a number, which determines its folder and its user. The record of a place
 *  belongs to the platform only, and is outside of the engine's folder. It contains the secret of the tenant's key,
 *  because an engine that has lost its users gets them again. A missing record never causes a removal, or a second
 *  folder for a tenant. */
import { chmod, chown, lstat, lchown, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { syncToDisk, UNFINISHED, writeDurably } from '../../kit/sys/durable-file.ts'
import { makeFolder } from '../../kit/sys/make-folder.ts'
import type { Cell } from './isolation.ts'
import type { UserRange } from '../kit/user-range.ts'

export const CELL_PARTS = ['data', 'versions', 'run'] as const

const PlaceRecord = z.strictObject({
  id: z.string(),
  accessKeyId: z.string(),
  bucketPrefix: z.string(),
  /** Null until the platform has sent it. */
  secretAccessKey: z.string().nullable(),
  /** Its folder existed once, and is never created again. */
  isMade: z.boolean(),
})
type PlaceRecord = z.infer<typeof PlaceRecord>

export interface TenantPlace extends PlaceRecord {
  readonly number: number
  readonly cell: Cell
}

/** The tenant of a place. */
export type Resident = Pick<TenantPlace, 'id' | 'accessKeyId' | 'bucketPrefix'>
export type RecordedTenant = Resident & Pick<TenantPlace, 'secretAccessKey'>

export interface Places {
  all(): readonly TenantPlace[]
  find(id: string): TenantPlace | undefined
  /** Gives the tenant a place with this secret; without a secret it keeps the old one. */
  keep(resident: Resident, secretAccessKey?: string): Promise<TenantPlace>
  /** Creates its folders and gives them to its user. Its engine must not run. Throws PlaceLost. */
  make(id: string): Promise<TenantPlace>
  /** Removes the place with everything in it. The tenant's engine must not run. */
  remove(id: string): Promise<void>
}

/** A folder that existed once is missing. */
export class PlaceLost extends Error {}

export interface PlacesOptions {
  readonly folder: string
  /** Undefined when engines have the user of this process. */
  readonly users: UserRange | undefined
  /** Called with folders that belong to no known tenant. */
  readonly reportUnknown: (folders: readonly string[]) => void
}

const NUMBERS_MAXIMUM = 65_535
const REMOVED = /^\d+\.removed$/

/** Reads the existing places. Throws file system errors. */
export async function openPlaces(options: PlacesOptions): Promise<Places> {
  const places = new AllPlaces(options)
  await places.read()
  return places
}

class AllPlaces implements Places {
  readonly #options: PlacesOptions
  readonly #records: string
  readonly #tenants: string
  readonly #byId = new Map<string, TenantPlace>()
  #lastNumber = 0

  constructor(options: PlacesOptions) {
    this.#options = options
    this.#records = join(options.folder, 'places')
    this.#tenants = join(options.folder, 'tenants')
  }

  async read(): Promise<void> {
    for (const folder of [this.#records, this.#tenants]) await makeFolder(folder, 0o700)
    await this.#passable(this.#tenants)
    for (const name of await readdir(this.#records)) {
      const number = Number(/^(\d+)\.json$/.exec(name)?.[1])
      if (name.endsWith(UNFINISHED)) await rm(join(this.#records, name))
      if (!Number.isInteger(number)) continue
      const recorded = parse(await readFile(this.#recordOf(number), 'utf8'))
      if (recorded !== undefined) this.#byId.set(recorded.id, { ...recorded, number, cell: this.#cellOf(number) })
    }
    // Their removal was interrupted.
    for (const name of await readdir(this.#tenants))
      if (REMOVED.test(name)) await rm(join(this.#tenants, name), { recursive: true, force: true })
    const unknown = await this.#strangers()
    if (unknown.length > 0) this.#options.reportUnknown(unknown.map((number) => this.#cellOf(number).folder))
    this.#lastNumber = Math.max(0, ...this.#numbers(), ...unknown)
  }

  all(): readonly TenantPlace[] {
    return [...this.#byId.values()]
  }

  find(id: string): TenantPlace | undefined {
    return this.#byId.get(id)
  }

  async keep(resident: Resident, secretAccessKey?: string): Promise<TenantPlace> {
    const { id, accessKeyId, bucketPrefix } = resident
    const before = this.#byId.get(id)
    const secret = secretAccessKey ?? before?.secretAccessKey ?? null
    if (before !== undefined) return this.#write({ ...before, accessKeyId, bucketPrefix, secretAccessKey: secret })
    const left = await this.#numberLeft(resident)
    const number = left ?? (await this.#nextNumber())
    const isMade = left !== undefined
    const cell = this.#cellOf(number)
    return this.#write({ id, accessKeyId, bucketPrefix, secretAccessKey: secret, isMade, number, cell })
  }

  async make(id: string): Promise<TenantPlace> {
    const place = this.#require(id)
    const { cell, isMade } = place
    const parts = CELL_PARTS.map((part) => join(cell.folder, part))
    for (const path of [cell.folder, ...parts])
      if (isMade && path !== join(cell.folder, 'run') && !(await isThere(path)))
        throw new PlaceLost(`${path} is missing: bring it back, or make an empty folder to start without it`)
    for (const path of [cell.folder, ...parts]) await makeFolder(path, 0o700)
    await this.#passable(cell.folder)
    if (cell.uid !== undefined) for (const path of parts) await own(path, cell.uid)
    await syncToDisk(cell.folder)
    return isMade ? place : this.#write({ ...place, isMade: true })
  }

  async remove(id: string): Promise<void> {
    const { number, cell } = this.#require(id)
    // An interruption between these steps leaves the place either complete or removed.
    const going = `${cell.folder}.removed`
    await rename(cell.folder, going).catch(orAbsent)
    await syncToDisk(this.#tenants)
    await rm(this.#recordOf(number), { force: true })
    this.#byId.delete(id)
    await rm(going, { recursive: true, force: true })
  }

  /** Lets the process that serves clients reach sockets through the folder, if it has another user. */
  async #passable(path: string): Promise<void> {
    const { users } = this.#options
    if (users === undefined) return
    await chown(path, 0, users.first)
    await chmod(path, 0o710)
  }

  #require(id: string): TenantPlace {
    const place = this.#byId.get(id)
    if (place === undefined) throw new Error('the tenant has no place')
    return place
  }

  #recordOf(number: number): string {
    return join(this.#records, `${number}.json`)
  }

  #cellOf(number: number): Cell {
    const { users } = this.#options
    return { folder: join(this.#tenants, String(number)), uid: users === undefined ? undefined : users.first + number }
  }

  #numbers(): readonly number[] {
    return this.all().map(({ number }) => number)
  }

  /** Folders without a record. */
  async #strangers(): Promise<readonly number[]> {
    const known = new Set(this.#numbers())
    return (await readdir(this.#tenants))
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((number) => !known.has(number))
  }

  /** Numbers increase. A number is reused only when there are no others and nothing of it exists. */
  async #nextNumber(): Promise<number> {
    const { users } = this.#options
    const maximum = Math.min(NUMBERS_MAXIMUM, (users?.count ?? NUMBERS_MAXIMUM + 1) - 1)
    if (this.#lastNumber < maximum) return (this.#lastNumber += 1)
    const numbersInUse = new Set([...this.#numbers(), ...(await this.#strangers())])
    for (let number = 1; number <= maximum; number++) if (!numbersInUse.has(number)) return number
    throw new Error(`there are no more than ${maximum} tenants on one host`)
  }

  /** A folder without a record belongs to the tenant when all buckets in it have the tenant's prefix. */
  async #numberLeft({ bucketPrefix }: Resident): Promise<number | undefined> {
    for (const number of await this.#strangers()) {
      const names = await readdir(join(this.#cellOf(number).folder, 'data')).catch(() => [])
      const buckets = names.filter((name) => !name.startsWith('.'))
      if (buckets.length > 0 && buckets.every((name) => name.startsWith(bucketPrefix))) return number
    }
    return undefined
  }

  async #write({ number, cell, ...recorded }: TenantPlace): Promise<TenantPlace> {
    await writeDurably(this.#recordOf(number), JSON.stringify(recorded))
    const place = { ...recorded, number, cell }
    this.#byId.set(recorded.id, place)
    return place
  }
}

/** Gives everything in the folder to the user, and finally the folder itself, so that an interrupted run is repeated.
 *  Does not follow links. Names may be any bytes. */
export async function own(path: string, uid: number): Promise<void> {
  if ((await lstat(path)).uid === uid) return
  const folders = [Buffer.from(path)]
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop())
    for (const entry of await readdir(folder, { withFileTypes: true, encoding: 'buffer' })) {
      const inner = Buffer.concat([folder, Buffer.from('/'), entry.name])
      if (entry.isDirectory()) folders.push(inner)
      await lchown(inner, uid, uid)
    }
  await chown(path, uid, uid)
}

const orAbsent = (error: NodeJS.ErrnoException): void => {
  if (error.code !== 'ENOENT') throw error
}

const isThere = (path: string): Promise<boolean> =>
  lstat(path).then(
    (found) => found.isDirectory(),
    (error: NodeJS.ErrnoException) => {
      orAbsent(error)
      return false
    },
  )

function parse(text: string): PlaceRecord | undefined {
  try {
    return PlaceRecord.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
