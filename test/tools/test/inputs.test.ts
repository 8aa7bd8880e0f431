import { join } from 'node:path'
import { expect, it } from 'vitest'
import { closureOf, inputsDigest, openTree, type Reaches, treeOf } from '../../../tools/test/inputs.ts'
import { REACHES } from '../../../tools/test/reaches.ts'
import { ALWAYS, filesOf } from '../../../tools/test/unchanged.ts'
import { TIERS } from '../../../tools/tiers.ts'

const FILES: Readonly<Record<string, string>> = {
  'test/a.test.ts': [
    `import { b } from '../kit/b.ts'`,
    `import type { T } from '../kit/types.ts'`,
    `import { it } from 'vitest'`,
    `fork(join(ROOT, 'embedded/start.js'))`,
    'import(`../kit/later.ts`)',
    `readdir(join(ROOT, 'charts', 'one'))`,
  ].join('\n'),
  'kit/b.ts': `export { c } from './c.ts'; const word = 'charts'; readFile(join(import.meta.dirname, 'data.json'))`,
  'kit/c.ts': `import { b } from './b.ts'; const path = '/charts'; const folder = './steps/'`,
  'kit/later.ts': '',
  'kit/data.json': '{}',
  'kit/types.ts': '',
  'kit/steps/one.ts': `import '../../domain/rule.ts'`,
  'domain/rule.ts': '',
  'embedded/start.js': `import('./main.ts')`,
  'embedded/main.ts': `start(\`\${ROOT}/agents/main.ts\`)`,
  'agents/main.ts': '',
  'charts/one/values.yaml': 'a: 1',
  'charts/two/values.yaml': 'a: 2',
  'cli/main.ts': `import '../kit/data.json'`,
}
const NONE: Reaches = { reached: {}, namesNoFolders: [] }

const treeWith = (changed: Readonly<Record<string, string>> = {}) => {
  const files = { ...FILES, ...changed }
  return treeOf(Object.keys(files), (path) => (files[path] === undefined ? undefined : Buffer.from(files[path])))
}
const digest = (changed: Readonly<Record<string, string>> = {}, versions = ['qemu 7.2']) => {
  const tree = treeWith(changed)
  return inputsDigest(tree, closureOf(tree, ['test/a.test.ts'], NONE), versions)
}

it('reaches what is imported, started and read, and what that reaches', () =>
  expect([...closureOf(treeWith(), ['test/a.test.ts'], NONE)].toSorted()).toEqual([
    'agents/main.ts',
    'charts/one/values.yaml',
    'domain/rule.ts',
    'embedded/main.ts',
    'embedded/start.js',
    'kit/b.ts',
    'kit/c.ts',
    'kit/data.json',
    'kit/later.ts',
    'kit/steps/one.ts',
    'test/a.test.ts',
  ]))

it('reaches what is given of a file, and no folders by the texts of a file whose words are others', () => {
  const reaches = { reached: { 'kit/b.ts': ['charts/two', 'cli/main.ts'] }, namesNoFolders: ['kit/c.ts'] }
  const closure = closureOf(treeWith(), ['kit/b.ts'], reaches)
  expect([...closure].toSorted()).toEqual([
    'charts/two/values.yaml',
    'cli/main.ts',
    'kit/b.ts',
    'kit/c.ts',
    'kit/data.json',
  ])
})

it.each([
  ['an import', { 'kit/c.ts': '' }],
  ['data', { 'kit/data.json': '[]' }],
  ['a file of a folder that is read', { 'charts/one/values.yaml': 'a: 3' }],
  ['a new file of such a folder', { 'charts/one/other.yaml': '' }],
  ['a program that is started, far away', { 'agents/main.ts': '//' }],
  ['the test', { 'test/a.test.ts': '' }],
])('a change of %s changes the digest', (_what, changed) => expect(digest(changed)).not.toBe(digest()))

it('versions change the digest, and what nothing reaches does not', () => {
  expect(digest({}, ['qemu 8.0'])).not.toBe(digest())
  expect(digest({ 'charts/two/values.yaml': 'a: 4', 'cli/main.ts': '', 'kit/types.ts': '//' })).toBe(digest())
  expect(digest()).toBe(digest())
})

const ROOT = join(import.meta.dirname, '../../..')
const tree = openTree(ROOT)

it('names only what is there', () => {
  const { reached, namesNoFolders } = REACHES
  const places = [...Object.keys(reached), ...Object.values(reached).flat(), ...namesNoFolders, ...ALWAYS]
  expect(places.filter((place) => !tree.files.has(place) && !tree.folders.has(place))).toEqual([])
})

it.each([
  [
    'test/e2e/start.e2e-long.test.ts',
    ['agents/node/main.ts', 'db/migrations/0001-foundation.ts', 'controllers/main.ts'],
  ],
  ['test/e2e/storage-moves.endurance.test.ts', ['agents/node/main.ts', 'apiserver/main.ts', 'embedded/cloud.ts']],
  ['test/charts/charts.cluster.test.ts', ['charts/svccloud/values.yaml', 'tools/cluster/build.ts']],
  ['test/docs/operator-guides.kubectl-long.test.ts', ['docs/operating.md', 'charts/svccloud/values.yaml']],
  ['test/pods/charts.pods.test.ts', ['Dockerfile', 'controllers/main.ts', 'tools/cluster/pause/go.mod']],
  ['test/embedded/kubernetes/crash.endurance.test.ts', ['embedded/kubernetes/main.ts']],
])('%s reaches what it starts', (file, expected) => {
  const closure = closureOf(tree, [file], REACHES)
  expect(expected.filter((path) => !closure.has(path))).toEqual([])
})

it('finds the files of every tier', async () => {
  for (const tier of TIERS) expect(await filesOf(tier), tier.name).not.toEqual([])
})
