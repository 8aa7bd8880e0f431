/** What the outcome of a test file can depend on: the files that it reaches in the repository, and what the machine
 *  provides instead. A file reaches its imports, and every file or folder of the repository that a text in it names,
 *  relative to itself or to the root: programs that it starts, data that it reads. What no text names is listed in
 *  `reaches.ts`. Too much is better than too little: it costs a run. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { parseSync } from 'oxc-parser'
import { isNode, nodesOf } from '../syntax.ts'

/** The files of a repository, by their paths from its root. */
export interface Tree {
  readonly files: ReadonlySet<string>
  /** All files beneath each folder. */
  readonly folders: ReadonlyMap<string, readonly string[]>
  /** Undefined when it cannot be read, or no longer. Each file is read once. */
  readonly read: (path: string) => Content | undefined
  /** The files that each file reaches directly, as far as they are known. */
  readonly reached: Map<string, ReadonlySet<string>>
}

interface Content {
  readonly bytes: Buffer
  readonly digest: string
}

export function treeOf(paths: readonly string[], bytesOf: (path: string) => Buffer | undefined): Tree {
  const folders = new Map<string, string[]>()
  for (const path of paths)
    for (let folder = posix.dirname(path); folder !== '.'; folder = posix.dirname(folder))
      folders.set(folder, [...(folders.get(folder) ?? []), path])
  const contents = new Map<string, Content | undefined>()
  const read = (path: string): Content | undefined => {
    if (contents.has(path)) return contents.get(path)
    const bytes = bytesOf(path)
    const content = bytes && { bytes, digest: createHash('sha256').update(bytes).digest('hex') }
    contents.set(path, content)
    return content
  }
  return { files: new Set(paths), folders, read, reached: new Map() }
}

const LISTING_BYTES_MAXIMUM = 64 * 1024 * 1024

/** The files of the work tree that git tracks, and the untracked ones that are not ignored. Throws without git. */
export function openTree(root: string): Tree {
  const flags = ['ls-files', '--cached', '--others', '--exclude-standard', '-z']
  const listing = execFileSync('git', flags, { cwd: root, encoding: 'utf8', maxBuffer: LISTING_BYTES_MAXIMUM })
  const paths = [...new Set(listing.split('\0').filter((path) => path !== ''))].toSorted()
  return treeOf(paths, (path) => {
    try {
      return readFileSync(join(root, path))
    } catch {
      return undefined // removed, or a link to a folder
    }
  })
}

const CODE = /\.(ts|tsx|js|mjs)$/
const TEXT_LENGTH_MAXIMUM = 200
/** Functions that join paths: words in their arguments are names of folders. */
const JOINS = new Set(['join', 'resolve', 'readdir', 'cp', 'URL'])

interface Texts {
  /** They may name a file, or a folder when they have a slash. */
  readonly texts: ReadonlySet<string>
  /** They may name a folder as well. */
  readonly paths: ReadonlySet<string>
}

const textOf = (node: unknown): string | undefined =>
  isNode(node) && node.type === 'Literal' && 'value' in node && typeof node.value === 'string' ? node.value : undefined

const nameOf = (callee: unknown): string | undefined => {
  if (!isNode(callee)) return undefined
  if ('name' in callee && typeof callee.name === 'string') return callee.name
  return 'property' in callee ? nameOf(callee.property) : undefined
}

/** `join(ROOT, 'charts', 'svccloud')` names `charts/svccloud`. */
function joinedOf(items: readonly unknown[]): string[] {
  const runs: string[][] = [[]]
  for (const item of items) {
    const text = textOf(item)
    if (text === undefined) runs.push([])
    else runs.at(-1)?.push(text)
  }
  return runs.filter((run) => run.length > 0).map((run) => run.join('/'))
}

function readTexts(path: string, source: string): Texts {
  const texts = new Set<string>()
  const paths = new Set<string>()
  /** Imports of types only: nothing is loaded. */
  const erased = new Set<unknown>()
  for (const node of nodesOf(parseSync(path, source).program)) {
    if (node['importKind'] === 'type' || node['exportKind'] === 'type') {
      if (isNode(node['source'])) erased.add(node['source'].start)
    }
    const text = textOf(node)
    if (text !== undefined && !erased.has(node.start)) texts.add(text)
    if (node.type === 'TemplateElement' && isTemplatePart(node['value']))
      texts.add(node['value'].cooked.replace(/^\/+/, ''))
    if ((node.type === 'CallExpression' || node.type === 'NewExpression') && JOINS.has(nameOf(node['callee']) ?? ''))
      if (Array.isArray(node['arguments'])) for (const joined of joinedOf(node['arguments'])) paths.add(joined)
  }
  return { texts, paths }
}

const isTemplatePart = (value: unknown): value is { readonly cooked: string } =>
  typeof value === 'object' && value !== null && 'cooked' in value && typeof value.cooked === 'string'

/** By the digest of their content: files are read more than once, and rarely change in between. */
const parsed = new Map<string, Texts>()

/** The files that a text can name. */
function* filesNamed(tree: Tree, from: string, text: string, canBeFolder: boolean): Generator<string> {
  const name = text.replace(/\/$/, '')
  if (name.length > TEXT_LENGTH_MAXIMUM || /\s/.test(name) || /^[./]*$/.test(name)) return
  for (const path of [posix.join(posix.dirname(from), name), posix.normalize(name)]) {
    if (tree.files.has(path)) yield path
    else if (canBeFolder) yield* tree.folders.get(path) ?? []
  }
}

export interface Reaches {
  /** Files reached from a file that no text in it names: files, and folders with everything in them. */
  readonly reached: Readonly<Record<string, readonly string[]>>
  /** Files whose texts are names of folders by chance. */
  readonly namesNoFolders: readonly string[]
}

/** The files that a file reaches directly. */
function* reachedFrom(tree: Tree, path: string, { reached, namesNoFolders }: Reaches): Generator<string> {
  for (const place of reached[path] ?? []) yield* tree.files.has(place) ? [place] : (tree.folders.get(place) ?? [])
  const content = CODE.test(path) ? tree.read(path) : undefined
  if (content === undefined) return
  const key = `${path} ${content.digest}`
  const { texts, paths } = parsed.get(key) ?? readTexts(path, content.bytes.toString())
  parsed.set(key, { texts, paths })
  const canNameFolders = !namesNoFolders.includes(path)
  for (const text of texts) yield* filesNamed(tree, path, text, canNameFolders && /[^/]\/./.test(text))
  for (const text of paths) yield* filesNamed(tree, path, text, canNameFolders)
}

/** All files that are reached from the given ones, including these. */
export function closureOf(tree: Tree, starts: readonly string[], reaches: Reaches): ReadonlySet<string> {
  const seen = new Set(starts)
  // The iteration over a set includes items that are added meanwhile.
  for (const path of seen) {
    const next = tree.reached.get(path) ?? new Set(reachedFrom(tree, path, reaches))
    tree.reached.set(path, next)
    for (const other of next) seen.add(other)
  }
  return seen
}

/** A short digest of everything that the given files depend on; `others` are inputs outside the repository. */
export function inputsDigest(tree: Tree, closure: ReadonlySet<string>, others: readonly string[]): string {
  const hash = createHash('sha256')
  for (const path of [...closure].toSorted()) hash.update(`${path} ${tree.read(path)?.digest ?? 'gone'}\n`)
  for (const other of others) hash.update(`${other}\n`)
  return hash.digest('hex').slice(0, DIGEST_LENGTH)
}

const DIGEST_LENGTH = 20
