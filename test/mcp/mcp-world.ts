/** The API behind a real socket, for clients of the Model Context Protocol that know nothing of it but its address. */
import { afterAll, beforeAll } from 'vitest'
import { startServer, type RunningServer } from '../../kit/http/server.ts'
import { BUDGETS } from '../../kit/http/steps/budget.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { silentLog } from '../../kit/sys/log.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { type Cloud, openCloud, type Person, PUBLIC_KEY } from '../apiserver/cloud.ts'
import { useDatabase } from '../database.ts'

export interface McpWorld {
  readonly cloud: Cloud
  readonly owner: Person
  readonly url: string
  /** Tokens of the owner, by what they are for. */
  readonly tokens: { readonly reading: string; readonly writing: string }
  /** From now on messages come at once. */
  hurry(): void
}

/** Read inside tests and hooks only. */
export function useMcpWorld(): { readonly world: McpWorld } {
  const database = useDatabase()
  let world: McpWorld | undefined
  let server: RunningServer | undefined
  beforeAll(async () => {
    const cloud = await openCloud(database.db)
    let paceMilliseconds = 60_000 / BUDGETS.mcp.perMinute
    server = await startServer({
      host: '127.0.0.1',
      port: 0,
      clock: systemClock,
      random: systemRandom,
      log: silentLog,
      service: (request) => {
        cloud.pass(paceMilliseconds)
        return cloud.app.customers(request)
      },
    })
    const owner = await cloud.signUp('owner@example.com')
    await owner.send('POST', '/v1/ssh-keys', { body: { name: 'key', public_key: PUBLIC_KEY } })
    world = {
      cloud,
      owner,
      url: `http://127.0.0.1:${server.port}/mcp`,
      tokens: { reading: await owner.token('read'), writing: await owner.token('read_write') },
      hurry: () => void (paceMilliseconds = 0),
    }
  })
  afterAll(async () => {
    await server?.stop(1_000)
    await world?.cloud.close()
  })
  return {
    get world() {
      if (world === undefined) throw new Error('the world is there while tests run, not before')
      return world
    },
  }
}
