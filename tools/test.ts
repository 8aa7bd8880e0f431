/** Runs the test suite tier by tier, those of virtual time and those that wait beside the others, and sums up. A tier
 *  that cannot run here is skipped, counts as one skipped test and says why; where it is requested by name it fails,
 *  unless `--skip-unavailable` is given. The last line is always `N passed, N failed, N skipped`; the exit code is 1
 *  when anything failed. */
import { spawn } from 'node:child_process'
import { mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { setPriority, tmpdir } from 'node:os'
import { delimiter, join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { systemClock } from '../kit/sys/clock.ts'
import { COMPILE_CACHE } from '../kit/sys/compile-cache.js'
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
    /** The path of the file. */
    readonly name: string
    readonly status: string
    readonly assertionResults: readonly { readonly status: string }[]
  }[]
}

const ROOT = join(import.meta.dirname, '..')
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

interface Run {
  /** For people. */
  readonly name: string
  readonly deadlineMilliseconds: number
  readonly background?: Background | undefined
}

/** What runs beside the others. */
interface Background {
  readonly isIdle: boolean
  /** Where its output goes meanwhile. */
  readonly outputFile: string
  readonly stop: AbortSignal
}

/** A second of the processor, as Linux counts it. */
const TICKS = 100
/** Fields of `/proc/self/stat` after the name of the program. */
const CHILDREN = { user: 13, system: 14 }
/** Of the programs that have ended, and of whatever they have waited for. */
let processorSeconds = 0

/** What the program that has just ended took of the processor, which says more than the clock where others run beside
 *  it; undefined where nobody counts that. */
async function processorSecondsOfLast(): Promise<number | undefined> {
  const text = await readFile('/proc/self/stat', 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const before = processorSeconds
  processorSeconds = (Number(fields[CHILDREN.user]) + Number(fields[CHILDREN.system])) / TICKS
  return processorSeconds - before
}

/** Runs a program and answers whether it ended well in time. */
async function succeeds(program: string, flags: readonly string[], options: Run): Promise<boolean> {
  const { name, deadlineMilliseconds, background } = options
  const output = background && (await open(background.outputFile, 'a'))
  const stream = output?.fd ?? 'inherit'
  const isGood = await new Promise<boolean>((resolve) => {
    const given = environment()
    const child = spawn(program, flags, {
      cwd: ROOT,
      stdio: ['ignore', stream, stream],
      ...(background && { signal: background.stop }),
      env: {
        ...given,
        PATH: [inModules('.bin'), given['PATH'] ?? ''].join(delimiter),
        // Workers, and what they start, load the same modules hundreds of times.
        NODE_COMPILE_CACHE: COMPILE_CACHE,
        ...(isTerminal() ? {} : { NO_COLOR: '1' }),
      },
    })
    // Whatever it starts inherits that.
    if (background?.isIdle === true && child.pid !== undefined) setPriority(child.pid, BACKGROUND_NICENESS)
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
  await output?.close()
  const seconds = await processorSecondsOfLast()
  if (seconds !== undefined) printLine(`== ${name}: ${Math.round(seconds)} s of the processor`)
  return isGood
}

const inModules = (path: string): string => join(ROOT, 'node_modules', path)
/** The lowest: what is idle goes on where others wait, also at the end, and takes nothing of what they can use. */
const BACKGROUND_NICENESS = 19
const CHECK_DEADLINE_MILLISECONDS = 6 * 60_000

/** The commands of `npm run check`, all at once, because the compiler has one thread: with two it checks much twice.
 *  Each prints when it has ended, and counts as one test. */
async function check(): Promise<Tally> {
  const { scripts } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as PackageScripts // our own file
  const tallies = await Promise.all(
    scripts.check.split(' && ').map(async (command) => {
      const [program = '', ...flags] = command.split(' ')
      const isGood = await succeeds(program, flags, {
        name: program,
        deadlineMilliseconds: CHECK_DEADLINE_MILLISECONDS,
      })
      if (!isGood) printLine(`failed: ${command}`)
      return { ...NOTHING, [isGood ? 'passed' : 'failed']: 1 }
    }),
  )
  return tallies.reduce(add, NOTHING)
}

interface PackageScripts {
  readonly scripts: { readonly check: string }
}

/** The files to run once more; none when more failed than the tier allows, or when it did not end by itself. */
export const filesForSecondTry = (tier: Pick<Tier, 'secondTries'>, report: Report | undefined): readonly string[] => {
  const failed = report?.testResults.filter(({ status }) => status === 'failed').map(({ name }) => name) ?? []
  return failed.length <= tier.secondTries ? failed : []
}

/** Runs the files of a tier, or those given, and answers vitest's report; undefined when there is none. */
async function runFiles(
  tier: Tier,
  files: readonly string[],
  background?: Background,
): Promise<{ readonly report: Report | undefined; readonly isExitClean: boolean }> {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-test-'))
  const reportFile = join(folder, 'report.json')
  const flags = [
    'run',
    '--project',
    tier.name,
    `--maxWorkers=${files.length === 0 ? tier.workersMaximum : 1}`,
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${reportFile}`,
    ...files,
  ]
  try {
    const isExitClean = await succeeds(nodeBinary(), [inModules('vitest/vitest.mjs'), ...flags], {
      name: tier.name,
      deadlineMilliseconds: tier.deadlineMilliseconds,
      background,
    })
    const text = await readFile(reportFile, 'utf8').catch(() => undefined)
    return { report: text === undefined ? undefined : (JSON.parse(text) as Report), isExitClean } // of vitest
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Runs a tier. A file that failed and passed at its second try gets a line in the summary: its cause is to be
 *  found. */
async function runTier(tier: Tier, lines: string[], background?: Background): Promise<Tally> {
  const { report, isExitClean } = await runFiles(tier, [], background)
  const first = tallyOf(report, isExitClean)
  const files = filesForSecondTry(tier, report)
  if (report === undefined || files.length === 0) return first
  printLine(`\n== ${tier.name}: a second try of ${files.join(', ')}`)
  const again = await runFiles(tier, files)
  const second = tallyOf(again.report, again.isExitClean)
  lines.push(`tier ${tier.name} tried twice: ${files.map((path) => relative(ROOT, path)).join(', ')}`)
  const others = report.testResults.filter(({ name }) => !files.includes(name))
  return add(tallyOf(reportOf(others), true), second)
}

const reportOf = (testResults: Report['testResults']): Report => {
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

async function section(name: string, work: () => Promise<Tally>): Promise<Tally> {
  printLine(`\n== ${name}`)
  const startedAt = systemClock.monotonicMilliseconds()
  const tally = await work()
  printLine(
    `== ${name}: ${summary(tally)} in ${Math.round((systemClock.monotonicMilliseconds() - startedAt) / 1000)} s`,
  )
  return tally
}

/** Begins the tier beside the others. What is answered waits for its end, then prints what it printed. */
function beginTier(tier: Tier, lines: string[], stop: AbortSignal): () => Promise<Tally> {
  const startedAt = systemClock.monotonicMilliseconds()
  const ending = (async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svccloud-test-'))
    try {
      const outputFile = join(folder, 'output')
      const tally = await runTier(tier, lines, { isIdle: tier.beside === 'idle', outputFile, stop })
      const seconds = Math.round((systemClock.monotonicMilliseconds() - startedAt) / 1000)
      return { tally, seconds, output: await readFile(outputFile, 'utf8') }
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })()
  ending.catch(() => {}) // thrown to whoever waits
  return async () => {
    const { tally, seconds, output } = await ending
    printLine(`\n== ${tier.name}, since the beginning`)
    printLine(output.trimEnd())
    printLine(`== ${tier.name}: ${summary(tally)} in ${seconds} s beside the others`)
    return tally
  }
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
  const { run, lines: notRun, tally } = await chooseTiers(TIERS, selection)
  const lines = [...notRun]
  let total = tally
  // Alone: beside others the compiler takes three times as much of the processor.
  if (selection.only.length === 0 || selection.only.includes(CHECK)) total = add(total, await section(CHECK, check))
  const hasOthers = run.some(({ beside }) => beside === undefined)
  const endings = hasOthers
    ? run.filter(({ beside }) => beside !== undefined).map((tier) => beginTier(tier, lines, stop))
    : []
  for (const tier of run.filter(({ beside }) => beside === undefined || !hasOthers))
    if (!stop.aborted) total = add(total, await section(tier.name, () => runTier(tier, lines)))
  for (const ending of endings) if (!stop.aborted) total = add(total, await ending())
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
