/** The route of an IPv6 prefix from the zone's router into its public network: pure. */
import { zoneRouter, zoneRouterPort } from './names.ts'
import type { Row } from './row.ts'

/** `nextHop` is the address that forwards the prefix there, on whichever port it is. */
export const prefixRoute = (zone: string, prefix: string, nextHop: string): Row => ({
  table: 'Logical_Router_Static_Route',
  key: `route-${zone}-${prefix}`,
  parent: { ...zoneRouter(zone), column: 'static_routes' },
  columns: { ip_prefix: prefix, nexthop: nextHop, output_port: [zoneRouterPort(zone)] },
})
