/** Runs the test suite tier by tier, with the tiers of virtual time and those that wait in the background, and sums up.
 *  A tier that cannot run here is skipped, counts as one skipped test and prints why. When it is requested by name it
 *  fails, unless `--skip-unavailable` is given. With `--changed`, files of opt-in tiers whose inputs are the same as
 *  when they were green are left out, except for a third, and with `--within SECONDS` those for
 *  which that time does not suffice; each counts as one skipped test. The last line is always `N
 *  passed, N failed, N skipped`; the exit code is 1 when anything failed. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { answerHelp } from '../kit/sys/help.ts'
import { systemClock } from '../kit/sys/clock.ts'
import { printErrorLine, printLine, processArguments, setExitCode, stopSignal } from '../kit/sys/process.ts'
import { ROOT, succeeds } from './test/program.ts'
import { stress, STRESS_TIMES } from './test/stress.ts'
import { add, NOTHING, summary, type Tally } from './test/tally.ts'
import { beginTier, plan, type Planned, runNow, section } from './test/tier.ts'
import { Room } from './test/room.ts'
import { Unchanged } from './test/unchanged.ts'
import { TIERS, type Tier, userDescription } from './tiers.ts'

const CHECK_DEADLINE_MILLISECONDS = 6 * 60_000

/** The commands of `npm run check`, all at once, because the compiler has one thread: with two threads, it checks much
 *  twice. Each prints when it has ended, and counts as one test. */
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

const CHECK = 'check'
const monotonic = () => systemClock.monotonicMilliseconds()

export interface Selection {
  /** The tiers requested by name; none means all that are not opt-in. */
  readonly only: readonly string[]
  /** Whether a tier that is requested by name is skipped instead of failing when it cannot run. */
  readonly canSkip: boolean
  /** Whether unchanged files of opt-in tiers are left out. */
  readonly onlyChanged: boolean
  /** With the former: files for which this time does not suffice are left out too. */
  readonly withinSeconds: number | undefined
}

/** The files to run of the tiers, and a line for each that is left out. */
export async function chooseTiers(
  tiers: readonly Tier[],
  { only, canSkip }: Pick<Selection, 'only' | 'canSkip'>,
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

/** Runs what is selected. When the signal aborts, the results so far are summed up, and the interruption counts as a
 *  failure. */
async function runSuite(selection: Selection, stop: AbortSignal): Promise<Tally> {
  printLine(`Running as ${userDescription()}.`)
  const { run, lines, tally } = await chooseTiers(TIERS, selection)
  const unchanged = run.some(({ isOptIn }) => isOptIn) ? await Unchanged.open() : undefined
  const suite = { lines: [...lines], unchanged, onlyChanged: selection.onlyChanged }
  let total = tally
  // Alone: beside others, the compiler uses three times as much processor time.
  if (selection.only.length === 0 || selection.only.includes(CHECK)) total = add(total, await section(CHECK, check))
  const hasOthers = run.some(({ beside }) => beside === undefined)
  const endings = hasOthers
    ? run.filter(({ beside }) => beside !== undefined).map((tier) => beginTier(tier, suite, stop))
    : []
  const foreground = run.filter(({ beside }) => beside === undefined || !hasOthers)
  let waiting: readonly Planned[] = await Promise.all(foreground.map((tier) => plan(tier, suite)))
  const room = selection.withinSeconds === undefined ? undefined : new Room(selection.withinSeconds, monotonic)
  while (!stop.aborted) {
    const [next, ...rest] = room?.fit(waiting) ?? waiting
    if (next === undefined) break
    const work = () => runNow(next, suite)
    total = add(total, await (room?.measure(next, work) ?? work()))
    waiting = rest
  }
  for (const ending of endings) if (!stop.aborted) total = add(total, await ending())
  printLine('')
  for (const line of suite.lines) printLine(line)
  if (!stop.aborted) return total
  printLine('stopped before the end')
  return add(total, { ...NOTHING, failed: 1 })
}

const NAMES: readonly string[] = [CHECK, ...TIERS.map((tier) => tier.name)]

/** One test file, again and again. */
export interface Stress {
  readonly file: string
  readonly times: number
}

/** Reads `--only a,b`, which can be given more than once, `--skip-unavailable`, `--changed` and `--within SECONDS`, or
 *  `--stress FILE` with `--times N`; undefined for an invalid command line. */
export function parseCommand(flags: readonly string[]): Selection | Stress | undefined {
  try {
    const { values } = parseArgs({
      args: [...flags],
      options: {
        only: { type: 'string', multiple: true, default: [] },
        'skip-unavailable': { type: 'boolean', default: false },
        changed: { type: 'boolean', default: false },
        within: { type: 'string' },
        stress: { type: 'string' },
        times: { type: 'string' },
      },
    })
    if (values.stress !== undefined) {
      const times = Number(values.times ?? STRESS_TIMES)
      return Number.isSafeInteger(times) && times > 0 ? { file: values.stress, times } : undefined
    }
    if (values.times !== undefined) return undefined
    const only = values.only.flatMap((names) => names.split(','))
    const withinSeconds = values.within === undefined ? undefined : Number(values.within)
    if (withinSeconds !== undefined && !(values.changed && withinSeconds > 0)) return undefined
    const selection = { only, canSkip: values['skip-unavailable'], onlyChanged: values.changed, withinSeconds }
    return only.every((name) => NAMES.includes(name)) ? selection : undefined
  } catch {
    return undefined // an unknown flag, or one without its value
  }
}

const USAGE = `usage: npm test -- [--only ${NAMES.join('|')}]... [--skip-unavailable] [--changed [--within SECONDS]]
       npm test -- --stress FILE [--times N]`

if (import.meta.main) {
  answerHelp(import.meta.filename, USAGE)
  const command = parseCommand(processArguments())
  if (command === undefined) {
    printErrorLine(USAGE)
    setExitCode(2)
  } else {
    const isStress = 'file' in command
    const total = isStress
      ? await stress(command.file, command.times, stopSignal())
      : await runSuite(command, stopSignal())
    printLine(summary(total))
    setExitCode(total.failed === 0 ? 0 : 1)
  }
}
