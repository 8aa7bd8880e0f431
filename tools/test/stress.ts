/** Runs one test file again and again on a busy machine, to find random failures: `npm test -- --stress FILE`. */
import { type ChildProcess, spawn } from 'node:child_process'
import { relative, resolve } from 'node:path'
import { nodeBinary, printLine } from '../../kit/sys/process.ts'
import { tierOf } from '../tiers.ts'
import { ROOT } from './program.ts'
import { NOTHING, type Tally, tallyOf } from './tally.ts'
import { runFiles } from './tier.ts'

export const STRESS_TIMES = 20
const BUSY_LOOPS = 3
/** Ends with the process that started it, however that ends. */
const BUSY_LOOP = 'const parent = process.ppid; while (process.ppid === parent);'

/** Runs the file up to so many times and stops at the first red, whose output is the last that is printed. Counts a run
 *  as one test. */
export async function stress(given: string, times: number, stop: AbortSignal): Promise<Tally> {
  const file = relative(ROOT, resolve(given))
  const tier = tierOf(file)
  if (tier === undefined) throw new Error(`${given} is no test file`)
  const missing = await tier.missing()
  if (missing !== undefined) throw new Error(`${given} cannot run here: ${missing}`)
  const loops: ChildProcess[] = Array.from({ length: BUSY_LOOPS }, () =>
    spawn(nodeBinary(), ['-e', BUSY_LOOP], { stdio: 'ignore' }),
  )
  try {
    let passed = 0
    while (passed < times && !stop.aborted) {
      const { report, isExitClean } = await runFiles(tier, [file], 1)
      if (tallyOf(report, isExitClean).failed > 0) {
        printLine(`red in run ${passed + 1} of ${times}, beside ${BUSY_LOOPS} busy loops: ${file}`)
        return { ...NOTHING, passed, failed: 1 }
      }
      passed += 1
      printLine(`green in run ${passed} of ${times}: ${file}`)
    }
    return { ...NOTHING, passed, failed: stop.aborted ? 1 : 0 }
  } finally {
    for (const loop of loops) loop.kill('SIGKILL')
  }
}
