/** What routers need of their surroundings, whichever door a request comes through. */
import { badField } from '../../domain/problem.ts'
import { isReached, routesFault } from '../../domain/private-network.ts'
import type { Caches } from '../../kit/kube/caches.ts'
import { Network, rangesOf } from '../../resources/network/index.ts'
import type { RouterSpec } from '../../resources/router/index.ts'

/** Where a request names the routes and their fields. */
export interface RouteFields {
  readonly routes: string
  readonly destination: string
  readonly nextHop: string
}

/** Throws 400 for routes that a router cannot have. Networks that nobody knows yet may hold any next hop. */
export function requireRoutes(
  { caches, namespace }: { readonly caches: Caches; readonly namespace: string },
  { staticRoutes, natEnabled, networkIds }: Pick<RouterSpec, 'staticRoutes' | 'natEnabled' | 'networkIds'>,
  fields: RouteFields,
): void {
  const fault = routesFault(staticRoutes, { natEnabled })
  if (fault !== undefined) throw badField(`${fields.routes}.${fault.index}.${fields[fault.field]}`, fault.detail)
  const networks = networkIds.map((name) => caches.of(Network).get({ namespace, name }))
  const ranges = networks.flatMap((network) => (network === undefined ? [] : [rangesOf(network)]))
  const isKnown = ranges.length === networks.length && ranges.every(({ ipv6Prefix }) => ipv6Prefix !== '')
  const lost = isKnown ? staticRoutes.findIndex(({ nextHop }) => !isReached(nextHop, ranges)) : -1
  if (lost !== -1) throw badField(`${fields.routes}.${lost}.${fields.nextHop}`, "is in none of the router's networks")
}
