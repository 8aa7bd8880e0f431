import { expect, test } from 'vitest'
import { benchmarkFiles, loadBenchmark } from '../../bench/list.ts'
import { type Outcome, page } from '../../bench/results.ts'
import type { Bench, BenchResult } from '../../bench/runner.ts'

const bench: Bench = {
  name: 'B99 example',
  question: 'how fast',
  subjectName: 'ours',
  peerName: 'theirs',
  unit: 'things',
  goal: 0.5,
  limits: { writes: 0 },
  heldBy: 'the disk.',
  tier: 'database',
  open: () => Promise.reject(new Error('not opened here')),
}
const result: BenchResult = {
  ratio: 0.6,
  low: 0.5,
  high: 0.7,
  subjectPerSecond: 60,
  peerPerSecond: 100,
  pairs: 7,
  isNoisy: false,
  facts: { writes: 0 },
}
const pageOf = (...outcomes: readonly Outcome[]) => page(outcomes, '0123456789ab', new Date('2026-01-02T00:00:00Z'))

test('the page names the commit that was measured', () => {
  expect(pageOf()).toContain('on 2026-01-02 from commit 0123456789ab,')
})

test('a benchmark that failed says so in its row, and the others have theirs', () => {
  const rows = pageOf({ bench, failure: 'no\nroom | left' }, { bench, result })
  expect(rows).toContain('| B99 example | how fast | theirs | could not run: no room / left | | | |')
  expect(rows).toContain('| 0.60 (0.50-0.70) | 0.5 reached | 60.0 / 100 things/s | writes: 0 (at most 0) |')
  expect(rows).not.toContain('the disk.')
})

test.each([
  ['a ratio below its goal', { ...result, ratio: 0.4 }],
  ['a fact beyond its limit', { ...result, facts: { writes: 1 } }],
  ['a fact that is missing', { ...result, facts: {} }],
])('%s is not reached, and the page says what holds it', (_, missed) => {
  const text = pageOf({ bench, result: missed })
  expect(text).toContain('0.5 **not reached**')
  expect(text).toContain('- **B99 example**: the disk.')
})

test('every benchmark has a name and a separate tier', async () => {
  const all = await Promise.all((await benchmarkFiles()).map(loadBenchmark))
  expect(all.length).toBeGreaterThan(0)
  expect(new Set(all.map(({ name }) => name)).size).toBe(all.length)
})
