/** docs/security.md says for each requirement which test would fail: those tests must be there. */
import { access, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../../..')
const files = (await readdir(join(ROOT, 'test'), { recursive: true })).filter((name) => name.endsWith('.test.ts'))
const lines = (await Promise.all(files.map((name) => readFile(join(ROOT, 'test', name), 'utf8'))))
  .flatMap((text) => text.split('\n'))
  .filter((line) => /^[^/*]*['`]/.test(line)) // titles, also of tables
const rows = (await readFile(join(ROOT, 'docs/security.md'), 'utf8'))
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .map((line) => line.split('|'))
const cells = rows.map((row) => row.at(-2) ?? '')

test('every test that the document names exists', () => {
  const names = cells.flatMap((cell) => [...cell.matchAll(/(?<!\*)\*([^*]+)\*(?!\*)/g)].map(([, name = '']) => name))
  expect(names.length).toBeGreaterThan(25)
  const isThere = (name: string) => lines.some((line) => name.split('…').every((part) => line.includes(part.trim())))
  expect(names.filter((name) => !isThere(name))).toEqual([])
})

/** In code spans, without the titles of tests. */
const codeIn = (cell: string): readonly string[] =>
  [...cell.replaceAll(/(?<!\*)\*[^*]+\*(?!\*)/g, '').matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)

test('each file of tests that the document names is one file', () => {
  const named = new Set(cells.flatMap(codeIn))
  expect(named.size).toBeGreaterThan(25)
  const found = [...named].map((name) => {
    const file = `${name}.test.ts`
    return [name, files.filter((each) => each === file || each.endsWith(`/${file}`)).length] as const
  })
  expect(found.filter(([, count]) => count !== 1)).toEqual([])
})

test('every file and folder of code that the document names exists', async () => {
  const named = rows.flatMap((row) => codeIn(row.at(-3) ?? '')).filter((code) => /^[a-z][\w/.-]*(\/|\.ts$)/.test(code))
  expect(named.length).toBeGreaterThan(25)
  const missing: string[] = []
  for (const path of named) await access(join(ROOT, path)).catch(() => missing.push(path))
  expect(missing).toEqual([])
})
