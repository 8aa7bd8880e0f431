/** The rules of the house that a compiler does not know, read off the source text: who may import whom, where time,
 *  randomness
 *  and the process may be touched, how files are named, and which marks never stay. Runs as a test and as `node
 *  tools/tidy.ts`.
 *  Deliberately not a linter: style is a reader's business. */
import { readdir, readFile } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { printLine, setExitCode } from '../kit/sys/process.ts'

export interface Finding {
  readonly file: string
  readonly line: number
  readonly rule: string
}

interface ImportRule {
  /** Path prefixes of the repository, besides the folder itself. */
  readonly paths: readonly string[]
  /** Packages and Node's own modules; undefined for any. */
  readonly packages?: readonly string[]
  readonly never?: readonly string[]
}

/** The import table. Folders that are not listed (tools, test, bench) may import everything. */
const IMPORTS: Readonly<Record<string, ImportRule>> = {
  domain: { paths: [], packages: ['node:crypto', 'canonicalize'] },
  resources: { paths: ['domain/', 'kit/http/route.ts'], packages: ['zod'] },
  kit: { paths: ['domain/'] },
  db: { paths: ['domain/', 'kit/sys/'], never: ['express'] },
  apiserver: { paths: ['domain/', 'resources/', 'kit/', 'db/'] },
  controllers: { paths: ['domain/', 'resources/', 'kit/', 'db/'], never: ['express'] },
  agents: {
    paths: ['domain/', 'resources/instance/index.ts', 'resources/define.ts', 'resources/shapes.ts', 'kit/'],
    never: ['express', 'pg', 'kysely'],
  },
  embedded: { paths: ['kit/sys/'] },
  client: { paths: [], packages: ['openapi-fetch'] },
  cli: {
    paths: ['resources/', 'kit/http/', 'kit/sys/', 'tools/verify-audit.ts'],
    never: ['pg', 'kysely', '@kubernetes/client-node'],
  },
}
const PRODUCT_FOLDERS = Object.keys(IMPORTS)
const OTHER_FOLDERS = ['tools', 'test', 'bench']
/** The only places that may touch the clock, randomness and the process; the client stands alone and has its own. */
const SYSTEM_PLACES = ['kit/sys/', 'client/timer.ts']

interface Ban {
  readonly pattern: RegExp
  readonly rule: string
}

const SYSTEM_BANS: readonly Ban[] = [
  { pattern: /\bDate\.now\b|\bnew Date\(\s*\)|\bperformance\.now\b/g, rule: 'the time comes from a Clock' },
  {
    pattern: /(?<![.\w])(setTimeout|setInterval|setImmediate)\b|\bAbortSignal\.timeout\b/g,
    rule: 'waiting is done by a Clock',
  },
  {
    pattern: /\bMath\.random\b|\b(randomUUID|randomBytes|randomInt|randomFill(Sync)?|getRandomValues)\b/g,
    rule: 'randomness comes from a Random',
  },
  { pattern: /(?<![.\w])process\s*\.\s*\w/g, rule: 'the process is reached through kit/sys/process.ts' },
]

const MARK_BANS: readonly Ban[] = [
  { pattern: /\b(it|test|describe)\.(only|skip|todo)\b/g, rule: 'no test is switched off or singled out' },
  { pattern: /\bas\s+any\b|<any\b>/g, rule: 'no any' },
  { pattern: /^export default\b/gm, rule: 'exports are named' },
]
/** Looked for in comments too. */
const COMMENT_BANS: readonly Ban[] = [
  {
    pattern: new RegExp(String.raw`\b(TO${'DO'}|FIX${'ME'}|XX${'X'})\b|@ts-(ignore|nocheck)|eslint-${'disable'}`, 'g'),
    rule: 'unfinished work is not committed',
  },
]

const FILE_NAME =
  /^[a-z0-9]+(-[a-z0-9]+)*(\.(database|kubectl|qemu|network|fencing|e2e|endurance|cluster))?(\.test)?(\.d)?\.ts$/
const EMPTY_NAMES = /(^|[-/])(utils?|helpers?|common|manager|misc)(?=[-./]|$)/

/** The code without comments and plain strings, every line where it was. Templates stay: they hold code. */
const withoutWords = (source: string): string =>
  source.replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"/g, (words) =>
    words.replace(/[^\n]/g, ' '),
  )

const lineOf = (source: string, index: number): number => source.slice(0, index).split('\n').length

const matches = (file: string, source: string, bans: readonly Ban[]): Finding[] =>
  bans.flatMap(({ pattern, rule }) =>
    [...source.matchAll(pattern)].map((match) => ({ file, line: lineOf(source, match.index), rule })),
  )

const IMPORT =
  /(?:^|\n)\s*(?:import|export)\b[^'"`;]*?\bfrom\s*'([^']+)'|(?:^|\n)\s*import\s*'([^']+)'|\bimport\(\s*'([^']+)'\s*\)/g

const isWithin = (path: string, prefixes: readonly string[]): boolean =>
  prefixes.some((prefix) => path === prefix || (prefix.endsWith('/') && path.startsWith(prefix)))
const packageOf = (specifier: string): string =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')

function importFault(file: string, specifier: string): string | undefined {
  const folder = file.split('/')[0] ?? ''
  const rule = IMPORTS[folder]
  if (rule === undefined) return undefined
  if (specifier.startsWith('.')) {
    const target = posix.join(posix.dirname(file), specifier)
    if (file === 'embedded/up.ts' && /\/main\.ts$/.test(target)) return undefined
    return isWithin(target, [`${folder}/`, ...rule.paths]) ? undefined : `${folder} never imports ${target}`
  }
  const name = packageOf(specifier)
  const isAllowed = !(rule.never ?? []).includes(name) && (rule.packages === undefined || rule.packages.includes(name))
  return isAllowed ? undefined : `${folder} never imports ${name}`
}

const importFindings = (file: string, source: string): Finding[] =>
  [...source.matchAll(IMPORT)].flatMap((match) => {
    const fault = importFault(file, match[1] ?? match[2] ?? match[3] ?? '')
    return fault === undefined ? [] : [{ file, line: lineOf(source, match.index + match[0].length), rule: fault }]
  })

const nameFindings = (file: string): Finding[] => {
  const name = posix.basename(file)
  if (!FILE_NAME.test(name)) return [{ file, line: 1, rule: 'files are named in kebab-case, tests by their tier' }]
  return EMPTY_NAMES.test(file) ? [{ file, line: 1, rule: 'a name says what is inside' }] : []
}

/** Checks one TypeScript file. `file` is its path from the root of the repository, with slashes. */
export function findings(file: string, source: string): Finding[] {
  const code = withoutWords(source)
  const isProduct = PRODUCT_FOLDERS.some((folder) => file.startsWith(`${folder}/`))
  const isSystem = isWithin(file, SYSTEM_PLACES)
  return [
    ...nameFindings(file),
    ...importFindings(file, source),
    ...(isProduct && !isSystem ? matches(file, code, SYSTEM_BANS) : []),
    ...matches(file, code, MARK_BANS),
    ...matches(file, source, COMMENT_BANS),
  ]
}

/** Checks every TypeScript file under the root folder. */
export async function tidy(root: string): Promise<Finding[]> {
  const found: Finding[] = []
  for (const folder of [...PRODUCT_FOLDERS, ...OTHER_FOLDERS]) {
    const entries = await readdir(join(root, folder), { recursive: true }).catch(() => [])
    for (const entry of entries.filter((name) => name.endsWith('.ts') && !name.includes('node_modules/')).sort()) {
      const file = posix.join(folder, entry)
      found.push(...findings(file, await readFile(join(root, file), 'utf8')))
    }
  }
  return found
}

if (import.meta.main) {
  const found = await tidy(join(import.meta.dirname, '..'))
  for (const { file, line, rule } of found) printLine(`${file}:${line}: ${rule}`)
  setExitCode(found.length === 0 ? 0 : 1)
}
