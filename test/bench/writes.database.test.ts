/** What a server costs Kubernetes from its request until it runs: a ceiling, so that nobody adds a write unnoticed. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openServers } from '../../bench/b03-reconcile.ts'
import { stopPostgres } from '../../bench/postgres.ts'

const SERVERS = 5
/** Of one server. What comes while the controllers are at it may be written together, so it can be less. */
const CEILING = {
  'create Server': 1,
  // That it has started; what is before is not shown where it takes no time.
  'patch Server status': 1,
  'create Operation': 1,
  'patch Operation status': 1,
  'apply Storage': 1,
  'patch Storage status': 1,
  'apply Volume': 1,
  'patch Volume status': 1,
  'apply Instance': 1,
  'patch Instance status': 1,
  // That its operation succeeded.
  'create Event': 1,
}
/** Comes with time, not with servers. */
const HEARTBEAT = 'patch Lease'

let servers: Awaited<ReturnType<typeof openServers>>
beforeAll(async () => {
  servers = await openServers()
  await servers.run(1)
})
afterAll(async () => {
  await servers?.close()
  await stopPostgres()
})

it('a server from its request until it runs', async () => {
  const before = servers.writesBy()
  for (let number = 0; number < SERVERS; number++) await servers.run(1)
  const written = Object.entries(servers.writesBy())
    .map(([what, count]) => [what, (count - (before[what] ?? 0)) / SERVERS] as const)
    .filter(([what, count]) => count > 0 && what !== HEARTBEAT)
  expect(written.filter(([what, count]) => count > (CEILING[what as keyof typeof CEILING] ?? 0))).toEqual([])
})
