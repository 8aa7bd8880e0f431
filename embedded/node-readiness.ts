/** Whether the hosts are known to placement: asked where that asks, in the database. A host that its operator keeps
 *  from new guests is known as well. */
import pg from 'pg'
import type { Clock } from '../kit/sys/clock.ts'

const PATIENCE_MILLISECONDS = 60_000
const POLL_MILLISECONDS = 100

/** Waits until the agents of all the nodes have reported once, or the patience ends; answers those that have not. Stops
 *  early when the signal aborts. */
export async function waitForNodes(options: {
  readonly databaseUrl: string
  readonly nodes: readonly string[]
  readonly clock: Clock
  readonly signal: AbortSignal
}): Promise<readonly string[]> {
  const { databaseUrl, nodes, clock, signal } = options
  const deadline = clock.monotonicMilliseconds() + PATIENCE_MILLISECONDS
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 })
  pool.on('error', () => undefined) // the next query says so too
  try {
    for (;;) {
      const { rows } = await pool.query<{ node: string }>('select node from node_capacity')
      const missing = nodes.filter((node) => !rows.some((row) => row.node === node))
      if (missing.length === 0 || signal.aborted || clock.monotonicMilliseconds() > deadline) return missing
      await clock.sleep(POLL_MILLISECONDS, signal)
    }
  } finally {
    await pool.end()
  }
}
