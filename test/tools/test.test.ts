import { expect, it } from 'vitest'
import { add, parseOnly, type Report, summary, tallyOf } from '../../tools/test.ts'

const report = (counts: Partial<Report>): Report => ({
  numPassedTests: 0,
  numFailedTests: 0,
  numPendingTests: 0,
  numTodoTests: 0,
  testResults: [],
  ...counts,
})
const failedFile = (...tests: string[]) => ({ status: 'failed', assertionResults: tests.map((status) => ({ status })) })

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
  ['no report at all', undefined, false, '0 passed, 1 failed, 0 skipped'],
])('counts %s', (_name, given, isExitClean, expected) => expect(summary(tallyOf(given, isExitClean))).toBe(expected))

it('sums tiers', () =>
  expect(add({ passed: 1, failed: 2, skipped: 3 }, { passed: 10, failed: 20, skipped: 30 })).toEqual({
    passed: 11,
    failed: 22,
    skipped: 33,
  }))

it.each([
  [[], []],
  [['--only', 'unit'], ['unit']],
  [
    ['--only=unit,database', '--only', 'cluster'],
    ['unit', 'database', 'cluster'],
  ],
  [['--only', 'nonsense'], undefined],
  [['--only'], undefined],
  [['--watch'], undefined],
])('reads the command line %j', (flags, expected) => expect(parseOnly(flags)).toEqual(expected))
