/** `npm run sim -- [--seeds N] [--first SEED] [--losses] [--network] [--restores] [--accidents] [--only WORK]
 *  [--without DEFENCE] [--threads N] [--record FILE] [--trace]`: runs seeds and prints those that break an invariant,
 *  and a line every fiftieth. Every hundredth seed runs twice and must end the same. With `--restores` Kubernetes and
 *  PostgreSQL are put back to older states; then only what must hold at every instant is looked at. With `--accidents`
 *  somebody deletes namespaces and takes finalizers. With `--only` people do nothing but that work, `objects`,
 *  `databases`, `kubernetes`, `balancers` or `backups`. With `--without` the world lacks a defence (`processes.ts`),
 *  and some seed must break. `--record` appends what each run reached to a file, of which `choose.ts` chooses seeds;
 *  `--trace` prints what the product logs, one seed at a time. */
import { appendFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { answerHelp } from '../../kit/sys/help.ts'
import { printLine, processArguments, setExitCode } from '../../kit/sys/process.ts'
import { startPostgres, type TestServer } from '../database.ts'
import { openPool, type SeedResult } from './pool.ts'
import { DEFENCES } from './processes.ts'
import { connectSimulation, simulate } from './simulate.ts'
import { ONLY_WORK } from './world.ts'

answerHelp(import.meta.filename)
const { values } = parseArgs({
  args: [...processArguments()],
  options: {
    seeds: { type: 'string', default: '200' },
    first: { type: 'string', default: '1' },
    threads: { type: 'string', default: '2' },
    record: { type: 'string' },
    trace: { type: 'boolean', default: false },
    losses: { type: 'boolean', default: false },
    network: { type: 'boolean', default: false },
    restores: { type: 'boolean', default: false },
    accidents: { type: 'boolean', default: false },
    only: { type: 'string' },
    without: { type: 'string' },
  },
})
const REPEAT_EVERY = 100
const PROGRESS_EVERY = 50
const VIOLATIONS_PRINTED_MAXIMUM = 20

const { losses: hasLosses, network: hasNetwork, restores: hasRestores, accidents: hasAccidents } = values
const only = ONLY_WORK.find((work) => work === values.only)
if (only !== values.only) throw new Error(`--only takes one of ${ONLY_WORK.join(', ')}`)
const without = DEFENCES.find((defence) => defence === values.without)
if (without !== values.without) throw new Error(`--without takes one of ${DEFENCES.join(', ')}`)
const options = { hasLosses, hasNetwork, hasRestores, hasAccidents, only, without }
const seeds = Array.from({ length: Number(values.seeds) }, (_, index) => Number(values.first) + index)
const totals = { seeds: 0, failed: 0, steps: 0, crashes: 0, operations: 0, virtualSeconds: 0 }

async function take(result: SeedResult): Promise<void> {
  const { seed, violations, steps, reached } = result
  totals.seeds += 1
  totals.steps += steps
  totals.crashes += result.crashes
  totals.operations += result.operations
  totals.virtualSeconds += result.virtualSeconds
  if (violations.length > 0) {
    totals.failed += 1
    setExitCode(1)
    printLine(`seed ${seed} broke ${violations.length} (faults: ${result.faults})`)
    for (const violation of violations.slice(0, VIOLATIONS_PRINTED_MAXIMUM)) printLine(`  ${violation}`)
  }
  if (totals.seeds % PROGRESS_EVERY === 0)
    printLine(`up to seed ${seed}: ${totals.seeds} seeds, ${totals.failed} failed`)
  if (values.record !== undefined)
    await appendFile(values.record, `${JSON.stringify({ seed, hasLosses, steps, reached })}\n`)
}

async function runTraced(server: TestServer): Promise<void> {
  const client = await connectSimulation((await server.createDatabase()).url)
  try {
    for (const seed of seeds) {
      const result = await simulate(seed, client, { ...options, trace: printLine })
      await take(result)
      printLine(JSON.stringify({ ...result, reached: result.reached.length }))
    }
  } finally {
    await client.end()
  }
}

async function runPooled(server: TestServer): Promise<void> {
  const databases = await Promise.all(Array.from({ length: Number(values.threads) }, () => server.createDatabase()))
  const pool = openPool(databases.map(({ url }) => url))
  try {
    const results = seeds.map((seed) => pool.run({ ...options, seed, isRepeated: seed % REPEAT_EVERY === 0 }))
    for (const result of results) result.catch(() => {}) // thrown below, in the order of the seeds
    for (const result of results) await take(await result)
  } finally {
    await pool.close()
  }
}

const server = await startPostgres()
try {
  await (values.trace ? runTraced(server) : runPooled(server))
} catch (error) {
  setExitCode(1)
  printLine(`the simulation itself failed: ${error instanceof Error ? error.stack : String(error)}`)
} finally {
  await server.stop()
}
printLine(
  `${totals.seeds} seeds, ${totals.failed} failed; ${totals.operations} operations, ${totals.crashes} crashes, ` +
    `${totals.steps} steps, ${Math.round(totals.virtualSeconds / 3600)} virtual hours`,
)
