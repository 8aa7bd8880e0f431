/** What holds for the kits of changes: their files are small, and each of their words has one meaning. */
import { readdir, readFile } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { expect, test } from 'vitest'

const KITS = [
  'changes/kit/',
  'apiserver/kit/admission/changes.ts',
  'apiserver/kit/create.ts',
  'apiserver/kit/rest.ts',
  'apiserver/kit/stanza.ts',
  'apiserver/kit/words.ts',
  'apiserver/kit/write-plain.ts',
  'controllers/kit/changes.ts',
  'controllers/kit/detect-change.ts',
]
const FLOORS = ['changes', 'apiserver', 'controllers']
const ROOT = join(import.meta.dirname, '../..')
const LINES_OF_FILE_MAXIMUM = 300

/** The TypeScript files of the folder and what is in it, by path. */
async function sourcesIn(folder: string): Promise<readonly (readonly [path: string, source: string])[]> {
  const names = (await readdir(join(ROOT, folder), { recursive: true })).filter((name) => name.endsWith('.ts'))
  return Promise.all(
    names.map(async (name) => [posix.join(folder, name), await readFile(join(ROOT, folder, name), 'utf8')] as const),
  )
}

const EXPORTED = /^export (?:const|(?:async )?function) (\w+)/gm
const isOfKit = (path: string): boolean => KITS.some((kit) => path.startsWith(kit))

test('no function or value of the kits has the name of another one of the floors that use them', async () => {
  const all = (await Promise.all(FLOORS.map(sourcesIn))).flat()
  const exported = all.flatMap(([path, source]) => [...source.matchAll(EXPORTED)].map(([, name]) => ({ path, name })))
  const ambiguous = [...Map.groupBy(exported, ({ name }) => name).values()]
    .filter((same) => same.length > 1 && same.some(({ path }) => isOfKit(path)))
    .map((same) => same.map(({ path, name }) => `${name} in ${path}`))
  expect(ambiguous).toEqual([])
})

test('no file of the kits is too long', async () => {
  const kits = (await Promise.all(FLOORS.map(sourcesIn))).flat().filter(([path]) => isOfKit(path))
  expect(kits.length).toBeGreaterThan(KITS.length)
  const long = kits.filter(([, source]) => source.split('\n').length > LINES_OF_FILE_MAXIMUM)
  expect(long.map(([path]) => path)).toEqual([])
})
