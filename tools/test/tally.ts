/** Counts the results of test runs. */

export interface Tally {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

/** The parts of vitest's JSON report that are read. */
export interface Report {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly numPendingTests: number
  readonly numTodoTests: number
  readonly testResults: readonly {
    /** The path of the file. */
    readonly name: string
    readonly status: string
    /** Moments in milliseconds. */
    readonly startTime: number
    readonly endTime: number
    readonly assertionResults: readonly { readonly status: string }[]
  }[]
}

export const NOTHING: Tally = { passed: 0, failed: 0, skipped: 0 }

export const add = (a: Tally, b: Tally): Tally => ({
  passed: a.passed + b.passed,
  failed: a.failed + b.failed,
  skipped: a.skipped + b.skipped,
})
export const summary = (tally: Tally): string =>
  `${tally.passed} passed, ${tally.failed} failed, ${tally.skipped} skipped`

/** Counts a run. A file that failed without a failed test (it did not even load) counts as one failure. So does a file
 *  without tests, a run without a report, and a run that exited with an error but reported no failure. */
export function tallyOf(report: Report | undefined, isExitClean: boolean): Tally {
  if (report === undefined) return { ...NOTHING, failed: 1 }
  const isBroken = ({ status, assertionResults }: Report['testResults'][number]) =>
    assertionResults.length === 0 || (status === 'failed' && !assertionResults.some((test) => test.status === 'failed'))
  const failed = report.numFailedTests + report.testResults.filter(isBroken).length
  return {
    passed: report.numPassedTests,
    failed: failed === 0 && !isExitClean ? 1 : failed,
    skipped: report.numPendingTests + report.numTodoTests,
  }
}

/** The report of some files of a run. */
export function tallyReport(testResults: Report['testResults']): Report {
  const count = (...statuses: readonly string[]) =>
    testResults.flatMap((file) => file.assertionResults).filter(({ status }) => statuses.includes(status)).length
  return {
    numPassedTests: count('passed'),
    numFailedTests: count('failed'),
    numPendingTests: count('skipped', 'pending'),
    numTodoTests: count('todo'),
    testResults,
  }
}
