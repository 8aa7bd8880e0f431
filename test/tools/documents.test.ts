/** What the documents name must be there: files, flags, npm scripts. */
import { access, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { CHANGES } from '../../changes/index.ts'

const ROOT = join(import.meta.dirname, '../..')
const decisions = (await readdir(join(ROOT, 'docs/decisions'))).map((name) => `docs/decisions/${name}`)
const DOCUMENTS = [
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'docs/operating.md',
  'docs/testing.md',
  'docs/kubernetes.md',
  ...decisions,
]
const FOLDERS = [
  'domain',
  'resources',
  'kit',
  'integrations',
  'db',
  'apiserver',
  'changes',
  'controllers',
  'agents',
  'embedded',
  'hosting',
  'addons',
  'cli',
  'crds',
  'test',
  'bench',
  'tools',
  'docs',
  'examples',
  'terraform',
  'sdk',
  'charts',
  '.ci',
]

const textOf = (path: string) => readFile(join(ROOT, path), 'utf8')

/** Paths in code spans and links; patterns and placeholders are not paths. */
const pathsOf = (markdown: string): readonly string[] =>
  [...markdown.matchAll(/`([^`\s]+)`|\]\(([^)#\s]+)\)/g)]
    .map((match) => match[1] ?? match[2] ?? '')
    .filter((path) => FOLDERS.includes(path.split('/')[0] ?? '') && path.includes('/') && !/[<>*{}…]/.test(path))

it.each(DOCUMENTS)('%s names only files that exist', async (document) => {
  const missing: string[] = []
  for (const path of pathsOf(await textOf(document))) await access(join(ROOT, path)).catch(() => missing.push(path))
  expect(missing).toEqual([])
})

it.each(DOCUMENTS)('%s names only npm scripts that exist', async (document) => {
  const { scripts } = JSON.parse(await textOf('package.json')) as { scripts: Record<string, string> }
  const named = [
    ...(await textOf(document)).matchAll(/npm (?:run )?(start|test|run [a-z:-]+)|npm run ([a-z:-]+)/g),
  ].map((match) => (match[2] ?? match[1] ?? '').replace(/^run /, ''))
  expect(named.filter((name) => !(name in scripts))).toEqual([])
})

it('the path of a change is a drawing, with a line for each step', async () => {
  const text = await textOf('ARCHITECTURE.md')
  const [, drawing = ''] = /^## The path of a change\n\n```text\n([\s\S]*?)\n```$/m.exec(text) ?? []
  const steps = drawing.split('\n').flatMap((line) => /^\d (\w+) /.exec(line)?.[1] ?? [])
  expect(steps).toEqual(['request', 'change', 'claim', 'object', 'plan', 'action', 'agent', 'status', 'end'])
})

it('ARCHITECTURE.md names the nouns with objects that have no file in changes/', async () => {
  const [, paragraph = ''] = /^(Some nouns with objects [\s\S]*?)\n\n/m.exec(await textOf('ARCHITECTURE.md')) ?? []
  const named = [...paragraph.matchAll(/`([a-z-]+)`/g)].flatMap(([, name = '']) => (name === 'kubectl' ? [] : [name]))
  const files = await readdir(join(ROOT, 'apiserver/nouns'), { recursive: true })
  const judged = files.filter((file) => file.endsWith('/admission.ts')).map((file) => file.replace('/admission.ts', ''))
  const changed: readonly string[] = CHANGES.map(({ name }) => name.replaceAll('_', '-'))
  expect(named.toSorted()).toEqual(judged.toSorted())
  expect(judged.filter((noun) => changed.includes(noun))).toEqual([])
})
