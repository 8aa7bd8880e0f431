/** Users for the engines of an installation: ids without an account on the machine, from a range that the installation
 *  records in its folder. No other installation of the machine has the same range. */
import { constants } from 'node:fs'
import { access, readFile, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { Clock } from '../../kit/sys/clock.ts'
import { writeDurably } from '../../kit/sys/durable-file.ts'
import { tryLock } from '../../kit/sys/file-lock.ts'
import { makeFolder } from '../../kit/sys/make-folder.ts'
import { newUuid, numberBetween, type Random } from '../../kit/sys/random.ts'

/** Registry of the ranges of all installations of this machine. */
export const MACHINE_REGISTRY = '/var/lib/svccloud/object-storage-users'
const RUN_REGISTRY = '/run/svccloud/object-storage-users'

export interface UserRange {
  readonly first: number
  readonly count: number
}

interface Area extends UserRange {
  /** Size of each installation's range. */
  readonly span: number
}

/** Within the ids that systemd leaves free: 1879048192 to 2147483647. */
const PREFERRED: Area = { first: 0x7000_0000, count: 0x0fff_0000, span: 65_536 }
/** In a container with fewer users, ranges come from the upper half of them. */
const SMALL_SPAN = 1_024
const SMALL_COUNT_MINIMUM = 8 * SMALL_SPAN
const TRIES_MAXIMUM = 200
const LOCK_MILLISECONDS = 10_000
const LOOK_MILLISECONDS = 50

const Recorded = z.strictObject({
  /** Id of the installation; a copy of its folder has the same id. */
  id: z.uuid(),
  first: z.int().min(1),
  count: z.int().min(1),
})
const Registered = z.strictObject({ id: z.uuid(), folder: z.string() })

export interface RangeOptions {
  /** Folder of the installation. */
  readonly folder: string
  readonly registry: string
  /** Content of /proc/self/uid_map. */
  readonly uidMap: string
  readonly clock: Clock
  readonly random: Random
}

/** Undefined when this machine has too few users. Returns the same range every time, unless another installation has it
 *  by now. Then it returns a new range, and owners of files must be changed. Throws file system errors. */
export async function openUserRange(options: RangeOptions): Promise<UserRange | undefined> {
  const { folder, random } = options
  const area = areaOf(options.uidMap)
  if (area === undefined) return undefined
  const file = join(folder, 'user-range.json')
  const own = await realpath(folder)
  const registry = await writableOf([options.registry, RUN_REGISTRY, join(folder, 'registry')])
  const release = await locked(join(registry, 'lock'), options.clock)
  try {
    const recorded = await readJson(file, Recorded)
    const id = recorded?.id ?? newUuid(random)
    const isFree = async (first: number): Promise<boolean> => {
      const other = await readJson(join(registry, String(first)), Registered)
      if (other === undefined || (other.id === id && other.folder === own)) return true
      // The folder was moved or deleted, or has another range now.
      const there = await readJson(join(other.folder, 'user-range.json'), Recorded)
      return there?.id !== other.id || there.first !== first
    }
    const isOurs = (range: UserRange): boolean =>
      range.first >= area.first && range.first + range.count <= area.first + area.count
    let range = recorded !== undefined && isOurs(recorded) && (await isFree(recorded.first)) ? recorded : undefined
    for (let tries = 0; range === undefined; tries++) {
      if (tries >= TRIES_MAXIMUM) throw new Error(`no range of users is free: ${registry} has them all`)
      const place = Math.floor(numberBetween(random, { least: 0, most: Math.floor(area.count / area.span) }))
      const first = area.first + place * area.span
      if (await isFree(first)) range = { id, first, count: area.span }
    }
    await writeDurably(join(registry, String(range.first)), JSON.stringify({ id: range.id, folder: own }))
    await writeDurably(file, JSON.stringify(range))
    return { first: range.first, count: range.count }
  } finally {
    release()
  }
}

/** The first writable folder. The last one belongs to this installation alone: then ranges differ only by chance. */
async function writableOf(folders: readonly string[]): Promise<string> {
  for (const folder of folders)
    try {
      await makeFolder(folder, 0o700)
      await access(folder, constants.W_OK)
      return folder
    } catch (error) {
      if (folder === folders.at(-1)) throw error
    }
  throw new Error('there is no folder for ranges of users')
}

/** The ids of the machine from which ranges are taken. */
function areaOf(uidMap: string): Area | undefined {
  const mapped = uidMap
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
    .map(([first = 0, , count = 0]) => ({ first, count }))
  const ends = ({ first, count }: UserRange) => first + count
  if (mapped.some((each) => each.first <= PREFERRED.first && ends(each) >= ends(PREFERRED))) return PREFERRED
  const largest = mapped.toSorted((one, other) => other.count - one.count)[0]
  if (largest === undefined || largest.count < SMALL_COUNT_MINIMUM) return undefined
  const half = Math.floor(largest.count / 2)
  return { first: largest.first + half, count: largest.count - half, span: SMALL_SPAN }
}

async function locked(file: string, clock: Clock): Promise<() => void> {
  const deadline = clock.monotonicMilliseconds() + LOCK_MILLISECONDS
  for (;;) {
    const release = tryLock(file)
    if (release !== undefined) return release
    if (clock.monotonicMilliseconds() > deadline) throw new Error(`${file} is held by another process`)
    await clock.sleep(LOOK_MILLISECONDS)
  }
}

/** Undefined when the file does not exist or is invalid. */
async function readJson<Shape extends z.ZodType>(file: string, shape: Shape): Promise<z.infer<Shape> | undefined> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined
    throw error
  })
  if (text === undefined) return undefined
  try {
    return shape.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
