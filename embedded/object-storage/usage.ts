/** How much a tenant stores: the result of a walk through its folders, plus later additions. Never less than the real
 *  usage, so that a quota holds; deleted data count until the next walk. */
import type { Dirent } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { hourOf } from '../../domain/billing/metered-bytes.ts'

export interface Measurement {
  readonly bytes: number
  readonly objects: number
  readonly buckets: number
  /** Includes folders: of objects, old versions and parts. */
  readonly files: number
}

/** The counted amounts. */
export type FolderAmounts = Pick<Measurement, 'bytes' | 'files' | 'buckets'>
const NOTHING: FolderAmounts = { bytes: 0, files: 0, buckets: 0 }
const sum = (one: FolderAmounts, other: FolderAmounts): FolderAmounts => ({
  bytes: one.bytes + other.bytes,
  files: one.files + other.files,
  buckets: one.buckets + other.buckets,
})
const negative = ({ bytes, files, buckets }: FolderAmounts): FolderAmounts => ({
  bytes: -bytes,
  files: -files,
  buckets: -buckets,
})

export interface FolderUsage {
  /** Result of the last walk; undefined before the first. `highestBytes`: the maximum of the walks in the same clock
   *  hour. */
  readonly measured: (Measurement & { readonly at: Date; readonly highestBytes: number }) | undefined
  /** Upper limit of the current usage. */
  bytes(): number
  files(): number
  buckets(): number
  /** Reserves space for data in transit; call the returned function with whether they were stored. */
  reserve(amounts: FolderAmounts): (isStored: boolean) => void
  /** Walks through the folders; concurrent calls share one walk. */
  measure(): Promise<void>
}

export function openFolderUsage(walk: () => Promise<Measurement>, now: () => Date): FolderUsage {
  let measured: FolderUsage['measured']
  let walking: Promise<void> | undefined
  let onTheirWay = NOTHING
  let added = NOTHING
  /** Added during a walk, which may have counted it or not. */
  let addedDuringWalk = NOTHING
  const run = async (): Promise<void> => {
    addedDuringWalk = NOTHING
    const [at, found] = [now(), await walk()]
    const isSameHour = measured !== undefined && hourOf(measured.at).getTime() === hourOf(at).getTime()
    measured = { ...found, at, highestBytes: Math.max(found.bytes, isSameHour ? (measured?.highestBytes ?? 0) : 0) }
    added = addedDuringWalk
  }
  const most = (what: keyof FolderAmounts): number => (measured?.[what] ?? 0) + added[what] + onTheirWay[what]
  return {
    get measured() {
      return measured
    },
    bytes: () => most('bytes'),
    files: () => most('files'),
    buckets: () => most('buckets'),
    reserve(amounts) {
      let isOpen = true
      onTheirWay = sum(onTheirWay, amounts)
      return (isStored) => {
        if (!isOpen) return
        isOpen = false
        onTheirWay = sum(onTheirWay, negative(amounts))
        if (!isStored) return
        added = sum(added, amounts)
        addedDuringWalk = sum(addedDuringWalk, amounts)
      }
    },
    measure() {
      walking ??= run().finally(() => {
        walking = undefined
      })
      return walking
    },
  }
}

/** Folder of the engine for incomplete data, in each bucket. */
const UNFINISHED = Buffer.from('.sgwtmp')
const STATS_AT_ONCE = 64

export interface Folders {
  readonly data: string
  /** Folder of old versions, with one folder for each bucket. */
  readonly versions: string
}

/** Counts everything in the buckets of a tenant's folders. Links count as nothing, because the engine creates none. */
export async function walkBuckets({ data, versions }: Folders): Promise<Measurement> {
  // Names of the engine's own files start with a dot.
  const buckets = (await entriesOf(Buffer.from(data))).filter((entry) => entry.isDirectory() && entry.name[0] !== DOT)
  let [bytes, objects, files] = [0, 0, 0]
  for (const { name } of buckets) {
    const bucket = below(Buffer.from(data), name)
    const whole = await walkFolder(bucket, (entry) => !entry.equals(UNFINISHED))
    objects += whole.files
    const others = [below(bucket, UNFINISHED), below(Buffer.from(versions), name)]
    for (const found of [whole, ...(await Promise.all(others.map((other) => walkFolder(other, () => true))))]) {
      bytes += found.bytes
      files += found.files + found.folders
    }
  }
  return { bytes, objects, buckets: buckets.length, files }
}

const DOT = 46
const SLASH = Buffer.from('/')
const below = (folder: Buffer, name: Buffer): Buffer => Buffer.concat([folder, SLASH, name])

async function walkFolder(
  root: Buffer,
  isWanted: (name: Buffer) => boolean,
): Promise<{ readonly files: number; readonly folders: number; readonly bytes: number }> {
  let [files, bytes, folderCount] = [0, 0, 0]
  const folders = [root]
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const here = folder
    folderCount += 1
    const entries = (await entriesOf(here)).filter(({ name }) => here !== root || isWanted(name))
    folders.push(...entries.filter((entry) => entry.isDirectory()).map(({ name }) => below(here, name)))
    const names = entries.filter((entry) => entry.isFile()).map(({ name }) => name)
    for (let start = 0; start < names.length; start += STATS_AT_ONCE) {
      const sizes = await Promise.all(
        names.slice(start, start + STATS_AT_ONCE).map((name) => sizeOf(below(here, name))),
      )
      files += sizes.filter((size) => size !== undefined).length
      bytes += sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0)
    }
  }
  return { files, folders: folderCount, bytes }
}

/** Data that are removed during the walk count as nothing. */
const orGone =
  <Found, Nothing>(nothing: Nothing) =>
  (error: unknown): Found | Nothing => {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR'))
      return nothing
    throw error
  }
/** Names are any bytes that a client has sent. */
const entriesOf = (folder: Buffer): Promise<readonly Dirent<Buffer>[]> =>
  readdir(folder, { withFileTypes: true, encoding: 'buffer' }).catch(orGone<Dirent<Buffer>[], Dirent<Buffer>[]>([]))
const sizeOf = (file: Buffer): Promise<number | undefined> =>
  lstat(file).then(({ size }) => size, orGone<number, undefined>(undefined))
