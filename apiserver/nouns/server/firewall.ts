/** Reading and replacing the firewall of a server. */
import { withoutNetworks } from '../../../changes/kit/zone.ts'
import { FIREWALL_RULES_MAXIMUM, type Firewall } from '../../../domain/server/firewall.ts'
import { quotaExceeded } from '../../../domain/problem.ts'
import { requireIdle } from '../../../domain/server/rules.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import { capabilitiesOf, Zone } from '../../../resources/catalog/index.ts'
import {
  getServerFirewall,
  setServerFirewall,
  storedFirewall,
  toFirewall,
  toFirewallView,
} from '../../../resources/server/index.ts'
import { begin } from '../../kit/change/operate.ts'
import type { Parts } from '../../kit/parts.ts'
import { etagOfObject } from '../../kit/plain/objects.ts'
import type { Servers } from './objects.ts'

export const firewallEndpoints = (parts: Parts, servers: Servers): readonly Endpoint[] => [
  customerEndpoint(getServerFirewall, async ({ caller, params }) => {
    const server = await servers.read(caller.accountId, params.id)
    return { status: 200, body: { firewall: toFirewallView(server) }, headers: { etag: etagOfObject(server) } }
  }),
  customerEndpoint(setServerFirewall, async (call) => {
    const { caller, params } = call
    const firewall = toFirewall(call.body)
    const server = await servers.read(caller.accountId, params.id)
    servers.requireOwn(server)
    requireFilter(parts, server.spec.zone, firewall)
    const operation = await begin(parts, servers, call, {
      kind: 'server.firewall',
      validate: requireIdle,
      spec: { firewall: storedFirewall(firewall) },
    })
    const written = servers.find(caller.accountId, params.id) ?? (await servers.read(caller.accountId, params.id))
    return { status: 202, body: { firewall: toFirewallView(written), operation } }
  }),
]

/** Throws 422 for one with too many rules, and 409 when nothing in the zone would enforce it. A disabled firewall has
 *  no effect anywhere. */
export function requireFilter({ caches }: Pick<Parts, 'caches'>, zone: string, firewall: Firewall | undefined): void {
  const rules = firewall?.rules.length ?? 0
  if (rules > FIREWALL_RULES_MAXIMUM)
    throw quotaExceeded({ name: 'firewall_rules', limit: FIREWALL_RULES_MAXIMUM, used: 0, requested: rules })
  const object = caches.of(Zone).get({ name: zone })
  const capabilities: readonly string[] = object === undefined ? [] : capabilitiesOf(object)
  if (firewall?.enabled !== true || object === undefined || capabilities.includes('private_networks')) return
  throw withoutNetworks(object, `Nothing in zone ${zone} filters packets of servers`, 'private_networks')
}
