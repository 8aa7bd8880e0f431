/** The templates of a host: built once, under a lock that agents share, and published by a rename. */
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Logger } from '../../../kit/sys/log.ts'
import { lockFolder } from '../folder-lock.ts'
import { MANIFEST_FILE, type TemplateImage, type TemplateManifest } from './recipe.ts'
import { publish } from './publish.ts'
import { buildTinyLinux, tinyLinuxRecipeDigest } from './tiny-linux/index.ts'

export type ImageState =
  | { readonly is: 'ready'; readonly image: TemplateImage }
  /** Nobody has made it here yet. */
  | { readonly is: 'absent' }
  /** It cannot be made here, or the last attempt failed. */
  | { readonly is: 'unavailable'; readonly reason: string }

export interface TemplateStore {
  /** The newest version of the template. */
  newest(name: string): Promise<ImageState>
  /** A version that a volume of this host was made from. */
  version(name: string, version: string): Promise<ImageState>
  /** Begins to make the template, where it can be made; free while that is under way, done, or failed less than a
   *  minute ago. */
  prepare(name: string): void
  /** Calls back when making a template has ended. The answer ends it. */
  onChange(listener: () => void): () => void
}

export interface TemplateStoreOptions {
  /** May be shared by the agents of a host. */
  readonly folder: string
  readonly clock: Clock
  readonly log: Logger
}

const Manifest = z.strictObject({
  kernel: z.string(),
  initialRamdisk: z.string(),
  commandLine: z.string(),
  disk: z.string().optional(),
})

export function openTemplateStore({ folder, clock, log }: TemplateStoreOptions): TemplateStore {
  const preparing = new Set<string>()
  const failures = new Map<string, { readonly reason: string; readonly atMilliseconds: number }>()
  const listeners = new Set<() => void>()

  async function attempt(name: string): Promise<void> {
    preparing.add(name)
    try {
      await prepareTinyLinux({ folder, clock, log })
      failures.delete(name)
    } catch (error) {
      log.error('template not built', { template: name, error })
      failures.set(name, {
        reason: `template ${name}: ${error instanceof Error ? error.message : String(error)}`,
        atMilliseconds: clock.monotonicMilliseconds(),
      })
    }
    preparing.delete(name)
    for (const listener of [...listeners]) listener()
  }

  return {
    async newest(name) {
      const image =
        name === TINY_LINUX
          ? await readImage(folder, name, await tinyLinuxRecipeDigest())
          : await newestPublished(folder, name)
      if (image !== undefined) return { is: 'ready', image }
      if (name !== TINY_LINUX)
        return {
          is: 'unavailable',
          reason: `template ${name} is not on this host: somebody has to build it there (npm run image:debian)`,
        }
      const failure = failures.get(name)
      return failure === undefined ? { is: 'absent' } : { is: 'unavailable', reason: failure.reason }
    },
    async version(name, version) {
      const image = await readImage(folder, name, version)
      return image === undefined
        ? { is: 'unavailable', reason: `version ${version} of template ${name} is not on this host` }
        : { is: 'ready', image }
    },
    prepare(name) {
      const failedAt = failures.get(name)?.atMilliseconds ?? Number.NEGATIVE_INFINITY
      if (name !== TINY_LINUX || preparing.has(name) || clock.monotonicMilliseconds() - failedAt < RETRY_MILLISECONDS)
        return
      void attempt(name)
    },
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}

const TINY_LINUX = 'tiny-linux'
const RETRY_MILLISECONDS = 60_000
const WORK_PREFIX = 'work-'

/** Builds the newest version unless it is there. */
async function prepareTinyLinux({ folder, clock, log }: TemplateStoreOptions): Promise<void> {
  const version = await tinyLinuxRecipeDigest()
  await mkdir(join(folder, TINY_LINUX), { recursive: true })
  const unlock = await lockFolder(folder, clock)
  try {
    if ((await readImage(folder, TINY_LINUX, version)) !== undefined) return // another agent was faster
    log.info('building template', { template: TINY_LINUX, version })
    await removeAbandonedWork(folder)
    const work = await mkdtemp(join(folder, WORK_PREFIX))
    await buildTinyLinux(join(work, 'image'), work)
    await publish(join(work, 'image'), join(folder, TINY_LINUX, version))
    await rm(work, { recursive: true, force: true })
    log.info('built template', { template: TINY_LINUX, version })
  } finally {
    unlock()
  }
}

/** What builders that were killed left behind. Only for the holder of the lock. */
async function removeAbandonedWork(folder: string): Promise<void> {
  for (const name of await readdir(folder))
    if (name.startsWith(WORK_PREFIX)) await rm(join(folder, name), { recursive: true, force: true })
}

/** Versions of images that people build sort by their time. */
async function newestPublished(folder: string, name: string): Promise<TemplateImage | undefined> {
  const versions: string[] = await readdir(join(folder, name)).catch(() => [])
  for (const version of versions.sort().reverse()) {
    const image = await readImage(folder, name, version)
    if (image !== undefined) return image
  }
  return undefined
}

async function readImage(folder: string, name: string, version: string): Promise<TemplateImage | undefined> {
  const at = join(folder, name, version)
  const text = await readFile(join(at, MANIFEST_FILE), 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  // exact optional fields are beyond zod's types
  const manifest: TemplateManifest = Manifest.parse(JSON.parse(text)) as TemplateManifest
  return {
    name,
    version,
    boot: {
      kernel: join(at, manifest.kernel),
      initialRamdisk: join(at, manifest.initialRamdisk),
      commandLine: manifest.commandLine,
    },
    ...(manifest.disk === undefined ? {} : { disk: join(at, manifest.disk) }),
  }
}
