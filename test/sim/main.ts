/** `npm run sim -- [--seeds N] [--first SEED] [--trace] [--losses]`: runs seeds one after the other and prints those
 *  that break an invariant, and a line every
 *  fiftieth. Every hundredth seed runs twice and must end the same. */
import { parseArgs } from 'node:util'
import { printLine, processArguments, setExitCode } from '../../kit/sys/process.ts'
import { startPostgres } from '../database.ts'
import { connectSimulation, simulate } from './simulate.ts'

const { values } = parseArgs({
  args: [...processArguments()],
  options: {
    seeds: { type: 'string', default: '200' },
    first: { type: 'string', default: '1' },
    trace: { type: 'boolean', default: false },
    losses: { type: 'boolean', default: false },
  },
})
const REPEAT_EVERY = 100
const PROGRESS_EVERY = 50

const server = await startPostgres()
const { url } = await server.createDatabase()
const database = await connectSimulation(url)
const totals = { seeds: 0, failed: 0, steps: 0, crashes: 0, operations: 0, virtualSeconds: 0 }
try {
  const first = Number(values.first)
  for (let seed = first; seed < first + Number(values.seeds); seed++) {
    const result = await simulate(seed, database, {
      trace: values.trace ? printLine : undefined,
      hasLosses: values.losses,
    })
    const again = seed % REPEAT_EVERY === 0 ? await simulate(seed, database, { hasLosses: values.losses }) : result
    const violations = [
      ...result.violations,
      ...(again.fingerprint === result.fingerprint ? [] : ['the same seed ran differently']),
    ]
    totals.seeds += 1
    totals.steps += result.steps
    totals.crashes += result.crashes
    totals.operations += result.operations
    totals.virtualSeconds += result.virtualSeconds
    if (violations.length > 0) {
      totals.failed += 1
      setExitCode(1)
      printLine(`seed ${seed} broke ${violations.length} (faults: ${result.faults})`)
      for (const violation of violations.slice(0, 20)) printLine(`  ${violation}`)
    } else if (values.trace) printLine(JSON.stringify(result))
    if (totals.seeds % PROGRESS_EVERY === 0)
      printLine(`up to seed ${seed}: ${totals.seeds} seeds, ${totals.failed} failed`)
  }
} catch (error) {
  setExitCode(1)
  printLine(`the simulation itself failed: ${error instanceof Error ? error.stack : String(error)}`)
} finally {
  await database.end()
  await server.stop()
}
printLine(
  `${totals.seeds} seeds, ${totals.failed} failed; ${totals.operations} operations, ${totals.crashes} crashes, ` +
    `${totals.steps} steps, ${Math.round(totals.virtualSeconds / 3600)} virtual hours`,
)
