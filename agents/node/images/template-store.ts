/** The templates of a host: built once, under a lock that agents share, and published by a rename. */
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Logger } from '../../../kit/sys/log.ts'
import { publish } from '../durable-file.ts'
import { lockFolder } from '../folder-lock.ts'
import { ImageUnavailable, MANIFEST_FILE, type TemplateImage, type TemplateManifest } from './recipe.ts'
import { buildTinyLinux, tinyLinuxRecipeDigest } from './tiny-linux/index.ts'

export interface TemplateStore {
  /** The newest version of the template, made first if it can be made here. ImageUnavailable otherwise. */
  newest(name: string): Promise<TemplateImage>
  /** A version that volumes of this host were made from. ImageUnavailable when it is not here. */
  version(name: string, version: string): Promise<TemplateImage>
}

export interface TemplateStoreOptions {
  /** May be shared by the agents of a host. */
  readonly folder: string
  readonly clock: Clock
  readonly log: Logger
}

const Manifest = z.strictObject({ kernel: z.string(), initialRamdisk: z.string(), commandLine: z.string(), disk: z.string().optional() })

export function openTemplateStore({ folder, clock, log }: TemplateStoreOptions): TemplateStore {
  const building = new Map<string, Promise<TemplateImage>>()

  async function version(name: string, version: string): Promise<TemplateImage> {
    const found = await readImage(folder, name, version)
    if (found === undefined) throw new ImageUnavailable(`version ${version} of template ${name} is not on this host`)
    return found
  }

  async function buildTiny(): Promise<TemplateImage> {
    const digest = await tinyLinuxRecipeDigest()
    const ready = await readImage(folder, 'tiny-linux', digest)
    if (ready !== undefined) return ready
    await mkdir(join(folder, 'tiny-linux'), { recursive: true })
    const unlock = await lockFolder(folder, clock)
    try {
      const madeMeanwhile = await readImage(folder, 'tiny-linux', digest)
      if (madeMeanwhile !== undefined) return madeMeanwhile
      log.info('building template', { template: 'tiny-linux' })
      await removeAbandonedWork(folder)
      const work = await mkdtemp(join(folder, WORK_PREFIX))
      try {
        await buildTinyLinux(join(work, 'image'), work)
        await publish(join(work, 'image'), join(folder, 'tiny-linux', digest))
      } finally {
        await rm(work, { recursive: true, force: true })
      }
      log.info('built template', { template: 'tiny-linux', version: digest })
      return await version('tiny-linux', digest)
    } finally {
      unlock()
    }
  }

  return {
    version,
    async newest(name) {
      if (name !== 'tiny-linux') return newestPublished(folder, name)
      const running = building.get(name) ?? buildTiny().finally(() => building.delete(name))
      building.set(name, running)
      return running
    },
  }
}

const WORK_PREFIX = 'work-'

/** What builders that were killed left behind. Only for the holder of the lock. */
async function removeAbandonedWork(folder: string): Promise<void> {
  for (const name of await readdir(folder)) if (name.startsWith(WORK_PREFIX)) await rm(join(folder, name), { recursive: true, force: true })
}

/** Versions of images that people build sort by their time. */
async function newestPublished(folder: string, name: string): Promise<TemplateImage> {
  const versions = (await readdir(join(folder, name)).catch(() => [])).sort().reverse()
  for (const version of versions) {
    const image = await readImage(folder, name, version)
    if (image !== undefined) return image
  }
  throw new ImageUnavailable(`template ${name} is not on this host; it is built by \`npm run image:debian\``)
}

async function readImage(folder: string, name: string, version: string): Promise<TemplateImage | undefined> {
  const at = join(folder, name, version)
  const text = await readFile(join(at, MANIFEST_FILE), 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  const manifest: TemplateManifest = Manifest.parse(JSON.parse(text)) as TemplateManifest // exact optional fields are beyond zod's types
  return {
    name, version,
    boot: { kernel: join(at, manifest.kernel), initialRamdisk: join(at, manifest.initialRamdisk), commandLine: manifest.commandLine },
    ...(manifest.disk === undefined ? {} : { disk: join(at, manifest.disk) }),
  }
}
