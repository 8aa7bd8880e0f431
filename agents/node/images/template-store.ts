/** The templates of a host. Each is built once, under a lock that agents share, and published by a rename. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Logger } from '../../../kit/sys/log.ts'
import { makeFolder } from '../../../kit/sys/make-folder.ts'
import { MANAGED_TEMPLATES } from '../../../domain/managed-machine/rules.ts'
import { buildDebian, DEBIAN, debianSystem } from './debian.ts'
import { debianVersion } from './debian-system.ts'
import { lockFolder } from '../folder-lock.ts'
import { isManagedVersion, managedSystem, managedVersion } from './managed/recipe.ts'
import { MANIFEST_FILE, type TemplateImage, type TemplateManifest } from './recipe.ts'
import { publish } from './publish.ts'
import { buildTinyLinux, tinyLinuxRecipeDigest } from './tiny-linux/index.ts'
import { inWorkFolder, WORK } from './work-folder.ts'

export type ImageState =
  | { readonly is: 'ready'; readonly image: TemplateImage }
  /** It does not exist yet. `step` is given while an agent builds it. */
  | { readonly is: 'absent'; readonly step?: string }
  /** It cannot be built here, or the last attempt failed. */
  | { readonly is: 'unavailable'; readonly reason: string }

export interface TemplateStore {
  /** The newest version of the template. */
  newest(name: string): Promise<ImageState>
  /** The version that a volume of this host was created from. */
  version(name: string, version: string): Promise<ImageState>
  /** Starts to build the template, if it can be built. Does nothing while it is being built, when it exists, or for a
   *  minute after a failure. */
  prepare(name: string): void
  /** Names of the templates that are ready here. */
  built(): Promise<readonly string[]>
  /** Calls back when a build has ended or made progress. Returns a function that stops the calls. */
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
  /** The current step, by template. */
  const preparing = new Map<string, string>()
  const failures = new Map<string, { readonly reason: string; readonly atMilliseconds: number }>()
  const listeners = new Set<() => void>()

  async function attempt(name: string, recipe: Recipe): Promise<void> {
    const onStep = (step: string) => {
      preparing.set(name, step)
      for (const listener of Array.from(listeners)) listener()
    }
    preparing.set(name, '')
    try {
      await prepare({ folder, clock, log }, name, recipe, onStep)
      failures.delete(name)
    } catch (error) {
      log.error('template not built', { template: name, error })
      failures.set(name, {
        reason: `template ${name}: ${error instanceof Error ? error.message : String(error)}`,
        atMilliseconds: clock.monotonicMilliseconds(),
      })
    }
    preparing.delete(name)
    for (const listener of Array.from(listeners)) listener()
  }

  const find = (name: string) => RECIPES[name]?.find(folder) ?? newestPublished(folder, name)

  return {
    async built() {
      const folders = await readdir(folder, { withFileTypes: true }).catch(() => [])
      const isHidden = (name: string) => name.startsWith(WORK)
      const names = folders.flatMap((entry) => (entry.isDirectory() && !isHidden(entry.name) ? [entry.name] : []))
      const images = await Promise.all(names.sort().map((name) => find(name)))
      return images.flatMap((image) => (image === undefined ? [] : [image.name])).slice(0, TEMPLATES_MAXIMUM)
    },
    async newest(name) {
      const recipe = RECIPES[name]
      const image = await find(name)
      if (image !== undefined) return { is: 'ready', image }
      if (recipe === undefined)
        return { is: 'unavailable', reason: `template ${name} is not on this host, and nothing builds it` }
      const failure = failures.get(name)
      const step = preparing.get(name)
      if (step !== undefined) return { is: 'absent', ...(step === '' ? {} : { step }) }
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
      const recipe = RECIPES[name]
      const isTooSoon = clock.monotonicMilliseconds() - failedAt < RETRY_MILLISECONDS
      if (recipe !== undefined && !preparing.has(name) && !isTooSoon) void attempt(name, recipe)
    },
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}

interface Recipe {
  /** The image for new servers; undefined until it is built. */
  readonly find: (folder: string) => Promise<TemplateImage | undefined>
  /** Name of a version that is built now. */
  readonly version: (now: Date) => Promise<string>
  /** Builds the image into the folder `image` below `work`. */
  readonly build: (work: string, onStep: (what: string) => void) => Promise<void>
}

const TINY_LINUX = 'tiny-linux'
const RECIPES: Readonly<Partial<Record<string, Recipe>>> = {
  [TINY_LINUX]: {
    find: async (folder) => readImage(folder, TINY_LINUX, await tinyLinuxRecipeDigest()),
    version: tinyLinuxRecipeDigest,
    build: (work) => buildTinyLinux(join(work, 'image'), work),
  },
  [DEBIAN]: {
    find: (folder) => newestPublished(folder, DEBIAN),
    version: async (now) => debianVersion(now),
    build: async (work, onStep) =>
      buildDebian({ image: join(work, 'image'), work, system: await debianSystem(), onStep }),
  },
  // A version of another recipe may not understand the protocol of its host.
  ...Object.fromEntries(
    MANAGED_TEMPLATES.map((template): [string, Recipe] => [
      template,
      {
        find: (folder) => newestPublished(folder, template, (version) => isManagedVersion(template, version)),
        version: (now) => managedVersion(template, now),
        build: async (work, onStep) =>
          buildDebian({ image: join(work, 'image'), work, system: await managedSystem(template), onStep }),
      },
    ]),
  ),
}
const RETRY_MILLISECONDS = 60_000
/** Limit of the templates in a host's report. */
const TEMPLATES_MAXIMUM = 64

/** Builds the template unless it exists. Agents of a host build each template once, and different templates in
 *  parallel. */
async function prepare(
  { folder, clock, log }: TemplateStoreOptions,
  name: string,
  recipe: Recipe,
  onStep: (what: string) => void,
): Promise<void> {
  await makeFolder(join(folder, name))
  const unlock = await lockFolder(join(folder, name), clock)
  try {
    if ((await recipe.find(folder)) !== undefined) return // another agent was faster
    const version = await recipe.version(clock.now())
    log.info('building template', { template: name, version })
    await inWorkFolder(folder, name, async (work) => {
      await recipe.build(work, onStep)
      await publish(join(work, 'image'), join(folder, name, version))
    })
    log.info('built template', { template: name, version })
  } finally {
    unlock()
  }
}

/** Versions of images that were built by hand sort by time. */
async function newestPublished(
  folder: string,
  name: string,
  isUsable: (version: string) => Promise<boolean> = async () => true,
): Promise<TemplateImage | undefined> {
  const versions: string[] = await readdir(join(folder, name)).catch(() => [])
  for (const version of versions.sort().reverse()) {
    const image = (await isUsable(version)) ? await readImage(folder, name, version) : undefined
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
