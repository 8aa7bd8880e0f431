/** The consoles of all servers that have viewers, and how their input reaches the hosts. */
import { conflict, rateLimited, unavailable } from '../../domain/problem.ts'
import { keyText } from '../../kit/kube/object.ts'
import type { Parts } from '../kit/parts.ts'
import type { ServerObject, Servers } from '../nouns/server/index.ts'
import { storedOf } from '../../resources/kit/shapes.ts'
import { stateOf } from '../../resources/server/index.ts'
import { type Console, type ConsoleLine, openConsole, type Whereabouts } from './console.ts'

/** The agents of the hosts, as the console needs them. `instance` is the uid of the Server. */
export interface AgentConnections {
  follow(node: string, instance: string, signal: AbortSignal): AsyncIterable<ConsoleLine>
  /** `stopped`: no guest runs there. `unreachable`: the host or the guest's serial port does not answer now. */
  write(node: string, instance: string, bytes: Uint8Array): Promise<'written' | 'stopped' | 'unreachable'>
}

/** Viewers of one console in one process. */
const WATCHERS_MAXIMUM = 100
const RETRY_SECONDS = 10

export interface Consoles {
  /** The console of the server; all viewers share it. */
  of(server: ServerObject): Console
  /** Throws 429 when it has too many viewers. */
  requireRoom(server: ServerObject): void
  /** Throws 409 `server_stopped` for a server that is known not to run. */
  requireWritable(server: ServerObject): void
  /** Throws 409 `server_stopped` and 503 `host_unreachable`. */
  write(server: ServerObject, bytes: Uint8Array): Promise<void>
}

/** One console for each server, shared by all its viewers. */
export function openConsoles(
  { clock, random }: Pick<Parts, 'clock' | 'random'>,
  { cache }: Servers,
  agents: AgentConnections,
): Consoles {
  const consoles = new Map<string, Console>()
  const listeners = new Map<string, (now: Whereabouts | undefined) => void>()
  cache.subscribe(({ is, object }) =>
    listeners.get(uidOf(object))?.(is === 'removed' ? undefined : whereaboutsOf(object)),
  )

  const open = (server: ServerObject): Console => {
    const uid = uidOf(server)
    const key = { namespace: server.metadata.namespace ?? '', name: server.metadata.name }
    return openConsole({
      clock,
      random,
      follow: (node, signal) => agents.follow(node, uid, signal),
      watch: (changed) => {
        listeners.set(uid, changed)
        changed(whereaboutsOf(cache.get(key) ?? server))
        return () => listeners.delete(uid)
      },
      onEmpty: () => consoles.delete(uid),
    })
  }

  return {
    of(server) {
      const uid = uidOf(server)
      const known = consoles.get(uid) ?? open(server)
      consoles.set(uid, known)
      return known
    },
    requireRoom(server) {
      const watchers = consoles.get(uidOf(server))?.watchers ?? 0
      if (watchers >= WATCHERS_MAXIMUM) throw rateLimited(RETRY_SECONDS, 'Too many watch this console already.')
    },
    requireWritable: (server) => void requireNode(server),
    async write(server, bytes) {
      const node = requireNode(server)
      const outcome = await agents.write(node, uidOf(server), bytes)
      if (outcome === 'stopped') throw serverStopped(server)
      if (outcome === 'unreachable')
        throw unavailable('host_unreachable', 'The console of the server cannot be reached now. Try again.')
    },
  }
}

/** Every stored object has one. */
const uidOf = (server: ServerObject): string => server.metadata.uid ?? keyText(server.metadata)
const whereaboutsOf = (server: ServerObject): Whereabouts => ({
  state: stateOf(storedOf(server)),
  node: server.status?.nodeName,
})

function requireNode(server: ServerObject): string {
  const { node, state } = whereaboutsOf(server)
  if (node === undefined || (state !== 'started' && state !== 'stopping')) throw serverStopped(server)
  return node
}

const serverStopped = (server: ServerObject) =>
  conflict('server_stopped', 'The server does not run.', { resource: { type: 'server', id: server.metadata.name } })
