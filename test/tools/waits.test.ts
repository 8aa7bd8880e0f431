import { expect, it } from 'vitest'
import { shortWaits } from '../../tools/waits.ts'

const FILE = 'test/kit/some.database.test.ts'
const rules = (source: string, file = FILE) => shortWaits(file, source).map(({ rule }) => rule)
const LESS = /^a test has no less time than its tier gives \(database, \d+ ms\)$/

it.each([
  ['a test', `test('it works', { timeout: 60_000 }, async () => {`],
  ['a test of many lines', `test('it works', {\n  timeout: 60_000,\n}, async () => {`],
  ['a hook', `beforeAll(async () => {\n  await start()\n}, 20_000)`],
  ['a test within others', `  it('works', async () => {\n  }, 20_000)`],
])('finds %s with less time than its tier', (_what, source) =>
  expect(rules(source)).toEqual([expect.stringMatching(LESS)]),
)

/** Not in one piece, for this file is looked at too. */
const SHORT = 'timeout: 10_000'

it.each([
  `await expect.poll(read, { ${SHORT} }).toBe(1)`,
  `await vi.waitFor(() => read(), { ${SHORT}, interval: 50 })`,
])('finds the condition: %s', (source) => expect(rules(source)).toEqual([expect.stringContaining('has a minute')]))

it.each([FILE, 'test/pods/node.ts'])('finds patience that has a name and is short: %s', (file) => {
  const named = (milliseconds: string) => rules(`const READY_${'MILLISECONDS'} = ${milliseconds}`, file)
  expect(named('60_000')).toEqual([expect.stringContaining('leave it out')])
  expect(named('240_000')).toEqual([])
})

it.each([
  ['more time', `test('it works', { timeout: 600_000 }, async () => {\n}, 600_000)`],
  ['what says nothing', `await expect.poll(read).toBe(1)`],
  ['a minute', `await expect.poll(read, { timeout: 60_000 }).toBe(1)`],
  ['a program', `await run('curl', [], {\n    timeout: 3_000,\n  })`],
])('has nothing against %s', (_what, source) => expect(rules(source)).toEqual([]))

it('looks at tests only', () => expect(rules('}, 10)\n}, 20_000)', 'kit/some.ts')).toEqual([]))
