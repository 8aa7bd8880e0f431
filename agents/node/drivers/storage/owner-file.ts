/** The owner of a disk in a shared folder, in a file beside it. If several hosts change it at once, one succeeds: names
 *  are created and moved, never overwritten. */
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { syncToDisk } from '../../../../kit/sys/durable-file.ts'
import type { VolumeOwner } from './volume-store.ts'

export const OWNER = '.owner.json'

const Owner = z.object({ node: z.string(), bootId: z.string() })

// other errors have none
const isCode = (error: unknown, code: string): boolean => (error as NodeJS.ErrnoException).code === code

/** Undefined when nobody owns it. */
export async function readOwner(file: string): Promise<VolumeOwner | undefined> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    if (isCode(error, 'ENOENT')) return undefined
    throw error
  })
  return text === undefined ? undefined : Owner.parse(JSON.parse(text))
}

/** `unique` is a name that nobody else uses. A host that dies during the change leaves the disk without an owner, never
 *  with two. */
export async function changeOwner(
  file: string,
  known: VolumeOwner | undefined,
  next: VolumeOwner | undefined,
  unique: string,
): Promise<boolean> {
  const [aside, draft] = [`${file}.${unique}.old`, `${file}.${unique}.new`]
  try {
    if (known !== undefined && !(await moveAside(file, aside, known))) return false
    if (next === undefined) return true
    await writeFile(draft, JSON.stringify(next), { flush: true })
    return await linkUnlessThere(draft, file)
  } finally {
    await rm(aside, { force: true })
    await rm(draft, { force: true })
    await syncToDisk(dirname(file))
  }
}

/** Returns whether the file was moved and holds the known owner. */
async function moveAside(file: string, aside: string, known: VolumeOwner): Promise<boolean> {
  if (!isDeepStrictEqual(await readOwner(file), known)) return false
  try {
    await rename(file, aside)
  } catch (error) {
    if (isCode(error, 'ENOENT')) return false
    throw error
  }
  if (isDeepStrictEqual(await readOwner(aside), known)) return true
  await linkUnlessThere(aside, file) // another host replaced it between the check and the move
  return false
}

async function linkUnlessThere(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to)
    return true
  } catch (error) {
    if (isCode(error, 'EEXIST')) return false
    throw error
  }
}
