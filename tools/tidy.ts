/** The rules of this repository that a compiler does not check, read from the source text: which folder may import
 *  which, where time, randomness and the process may be used, how files are named, the width of lines, which marks are
 *  forbidden, and which words texts avoid. A part of `npm run check`. Deliberately not a linter: style is a reader's
 *  business. */
import { readFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { parseSync } from 'oxc-parser'
import { answerHelp } from '../kit/sys/help.ts'
import { printLine, setExitCode } from '../kit/sys/process.ts'
import { participlesOf } from './names.ts'
import { isNode, nodesOf } from './syntax.ts'
import { shortWaits } from './waits.ts'
import { foreignWaits, promisesOf } from './transactions.ts'
import { type Found, longSentences, wordsIn, wordsOfComments, wordsOfSource, wordsOfTitles } from './words.ts'

export interface Finding {
  readonly file: string
  readonly line: number
  readonly rule: string
}

interface ImportRule {
  /** Path prefixes of the repository, in addition to the folder itself; with a star at the end, only files of that
   *  folder. */
  readonly paths: readonly string[]
  /** Packages and Node's own modules; undefined for any. */
  readonly packages?: readonly string[]
  readonly never?: readonly string[]
}

/** Modules that services may load; nothing that customers or hosts start. */
const SERVED = ['domain/', 'resources/', 'db/', 'changes/', 'kit/', 'integrations/'] as const
const NO_DATABASE = ['express', 'pg', 'kysely'] as const

/** The packages that a workspace names. */
function packagesOf(workspace: string): readonly string[] {
  const text = readFileSync(join(import.meta.dirname, '..', workspace, 'package.json'), 'utf8')
  // our own file
  const { devDependencies } = JSON.parse(text) as { readonly devDependencies: Readonly<Record<string, string>> }
  return Object.keys(devDependencies)
}

/** The import table. Of two folders that contain a file, the rule of the longer one applies. Folders that are not
 *  listed (tools, test, bench) may import everything. A path of a single file has its reason beside it. */
export const IMPORTS: Readonly<Record<string, ImportRule>> = {
  domain: { paths: [], packages: ['node:crypto', 'node:zlib', 'canonicalize'] },
  // A noun declares routes: their shape is all that it needs of kit.
  resources: { paths: ['domain/', 'kit/http/route.ts'], packages: ['zod'] },
  // Every route that starts an operation answers with one.
  'resources/kit': { paths: ['domain/', 'kit/http/route.ts', 'resources/operation/index.ts'], packages: ['zod'] },
  kit: { paths: ['domain/*'] },
  db: { paths: ['domain/', 'kit/sys/'], never: ['express'] },
  'db/kit': { paths: ['db/*', 'domain/', 'kit/sys/'], never: ['express'] },
  // Routes as above; kit/kube for the types of objects.
  changes: {
    paths: ['domain/', 'resources/', 'db/', 'kit/http/route.ts', 'kit/kube/', 'kit/sys/'],
    packages: ['node:util', 'kysely', 'zod'],
  },
  'changes/kit': {
    paths: ['domain/', 'resources/', 'db/', 'kit/http/route.ts', 'kit/kube/', 'kit/sys/'],
    packages: ['node:util', 'kysely', 'zod'],
  },
  integrations: { paths: ['domain/', 'kit/'], never: NO_DATABASE },
  'hosting/core': {
    // The programs that it starts are configured as each declares.
    paths: ['domain/', 'kit/', 'integrations/', 'addons/settings.ts'],
    never: NO_DATABASE,
  },
  'hosting/pods': { paths: ['domain/', 'kit/', 'integrations/', 'hosting/core/'], never: NO_DATABASE },
  'hosting/processes': {
    paths: [
      'domain/',
      'kit/',
      'integrations/',
      'hosting/core/',
      'embedded/kit/',
      // Playgrounds are guests of this machine: the code that boots them, and that runs in them.
      'agents/node/images/template-store.ts',
      'agents/node/guest-agent/run-in-guest.ts',
    ],
    never: NO_DATABASE,
  },
  apiserver: { paths: SERVED },
  'apiserver/kit': { paths: [...SERVED, 'apiserver/identity/'] },
  controllers: { paths: SERVED, never: ['express'] },
  'controllers/kit': { paths: [...SERVED, 'controllers/network/'], never: ['express'] },
  agents: {
    paths: [
      'domain/',
      'kit/',
      'integrations/',
      'resources/backup-job/',
      'resources/instance/',
      'resources/managed-machine/',
    ],
    never: NO_DATABASE,
  },
  embedded: {
    paths: [
      'domain/',
      'kit/',
      'integrations/',
      'hosting/processes/',
      // The images that guests need are built before the first guest needs them.
      'agents/node/images/template-store.ts',
      // The processes that it starts are configured as each declares.
      'agents/node/settings.ts',
      'apiserver/settings.ts',
      'controllers/settings.ts',
      // Whether the portal is built from these sources.
      'portal/build/stamp.ts',
      // The sealed columns: without their key, a start is refused.
      'db/sealing-key/uses.ts',
    ],
    never: ['express', 'kysely'],
  },
  'embedded/kit': { paths: ['domain/*', 'kit/'], never: NO_DATABASE },
  addons: { paths: ['client/', 'domain/', 'kit/'], never: NO_DATABASE },
  client: { paths: [], packages: ['openapi-fetch'] },
  // It runs in browsers.
  portal: { paths: ['client/', 'domain/'], packages: packagesOf('portal') },
  // It runs in Node and makes the files for browsers.
  'portal/build': { paths: ['kit/sys/'], never: NO_DATABASE },
  cli: {
    paths: [
      'domain/',
      'resources/',
      'kit/',
      // Streams are followed as programs follow them.
      'client/events.ts',
      'client/follow.ts',
      // The check that auditors run by hand is also a command.
      'tools/verify-audit.ts',
    ],
    never: ['express', 'pg', 'kysely', '@kubernetes/client-node'],
  },
}
const PRODUCT_FOLDERS = [...new Set(Object.keys(IMPORTS).map((folder) => folder.split('/')[0] ?? folder))]
const OTHER_FOLDERS = ['tools', 'test', 'bench']
/** The only places that may use the clock, randomness and the process; the client and the portal are independent and
 *  have their own. */
const SYSTEM_PLACES = ['kit/sys/', 'client/timer.ts', 'portal/system.ts']

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

/** Files that read bounded input from other processes, and files where such a name means something else: the output of
 *  a terminal or of a child of this process, a Transport, whose answers are bounded, and a script for browsers. */
const BOUNDED_PLACES = [
  'kit/http/bounded.ts',
  'kit/sys/terminal.ts',
  'kit/kube/client.ts',
  'kit/kube/reviews.ts',
  'embedded/kit/daemon.ts',
  'embedded/kubernetes/server/https.ts',
  'apiserver/identity/pages.ts',
]
/** Folders of programs whose input is controlled by others than their user. */
const BOUNDED_FOLDERS = [
  'addons/',
  'agents/',
  'apiserver/',
  'controllers/',
  'db/',
  'embedded/',
  'hosting/',
  'integrations/',
  'kit/',
]
const UNBOUNDED_BANS: readonly Ban[] = [
  {
    pattern: /\.(text|json|arrayBuffer|blob|formData)\(\)|\bcreateInterface\(/g,
    rule: 'what another process sends is read by kit/http/bounded.ts',
  },
  {
    pattern: /\bfor await \([^)]*\.setEncoding\([^)]*\)\)\s*[^{\s]/g,
    rule: 'what another process sends is read by kit/http/bounded.ts',
  },
]

const MARK_BANS: readonly Ban[] = [
  { pattern: /\b(it|test|describe)\.(only|skip|todo)\b/g, rule: 'no test is switched off or singled out' },
  { pattern: /\bas\s+any\b|<any\b>/g, rule: 'no any' },
]
const EXPORT_BANS: readonly Ban[] = [{ pattern: /^export default\b/gm, rule: 'exports are named' }]
/** Ways by which a text from outside becomes markup or code in a browser. The policy of the pages refuses them too. */
const MARKUP_BANS: readonly Ban[] = [
  /\b(?:innerHTML|outerHTML|dangerouslySetInnerHTML|insertAdjacentHTML|srcdoc|srcDoc)\b/g,
  /\bcreateContextualFragment\b|\bDOMParser\b|\bdocument\.write(?:ln)?\b|\beval\(|\bnew Function\b/g,
].map((pattern) => ({ pattern, rule: 'no text becomes markup or code' }))
/** Ways of writing money, numbers and dates beside those of the reader's language; other texts than code are searched
 *  too. */
const FORMAT_BANS: readonly Ban[] = [
  /\bIntl\.(?!Collator\b)|\.toLocale\w+\(|\.toFixed\(|\.toPrecision\(/g,
  /€|\bEUR\b/g,
].map((pattern) => ({
  pattern,
  rule: 'money, numbers and dates are written by portal/texts/format.ts',
}))
const FORMAT_PLACE = 'portal/texts/format.ts'
/** Spreads that `defined` replaces. */
const SPREAD_BANS: readonly Ban[] = [
  {
    pattern: /\.\.\.\(([\w.?]+) === undefined\s*\? \{\}\s*: \{ (?:\w+: )?\1 \}\)/g,
    rule: 'fields that may be undefined are spread by defined of domain/defined.ts',
  },
]
/** Searched for in comments too. */
const COMMENT_BANS: readonly Ban[] = [
  {
    pattern: new RegExp(String.raw`\b(TO${'DO'}|FIX${'ME'}|XX${'X'})\b|@ts-(ignore|nocheck)|eslint-${'disable'}`, 'g'),
    rule: 'unfinished work is not committed',
  },
]

const TIER_NAMES =
  '(?:qemu|kubernetes|network|e2e|database|kubectl|postgresql)(?:-long)?|unit-long|objects|csi|fencing|ceph|bench|' +
  'endurance|seeds|cluster|pods|browser|generators|terraform|sdk'
const FILE_NAME = new RegExp(String.raw`^[a-z0-9]+(-[a-z0-9]+)*(\.(${TIER_NAMES}))?(\.test)?(\.d)?\.tsx?$`)
/** A tool loads them by their names, and reads what they export as default. */
const FILES_OF_TOOLS = ['portal/build/vite.config.ts']
const EMPTY_NAMES = /(^|[-/])(utils?|helpers?|common|manager|misc)(?=[-./]|$)/

/** The code without comments and plain strings, with every line in its place. Templates stay: they contain code. */
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
  prefixes.some((prefix) =>
    prefix.endsWith('/*')
      ? posix.dirname(path) === prefix.slice(0, -2)
      : path === prefix || (prefix.endsWith('/') && path.startsWith(prefix)),
  )
const packageOf = (specifier: string): string =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')

/** The folder of the table that contains the file, and its rule: the longest one. */
const ruleFor = (file: string): readonly [string, ImportRule] | undefined =>
  Object.entries(IMPORTS)
    .filter(([folder]) => file.startsWith(`${folder}/`))
    .toSorted(([one], [other]) => other.length - one.length)[0]

function importFault(file: string, specifier: string): string | undefined {
  const [folder, rule] = ruleFor(file) ?? []
  if (folder === undefined || rule === undefined) return undefined
  if (specifier.startsWith('.')) {
    const target = posix.join(posix.dirname(file), specifier)
    if (file === 'embedded/up.ts' && target.endsWith('/main.ts')) return undefined
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

/** The layers in which a folder with an `index.ts` is imported through it. */
const NOUN_LAYERS = ['resources', 'db', 'apiserver', 'controllers']

const isNoun = (folder: string, files: ReadonlySet<string>): boolean =>
  folder.includes('/') && files.has(`${folder}/index.ts`)

/** Within a layer, a noun is imported through its `index.ts` only, and a file of changes only by the list: `files` are
 *  all files of the repository. */
function nounFault(file: string, specifier: string, files: ReadonlySet<string>): string | undefined {
  const [layer = ''] = file.split('/')
  const target = posix.join(posix.dirname(file), specifier)
  if (!specifier.startsWith('.') || !target.startsWith(`${layer}/`)) return undefined
  if (layer === 'changes' && isWithin(file, ['changes/*']) && isWithin(target, ['changes/*']))
    return file === 'changes/index.ts' ? undefined : `${file} knows no other changes, as ${target}`
  if (!NOUN_LAYERS.includes(layer)) return undefined
  const parts = posix.dirname(target).split('/')
  const folder = parts.map((_part, index) => parts.slice(0, index + 1).join('/')).find((each) => isNoun(each, files))
  if (folder === undefined || file.startsWith(`${folder}/`)) return undefined
  const index = `${folder}/index.ts`
  return target === index ? undefined : `${target} is reached through ${index}`
}

const nounFindings = (file: string, source: string, files: ReadonlySet<string>): Finding[] =>
  [...source.matchAll(IMPORT)].flatMap((match) => {
    const fault = nounFault(file, match[1] ?? match[2] ?? match[3] ?? '', files)
    return fault === undefined ? [] : [{ file, line: lineOf(source, match.index + match[0].length), rule: fault }]
  })

/** The files of a layer that are in none of its folders: those that know all of its nouns, and in `domain/` those that
 *  know none. Files of `changes/` are nouns. */
export const TOP_FILES: Readonly<Record<string, readonly string[]>> = {
  domain: [
    'defined',
    'idle-rules',
    'operations',
    'permissions',
    'printable',
    'problem',
    'store-age',
    'suggestion',
    'uuid',
    'version',
  ],
  resources: ['account-roles', 'descriptions', 'index'],
  db: ['identity-tables', 'main', 'prepare', 'settings', 'tables'],
  apiserver: ['app', 'look', 'main', 'nouns', 'settings'],
  controllers: ['alarms', 'index', 'main', 'rights', 'settings'],
  kit: [],
  integrations: [],
  hosting: [],
}

/** Folders of nouns. Each noun has a folder of the same name in `resources/` or `db/`. */
const NOUN_FOLDERS = ['domain', 'apiserver/nouns', 'controllers/nouns']
/** Except for these. */
const NOUNS_ELSEWHERE: Readonly<Record<string, string>> = {
  capacity: 'what operators see of all zones; its route is among those of operators',
  orphan: 'what has lost its owner, of many kinds',
  'sign-in': 'its routes are those of identity, of which sessions and second factors are nouns as well',
  zone: 'its kind is one of the catalogue, as regions and plans are',
}

const foldersIn = (place: string, files: ReadonlySet<string>): ReadonlySet<string> =>
  new Set(
    [...files].flatMap((file) => {
      const [folder = '', ...inside] = file.startsWith(`${place}/`) ? file.slice(place.length + 1).split('/') : []
      return inside.length === 0 ? [] : [folder]
    }),
  )

/** The places of files: no file is loose, a noun has the same name in each layer and an index where others import it,
 *  and kit has no nouns. */
export function placeFindings(files: ReadonlySet<string>): Finding[] {
  const loose = [...files].flatMap((file) => {
    const [layer = '', name = '', ...inside] = file.split('/')
    const isLoose = inside.length === 0 && TOP_FILES[layer]?.includes(name.replace(/\.ts$/, '')) === false
    return isLoose ? [{ file, line: 1, rule: `${layer}/ has no file beside its folders but its lists` }] : []
  })
  const known = new Set([...foldersIn('resources', files), ...foldersIn('db', files)])
  const nouns = NOUN_FOLDERS.flatMap((place) => [...foldersIn(place, files)].map((noun) => ({ place, noun })))
  const names = new Set(nouns.map(({ noun }) => noun))
  return [
    ...loose,
    ...nouns.flatMap(({ place, noun }) => {
      const index = `${place}/${noun}/index.ts`
      const file = [...files].find((each) => each.startsWith(`${place}/${noun}/`)) ?? index
      const isKnown = known.has(noun) || noun in NOUNS_ELSEWHERE
      return [
        ...(isKnown ? [] : [{ file, line: 1, rule: `${noun} has a folder of its name in resources/ or db/` }]),
        ...(place === 'domain' || files.has(index) ? [] : [{ file, line: 1, rule: 'a noun has an index.ts' }]),
      ]
    }),
    ...[...files].flatMap((file) => {
      const noun = file.startsWith('kit/')
        ? posix
            .dirname(file)
            .split('/')
            .find((name) => names.has(name))
        : undefined
      return noun === undefined ? [] : [{ file, line: 1, rule: `kit has no noun, as ${noun}` }]
    }),
  ]
}

const EXPORT = /^export (?:async )?(?:const|function\*?|interface|type|class) (\w+)/gm
/** The parts that every controller has, of which `controllers/network` has several, and that of every migration. */
const SHARED_PARTS = ['Observed', 'plan', 'up', 'isResumable']

/** The folder in which a name has one meaning: that of a noun, else the layer. */
function nameScope(file: string): string {
  const folders = posix.dirname(file).split('/')
  if (folders[1] === 'nouns') return folders.slice(0, 3).join('/')
  return folders.slice(0, folders[0] === 'domain' ? 2 : 1).join('/')
}

/** Names that two files of a noun, or two of a layer outside of its nouns, export: one name has one meaning. */
export function exportFindings(sources: readonly (readonly [file: string, source: string])[]): Finding[] {
  const first = new Map<string, string>()
  const product = sources.filter(([file]) => PRODUCT_FOLDERS.some((folder) => file.startsWith(`${folder}/`)))
  return product.flatMap(([file, source]) =>
    [...source.matchAll(EXPORT)].flatMap(({ index, 1: name = '' }) => {
      const key = `${nameScope(file)} ${name}`
      const other = first.get(key) ?? file
      first.set(key, other)
      return other === file || GENERATED.includes(file) || SHARED_PARTS.includes(name)
        ? []
        : [{ file, line: lineOf(source, index), rule: `${name} is the name of something else in ${other}` }]
    }),
  )
}

const LINE_LENGTH_MAXIMUM = 120

/** Text that the formatter does not wrap: comments, strings and templates. */
const widthFindings = (file: string, source: string): Finding[] =>
  source.split('\n').flatMap((text, index) => {
    const isWide = [...text].length > LINE_LENGTH_MAXIMUM
    return isWide ? [{ file, line: index + 1, rule: `a line has at most ${LINE_LENGTH_MAXIMUM} columns` }] : []
  })

/** Whether the line has a comment, or the line above is one. */
const hasReason = (lines: readonly string[], line: number): boolean =>
  /\/\/|\/\*/.test(lines[line - 1] ?? '') || /^\s*(\/\/|\*|\/\*)/.test(lines[line - 2] ?? '')

const isAsConst = (type: unknown): boolean =>
  isNode(type) &&
  'typeName' in type &&
  isNode(type.typeName) &&
  'name' in type.typeName &&
  type.typeName.name === 'const'

/** A cast (`as`) overrules the compiler: a comment on its line or above it must say why it is right. */
function castFindings(file: string, source: string): Finding[] {
  const lines = source.split('\n')
  return [...nodesOf(parseSync(file, source).program)].flatMap(({ type, typeAnnotation }) => {
    if (type !== 'TSAsExpression' || !isNode(typeAnnotation) || isAsConst(typeAnnotation)) return []
    const line = lineOf(source, typeAnnotation.start)
    return hasReason(lines, line) ? [] : [{ file, line, rule: 'a cast has its reason on the line or above it' }]
  })
}

/** Names of values are nouns. */
const participleFindings = (file: string, source: string): Finding[] =>
  participlesOf(file, source).map(({ index, name }) => ({
    file,
    line: lineOf(source, index),
    rule: `names of values are nouns: not "${name}"`,
  }))

/** Layers that access more than the database. */
const TRANSACTION_LAYERS = ['apiserver/', 'controllers/']
/** Folders that those layers may call. */
const CALLED_IN_TRANSACTIONS = [...TRANSACTION_LAYERS, 'db/', 'domain/', 'integrations/', 'kit/']

const transactionFindings = (file: string, source: string, promises?: ReadonlySet<string>): Finding[] =>
  foreignWaits(file, source, promises).map((offset) => ({
    file,
    line: lineOf(source, offset),
    rule: 'inside a transaction, which is called tx, only the database is waited for',
  }))

const nameFindings = (file: string): Finding[] => {
  const name = posix.basename(file)
  if (!FILE_NAME.test(name) && !FILES_OF_TOOLS.includes(file))
    return [{ file, line: 1, rule: 'files are named in kebab-case, tests by their tier' }]
  return EMPTY_NAMES.test(file) ? [{ file, line: 1, rule: 'a name says what is inside' }] : []
}

/** Written by a generator, in its own layout. */
const GENERATED = ['client/schema.ts', 'client/operator-schema.ts']
const GENERATED_DOCUMENT = /^(bench\/RESULTS\.md|docs\/cli-reference\.md|charts\/[^/]+\/README\.md)$/

/** Text that cannot be wrapped: blocks of code, which end with the mark that they started with, tables, headings and
 *  definitions of links. */
const UNWRAPPABLE = /^(\s*\||#|\s*\[[^\]]+\]:)/

/** Lines and corners of drawings. Outside of a block of code they are joined like prose when a paragraph is wrapped. */
const DRAWING = /[\u2500-\u257f]/

/** Decisions stay as they were written. */
const RECORD = /^docs\/decisions\//

const ruleOf = ({ word, instead }: Found): string => `plain English: not "${word}" but ${instead}`

/** Checks one Markdown file: its prose keeps to the width of the code and to plain English, and
 *  drawings are in blocks of code. */
export function documentFindings(file: string, source: string): Finding[] {
  if (GENERATED_DOCUMENT.test(file)) return []
  let fence: string | undefined
  const tooLong = file === 'CHANGELOG.md' ? longSentences(source) : []
  const long = tooLong.map(({ line, words }) => ({ file, line, rule: `a sentence has at most 25 words, not ${words}` }))
  const lines = source.split('\n').flatMap((text, index) => {
    const mark = /^\s*(`{3,}|~{3,})/.exec(text)?.[1]
    const isCode = fence !== undefined || mark !== undefined
    if (fence === undefined) fence = mark
    else if (text.trim() === fence) fence = undefined
    const isWide = [...text].length > LINE_LENGTH_MAXIMUM
    const words = isCode || RECORD.test(file) ? [] : wordsIn(text.replace(/`[^`]*`/g, ''))
    return [
      ...(isWide && !isCode && !UNWRAPPABLE.test(text) ? [`prose has at most ${LINE_LENGTH_MAXIMUM} columns`] : []),
      ...(DRAWING.test(text) && !isCode ? ['a drawing is in a block of code'] : []),
      ...words.map(ruleOf),
    ].map((rule) => ({ file, line: index + 1, rule }))
  })
  return [...long, ...lines]
}

/** Checks one TypeScript file. `file` is its path from the root of the repository, with slashes; `files` are all files,
 *  and `promises` the names of functions in them that return one. */
export function findings(
  file: string,
  source: string,
  files: ReadonlySet<string> = new Set(),
  promises?: ReadonlySet<string>,
): Finding[] {
  if (GENERATED.includes(file)) return []
  const code = withoutWords(source)
  const isProduct = PRODUCT_FOLDERS.some((folder) => file.startsWith(`${folder}/`))
  const isSystem = isWithin(file, SYSTEM_PLACES)
  return [
    ...nameFindings(file),
    ...importFindings(file, source),
    ...nounFindings(file, source, files),
    ...widthFindings(file, source),
    ...(isProduct ? castFindings(file, source) : []),
    ...(isProduct && !file.startsWith('portal/') ? participleFindings(file, source) : []),
    ...[
      ...(isProduct ? wordsOfSource(file, source) : []),
      ...wordsOfComments(file, source),
      ...(file.startsWith('test/') ? wordsOfTitles(file, source) : []),
    ].map((one) => ({ file, line: lineOf(source, one.index), rule: ruleOf(one) })),
    ...(isWithin(file, TRANSACTION_LAYERS) ? transactionFindings(file, source, promises) : []),
    ...(isProduct && !isSystem ? matches(file, code, SYSTEM_BANS) : []),
    ...(isWithin(file, BOUNDED_FOLDERS) && !BOUNDED_PLACES.includes(file) ? matches(file, code, UNBOUNDED_BANS) : []),
    ...matches(file, code, MARK_BANS),
    ...(FILES_OF_TOOLS.includes(file) ? [] : matches(file, code, EXPORT_BANS)),
    ...(file.startsWith('portal/') ? matches(file, code, MARKUP_BANS) : []),
    ...(file.startsWith('portal/') && file !== FORMAT_PLACE ? matches(file, source, FORMAT_BANS) : []),
    ...(file.startsWith('client/') ? [] : matches(file, code, SPREAD_BANS)),
    ...matches(file, source, COMMENT_BANS),
    ...shortWaits(file, source).map(({ index, rule }) => ({ file, line: lineOf(source, index), rule })),
  ]
}

/** Paths of the documents, without those of dependencies. */
async function documentsOf(root: string): Promise<readonly string[]> {
  const names = (await readdir(root, { withFileTypes: true })).filter(
    ({ name }) => !/^(\.|node_modules$|dist$)/.test(name),
  )
  const within = await Promise.all(
    names
      .filter((entry) => entry.isDirectory())
      .map(async ({ name }) =>
        (await readdir(join(root, name), { recursive: true })).map((path) => posix.join(name, path)),
      ),
  )
  return [...names.map(({ name }) => name), ...within.flat()]
    .filter((path) => path.endsWith('.md') && !path.includes('node_modules/'))
    .sort()
}

/** Checks every TypeScript file and every document under the root folder. */
export async function tidy(root: string): Promise<Finding[]> {
  const files: string[] = []
  for (const folder of [...PRODUCT_FOLDERS, ...OTHER_FOLDERS]) {
    const entries = await readdir(join(root, folder), { recursive: true }).catch(() => [])
    const names = entries.filter((name) => /\.tsx?$/.test(name) && !name.includes('node_modules/')).sort()
    files.push(...names.map((name) => posix.join(folder, name)))
  }
  const all = new Set(files)
  const sources = await Promise.all(
    files.map(async (file) => [file, await readFile(join(root, file), 'utf8')] as const),
  )
  const called = sources.filter(([file]) => isWithin(file, CALLED_IN_TRANSACTIONS))
  const promises = new Set(called.flatMap(([file, source]) => promisesOf(file, source)))
  const found = sources.flatMap(([file, source]) => findings(file, source, all, promises))
  found.push(...placeFindings(all), ...exportFindings(sources))
  for (const file of await documentsOf(root))
    found.push(...documentFindings(file, await readFile(join(root, file), 'utf8')))
  return found
}

if (import.meta.main) {
  answerHelp(import.meta.filename)
  const found = await tidy(join(import.meta.dirname, '..'))
  for (const { file, line, rule } of found) printLine(`${file}:${line}: ${rule}`)
  setExitCode(found.length === 0 ? 0 : 1)
}
