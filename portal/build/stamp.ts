/** Whether the built portal is that of the sources. */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')
/** The folder of the built portal. */
export const BUILT = join(ROOT, 'portal/dist')
/** In that folder: the digest of what it was built from. */
export const STAMP = 'stamp'

/** What a build reads: the portal, what it imports, and the versions of its packages. */
const INPUTS = ['portal', 'client', 'domain', 'package-lock.json', 'tsconfig.json']
const OUTPUTS = /(^|\/)node_modules$|^portal\/dist|\.tsbuildinfo$/

/** Outputs are not entered: a build beside this one replaces them. */
async function filesIn(root: string, place: string): Promise<readonly string[]> {
  const entries = await readdir(join(root, place), { withFileTypes: true })
  const files = await Promise.all(
    entries
      .map((entry) => ({ entry, path: join(place, entry.name) }))
      .filter(({ path }) => !OUTPUTS.test(path))
      .map(async ({ entry, path }) => (entry.isDirectory() ? await filesIn(root, path) : entry.isFile() ? [path] : [])),
  )
  return files.flat()
}

/** Of all files that a build reads, below the folder of the repository, in hexadecimal. */
export async function inputsDigest(root = ROOT): Promise<string> {
  const folders = await Promise.all(INPUTS.map((input) => (input.endsWith('.json') ? [input] : filesIn(root, input))))
  const hash = createHash('sha256')
  for (const path of folders.flat().toSorted()) {
    const bytes = await readFile(join(root, path)).catch(() => undefined) // removed meanwhile
    if (bytes !== undefined) hash.update(`${path} ${bytes.length}\n`).update(bytes)
  }
  return hash.digest('hex')
}

/** What the portal in the folder was built from; undefined when there is none. */
export const builtDigest = (folder: string): Promise<string | undefined> =>
  readFile(join(folder, STAMP), 'utf8').catch(() => undefined)
