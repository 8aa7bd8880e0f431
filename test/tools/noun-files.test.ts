/** What a noun costs in files by hand: the table in CONTRIBUTING.md says what is there. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { TOP_FILES } from '../../tools/tidy.ts'

const ROOT = join(import.meta.dirname, '../..')
const LAYERS = ['domain', 'resources', 'db', 'changes', 'apiserver', 'controllers', 'agents']

/** Beside the lists of the layers: which claims may be without an object, what an agent looks after, quota. */
const OTHER_LISTS = ['controllers/nouns/claim/kinds.ts', 'agents/node/loop.ts', 'domain/account/quota.ts']
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
const lists = await Promise.all(
  [...topFiles, ...OTHER_LISTS].map(async (file) => await readFile(join(ROOT, file), 'utf8').catch(() => '')),
)
const migrations = await Promise.all(
  product.filter((file) => file.startsWith('db/migrations/')).map((file) => readFile(join(ROOT, file), 'utf8')),
)

/** The noun as code, tables and paths have it: `floating-ip`, `floating_ips`, `floatingIp`, `FloatingIp`. */
const names = (noun: string): RegExp =>
  new RegExp(String.raw`(?<![a-z])${noun.replaceAll('-', '[-_]?')}s?(?![a-z])`, 'i')

interface Cost {
  readonly own: number
  readonly lists: number
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
    tests: tests.filter(isOwn).length,
  }
}

const rows = [
  ...(await readFile(join(ROOT, 'CONTRIBUTING.md'), 'utf8')).matchAll(
    /^\| [^|]+ \| `([a-z-]+)` \| (\d+) \| (\d+) \| (\d+) \|$/gm,
  ),
].map(([, noun = '', own, inLists, inTests]) => ({
  noun,
  cost: { own: Number(own), lists: Number(inLists), tests: Number(inTests) },
}))

it('the table of what nouns cost has each sort of them', () =>
  expect(rows.map(({ noun }) => noun)).toEqual(['init-script', 'floating-ip', 'webhook', 'custom-image']))

it.each(rows)('$noun has as many files by hand as CONTRIBUTING.md says', ({ noun, cost }) =>
  expect(costOf(noun)).toEqual(cost),
)
