/** Runs the test suite tier by tier and sums up: `npm test`, `npm test -- --only unit`, `npm run test:cluster`.
 *  Says which tier is skipped and why. The last line is always `N passed, N failed, N skipped`; the exit code is 1 when
 *  anything failed. */
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../kit/sys/clock.ts'
import {
  environment,
  isTerminal,
  nodeBinary,
  printErrorLine,
  printLine,
  processArguments,
  setExitCode,
  stopSignal,
} from '../kit/sys/process.ts'
import { TIERS, type Tier, userDescription } from './tiers.ts'

export interface Tally {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

/** What is read of vitest's JSON report. */
export interface Report {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly numPendingTests: number
  readonly numTodoTests: number
  readonly testResults: readonly {
    readonly status: string
    readonly assertionResults: readonly { readonly status: string }[]
  }[]
}

const ROOT = join(import.meta.dirname, '..')
/** Of what Node compiled: the workers, and the processes that they start, load the same modules hundreds of times. */
const COMPILE_CACHE = join(ROOT, 'node_modules/.cache/compiled')
const NOTHING: Tally = { passed: 0, failed: 0, skipped: 0 }

export const add = (a: Tally, b: Tally): Tally => ({
  passed: a.passed + b.passed,
  failed: a.failed + b.failed,
  skipped: a.skipped + b.skipped,
})
export const summary = (tally: Tally): string =>
  `${tally.passed} passed, ${tally.failed} failed, ${tally.skipped} skipped`

/** Counts a run. A file that failed without a failed test (it did not even load) counts as one failure,
 *  and so does a run that ended badly with nothing to show for it. */
export function tallyOf(report: Report | undefined, isExitClean: boolean): Tally {
  if (report === undefined) return isExitClean ? NOTHING : { ...NOTHING, failed: 1 }
  const isBroken = (file: Report['testResults'][number]) =>
    file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed')
  const failed = report.numFailedTests + report.testResults.filter(isBroken).length
  return {
    passed: report.numPassedTests,
    failed: failed === 0 && !isExitClean ? 1 : failed,
    skipped: report.numPendingTests + report.numTodoTests,
  }
}

/** Runs a program with our output and answers whether it ended well in time. */
function succeeds(file: string, flags: readonly string[], deadlineMilliseconds: number): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(nodeBinary(), [file, ...flags], {
      cwd: ROOT,
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...environment(), NODE_COMPILE_CACHE: COMPILE_CACHE, ...(isTerminal() ? {} : { NO_COLOR: '1' }) },
    })
    const cancel = systemClock.after(deadlineMilliseconds, () => {
      printLine(`not finished after ${deadlineMilliseconds / 60_000} minutes: ended`)
      child.kill('SIGKILL')
    })
    child.once('error', () => resolve(false))
    child.once('exit', (code) => {
      cancel()
      resolve(code === 0)
    })
  })
}

const inModules = (path: string): string => join(ROOT, 'node_modules', path)
const CHECK_DEADLINE_MILLISECONDS = 3 * 60_000

/** The types, and the rules of the house that a compiler does not know. */
async function check(): Promise<Tally> {
  const results = [
    await succeeds(inModules('typescript/bin/tsc'), ['--noEmit'], CHECK_DEADLINE_MILLISECONDS),
    await succeeds('tools/tidy.ts', [], CHECK_DEADLINE_MILLISECONDS),
  ]
  return { passed: results.filter(Boolean).length, failed: results.filter((isGood) => !isGood).length, skipped: 0 }
}

async function runTier(tier: Tier): Promise<Tally> {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-test-'))
  const reportFile = join(folder, 'report.json')
  const flags = [
    'run',
    '--project',
    tier.name,
    '--passWithNoTests',
    `--maxWorkers=${tier.workersMaximum}`,
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${reportFile}`,
  ]
  try {
    const isExitClean = await succeeds(inModules('vitest/vitest.mjs'), flags, tier.deadlineMilliseconds)
    const text = await readFile(reportFile, 'utf8').catch(() => undefined)
    return tallyOf(text === undefined ? undefined : (JSON.parse(text) as Report), isExitClean)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function section(name: string, work: () => Promise<Tally>): Promise<Tally> {
  printLine(`\n== ${name}`)
  const startedAt = systemClock.monotonicMilliseconds()
  const tally = await work()
  printLine(
    `== ${name}: ${summary(tally)} in ${Math.round((systemClock.monotonicMilliseconds() - startedAt) / 1000)} s`,
  )
  return tally
}

const CHECK = 'check'

/** Runs the tiers named, or all that are not opt-in. When the signal aborts, what has run is summed up, and being
 *  stopped counts as a failure. */
async function runSuite(only: readonly string[], stop: AbortSignal): Promise<Tally> {
  const isWanted = (name: string, isOptIn: boolean) => (only.length === 0 ? !isOptIn : only.includes(name))
  const skippedTiers: string[] = []
  let total = NOTHING
  printLine(`Running as ${userDescription()}.`)
  if (isWanted(CHECK, false)) total = add(total, await section(CHECK, check))
  for (const tier of TIERS) {
    if (!isWanted(tier.name, tier.isOptIn) || stop.aborted) continue
    const missing = await tier.missing()
    if (missing === undefined) total = add(total, await section(tier.name, () => runTier(tier)))
    else skippedTiers.push(`tier ${tier.name} skipped: ${missing}`)
  }
  if (only.length === 0)
    for (const tier of TIERS)
      if (tier.isOptIn)
        skippedTiers.push(`tier ${tier.name} skipped: it runs when asked for (npm test -- --only ${tier.name})`)
  printLine('')
  for (const line of skippedTiers) printLine(line)
  if (!stop.aborted) return total
  printLine('stopped before the end')
  return add(total, { ...NOTHING, failed: 1 })
}

/** The tiers named by `--only a,b` or `--only a --only b`; undefined when the command line makes no sense. */
export function parseOnly(flags: readonly string[]): readonly string[] | undefined {
  const known = [CHECK, ...TIERS.map((tier) => tier.name)]
  const only: string[] = []
  for (let index = 0; index < flags.length; index += 1) {
    const flag = flags[index] ?? ''
    const value = flag.startsWith('--only=')
      ? flag.slice('--only='.length)
      : flag === '--only'
        ? flags[++index]
        : undefined
    const names = value?.split(',') ?? []
    if (names.length === 0 || names.some((name) => !known.includes(name))) return undefined
    only.push(...names)
  }
  return only
}

if (import.meta.main) {
  const only = parseOnly(processArguments())
  if (only === undefined) {
    printErrorLine(`usage: npm test -- [--only ${[CHECK, ...TIERS.map((tier) => tier.name)].join('|')}]...`)
    setExitCode(2)
  } else {
    const total = await runSuite(only, stopSignal())
    printLine(summary(total))
    setExitCode(total.failed === 0 ? 0 : 1)
  }
}
