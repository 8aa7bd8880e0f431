/** A program of this project with all its dependencies, as files below a folder of a guest: Node.js, its sources, and
 *  the packages that they import. */
import { chmod, copyFile, cp, mkdir, readdir, readFile } from 'node:fs/promises'
import { dirname, join, normalize, relative } from 'node:path'
import { nodeBinary } from '../../../../kit/sys/process.ts'
import { isThere } from '../../../../kit/sys/is-there.ts'

const PROJECT = join(import.meta.dirname, '../../../..')
/** Imports at run time; types are removed by then. */
const IMPORT = /^(?:import|export)(?! type\b)[^'"`;]*?\bfrom\s*'([^']+)'|^import\s*'([^']+)'/gm
/** Suffix of files that are read from the folders of the sources. */
const BESIDE = '.proto'
/** Files of packages that are not needed to run them. */
const USELESS = /\.(ts|mts|cts|map|md|markdown|txt|yml|yaml|html|flow|tsbuildinfo)$/

/** Copies a program; `file` is relative to this project, and keeps its path below the folder. Run it with `node`. */
export async function putProgram(folder: string, file: string): Promise<void> {
  const sources = new Set<string>()
  const packages = new Set<string>()
  await walk(file, { sources, packages })
  for (const source of sources) await copy(source, folder)
  for (const at of new Set([...sources].map((source) => dirname(source))))
    for (const name of await readdir(join(PROJECT, at))) if (name.endsWith(BESIDE)) await copy(join(at, name), folder)
  await copy('package.json', folder) // marks the sources as modules
  const folders = new Set<string>()
  for (const name of packages) await addPackage(name, PROJECT, folders)
  for (const at of folders)
    await cp(join(PROJECT, at), join(folder, at), { recursive: true, filter: (path) => !USELESS.test(path) })
  await copyFile(nodeBinary(), join(folder, 'node'))
  await chmod(join(folder, 'node'), 0o755)
}

/** Identifies a version of such a program: the text of its own sources, of files that are read beside them, and
 *  versions of the packages that it imports itself. Code that it shares with the rest of the project changes often, but
 *  rarely changes what it does, so such a change alone gives no new version. */
export async function programSources(file: string): Promise<Readonly<Record<string, string>>> {
  const needed = { sources: new Set<string>(), packages: new Set<string>() }
  await walk(file, needed)
  const own = [...needed.sources].filter((source) => source.startsWith(`${file.split('/')[0]}/`))
  const beside: string[] = []
  for (const at of new Set(own.map((source) => dirname(source))))
    for (const name of await readdir(join(PROJECT, at))) if (name.endsWith(BESIDE)) beside.push(join(at, name))
  const parts: Record<string, string> = {}
  for (const path of [...own, ...beside].toSorted()) parts[path] = await readFile(join(PROJECT, path), 'utf8')
  for (const name of [...needed.packages].toSorted()) {
    const text = await readFile(join(PROJECT, 'node_modules', name, 'package.json'), 'utf8').catch(() => '{}')
    parts[name] = String((JSON.parse(text) as { readonly version?: string }).version) // every installed package has one
  }
  return parts
}

async function copy(path: string, folder: string): Promise<void> {
  await mkdir(dirname(join(folder, path)), { recursive: true })
  await copyFile(join(PROJECT, path), join(folder, path))
}

interface Needs {
  /** Paths relative to this project. */
  readonly sources: Set<string>
  /** Names of packages. */
  readonly packages: Set<string>
}

async function walk(file: string, needed: Needs): Promise<void> {
  if (needed.sources.has(file)) return
  needed.sources.add(file)
  for (const [, named, alone] of (await readFile(join(PROJECT, file), 'utf8')).matchAll(IMPORT)) {
    const what = named ?? alone ?? ''
    if (what.startsWith('.')) await walk(normalize(join(dirname(file), what)), needed)
    else if (!what.startsWith('node:')) needed.packages.add(nameOf(what))
  }
}

const nameOf = (what: string): string =>
  what
    .split('/')
    .slice(0, what.startsWith('@') ? 2 : 1)
    .join('/')

/** Adds a package with its own dependencies, resolved from its place. Throws when one is not installed. */
async function addPackage(name: string, from: string, folders: Set<string>): Promise<void> {
  let at = from
  while (!(await isThere(join(at, 'node_modules', name, 'package.json')))) {
    if (at === PROJECT) throw new Error(`the package ${name} is not installed`)
    at = dirname(at)
  }
  const found = join(at, 'node_modules', name)
  const path = relative(PROJECT, found)
  if (folders.has(path)) return
  folders.add(path)
  // every package has this file; dependencies are optional
  const { dependencies = {} } = JSON.parse(await readFile(join(found, 'package.json'), 'utf8')) as {
    readonly dependencies?: Readonly<Record<string, string>>
  }
  for (const other of Object.keys(dependencies)) await addPackage(other, found, folders)
}
