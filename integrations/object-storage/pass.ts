/** Passes over all buckets of a tenant that moves from one S3 server to another, a bounded time at a go. Where a pass
 *  is, is a place that can be kept: whoever goes on from it misses nothing, and does at most the last page again. */
import { forEachConcurrently } from '../../kit/chunks/concurrently.ts'
import { copyObject, type Stores } from './copy-object.ts'
import { type Patience, persistently } from './retry.ts'
import type { BucketSetting, Listed, S3 } from './s3.ts'

/** A bucket, and the last of its keys that is done; both empty at the beginning. */
export interface Place {
  readonly bucket: string
  readonly after: string
}
export const BEGINNING: Place = { bucket: '', after: '' }

/** `live` copies what is new by its size, its digest and its time while clients write; `exact` compares everything
 *  that is said of each object too; `prune` takes away from the target what is not in the source; `check` changes
 *  nothing. The last three are for a source that nobody writes to. */
export type PassKind = 'live' | 'exact' | 'prune' | 'check'

export interface PassOptions {
  readonly kind: PassKind
  readonly from: Place
  /** By the source's clock: what is older is as the pass before has seen it. Undefined for the first. */
  readonly since?: Date | undefined
  /** The time of this go is over. */
  readonly isOver: () => boolean
  /** With what the servers fail to do now and then. */
  readonly patience: Patience
}

export interface PassProgress {
  /** Undefined at the end. */
  readonly next: Place | undefined
  readonly objects: number
  readonly changed: number
  readonly bytes: number
}

const PAGE = 100
const AT_ONCE = 12
/** An object can be older than the moment from which it can be seen. */
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

/** Goes on with the pass until its end, or until the time is over. Throws what the servers refuse, or fail to do each
 *  time that they are asked. */
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

/** Its settings; answers how many are others. */
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

/** Whatever is around the elements, and in whatever order they come. */
const isSameSetting = (one: string | undefined, other: string | undefined): boolean =>
  elementsOf(one).join() === elementsOf(other).join()
const elementsOf = (xml = ''): readonly string[] =>
  [...xml.matchAll(/<(\w+)>([^<]+)</g)].map(([, name = '', value = '']) => `${name}=${value.trim()}`).toSorted()

/** A bucket that is not in the source goes; answers how many went. */
async function closeBucket({ source, target }: Stores, bucket: string): Promise<number> {
  if ((await source.buckets()).names.includes(bucket)) return 0
  await target.removeBucket(bucket)
  return 1
}

/** Answers whether it was another. Each object is tried by itself, so that a page of them goes by servers of which one
 *  request in a hundred fails. */
async function doObject(stores: Stores, options: PassOptions, bucket: string, object: Listed): Promise<boolean> {
  const { source, target } = stores
  const { kind } = options
  // Once it is, half of a copy is none, however much it looks like one.
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

/** Without a part of it: of an object in parts the ETag is no digest of its bytes, and depends on the parts. */
const isDigest = (etag: string): boolean => /^[0-9a-f]{32}$/.test(etag)

async function isSame(
  { source, target }: Stores,
  { kind, since }: PassOptions,
  bucket: string,
  { key, bytes, etag, modifiedAt }: Listed,
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
  return textOfKept(here.kept) === textOfKept(there.kept) && wanted.join('\n') === tags.join('\n')
}

const textOfKept = (kept: Readonly<Record<string, string>>): string => JSON.stringify(Object.entries(kept).toSorted())
