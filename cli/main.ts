/** The process of one command: provides the terminal, the environment and interrupts to the command line. */
import { systemClock } from '../kit/sys/clock.ts'
import { environment, exitProcess, processArguments, stopSignal } from '../kit/sys/process.ts'
import { useProxies } from '../kit/sys/proxies.ts'
import { systemRandom } from '../kit/sys/random.ts'
import { flushedOutput, processTerminal } from '../kit/sys/terminal.ts'
import { EXIT } from './exit.ts'
import { run } from './run.ts'

useProxies((text) => processTerminal.writeError(`svccloud: ${text}\n`))
const signal = stopSignal()
const code = await run(processArguments(), {
  environment: environment(),
  terminal: processTerminal,
  clock: systemClock,
  random: systemRandom,
  signal,
})
const unwritten = await flushedOutput()
if (unwritten !== undefined) processTerminal.writeError(`svccloud: the output was not written: ${unwritten.message}\n`)
exitProcess(signal.aborted ? EXIT.interrupted : unwritten === undefined || code !== EXIT.ok ? code : EXIT.refused)
