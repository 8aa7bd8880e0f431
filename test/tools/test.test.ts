import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { LONGEST, longestFirst } from '../../tools/longest-first.ts'
import { chooseTiers, parseCommand } from '../../tools/test.ts'
import { causesOf, openCauses } from '../../tools/test/open-causes.ts'
import { add, type Report, summary, tallyOf } from '../../tools/test/tally.ts'
import { type Tier, tierOf, TIERS } from '../../tools/tiers.ts'

const report = (counts: Partial<Report>): Report => ({
  numPassedTests: 0,
  numFailedTests: 0,
  numPendingTests: 0,
  numTodoTests: 0,
  testResults: [],
  ...counts,
})
const TIMES = { startTime: 1000, endTime: 3000 }
const failedFile = (...tests: string[]) => ({
  ...TIMES,
  name: 'a',
  status: 'failed',
  assertionResults: tests.map((status) => ({ status })),
})

it.each([
  ['a clean run', report({ numPassedTests: 3, numPendingTests: 1 }), true, '3 passed, 0 failed, 1 skipped'],
  [
    'a failed test',
    report({ numPassedTests: 3, numFailedTests: 1, testResults: [failedFile('failed')] }),
    false,
    '3 passed, 1 failed, 0 skipped',
  ],
  [
    'a file that did not load',
    report({ numPassedTests: 3, testResults: [failedFile()] }),
    false,
    '3 passed, 1 failed, 0 skipped',
  ],
  ['an error outside every test', report({ numPassedTests: 3 }), false, '3 passed, 1 failed, 0 skipped'],
  [
    'a file without tests',
    report({ numPassedTests: 3, testResults: [{ ...TIMES, name: 'a', status: 'passed', assertionResults: [] }] }),
    true,
    '3 passed, 1 failed, 0 skipped',
  ],
  ['no report at all', undefined, false, '0 passed, 1 failed, 0 skipped'],
  ['no report of a run that ended well', undefined, true, '0 passed, 1 failed, 0 skipped'],
])('counts %s', (_name, given, isExitClean, expected) => expect(summary(tallyOf(given, isExitClean))).toBe(expected))

it('sums tiers', () =>
  expect(add({ passed: 1, failed: 2, skipped: 3 }, { passed: 10, failed: 20, skipped: 30 })).toEqual({
    passed: 11,
    failed: 22,
    skipped: 33,
  }))

const tier = (name: string, missing?: string, isOptIn = false): Tier => {
  const [some] = TIERS
  if (some === undefined) throw new Error('there are no tiers')
  return { ...some, name, isOptIn, missing: async () => missing }
}
const TIERS_GIVEN = [tier('one'), tier('two', 'no two here'), tier('three', undefined, true), tier('four', 'no', true)]

it.each([
  [
    'all that can run, and counts what cannot as skipped',
    { only: [], canSkip: false },
    ['one'],
    [/^tier two skipped: no two here$/, /^tier three runs on request: /, /^tier four runs on request: /],
    '0 passed, 0 failed, 1 skipped',
  ],
  [
    'one by its name, and fails where it cannot run',
    { only: ['two', 'three'], canSkip: false },
    ['three'],
    [/^tier two cannot run: no two here$/],
    '0 passed, 1 failed, 0 skipped',
  ],
  [
    'one by its name, and skips it where that is allowed',
    { only: ['three', 'four'], canSkip: true },
    ['three'],
    [/^tier four skipped: no$/],
    '0 passed, 0 failed, 1 skipped',
  ],
])('runs %s', async (_what, selection, names, lines, sum) => {
  const chosen = await chooseTiers(TIERS_GIVEN, selection)
  expect(chosen.run.map(({ name }) => name)).toEqual(names)
  expect(chosen.lines).toEqual(lines.map((line) => expect.stringMatching(line)))
  expect(summary(chosen.tally)).toBe(sum)
})

const ALL = { only: [], canSkip: false, onlyChanged: false, withinSeconds: undefined }

it.each([
  [[], ALL],
  [['--only', 'unit'], { ...ALL, only: ['unit'] }],
  [
    ['--only=unit,database', '--only', 'cluster', '--skip-unavailable', '--changed'],
    { ...ALL, only: ['unit', 'database', 'cluster'], canSkip: true, onlyChanged: true },
  ],
  [['--changed', '--within', '900'], { ...ALL, onlyChanged: true, withinSeconds: 900 }],
  [['--changed', '--within', 'soon'], undefined],
  [['--changed', '--within', '0'], undefined],
  [['--within', '900'], undefined],
  [['--stress', 'test/a.test.ts'], { file: 'test/a.test.ts', times: 20 }],
  [['--stress', 'test/a.test.ts', '--times', '3'], { file: 'test/a.test.ts', times: 3 }],
  [['--stress', 'test/a.test.ts', '--times', 'often'], undefined],
  [['--times', '3'], undefined],
  [['--stress'], undefined],
  [['--only', 'nonsense'], undefined],
  [['--only'], undefined],
  [['--only='], undefined],
  [['unit'], undefined],
  [['--watch'], undefined],
])('reads the command line %j', (flags, expected) => expect(parseCommand(flags)).toEqual(expected))

const ROOT = join(import.meta.dirname, '../..')
const cause = (file: string) => ({ file, cause: 'nobody knows', since: '2026-01-01' })

it.each([
  ['nothing of files whose cause is not open', [], ['passed', 'failed'], []],
  ['a file whose cause is open', ['1'], ['passed', 'failed'], ['1']],
  ['nothing of a file that did not fail', ['0'], ['passed', 'failed'], []],
  ['nothing when another file failed as well', ['1'], ['failed', 'failed'], []],
  ['nothing when all passed', ['0'], ['passed'], []],
])('tries again %s', (_what, open, statuses, expected) => {
  const testResults = statuses.map((status, index) => ({
    ...TIMES,
    name: join(ROOT, `${index}`),
    status,
    assertionResults: [{ status }],
  }))
  expect(causesOf(report({ testResults }), open.map(cause)).map(({ file }) => file)).toEqual(expected)
})

it('tries nothing again of a run without a report', () => expect(causesOf(undefined, [cause('a')])).toEqual([]))

it('knows of every open cause which file it is of, what is known and since when', async () => {
  for (const { file, cause: known, since } of await openCauses()) {
    expect(existsSync(join(ROOT, file)), file).toBe(true)
    expect(known).toMatch(/\S/)
    expect(since).toMatch(/^\d{4}-\d{2}-\d{2}$/)
  }
})

it.each([
  ['test/tools/test.test.ts', 'unit'],
  ['test/sim/network.seeds.test.ts', 'seeds'],
  ['test/sim/seeds.test.ts', 'simulation'],
  ['test/agents/node/move.qemu-long.test.ts', 'qemu-long'],
  ['tools/test.ts', undefined],
])('knows the tier of %s', (file, name) => expect(tierOf(file)?.name).toBe(name))

it('starts with the longest files, all of which exist', () => {
  expect(LONGEST.filter((file) => !existsSync(join(ROOT, file)))).toEqual([])
  const others = ['test/one.test.ts', 'test/two.test.ts']
  const files = [...others, ...LONGEST.toReversed()].map((file) => ({ moduleId: join(ROOT, file) }))
  expect(longestFirst(files).map(({ moduleId }) => moduleId)).toEqual(
    [...LONGEST, ...others].map((file) => join(ROOT, file)),
  )
})

it('lets no test of virtual time fail because others take the processor', () => {
  const idle = TIERS.filter(({ beside }) => beside === 'idle')
  expect(idle.map(({ name }) => name)).toEqual(['simulation', 'seeds'])
  for (const { testTimeoutMilliseconds, deadlineMilliseconds } of idle)
    expect(testTimeoutMilliseconds).toBe(deadlineMilliseconds)
})
