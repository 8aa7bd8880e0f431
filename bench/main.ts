/** `npm run bench [-- --only NAME] [--seconds N]`: runs the benchmarks one after the other, each in a separate process,
 *  prints them and writes bench/RESULTS.md, also when some of them fail. With `--only` it only prints. */
import { fork } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { runProgram } from '../agents/node/run-program.ts'
import { systemClock } from '../kit/sys/clock.ts'
import { answerHelp } from '../kit/sys/help.ts'
import { printLine, processArguments, setExitCode } from '../kit/sys/process.ts'
import { benchmarkFiles, loadBenchmark } from './list.ts'
import { type Outcome, page, summary } from './results.ts'
import type { BenchResult } from './runner.ts'

/** For one benchmark, including its preparation. */
const MINUTES_MAXIMUM = 15

answerHelp(import.meta.filename)
const { values } = parseArgs({
  args: [...processArguments()],
  options: { only: { type: 'string' }, seconds: { type: 'string', default: '1' } },
})
const { only, seconds } = values
const outcomes: Outcome[] = []
for (const file of await benchmarkFiles()) {
  if (only !== undefined && !file.includes(only)) continue
  const bench = await loadBenchmark(file)
  printLine(`${bench.name}: ${bench.question}`)
  const outcome = { bench, ...(await run(file, seconds)) }
  outcomes.push(outcome)
  printLine(`  ${summary(outcome)}`)
  if (outcome.failure !== undefined) setExitCode(1)
}
if (only === undefined)
  await writeFile(new URL('RESULTS.md', import.meta.url), page(outcomes, await commit(), systemClock.now()))

/** The message of a process that runs only this benchmark. */
async function run(file: string, secondsOfSide: string): Promise<Pick<Outcome, 'result' | 'failure'>> {
  const child = fork(new URL('one.ts', import.meta.url), [file, secondsOfSide], { execArgv: ['--expose-gc'] })
  const cancel = systemClock.after(MINUTES_MAXIMUM * 60_000, () => child.kill('SIGTERM'))
  let message: { readonly result?: BenchResult; readonly failure?: string } = {}
  child.once('message', (sent) => (message = sent as typeof message)) // from one.ts
  const code = await new Promise((resolve) => child.once('exit', resolve))
  cancel()
  const { result, failure } = message
  return result === undefined ? { failure: failure ?? `its process ended with ${String(code)}` } : { result }
}

/** The measured commit, with a mark when the tree has other contents. */
async function commit(): Promise<string> {
  const git = (...input: string[]) => runProgram('git', input, { workingDirectory: import.meta.dirname })
  const changes = await git('status', '--porcelain', '--', '..', ':!RESULTS.md')
  return `${(await git('rev-parse', '--short=12', 'HEAD')).trim()}${changes === '' ? '' : ' with uncommitted changes'}`
}
