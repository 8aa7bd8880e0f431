import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync } from 'oxc-parser'
import { describe, expect, test } from 'vitest'
import { mutantsOf, mutated } from '../../../tools/mutation/operators.ts'

const ROOT = join(import.meta.dirname, '../../..')
/** What becomes of the source, by mutant. */
const become = (source: string) => mutantsOf('x.ts', source).map((mutant) => mutated(source, mutant))

test.each<readonly [string, string, readonly string[]]>([
  ['comparisons', 'a === b', ['a !== b', ';']],
  ['bounds', 'a < b', ['a <= b', 'a >= b', ';']],
  ['logic', 'f(a && b)', ['f(a || b)', ';']],
  ['defaults', 'f(a ?? b)', ['f((b))', ';']],
  ['negations', 'f(!a)', ['f(a)', ';']],
  ['arithmetic', 'f(a * b)', ['f(a / b)', ';']],
  ['sums of numbers', 'f(a + b)', ['f(a - b)', ';']],
  ['no sums of texts', "f(a + 'b')", [';']],
  ['numbers', 'f(7)', ['f(8)', ';']],
  ['booleans', 'f(true)', ['f(false)', ';']],
  ['texts that are compared', "f(a === 'b')", ["f(a !== 'b')", "f(a === 'mutated')", ';']],
  ['no other texts', "f('a sentence')", [';']],
  ['methods', 'f(a.some(b))', ['f(a.every(b))', ';']],
  ['conditions', 'const a = b ? c : d', ['const a = true ? c : d', 'const a = false ? c : d']],
  ['thrown errors', 'function f() { throw g() }', ['function f() { ; }']],
  [
    'early returns',
    'function f() { if (a) return b\n return c }',
    [
      'function f() { if (true) return b\n return c }',
      'function f() { if (false) return b\n return c }',
      'function f() { if (a) ;\n return c }',
    ],
  ],
  ['no types', 'const a: 1 | 2 = b as 3', []],
  [
    'what is inside a cast',
    'const a = (b < c) as boolean',
    ['const a = (b <= c) as boolean', 'const a = (b >= c) as boolean'],
  ],
  ['no imports', "import a from 'b'; export * from 'c'; export { d } from 'e'", []],
  ['what is exported', 'export const a = 1', ['export const a = 2']],
  ['no log lines', "log.info('a', { b: 1 })", []],
])('%s are mutated', (_what, source, expected) => {
  const all = become(source)
  expect([...all].sort()).toEqual([...expected].sort())
})

describe("mutants of the product's source", () => {
  const names = readdirSync(join(ROOT, 'domain'), { encoding: 'utf8', recursive: true })
  const files = names.filter((name) => name.endsWith('.ts')).map((name) => `domain/${name}`)
  test('can all be parsed, differ from it and from each other, and are on the line that they say', () => {
    for (const file of files) {
      const source = readFileSync(join(ROOT, file), 'utf8')
      const mutants = mutantsOf(file, source)
      const texts = mutants.map((mutant) => mutated(source, mutant))
      expect(new Set([source, ...texts]).size, file).toBe(mutants.length + 1)
      for (const [index, { line }] of mutants.entries()) {
        const text = texts[index] ?? ''
        expect(parseSync(file, text).errors, `${file}:${line}`).toEqual([])
        const [before, after] = [source.split('\n').slice(0, line - 1), text.split('\n').slice(0, line - 1)]
        expect(after, `${file}:${line}`).toEqual(before)
      }
    }
  })
  test('are the same each time', () => {
    const source = readFileSync(join(ROOT, 'domain/account/quota.ts'), 'utf8')
    expect(mutantsOf('a.ts', source)).toEqual(mutantsOf('a.ts', source))
  })
})

test('what is no TypeScript is said', () => expect(() => mutantsOf('x.ts', 'const =')).toThrow('x.ts'))
