/** Whether placement knows the hosts, according to the database that it uses. A host that its operator closed for new
 *  guests counts as known. */
import pg from 'pg'
import type { Clock } from '../kit/sys/clock.ts'

const PATIENCE_MILLISECONDS = 60_000
const POLL_MILLISECONDS = 100

/** Waits until the agents of all nodes have reported once, or until the timeout; returns the nodes that have not. Stops
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
  pool.on('error', () => undefined) // the next query also fails
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
