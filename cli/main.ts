/** The process of one command: gives the command line its terminal, its environment and its interrupt. */
import { systemClock } from '../kit/sys/clock.ts'
import { environment, exitProcess, processArguments, stopSignal } from '../kit/sys/process.ts'
import { systemRandom } from '../kit/sys/random.ts'
import { processTerminal } from '../kit/sys/terminal.ts'
import { EXIT } from './exit.ts'
import { run } from './run.ts'

const signal = stopSignal()
const code = await run(processArguments(), {
  environment: environment(),
  terminal: processTerminal,
  clock: systemClock,
  random: systemRandom,
  signal,
})
exitProcess(signal.aborted ? EXIT.interrupted : code)
