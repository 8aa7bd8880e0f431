/** Shared storage as a folder that several hosts have mounted: `pool.json` names it, `volumes` holds the disks,
 *  `templates` what they are overlays
 *  of. Paths between its files are relative, because hosts may mount it in different places. */
import { chmod, copyFile, link, mkdir, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { syncToDisk, writeDurably } from '../../../../kit/sys/durable-file.ts'
import { newUuid, type Random } from '../../../../kit/sys/random.ts'
import type { TemplateImage } from '../../images/recipe.ts'
import { changeOwner, OWNER, readOwner } from './owner-file.ts'
import type { VolumeOwner } from './volume-store.ts'
import { letPass } from '../hypervisor/guest-users.ts'

const Identity = z.object({ id: z.string().min(1).max(63) })
const IDENTITY_FILE = 'pool.json'
/** Users of guests read what their disks are overlays of. */
const READABLE_FILE = 0o644

export interface Pool {
  readonly id: string
  /** Where its volumes are. */
  readonly folder: string
  /** Where its templates are. */
  readonly templates: string
  /** The template's disk as its overlays in `folder` name it. It is copied there at the first use; undefined when the
   *  template has none. */
  backingOf(image: TemplateImage): Promise<string | undefined>
  /** Of a volume in it: the host that has it. */
  ownerOf(volume: string): Promise<VolumeOwner | undefined>
  /** As `VolumeStore.changeOwner`. */
  changeOwner(volume: string, known: VolumeOwner | undefined, next: VolumeOwner | undefined): Promise<boolean>
}

export interface PoolOptions {
  /** Where it is mounted. */
  readonly path: string
  /** File on the host's own disk, which remembers that there was a pool. */
  readonly markerFile: string
  readonly random: Random
}

/** The host had a pool there before and now has none, or none that answers. */
export class PoolMissing extends Error {
  constructor(path: string, memory: string, options: ErrorOptions) {
    super(
      `${path} is not the shared storage that it was: nothing is mounted there, or it does not answer. Remove ` +
        `${memory} if it is to become a new one.`,
      options,
    )
    this.name = 'PoolMissing'
  }
}

/** The pool in the folder. The first host that opens it names it; but never where there was one: what is not mounted
 *  would be taken for an empty pool.
 *  Throws PoolMissing then. */
export async function openPool({ path, markerFile, random }: PoolOptions): Promise<Pool> {
  if ((await readFile(markerFile, 'utf8').catch(() => undefined)) !== undefined)
    await readName(path).catch((cause: unknown) => {
      throw new PoolMissing(path, markerFile, { cause })
    })
  await mkdir(path, { recursive: true })
  const root = await realpath(path)
  const [volumes, templates] = [join(root, 'volumes'), join(root, 'templates')]
  await mkdir(volumes, { recursive: true, mode: 0o700 })
  await mkdir(templates, { recursive: true, mode: 0o700 })
  await letPass(volumes)
  await letPass(templates, READABLE_FILE)
  const id = await readOrGiveName(root, random)
  await writeDurably(markerFile, `${id}\n`)

  return {
    id,
    folder: volumes,
    templates,
    ownerOf: (volume) => readOwner(join(volumes, `${volume}${OWNER}`)),
    changeOwner: (volume, known, next) => changeOwner(join(volumes, `${volume}${OWNER}`), known, next, newUuid(random)),
    async backingOf({ name, version, disk }) {
      if (disk === undefined) return undefined
      const file = `${name}-${version}.qcow2`
      const path = join(templates, file)
      if ((await stat(path).catch(() => undefined)) === undefined) await copyWhole(disk, path, newUuid(random))
      return join('..', 'templates', file)
    },
  }
}

/** Complete from the instant that the name is there; of several hosts one wins. */
async function readOrGiveName(root: string, random: Random): Promise<string> {
  const file = join(root, IDENTITY_FILE)
  const known = await readFile(file, 'utf8').catch(() => undefined)
  if (known !== undefined) return nameIn(known)
  const draft = `${file}.${newUuid(random)}`
  await writeFile(draft, JSON.stringify({ id: newUuid(random) }), { flush: true })
  await link(draft, file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  await rm(draft)
  await syncToDisk(root)
  return readName(root)
}

const nameIn = (identity: string): string => Identity.parse(JSON.parse(identity)).id
const readName = async (path: string): Promise<string> => nameIn(await readFile(join(path, IDENTITY_FILE), 'utf8'))

/** Several hosts may do so at once: the last one's copy stays, and all are the same. */
async function copyWhole(from: string, to: string, unique: string): Promise<void> {
  const draft = `${to}.${unique}`
  await copyFile(from, draft)
  await chmod(draft, READABLE_FILE)
  await syncToDisk(draft)
  await rename(draft, to)
}
