/** Runs the files of a tier. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../kit/sys/clock.ts'
import { nodeBinary, printLine } from '../../kit/sys/process.ts'
import type { Tier } from '../tiers.ts'
import { causesOf, openCauses } from './open-causes.ts'
import { type Background, inModules, ROOT, succeeds } from './program.ts'
import { add, NOTHING, type Report, tallyReport, summary, type Tally, tallyOf } from './tally.ts'
import type { Choice } from './record.ts'
import type { Unchanged } from './unchanged.ts'

/** The state of a run of several tiers. */
export interface Suite {
  /** Printed at the end: facts about the run, a line each. */
  readonly lines: string[]
  /** Records which files of opt-in tiers were green; undefined where that cannot be known. */
  readonly unchanged: Unchanged | undefined
  /** Whether unchanged files of those tiers are left out. */
  readonly onlyChanged: boolean
}

interface Ended {
  readonly report: Report | undefined
  readonly isExitClean: boolean
}

/** Runs files of a tier, by their paths from the root, and returns vitest's report; undefined when there is none. */
export async function runFiles(
  tier: Pick<Tier, 'name' | 'deadlineMilliseconds'>,
  files: readonly string[],
  workers: number,
  background?: Background,
): Promise<Ended> {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-test-'))
  const reportFile = join(folder, 'report.json')
  const flags = [
    'run',
    '--project',
    tier.name,
    `--maxWorkers=${workers}`,
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${reportFile}`,
    ...files.map((file) => join(ROOT, file)),
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

/** A tier, and which of its files run; undefined for all. */
export interface Planned {
  readonly tier: Tier
  readonly choices: readonly Choice[] | undefined
}

export const plan = async (tier: Tier, { unchanged, onlyChanged }: Suite): Promise<Planned> => ({
  tier,
  choices: onlyChanged && tier.isOptIn ? await unchanged?.choose(tier) : undefined,
})

/** The files to run, if not all, and the other ones as skipped: they have no results. */
function filesToRun({ choices }: Planned, { lines }: Suite): ChosenFiles {
  if (choices === undefined) return { files: undefined, tally: NOTHING }
  for (const { file, isRun, reason } of choices) {
    if (isRun) printLine(`file ${file} runs: ${reason}`)
    else lines.push(`file ${file} did not run: ${reason}`)
  }
  const files = choices.filter(({ isRun }) => isRun).map(({ file }) => file)
  return { files, tally: { ...NOTHING, skipped: choices.length - files.length } }
}

interface ChosenFiles {
  /** Undefined for all. */
  readonly files: readonly string[] | undefined
  readonly tally: Tally
}

/** Runs a tier. A file that fails has failed, even if it would succeed alone. Only files on the list of open causes are
 *  retried once and get a line in the summary. */
async function runTier(planned: Planned, suite: Suite, background?: Background): Promise<Tally> {
  const { tier } = planned
  const { files = [], tally } = filesToRun(planned, suite)
  if (tally.skipped > 0 && files.length === 0) return tally
  const note = tier.isOptIn ? await suite.unchanged?.watch(tier) : undefined
  const startedAt = systemClock.monotonicMilliseconds()
  const { report, isExitClean } = await runFiles(tier, files, tier.workersMaximum, background)
  const spentMilliseconds = systemClock.monotonicMilliseconds() - startedAt
  if (report !== undefined) await note?.(report, spentMilliseconds * tier.workersMaximum)
  const causes = causesOf(report, await openCauses())
  if (report === undefined || causes.length === 0) return add(tally, tallyOf(report, isExitClean))
  const again = causes.map(({ file }) => file)
  printLine(`\n== ${tier.name}: a second try of ${again.join(', ')}`)
  const second = await runFiles(tier, again, 1)
  for (const { file, cause, since } of causes)
    suite.lines.push(`tier ${tier.name} tried twice: ${file}, whose cause is open since ${since}: ${cause}`)
  const others = report.testResults.filter(({ name }) => !again.some((file) => name === join(ROOT, file)))
  return [tally, tallyOf(tallyReport(others), true), tallyOf(second.report, second.isExitClean)].reduce(add)
}

export async function section(name: string, work: () => Promise<Tally>): Promise<Tally> {
  printLine(`\n== ${name}`)
  const startedAt = systemClock.monotonicMilliseconds()
  const tally = await work()
  printLine(
    `== ${name}: ${summary(tally)} in ${Math.round((systemClock.monotonicMilliseconds() - startedAt) / 1000)} s`,
  )
  return tally
}

/** Runs the tier now. */
export const runNow = (planned: Planned, suite: Suite): Promise<Tally> =>
  section(planned.tier.name, () => runTier(planned, suite))

/** Starts the tier in the background. The returned function waits for its end, then prints its output. */
export function beginTier(tier: Tier, suite: Suite, stop: AbortSignal): () => Promise<Tally> {
  const startedAt = systemClock.monotonicMilliseconds()
  const ending = (async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svccloud-test-'))
    try {
      const outputFile = join(folder, 'output')
      const tally = await runTier(await plan(tier, suite), suite, { isIdle: tier.beside === 'idle', outputFile, stop })
      const seconds = Math.round((systemClock.monotonicMilliseconds() - startedAt) / 1000)
      return { tally, seconds, output: await readFile(outputFile, 'utf8').catch(() => '') }
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })()
  ending.catch(() => {}) // the caller that awaits it gets the error
  return async () => {
    const { tally, seconds, output } = await ending
    printLine(`\n== ${tier.name}, since the beginning`)
    printLine(output.trimEnd())
    printLine(`== ${tier.name}: ${summary(tally)} in ${seconds} s beside the others`)
    return tally
  }
}
