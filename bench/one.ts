/** Runs one benchmark in a separate process and sends its `BenchResult`; started with fork by `main.ts`, with the name
 *  of the file and the seconds of each side of a pair. */
import { exitProcess, processArguments, sendAndExit, stopSignal } from '../kit/sys/process.ts'
import { loadBenchmark } from './list.ts'
import { stopPostgres } from './postgres.ts'
import { measure } from './runner.ts'

const [file = '', seconds = ''] = processArguments()
stopSignal().addEventListener('abort', () => void stopPostgres().finally(() => exitProcess(1)))
try {
  const result = await measure(await loadBenchmark(file), Number(seconds))
  await stopPostgres()
  await sendAndExit({ result }, 0)
} catch (error) {
  await stopPostgres().catch(() => {})
  await sendAndExit({ failure: error instanceof Error ? error.message : String(error) }, 1)
}
