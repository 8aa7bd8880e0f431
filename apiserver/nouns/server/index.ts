import { serverChanges } from '../../../changes/server.ts'
import { listServers, Server, usesOfServer } from '../../../resources/server/index.ts'
import { admissionOf } from '../../kit/admission/changes.ts'
import { kind } from '../../kit/admission/kind.ts'
import { objectFeed } from '../../kit/feed.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { createServerEndpoint } from './create.ts'
import { serverEndpoints } from './endpoints.ts'
import { interfaceEndpoints } from './interfaces.ts'
import { moveEndpoints } from './move.ts'
import { rebuildServerEndpoint } from './rebuild.ts'
import { renumberIpv6Endpoint } from './renumber-ipv6.ts'
import { openServers, type Servers, sourcesOfServers } from './objects.ts'

export { moveOf, requireDestination, requireBeforeCutover } from './destination.ts'
export { serversWithWork } from './work.ts'
export { chooseKeys } from './create.ts'
export type { ServerObject, Servers } from './objects.ts'

export const server = noun<Parts & { readonly servers: Servers }, { readonly servers: Servers }>({
  name: 'server',
  kinds: [
    kind(Server, {
      access: 'write',
      target: 'server',
      // A protected server is kept, even when a garbage collector deletes it.
      admission: { ...admissionOf(serverChanges), validatesCleanUp: true },
      usesOf: usesOfServer,
    }),
  ],
  open: (parts) => ({ servers: openServers(parts) }),
  endpoints: (parts) => [
    createServerEndpoint(parts, parts.servers),
    rebuildServerEndpoint(parts, parts.servers),
    ...serverEndpoints(parts, parts.servers),
    ...interfaceEndpoints(parts, parts.servers),
    ...moveEndpoints(parts, parts.servers),
    renumberIpv6Endpoint(parts, parts.servers),
  ],
  feeds: ({ servers, caches }) => [objectFeed('server', listServers, servers, sourcesOfServers(caches, servers))],
})
