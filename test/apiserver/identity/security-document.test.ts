/** docs/security.md says for each requirement which test would fail: those tests must be there. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../../..')
const files = (await readdir(join(ROOT, 'test'), { recursive: true })).filter((name) => name.endsWith('.test.ts'))
const lines = (await Promise.all(files.map((name) => readFile(join(ROOT, 'test', name), 'utf8'))))
  .flatMap((text) => text.split('\n'))
  .filter((line) => /^[^/*]*['`]/.test(line)) // titles, also of tables
const cells = (await readFile(join(ROOT, 'docs/security.md'), 'utf8'))
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .map((line) => line.split('|').at(-2) ?? '')

test('every test that the document names exists', () => {
  const names = cells.flatMap((cell) => [...cell.matchAll(/(?<!\*)\*([^*]+)\*(?!\*)/g)].map(([, name = '']) => name))
  expect(names.length).toBeGreaterThan(25)
  const isThere = (name: string) => lines.some((line) => name.split('…').every((part) => line.includes(part.trim())))
  expect(names.filter((name) => !isThere(name))).toEqual([])
})

test('every file of tests that the document names exists', () => {
  const named = cells.flatMap((cell) =>
    [...cell.matchAll(/`([\w/-]+\.database)`/g)].map(([, name]) => `${name}.test.ts`),
  )
  expect(named.filter((name) => !files.some((file) => file === name || file.endsWith(`/${name}`)))).toEqual([])
})
