/** Shared storage as a folder that several hosts have mounted: `pool.json` names it, `volumes` holds the disks,
 *  `templates` their backing files. Paths between its files are relative, because hosts may mount it in different
 *  places. */
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
/** Users of guests must read the backing files of their disks. */
const READABLE_FILE = 0o644

export interface Pool {
  readonly id: string
  /** Folder of its volumes. */
  readonly folder: string
  /** Folder of its templates. */
  readonly templates: string
  /** The template's disk, as the path that its overlays in `folder` contain. It is copied to the pool at the first use.
   *  Undefined when the template has no disk. */
  backingOf(image: TemplateImage): Promise<string | undefined>
  /** The host that owns a volume of the pool. */
  ownerOf(volume: string): Promise<VolumeOwner | undefined>
  /** As `VolumeStore.changeOwner`. */
  changeOwner(volume: string, known: VolumeOwner | undefined, next: VolumeOwner | undefined): Promise<boolean>
}

export interface PoolOptions {
  /** Its mount point. */
  readonly path: string
  /** File on the host's own disk that records that the pool existed. */
  readonly markerFile: string
  readonly random: Random
}

/** The host had a pool in this folder before, and now the pool is missing or does not answer. */
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

/** Opens the pool in the folder. The first host that opens it names it, but never when the host has seen a pool there
 *  before: an unmounted pool looks like an empty one. Then this throws PoolMissing. */
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

/** The name appears complete; if several hosts write one, the first wins. */
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

/** Several hosts may copy at once. The last copy stays, and all are the same. */
async function copyWhole(from: string, to: string, unique: string): Promise<void> {
  const draft = `${to}.${unique}`
  await copyFile(from, draft)
  await chmod(draft, READABLE_FILE)
  await syncToDisk(draft)
  await rename(draft, to)
}
