/** A customer's router in OVN: pure. It has a port in each of its networks, on every host. With NAT it has a second
 *  half, on one node at a time, with an address in the zone's public network that its guests share toward the
 *  outside. */
import { defined } from '../../../domain/defined.ts'
import type { StaticRoute } from '../../../domain/network/rules.ts'
import {
  ACL_PRIORITY_MOST,
  customerRouter,
  edgeSwitch,
  macOfAddress,
  natRouter,
  ROUTER_OPTIONS,
  routerMac,
} from './names.ts'
import { networkPorts, type PortNetwork, routerPort, switchPort } from './router-port.ts'
import type { Row, RowRef } from './row.ts'

export interface RouterFacts {
  readonly zone: string
  readonly id: string
  readonly networks: readonly PortNetwork[]
  readonly staticRoutes: readonly Pick<StaticRoute, 'destination' | 'nextHop'>[]
  /** Its address in the public network, and its next hop there. */
  readonly nat?: { readonly address: string; readonly prefix: number; readonly gateway: string } | undefined
  /** Reachable nodes that may carry the traffic to the outside: one of them does. */
  readonly gatewayNodes: readonly string[]
}

export function routerRows(facts: RouterFacts): readonly Row[] {
  const { id, networks, staticRoutes, nat } = facts
  const own = customerRouter(id)
  return [
    { ...own, columns: { name: own.key, options: ROUTER_OPTIONS } },
    ...networks.flatMap((network) => networkPorts(own, network)),
    ...staticRoutes.map(({ destination, nextHop }) => route(own, destination, nextHop)),
    ...(nat === undefined ? [] : natRows(facts, own, nat)),
  ]
}

const route = (own: RowRef, destination: string, nextHop: string, port?: string): Row => ({
  table: 'Logical_Router_Static_Route',
  key: `${own.key}-${destination}`,
  parent: { ...own, column: 'static_routes' },
  columns: { ip_prefix: destination, nexthop: nextHop, output_port: port === undefined ? [] : [port] },
})

/** The link between the router and its half with NAT: in a range that no network uses. */
const JOIN = { own: '169.254.255.2', nat: '169.254.255.1', prefix: 30 }

/** To translate traffic from every host in one place, OVN needs a separate router on one node. That router translates
 *  everything that passes it; traffic between networks does not pass it. */
function natRows(
  { zone, id, networks, gatewayNodes }: RouterFacts,
  own: RowRef,
  { address, prefix, gateway }: NonNullable<RouterFacts['nat']>,
): readonly Row[] {
  const half = natRouter(id)
  const join: RowRef = { table: 'Logical_Switch', key: `${own.key}-join` }
  const [inside, outside, joined] = [`${half.key}-join`, `${half.key}-public`, `${own.key}-join`]
  const chassis = nodeOf(id, gatewayNodes)
  const mac = macOfAddress(address)
  return [
    {
      ...half,
      columns: { name: half.key, options: { ...ROUTER_OPTIONS, ...defined({ chassis }) } },
    },
    { ...join, columns: { name: join.key } },
    routerPort(own, joined, routerMac(joined), [`${JOIN.own}/${JOIN.prefix}`]),
    routerPort(half, inside, routerMac(inside), [`${JOIN.nat}/${JOIN.prefix}`]),
    routerPort(half, outside, mac, [`${address}/${prefix}`]),
    switchPort(join, joined),
    switchPort(join, inside),
    switchPort(edgeSwitch(zone), outside),
    route(own, '0.0.0.0/0', JOIN.nat, joined),
    route(half, '0.0.0.0/0', gateway, outside),
    {
      table: 'Logical_Router_Policy',
      key: `${half.key}-names`,
      parent: { ...half, column: 'policies' },
      // As in networks: unsolicited DNS answers would pass all firewalls.
      columns: { priority: ACL_PRIORITY_MOST, match: 'udp.src == 53 && ct.new', action: 'drop' },
    },
    {
      table: 'Logical_Router_Policy',
      key: `${half.key}-sources`,
      parent: { ...half, column: 'policies' },
      // A guest may send from the networks behind it, whose ranges the customer chooses: outside they may belong to
      // someone else.
      columns: { priority: ACL_PRIORITY_MOST - 1, match: foreignSources(inside, networks), action: 'drop' },
    },
    ...networks.flatMap(({ networkId, cidr }): readonly Row[] => [
      route(half, cidr, JOIN.own, inside),
      {
        table: 'NAT',
        key: `${half.key}-${networkId}`,
        parent: { ...half, column: 'nat' },
        columns: { type: 'snat', external_ip: address, logical_ip: cidr },
      },
    ]),
  ]
}

const foreignSources = (port: string, networks: RouterFacts['networks']): string =>
  networks.length === 0
    ? `inport == "${port}"`
    : `inport == "${port}" && !(ip4.src == {${networks.map(({ cidr }) => cidr).join(', ')}})`

/** Routers are spread over nodes; a node that fails affects only its own routers. */
const nodeOf = (id: string, nodes: readonly string[]): string | undefined =>
  nodes.toSorted((one, other) => (routerMac(`${id}/${one}`) < routerMac(`${id}/${other}`) ? -1 : 1))[0]
