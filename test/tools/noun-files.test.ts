/** What a noun costs in files by hand: the table in CONTRIBUTING.md says what is there. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { TOP_FILES } from '../../tools/tidy.ts'

const ROOT = join(import.meta.dirname, '../..')
const LAYERS = ['domain', 'resources', 'db', 'changes', 'apiserver', 'controllers', 'agents']

/** Beside the lists of the layers: quota, claims, what an agent looks after, and what followed from nothing before it
 *  followed from these. */
const OTHER_LISTS = [
  'domain/account/quota.ts',
  'controllers/nouns/claim/kinds.ts',
  'agents/node/loop.ts',
  'changes/kit/define.ts',
  'db/account/quotas.ts',
  'domain/webhook/rules.ts',
  'resources/change/index.ts',
  'resources/overview/index.ts',
]
/** What only some nouns have: a field of operations, a place in search and overview, a price, rows in OVN. */
const OPTIONAL_LISTS = [
  'resources/operation/index.ts',
  'resources/search/index.ts',
  'apiserver/nouns/overview/index.ts',
  'domain/billing/units.ts',
  'apiserver/kit/costs.ts',
  'controllers/nouns/billing/billables.ts',
  'controllers/nouns/claim/index.ts',
]
/** What hosts have of a noun has the name of what it is there. */
const ON_HOSTS: Readonly<Record<string, readonly string[]>> = {
  'custom-image': ['agents/node/image/', 'resources/instance/image.ts', 'test/agents/node/image-plan.test.ts'],
}

const filesIn = async (folder: string): Promise<readonly string[]> =>
  (await readdir(join(ROOT, folder), { recursive: true }))
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `${folder}/${name}`)

const product = (await Promise.all(LAYERS.map(filesIn))).flat()
const tests = (await Promise.all(LAYERS.map((layer) => filesIn(`test/${layer}`)))).flat()
const topFiles = Object.entries({ ...TOP_FILES, changes: ['index'] }).flatMap(([layer, names]) =>
  names.map((name) => `${layer}/${name}.ts`),
)
/** Comments and texts. */
const PROSE = /\/\*[\s\S]*?\*\/|\/\/.*$|(['"`])(?:(?!\1)[^\\\n]|\\.)*\1/gm
/** The text without comments and sentences: there a name can be a word for something else, such as the validating
 *  webhook. Words in quotes stay. */
const withoutProse = (text: string): string => text.replaceAll(PROSE, (part) => (/^\/|\s/.test(part) ? '' : part))
const codeOf = async (file: string): Promise<string> =>
  withoutProse(await readFile(join(ROOT, file), 'utf8').catch(() => ''))
const lists = await Promise.all([...topFiles, ...OTHER_LISTS].map(codeOf))
const optionalLists = await Promise.all(OPTIONAL_LISTS.map(codeOf))
const migrations = await Promise.all(
  product.filter((file) => file.startsWith('db/migrations/')).map((file) => readFile(join(ROOT, file), 'utf8')),
)

/** The noun as code, tables and paths have it: `floating-ip`, `floating_ips`, `floatingIp`, `FloatingIp`. */
const names = (noun: string): RegExp =>
  new RegExp(String.raw`(?<![a-z])${noun.replaceAll('-', '[-_]?')}s?(?![a-z])`, 'i')

interface Cost {
  readonly own: number
  readonly lists: number
  readonly optional: number
  readonly tests: number
}

function costOf(noun: string): Cost {
  const isOwn = (file: string): boolean =>
    file.split('/').slice(0, -1).includes(noun) ||
    new RegExp(`(^|/)changes/${noun}\\.`).test(file) ||
    (ON_HOSTS[noun] ?? []).some((place) => file.startsWith(place))
  const naming = names(noun)
  return {
    own: product.filter(isOwn).length,
    lists: lists.filter((text) => naming.test(text)).length + (migrations.some((text) => naming.test(text)) ? 1 : 0),
    optional: optionalLists.filter((text) => naming.test(text)).length,
    tests: tests.filter(isOwn).length,
  }
}

const rows = [
  ...(await readFile(join(ROOT, 'CONTRIBUTING.md'), 'utf8')).matchAll(
    /^\| [^|]+ \| `([a-z-]+)` \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$/gm,
  ),
].map(([, noun = '', own, inLists, optional, inTests]) => ({
  noun,
  cost: { own: Number(own), lists: Number(inLists), optional: Number(optional), tests: Number(inTests) },
}))

it('the table of what nouns cost has each sort of them', () =>
  expect(rows.map(({ noun }) => noun)).toEqual(['init-script', 'floating-ip', 'webhook', 'custom-image']))

it.each([
  ['init-script', 8],
  ['floating-ip', 16],
  ['custom-image', 24],
])('%s costs at most %d files', (noun, maximum) => {
  const { own, lists } = costOf(noun)
  expect(own + lists).toBeLessThanOrEqual(maximum)
})

it.each([
  ["log.warn('no webhook: it is late')", 'log.warn()'],
  ["list: ['webhook', 'edge'], // of webhooks", "list: ['webhook', 'edge'], "],
  ["import { webhook } from './nouns/webhook/index.ts'", "import { webhook } from './nouns/webhook/index.ts'"],
])('of %s it counts %s', (line, code) => expect(withoutProse(line)).toBe(code))

it.each(rows)('$noun has as many files by hand as CONTRIBUTING.md says', ({ noun, cost }) =>
  expect(costOf(noun)).toEqual(cost),
)
