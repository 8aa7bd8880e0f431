/** Shared storage as a folder that several hosts have mounted: `pool.json` names it, `volumes` holds the disks, `templates` what they are overlays
 *  of. Paths between its files are relative, because hosts may mount it in different places. */
import { copyFile, link, mkdir, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { syncToDisk } from '../../../../kit/sys/durable-file.ts'
import { newUuid, type Random } from '../../../../kit/sys/random.ts'
import type { TemplateImage } from '../../images/recipe.ts'

const Identity = z.object({ id: z.string().min(1).max(63) })
const IDENTITY_FILE = 'pool.json'

export interface Pool {
  readonly id: string
  /** Where its volumes are. */
  readonly folder: string
  /** The template's disk as its overlays in `folder` name it. It is copied there at the first use; undefined when the template has none. */
  backingOf(image: TemplateImage): Promise<string | undefined>
}

/** The pool in the folder. The first host that opens it names it. */
export async function openPool(path: string, random: Random): Promise<Pool> {
  await mkdir(path, { recursive: true })
  const root = await realpath(path)
  const [volumes, templates] = [join(root, 'volumes'), join(root, 'templates')]
  await mkdir(volumes, { recursive: true, mode: 0o700 })
  await mkdir(templates, { recursive: true, mode: 0o700 })
  const id = await readOrGiveName(root, random)

  return {
    id, folder: volumes,
    async backingOf({ name, version, disk }) {
      if (disk === undefined) return undefined
      const file = `${name}-${version}.qcow2`
      const path = join(templates, file)
      if (await stat(path).catch(() => undefined) === undefined) await copyWhole(disk, path, newUuid(random))
      return join('..', 'templates', file)
    },
  }
}

/** Complete from the instant that the name is there; of several hosts one wins. */
async function readOrGiveName(root: string, random: Random): Promise<string> {
  const file = join(root, IDENTITY_FILE)
  const known = await readFile(file, 'utf8').catch(() => undefined)
  if (known !== undefined) return Identity.parse(JSON.parse(known)).id
  const draft = `${file}.${newUuid(random)}`
  await writeFile(draft, JSON.stringify({ id: newUuid(random) }), { flush: true })
  await link(draft, file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  await rm(draft)
  await syncToDisk(root)
  return Identity.parse(JSON.parse(await readFile(file, 'utf8'))).id
}

/** Several hosts may do so at once: the last one's copy stays, and all are the same. */
async function copyWhole(from: string, to: string, unique: string): Promise<void> {
  const draft = `${to}.${unique}`
  await copyFile(from, draft)
  await syncToDisk(draft)
  await rename(draft, to)
}
