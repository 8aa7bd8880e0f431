/** The reconciler of Images: creates the image on the host, or removes it. */
import { defined } from '../../../domain/defined.ts'
import { Unavailable } from '../../../domain/problem.ts'
import type { Reconciler } from '../../../kit/reconcile/reconciler.ts'
import { Image, type ImageSpec, type ImageStatus } from '../../../resources/instance/index.ts'
import type { WorkProgress } from '../backup/work.ts'
import type { DiskReads } from '../disk-reads.ts'
import { readMoveKey } from '../secrets.ts'
import { making, noteMade, removing } from '../volume/bytes.ts'
import { Copies } from '../volume/copies.ts'
import { backupProgress, volumeUser, type VolumeOptions } from '../volume/effects.ts'
import { type ImageEffects, type ImageObject, type ObservedImage, planImage } from './plan.ts'

export interface ImageOptions extends Omit<VolumeOptions, 'images'> {
  readonly diskReads: DiskReads
}

interface ImageParts extends ImageOptions {
  readonly imports: Copies
  /** The operation (`spec.serve.id`) for which each image is served. */
  readonly servedFor: Map<string, string>
}

type Handlers = {
  readonly [Name in keyof ImageEffects]: (input: ImageEffects[Name], image: ImageObject) => Promise<void>
}

export function imageReconciler(options: ImageOptions): Reconciler<ImageSpec, ImageStatus, ObservedImage> {
  const { customImages, volumes, ledger, clock, namespace } = options
  const parts: ImageParts = { ...options, imports: new Copies(clock), servedFor: new Map() }
  const { imports, servedFor } = parts
  return {
    name: 'image',
    type: Image,
    watches: [],
    wakes: (wake) => imports.onChange((name) => wake({ namespace, name })),
    async observe({ metadata: { name }, spec: { volume } }) {
      const held = await customImages.inspect(name)
      const [id, at] = [servedFor.get(name), customImages.servedAt(name)]
      return {
        held,
        bytes: ledger.bytesOf('image', name),
        fetching: imports.state(name),
        serving: id === undefined || at === undefined ? undefined : { id, ...at },
        volume:
          volume === undefined || held !== undefined
            ? undefined
            : { isHere: (await volumes.inspect(volume)) !== undefined, user: await volumeUser(options, volume) },
      }
    },
    plan: planImage,
    // the plan names each with its own input
    effects: imageEffects(parts) as unknown as NonNullable<Reconciler<ImageSpec, ImageStatus>['effects']>,
  }
}

const imageEffects = (parts: ImageParts): Handlers => {
  const { customImages, imports, servedFor, store, namespace, log } = parts
  return {
    async noteMade(_input, { metadata }) {
      noteMade(parts, 'image', metadata)
    },
    async fetch(_input, { metadata: { name }, spec: { url, checksum, maximumGibibytes } }) {
      if (url === undefined || checksum === undefined) return
      const limit = maximumGibibytes === undefined ? {} : { maximumGibibytes }
      await imports.begin(name, `${checksum} ${maximumGibibytes ?? ''}`, async (signal) => {
        log.info('image is being fetched', { image: name })
        await customImages.import(name, { url, checksum, ...limit }, signal)
        log.info('image fetched', { image: name })
      })
    },
    async make(_input, { metadata, spec: { volume } }) {
      if (volume === undefined) return
      const { name } = metadata
      await imports.begin(name, volume, async (signal) => {
        await making(parts, 'image', metadata, () => makeOf(parts, { name, volume, signal }))
        log.info('image made', { image: name, volume })
      })
    },
    async read(_input, { metadata: { name }, spec }) {
      await imports.begin(name, sourceOf(spec), async (signal, report) => {
        await readInto(parts, { name, spec, signal, report })
        log.info('image made', { image: name, source: sourceOf(spec) })
      })
    },
    async copy({ host, port }, { metadata: { name }, spec: { copyFrom, origin } }) {
      if (copyFrom === undefined) return
      const key = await readMoveKey(store, namespace, copyFrom.secretName)
      await imports.begin(name, `${host}:${port}`, async (signal) => {
        await customImages.copy(name, { host, port, key, ...defined({ origin }) }, signal)
        log.info('image copied', { image: name })
      })
    },
    async serve({ id }, { metadata: { name }, spec: { serve } }) {
      if (serve?.id !== id) return
      await customImages.serve(name, await readMoveKey(store, namespace, serve.secretName))
      servedFor.set(name, id)
      log.info('image served', { image: name })
    },
    async stopServing(_input, { metadata: { name } }) {
      await customImages.stopServing(name)
      servedFor.delete(name)
    },
    async remove(_input, { metadata }) {
      const { name } = metadata
      await imports.end(name)
      await removing(parts, 'image', metadata, () => customImages.remove(name))
      servedFor.delete(name)
      log.info('image removed', { image: name })
    },
  }
}

const sourceOf = ({ snapshot, backup }: ImageSpec): string =>
  snapshot === undefined ? `backup ${backup?.name ?? ''}` : `snapshot ${snapshot.name}`

/** Creates it from a snapshot or a backup, which does not change meanwhile. */
async function readInto(
  { customImages, volumes, backups }: ImageParts,
  {
    name,
    spec: { snapshot, backup, origin },
    signal,
    report,
  }: {
    readonly name: string
    readonly spec: ImageSpec
    readonly signal: AbortSignal
    readonly report: (progress: string) => void
  },
): Promise<void> {
  if (snapshot !== undefined) {
    const { volume, pool, name: point } = snapshot
    const write = (path: string, stop: AbortSignal) =>
      volumes.copySnapshot({ volume, pool, snapshot: point }, path, stop)
    return customImages.fill(name, { origin, write }, signal)
  }
  if (backup === undefined) return undefined
  if (backups === undefined) throw new Unavailable('a place for backups on this host', undefined)
  const { sizeGibibytes, name: id, ...place } = backup
  const onProgress = (progress: WorkProgress) => report(backupProgress(id, progress))
  const write = (path: string, stop: AbortSignal) =>
    backups.fill({ backup: id, ...place }, path, { signal: stop, onProgress })
  return customImages.fill(name, { sizeGibibytes, origin, write }, signal)
}

/** Copies a disk that no guest has open. A guest that needs the disk has priority: then this throws Unavailable. */
async function makeOf(
  parts: ImageParts,
  { name, volume, signal }: { readonly name: string; readonly volume: string; readonly signal: AbortSignal },
): Promise<void> {
  const { customImages, volumes, diskLocks, diskReads } = parts
  // The lock is held until the read has started, not until it ends.
  const { ended } = await diskLocks.run(volume, async () => {
    const user = await volumeUser(parts, volume)
    const held = await volumes.inspect(volume)
    await parts.ownership.requireFree(volume)
    if (user !== undefined || held === undefined)
      throw new Unavailable(`disk ${volume}${user === undefined ? '' : `, which guest ${user} has`}`, undefined)
    const disk = {
      path: await volumes.checkedPathOf(volume),
      ...defined({ origin: held.source }),
    }
    return { ended: diskReads.run(volume, signal, (either) => customImages.make(name, disk, either)) }
  })
  await ended
}
