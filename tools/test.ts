/** Runs the test suite tier by tier and sums up: `npm test`, `npm test -- --only unit`, `npm run test:cluster`.
 *  A tier that cannot run here is skipped, counts as one skipped test and says why; where it is requested by name it
 *  fails, unless `--skip-unavailable` is given. The last line is always `N passed, N failed, N skipped`; the exit code
 *  is 1 when anything failed. */
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { parseArgs } from 'node:util'
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

/** Counts a run. A file that failed without a failed test (it did not even load) counts as one failure, and so does a
 *  file without tests, a run without a report, and a run that ended badly with nothing to show for it. */
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

/** Runs a program with our output and answers whether it ended well in time. */
function succeeds(program: string, flags: readonly string[], deadlineMilliseconds: number): Promise<boolean> {
  return new Promise((resolve) => {
    const given = environment()
    const child = spawn(program, flags, {
      cwd: ROOT,
      stdio: ['ignore', 'inherit', 'inherit'],
      env: {
        ...given,
        PATH: [inModules('.bin'), given['PATH'] ?? ''].join(delimiter),
        NODE_COMPILE_CACHE: COMPILE_CACHE,
        ...(isTerminal() ? {} : { NO_COLOR: '1' }),
      },
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

/** The commands of `npm run check`, one after the other; each counts as one test, also after one that failed. */
async function check(): Promise<Tally> {
  const { scripts } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as PackageScripts // our own file
  let tally = NOTHING
  for (const command of scripts.check.split(' && ')) {
    const [program = '', ...flags] = command.split(' ')
    const isGood = await succeeds(program, flags, CHECK_DEADLINE_MILLISECONDS)
    if (!isGood) printLine(`failed: ${command}`)
    tally = add(tally, { ...NOTHING, [isGood ? 'passed' : 'failed']: 1 })
  }
  return tally
}

interface PackageScripts {
  readonly scripts: { readonly check: string }
}

async function runTier(tier: Tier): Promise<Tally> {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-test-'))
  const reportFile = join(folder, 'report.json')
  const flags = [
    'run',
    '--project',
    tier.name,
    `--maxWorkers=${tier.workersMaximum}`,
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${reportFile}`,
  ]
  try {
    const isExitClean = await succeeds(
      nodeBinary(),
      [inModules('vitest/vitest.mjs'), ...flags],
      tier.deadlineMilliseconds,
    )
    const text = await readFile(reportFile, 'utf8').catch(() => undefined)
    return tallyOf(text === undefined ? undefined : (JSON.parse(text) as Report), isExitClean) // of vitest
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

export interface Selection {
  /** The tiers requested by name; none means all that are not opt-in. */
  readonly only: readonly string[]
  /** Whether a tier that is requested by name is skipped, and does not fail, where it cannot run. */
  readonly canSkip: boolean
}

/** What is run of the tiers, and a line for each that is not. */
export async function chooseTiers(
  tiers: readonly Tier[],
  { only, canSkip }: Selection,
): Promise<{ readonly run: readonly Tier[]; readonly lines: readonly string[]; readonly tally: Tally }> {
  const run: Tier[] = []
  const lines: string[] = []
  let tally = NOTHING
  for (const tier of tiers) {
    const isNamed = only.includes(tier.name)
    if (only.length > 0 && !isNamed) continue
    if (tier.isOptIn && !isNamed) {
      lines.push(`tier ${tier.name} runs on request: npm test -- --only ${tier.name}`)
      continue
    }
    const missing = await tier.missing()
    if (missing === undefined) run.push(tier)
    else if (isNamed && !canSkip) {
      lines.push(`tier ${tier.name} cannot run: ${missing}`)
      tally = add(tally, { ...NOTHING, failed: 1 })
    } else {
      lines.push(`tier ${tier.name} skipped: ${missing}`)
      tally = add(tally, { ...NOTHING, skipped: 1 })
    }
  }
  return { run, lines, tally }
}

/** Runs what is selected. When the signal aborts, what has run is summed up, and being stopped counts as a failure. */
async function runSuite(selection: Selection, stop: AbortSignal): Promise<Tally> {
  printLine(`Running as ${userDescription()}.`)
  const { run, lines, tally } = await chooseTiers(TIERS, selection)
  let total = tally
  if (selection.only.length === 0 || selection.only.includes(CHECK)) total = add(total, await section(CHECK, check))
  for (const tier of run) if (!stop.aborted) total = add(total, await section(tier.name, () => runTier(tier)))
  printLine('')
  for (const line of lines) printLine(line)
  if (!stop.aborted) return total
  printLine('stopped before the end')
  return add(total, { ...NOTHING, failed: 1 })
}

const NAMES: readonly string[] = [CHECK, ...TIERS.map((tier) => tier.name)]

/** Reads `--only a,b`, which can be given more than once, and `--skip-unavailable`; undefined when the command line
 *  makes no sense. */
export function parseSelection(flags: readonly string[]): Selection | undefined {
  try {
    const { values } = parseArgs({
      args: [...flags],
      options: {
        only: { type: 'string', multiple: true, default: [] },
        'skip-unavailable': { type: 'boolean', default: false },
      },
    })
    const only = values.only.flatMap((names) => names.split(','))
    return only.every((name) => NAMES.includes(name)) ? { only, canSkip: values['skip-unavailable'] } : undefined
  } catch {
    return undefined // an unknown flag, or one without its value
  }
}

if (import.meta.main) {
  const selection = parseSelection(processArguments())
  if (selection === undefined) {
    printErrorLine(`usage: npm test -- [--only ${NAMES.join('|')}]... [--skip-unavailable]`)
    setExitCode(2)
  } else {
    const total = await runSuite(selection, stopSignal())
    printLine(summary(total))
    setExitCode(total.failed === 0 ? 0 : 1)
  }
}
