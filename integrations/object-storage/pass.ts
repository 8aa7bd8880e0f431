/** Passes over all buckets of a tenant that moves from one S3 server to another, each in several runs of limited time.
 *  The position of a pass can be stored: a run that continues from it misses nothing, and repeats at most the last
 *  page. */
import { forEachConcurrently } from '../../kit/chunks/concurrently.ts'
import { copyObject, type Stores } from './copy-object.ts'
import { type Patience, persistently } from './retry.ts'
import type { BucketSetting, ListedObject, S3 } from './s3.ts'

/** A bucket, and the last of its keys that is done; both empty at the start. */
export interface StoreLocation {
  readonly bucket: string
  readonly after: string
}
export const BEGINNING: StoreLocation = { bucket: '', after: '' }

/** `live` copies new objects, by size, digest and time, while clients write. `exact` also compares all metadata of each
 *  object. `prune` removes everything from the target that the source does not have. `check` changes nothing. The last
 *  three are for a source that nobody writes to. */
export type PassKind = 'live' | 'exact' | 'prune' | 'check'

export interface PassOptions {
  readonly kind: PassKind
  readonly from: StoreLocation
  /** By the source's clock: older objects are unchanged since the previous pass. Undefined for the first. */
  readonly since?: Date | undefined
  /** Whether the time of this run is over. */
  readonly isOver: () => boolean
  /** Retries of requests that occasionally fail. */
  readonly patience: Patience
}

export interface PassProgress {
  /** Undefined at the end. */
  readonly next: StoreLocation | undefined
  readonly objects: number
  readonly changed: number
  readonly bytes: number
}

const PAGE = 100
const AT_ONCE = 12
/** An object may become visible this long after its time. */
const LATE_MILLISECONDS = 600_000
const SETTINGS = ['cors', 'tagging'] as const

/** Why the buckets cannot be moved, for people; undefined when they can. */
export async function moveObstacle(source: S3): Promise<string | undefined> {
  const { names } = await source.buckets()
  for (const bucket of names) {
    const has = async (setting: BucketSetting, element: RegExp) =>
      element.test((await source.settingOf(bucket, setting)) ?? '')
    if (await has('versioning', /<Status>(Enabled|Suspended)<\/Status>/))
      return `Bucket ${bucket} keeps versions of its objects, which are not moved.`
    if (await has('object-lock', /<ObjectLockEnabled>Enabled</))
      return `Bucket ${bucket} locks its objects, which is not moved.`
  }
  return undefined
}

/** Continues the pass to its end, or until the time is over. Throws refusals of the servers, and failures that persist
 *  after retries. */
export async function runPass(stores: Stores, options: PassOptions): Promise<PassProgress> {
  const { kind, from, isOver } = options
  const side = kind === 'prune' ? stores.target : stores.source
  const again = <Result>(work: () => Promise<Result>): Promise<Result> => persistently(options.patience, work)
  const { names } = await again(() => side.buckets())
  let [objects, changed, bytes] = [0, 0, 0]
  let place = from
  for (const bucket of names.filter((name) => name >= from.bucket)) {
    if (bucket !== place.bucket || place.after === '') changed += await again(() => openBucket(stores, kind, bucket))
    place = { bucket, after: bucket === place.bucket ? place.after : '' }
    for (;;) {
      const { after } = place
      const page = await again(() => side.list(bucket, after, PAGE))
      await forEachConcurrently(page, AT_ONCE, async (object) => {
        const isChanged = await doObject(stores, options, bucket, object)
        objects += 1
        if (!isChanged) return
        changed += 1
        bytes += object.bytes
      })
      const last = page.at(-1)
      if (last === undefined) break
      place = { bucket, after: last.key }
      if (isOver()) return { next: place, objects, changed, bytes }
    }
    if (kind === 'prune') changed += await again(() => closeBucket(stores, bucket))
  }
  return { next: undefined, objects, changed, bytes }
}

/** Copies the bucket's settings; returns how many differed. */
async function openBucket({ source, target }: Stores, kind: PassKind, bucket: string): Promise<number> {
  if (kind === 'prune') return 0
  const isThere = (await target.buckets()).names.includes(bucket)
  if (!isThere && kind === 'check') return 1
  if (!isThere) await target.ensureBucket(bucket)
  let others = 0
  for (const setting of SETTINGS) {
    const [wanted, there] = [await source.settingOf(bucket, setting), await target.settingOf(bucket, setting)]
    if (isSameSetting(wanted, there)) continue
    others += 1
    if (kind !== 'check') await target.putSetting(bucket, setting, wanted)
  }
  return others
}

/** Compares only the elements, in any order. */
const isSameSetting = (one: string | undefined, other: string | undefined): boolean =>
  elementsOf(one).join() === elementsOf(other).join()
const elementsOf = (xml = ''): readonly string[] =>
  [...xml.matchAll(/<(\w+)>([^<]+)</g)].map(([, name = '', value = '']) => `${name}=${value.trim()}`).toSorted()

/** Removes a bucket that the source does not have; returns how many were removed. */
async function closeBucket({ source, target }: Stores, bucket: string): Promise<number> {
  if ((await source.buckets()).names.includes(bucket)) return 0
  await target.removeBucket(bucket)
  return 1
}

/** Returns whether it differed. Each object is retried separately, so that a page succeeds even if one request in a
 *  hundred fails. */
async function doObject(stores: Stores, options: PassOptions, bucket: string, object: ListedObject): Promise<boolean> {
  const { source, target } = stores
  const { kind } = options
  // Set once and kept: after an interrupted copy, a half-copied object must not count as equal.
  let isOther = false
  await persistently(options.patience, async () => {
    if (kind === 'prune') {
      isOther ||= (await source.head(bucket, object.key)) === undefined
      if (isOther) await target.removeObject(bucket, object.key)
      return
    }
    isOther ||= !(await isSame(stores, options, bucket, object))
    if (isOther && kind !== 'check') await copyObject(stores, bucket, object)
  })
  return isOther
}

/** The ETag of an object in parts depends on the parts, and is not a digest of its bytes. */
const isDigest = (etag: string): boolean => /^[0-9a-f]{32}$/.test(etag)

async function isSame(
  { source, target }: Stores,
  { kind, since }: PassOptions,
  bucket: string,
  { key, bytes, etag, modifiedAt }: ListedObject,
): Promise<boolean> {
  const there = await target.head(bucket, key)
  if (there === undefined || there.bytes !== bytes) return false
  const isKnown = isDigest(etag) && isDigest(there.etag)
  if (isKnown && etag !== there.etag) return false
  const isNew = since !== undefined && modifiedAt.getTime() >= since.getTime() - LATE_MILLISECONDS
  if (!isKnown && isNew && kind !== 'check') return false
  if (kind === 'live') return true
  const here = await source.head(bucket, key)
  if (here === undefined) return true
  const [wanted, tags] = [await source.tagsOf(bucket, key), await target.tagsOf(bucket, key)]
  return textOfKept(here.objectHeaders) === textOfKept(there.objectHeaders) && wanted.join('\n') === tags.join('\n')
}

const textOfKept = (headers: Readonly<Record<string, string>>): string =>
  JSON.stringify(Object.entries(headers).toSorted())
