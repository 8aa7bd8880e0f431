/** Servers that will be moved because of announced work on their hosts. */
import { Node } from '../../../resources/node/index.ts'
import type { Parts } from '../../kit/parts.ts'
import type { Servers } from './objects.ts'

/** All of the account, the earliest work first. */
export function serversWithWork({ caches }: Pick<Parts, 'caches'>, servers: Servers, accountId: string) {
  const nodes = caches.of(Node).list()
  const leaving = new Set(nodes.flatMap(({ metadata, status }) => (status?.plannedWork ? [metadata.name] : [])))
  if (leaving.size === 0) return []
  return servers
    .page(accountId, {}, undefined, Number.MAX_SAFE_INTEGER)
    .filter(({ status }) => status?.nodeName !== undefined && leaving.has(status.nodeName))
    .flatMap((server) => {
      const { id, hostname, maintenance } = servers.viewOf(server)
      return maintenance === null ? [] : [{ server_id: id, hostname, ...maintenance }]
    })
    .sort((one, other) => Date.parse(one.planned_at) - Date.parse(other.planned_at))
}
