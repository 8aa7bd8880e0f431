/** Exchanging the IPv6 prefix of a server whose pool is being emptied. The prefix is claimed when the operation starts;
 *  the request only checks that there is one. */
import { requireOwnMachine } from '../../../domain/managed-machine/rules.ts'
import { requireRenumberable } from '../../../domain/server/rules.ts'
import { hasFreeAddress, noFreeAddress } from '../../../db/public-pool/index.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import { factsOf, renumberServerIpv6 } from '../../../resources/server/index.ts'
import { operate } from '../../kit/change/operate.ts'
import type { Parts } from '../../kit/parts.ts'
import type { Servers } from './objects.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'

export const renumberIpv6Endpoint = (parts: Parts, servers: Servers): Endpoint =>
  customerEndpoint(renumberServerIpv6, async (call) => {
    const server = await servers.read(call.caller.accountId, call.params.id)
    requireOwnMachine(server.spec.managedBy, 'remake')
    const isAvailable = server.status?.ipv6RenumberAvailable === true
    requireRenumberable(factsOf(storedOf(server)), isAvailable)
    if (!(await hasFreeAddress(parts.db, server.spec.zone, 'server_ipv6_prefix')))
      throw noFreeAddress(
        server.spec.zone,
        'server_ipv6_prefix',
        'Try again later; the prefix that the server has works on until then.',
      )
    return operate(parts, servers, call, {
      kind: 'server.renumber_ipv6',
      validate: (facts) => requireRenumberable(facts, isAvailable),
      spec: {},
    })
  })
