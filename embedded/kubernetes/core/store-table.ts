/** The objects of one resource sorted by key, and the window of its recent changes. */
import type { KubeObject } from './object.ts'

/** One visible change, as watches see it. */
export interface StoreChange {
  readonly revision: number
  readonly key: string
  /** Undefined when the object was deleted. */
  readonly object: KubeObject | undefined
  readonly old: KubeObject | undefined
  /** The last state with the revision of the deletion. */
  readonly last: KubeObject
}

export interface Table {
  get(key: string): KubeObject | undefined
  set(key: string, object: KubeObject | undefined): void
  size(): number
  entries(): Iterable<readonly [string, KubeObject]>
  /** Objects whose key starts with the prefix and is greater than `after`, sorted by key. */
  scan(prefix: string, after?: string): Iterable<readonly [string, KubeObject]>
  /** Number of these objects, without visiting each. */
  count(prefix: string, after?: string): number
  readonly window: Window
}

export interface Window {
  add(change: StoreChange, atMilliseconds: number): void
  /** Changes above the revision, oldest first; undefined when some of them are no longer known. */
  since(revision: number): readonly StoreChange[] | undefined
  /** The oldest revision for which `since` has all changes. */
  floor(): number
}

/** Changes are kept for five minutes, within this minimum and maximum number. */
const WINDOW_MILLISECONDS = 300_000
const WINDOW_LEAST_CHANGES = 1_000
const WINDOW_MOST_CHANGES = 20_000

/** Up to this number, new keys are inserted one by one; more are sorted in together. */
const FEW_KEYS = 32

export function openTable(floor: number): Table {
  const objects = new Map<string, KubeObject>()
  let sorted: string[] = []
  let added: string[] = [] // keys that are not in `sorted` yet
  const sortAdded = () => {
    if (added.length === 0) return
    if (added.length <= FEW_KEYS) for (const key of added) sorted.splice(firstFrom(sorted, key), 0, key)
    else sorted = [...sorted, ...added].sort((a, b) => (a < b ? -1 : 1))
    added = []
  }
  const firstOf = (prefix: string, after: string | undefined) =>
    firstFrom(sorted, after === undefined ? prefix : `${after}\0`)
  return {
    get: (key) => objects.get(key),
    set(key, object) {
      const isKnown = objects.has(key)
      if (object === undefined) {
        if (!isKnown) return
        sortAdded()
        objects.delete(key)
        sorted.splice(firstFrom(sorted, key), 1)
      } else {
        objects.set(key, object)
        if (!isKnown) added.push(key)
      }
    },
    size: () => objects.size,
    entries: () => objects.entries(),
    *scan(prefix, after) {
      sortAdded()
      let index = firstOf(prefix, after)
      for (let key = sorted[index]; key?.startsWith(prefix); key = sorted[++index]) {
        const object = objects.get(key)
        if (object) yield [key, object]
      }
    },
    count(prefix, after) {
      sortAdded()
      const first = firstOf(prefix, after)
      return firstIndex(first, sorted.length, (index) => sorted[index]?.startsWith(prefix) === true) - first
    },
    window: openWindow(floor),
  }
}

/** The first index from `low` to `high` for which `isBelow` is false. */
function firstIndex(low: number, high: number, isBelow: (index: number) => boolean): number {
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isBelow(middle)) low = middle + 1
    else high = middle
  }
  return low
}

/** The index of the first key that is not below `key`. */
const firstFrom = (sorted: readonly string[], key: string): number =>
  firstIndex(0, sorted.length, (index) => (sorted[index] ?? '') < key)

interface LogEntry {
  readonly change: StoreChange
  readonly atMilliseconds: number
}

function openWindow(start: number): Window {
  let entries: LogEntry[] = []
  let first = 0 // entries below this index are dropped; the array is shortened occasionally
  let floor = start
  const count = () => entries.length - first
  const dropOldest = () => {
    const oldest = entries[first]
    if (oldest) floor = oldest.change.revision
    first++
    if (first > WINDOW_MOST_CHANGES) {
      entries = entries.slice(first)
      first = 0
    }
  }
  return {
    add(change, atMilliseconds) {
      entries.push({ change, atMilliseconds })
      while (count() > WINDOW_MOST_CHANGES) dropOldest()
      while (
        count() > WINDOW_LEAST_CHANGES &&
        (entries[first]?.atMilliseconds ?? atMilliseconds) < atMilliseconds - WINDOW_MILLISECONDS
      )
        dropOldest()
    },
    since(revision) {
      if (revision < floor) return undefined
      const start = firstIndex(first, entries.length, (index) => (entries[index]?.change.revision ?? 0) <= revision)
      return entries.slice(start).map(({ change }) => change)
    },
    floor: () => floor,
  }
}
