/** Moving a server to another node, and a stopped one to another zone too. The node is chosen when the operation
 *  starts; the request only checks that there is one. */
import { badField, conflict, unavailable } from '../../../domain/problem.ts'
import { findServerGroup } from '../../../db/server-group/index.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { moveServer } from '../../../resources/server/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import { operate } from '../../kit/change/operate.ts'
import { moveOf, requireDestination } from './destination.ts'
import type { Parts } from '../../kit/parts.ts'
import type { ServerObject, Servers } from './objects.ts'

export const moveEndpoints = (parts: Parts, servers: Servers): readonly Endpoint[] => [
  customerEndpoint(moveServer, async (call) => {
    const {
      caller: { accountId },
      params: { id },
      body,
      now,
    } = call
    const server = await servers.read(accountId, id)
    servers.requireOwn(server)
    const { power, ...move } = moveOf(server)
    const zone = body.zone != null && body.zone !== server.spec.zone ? body.zone : undefined
    if (zone !== undefined) await requireLeave(parts, { accountId, server, power }, zone)
    await requireDestination(parts, { accountId, server }, zone === undefined ? {} : { zone }, now)
    return operate(parts, servers, call, {
      ...move,
      spec: {},
      ...(zone === undefined
        ? {}
        : {
            arguments: { target_zone: zone },
            changes: () => [{ field: 'zone', before: server.spec.zone, after: zone }],
          }),
    })
  }),
]

interface Leaving {
  readonly accountId: string
  readonly server: ServerObject
  readonly power: 'started' | 'stopped'
}

/** Throws 400 for a zone outside the server's region, 409 for anything that binds it to its own, and 503 where no new
 *  guests are accepted. */
async function requireLeave(
  { caches, db, store }: Parts,
  { accountId, server, power }: Leaving,
  name: string,
): Promise<void> {
  const [zone, own] = [name, server.spec.zone].map((one) => caches.of(Zone).get({ name: one }))
  if (zone === undefined || zone.spec.region !== own?.spec.region)
    throw badField('zone', `must be a zone of the region of ${server.spec.zone}`)
  const {
    metadata: { name: serverId, namespace = '' },
    spec: { serverGroupId: groupId },
  } = server
  if (power === 'started')
    throw conflict('server_not_stopped', 'Only a stopped server can leave its zone. Stop it first.', {
      resource: { type: 'server', id: serverId },
    })
  const { items: storages } = await store.list(Storage, { namespace, fieldSelector: `spec.serverId=${serverId}` })
  const local = storages.find(({ spec }) => spec.tier === 'local-nvme')
  if (local !== undefined)
    throw conflict('in_use', 'The server has a local-nvme storage, which stays in its zone.', {
      resource: { type: 'storage', id: local.metadata.name },
    })
  const group = groupId === undefined ? undefined : await findServerGroup(db, { accountId, groupId })
  if (group !== undefined && group.zone !== null && group.zone !== name)
    throw conflict('in_use', `The server is of a group for servers in zone ${group.zone}.`, {
      resource: { type: 'server_group', id: group.id },
    })
  if (zone.spec.isClosed) throw unavailable('no_capacity', 'The zone takes no new servers.')
}
