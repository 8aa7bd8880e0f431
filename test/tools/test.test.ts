import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { LONGEST, longestFirst } from '../../tools/longest-first.ts'
import { add, chooseTiers, filesForSecondTry, parseSelection, type Report, summary, tallyOf } from '../../tools/test.ts'
import { type Tier, TIERS } from '../../tools/tiers.ts'

const report = (counts: Partial<Report>): Report => ({
  numPassedTests: 0,
  numFailedTests: 0,
  numPendingTests: 0,
  numTodoTests: 0,
  testResults: [],
  ...counts,
})
const failedFile = (...tests: string[]) => ({
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
    report({ numPassedTests: 3, testResults: [{ name: 'a', status: 'passed', assertionResults: [] }] }),
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

it.each([
  [[], { only: [], canSkip: false }],
  [['--only', 'unit'], { only: ['unit'], canSkip: false }],
  [
    ['--only=unit,database', '--only', 'cluster', '--skip-unavailable'],
    { only: ['unit', 'database', 'cluster'], canSkip: true },
  ],
  [['--only', 'nonsense'], undefined],
  [['--only'], undefined],
  [['--only='], undefined],
  [['unit'], undefined],
  [['--watch'], undefined],
])('reads the command line %j', (flags, expected) => expect(parseSelection(flags)).toEqual(expected))

it.each([
  ['the files that failed', 2, ['passed', 'failed', 'failed'], ['1', '2']],
  ['nothing of a tier that owns its time', 0, ['failed'], []],
  ['nothing when too many failed', 2, ['failed', 'failed', 'failed'], []],
  ['nothing when all passed', 2, ['passed'], []],
])('tries again %s', (_what, secondTries, statuses, expected) => {
  const testResults = statuses.map((status, index) => ({ name: `${index}`, status, assertionResults: [{ status }] }))
  expect(filesForSecondTry({ secondTries }, report({ testResults }))).toEqual(expected)
})

it('tries nothing again of a run without a report', () =>
  expect(filesForSecondTry({ secondTries: 2 }, undefined)).toEqual([]))

it('tries again only where programs of others run in real time', () =>
  expect(TIERS.filter(({ secondTries }) => secondTries > 0).map(({ name }) => name)).toEqual([
    'qemu',
    'postgresql',
    'kubernetes',
    'csi',
    'network',
    'fencing',
    'ceph',
    'pods',
    'e2e',
    'database',
    'kubectl',
    'objects',
    'bench',
    'endurance',
    'cluster',
    'qemu-long',
    'network-long',
    'e2e-long',
    'kubernetes-long',
    'kubectl-long',
    'postgresql-long',
    'database-long',
  ]))

it('begins with the longest files, which are all there', () => {
  const root = join(import.meta.dirname, '../..')
  expect(LONGEST.filter((file) => !existsSync(join(root, file)))).toEqual([])
  const others = ['test/one.test.ts', 'test/two.test.ts']
  const files = [...others, ...LONGEST.toReversed()].map((file) => ({ moduleId: join(root, file) }))
  expect(longestFirst(files).map(({ moduleId }) => moduleId)).toEqual(
    [...LONGEST, ...others].map((file) => join(root, file)),
  )
})

it('lets no test of virtual time fail because others take the processor', () => {
  const idle = TIERS.filter(({ beside }) => beside === 'idle')
  expect(idle.map(({ name }) => name)).toEqual(['simulation', 'seeds'])
  for (const { testTimeoutMilliseconds, deadlineMilliseconds } of idle)
    expect(testTimeoutMilliseconds).toBe(deadlineMilliseconds)
})
