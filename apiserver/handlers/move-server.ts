/** Moving a server to another node: live while it runs, as it is while it is stopped. The node is chosen when the operation begins; that
 *  there is one is asked before. */
import { badField, conflict } from '../../domain/problem.ts'
import { requireMovable } from '../../domain/server-rules.ts'
import { requireTarget } from '../../db/moves.ts'
import { customerEndpoint, type Endpoint } from '../../kit/http/endpoint.ts'
import { newUuid } from '../../kit/sys/random.ts'
import { Plan, Zone } from '../../resources/platform.ts'
import { factsOf, moveServer, stateOf } from '../../resources/server-routes.ts'
import { operate } from '../begin.ts'
import type { Parts } from '../parts.ts'
import type { ServerObject, Servers } from '../servers.ts'
import { storedOf } from '../stored.ts'

const MEBIBYTES_PER_GIBIBYTE = 1_024

export const moveEndpoints = (parts: Parts, servers: Servers): readonly Endpoint[] => [
  customerEndpoint(moveServer, async (call) => {
    const { caller: { accountId }, params: { id }, body, now } = call
    const server = await servers.read(accountId, id)
    const stored = storedOf(server)
    const power = stateOf(stored) === 'stopped' ? 'stopped' : 'started'
    requireMovable(factsOf(stored), power)
    if (body.zone != null && body.zone !== server.spec.zone) requireSameZone(parts, server, body.zone, power)
    const { cpuPool } = parts.caches.of(Plan).get({ name: server.spec.plan })?.spec ?? {}
    await requireTarget(parts.db, { accountId, serverId: id, operationId: newUuid(parts.random), cpuPool }, now)
    const { memoryMebibytes = 0, storageGibibytes = 0 } = server.status ?? {}
    return operate(parts, servers, call, {
      kind: power === 'started' ? 'server.migrate' : 'server.move', judge: (facts) => requireMovable(facts, power), spec: {}, gibibytes: memoryMebibytes / MEBIBYTES_PER_GIBIBYTE + storageGibibytes,
    })
  }),
]

/** A server's disk, name and addresses are of its zone. */
function requireSameZone({ caches }: Parts, server: ServerObject, name: string, power: 'started' | 'stopped'): never {
  const [zone, own] = [name, server.spec.zone].map((one) => caches.of(Zone).get({ name: one }))
  if (zone === undefined || zone.spec.region !== own?.spec.region) throw badField('zone', `must be a zone of the region of ${server.spec.zone}`)
  const resource = { type: 'server', id: server.metadata.name }
  if (power === 'started') throw conflict('server_not_stopped', 'Only a stopped server could leave its zone.', { resource })
  throw conflict('zone_capability_missing', `The disk of the server cannot leave zone ${server.spec.zone}. Make a new server in zone ${name}.`, { resource })
}
