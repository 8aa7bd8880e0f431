/** A thread of the pool: runs the seeds that it is sent, one after the other, on a separate database. */
import { parentPort, workerData } from 'node:worker_threads'
import { connectSimulation, simulate } from './simulate.ts'
import type { SeedRun, SeedResult } from './pool.ts'

/** Plans without indexes find rows in another order. */
const OTHER_PLANS = 'set enable_nestloop to off; set enable_indexscan to off; set enable_bitmapscan to off'
const USUAL_PLANS = 'reset enable_nestloop; reset enable_indexscan; reset enable_bitmapscan'

const client = await connectSimulation(workerData as string) // the pool gives the address

async function run({ seed, isRepeated, ...options }: SeedRun): Promise<SeedResult> {
  const result = await simulate(seed, client, options)
  if (!isRepeated) return result
  await client.query(`${OTHER_PLANS}; discard plans`)
  const again = await simulate(seed, client, options)
  await client.query(`${USUAL_PLANS}; discard plans`)
  if (again.fingerprint === result.fingerprint) return result
  return { ...result, violations: [...result.violations, 'the same seed ran differently when it ran again'] }
}

parentPort?.on('message', (seedRun: SeedRun) => {
  void run(seedRun).then(
    (result) => parentPort?.postMessage(result),
    (error: unknown) =>
      setImmediate(() => {
        throw error // which ends the thread, and the pool says why
      }),
  )
})
