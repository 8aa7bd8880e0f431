/** The command line against the API behind a real socket. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import type { AgentConnections } from '../../apiserver/console/consoles.ts'
import { type RunningServer, startServer } from '../../kit/http/server.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { silentLog } from '../../kit/sys/log.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { type Cloud, openCloud, type Person } from '../apiserver/cloud.ts'
import { useDatabase } from '../database.ts'
import { type Ended, runLine, type RunOptions } from './run-line.ts'

export interface World {
  readonly cloud: Cloud
  readonly owner: Person
  readonly url: string
  readonly folder: string
  /** Breaks every connection, and listens again at the same address. */
  interrupt(): Promise<void>
  /** As the owner, with a token that may write. */
  svccloud(line: readonly string[], options?: RunOptions): Promise<Ended>
}

const PACE_MILLISECONDS = 200

/** Read inside tests and hooks only. */
export function useWorld(options: { readonly agents?: AgentConnections } = {}): { readonly world: World } {
  const database = useDatabase()
  let world: World | undefined
  let server: RunningServer | undefined
  const ending = new AbortController()
  const lines = new Set<Promise<Ended>>()
  beforeAll(async () => {
    const cloud = await openCloud(database.db, options)
    const folder = await mkdtemp(join(tmpdir(), 'svccloud-cli-'))
    const listen = (port: number) =>
      startServer({
        host: '127.0.0.1',
        port,
        clock: systemClock,
        random: systemRandom,
        log: silentLog,
        service: (request) => {
          cloud.pass(PACE_MILLISECONDS)
          return cloud.app.customers(request)
        },
      })
    let running = (server = await listen(0))
    const owner = await cloud.signUp('owner@example.com')
    const url = `http://127.0.0.1:${running.port}`
    const token = await owner.token('read_write')
    world = {
      cloud,
      owner,
      url,
      folder,
      async interrupt() {
        const { port } = running
        await running.stop(0)
        running = server = await listen(port)
      },
      svccloud(line, options = {}) {
        const ended = runLine(line, {
          ...options,
          signal: AbortSignal.any([ending.signal, ...(options.signal === undefined ? [] : [options.signal])]),
          environment: { XDG_CONFIG_HOME: folder, SVCCLOUD_URL: url, SVCCLOUD_TOKEN: token, ...options.environment },
        })
        lines.add(ended)
        return ended
      },
    }
  })
  afterAll(async () => {
    ending.abort()
    await server?.stop(1_000)
    // A command that a failed test left behind still writes to the folder.
    await Promise.allSettled(lines)
    await world?.cloud.close()
    if (world !== undefined) await rm(world.folder, { recursive: true, force: true, maxRetries: 5 })
  })
  return {
    get world() {
      if (world === undefined) throw new Error('the world is there while tests run, not before')
      return world
    },
  }
}
