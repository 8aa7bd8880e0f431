/** The changes of a router. */
import type { AuditChange } from '../domain/audit/entry.ts'
import { type IdleFacts, requireDeletable, requireIdle, requireNoOperation } from '../domain/idle-rules.ts'
import { canonicalRoute, isReached, NETWORKS_OF_ROUTER_MAXIMUM, routesFault } from '../domain/network/rules.ts'
import { badField, notFound } from '../domain/problem.ts'
import * as claims from '../db/router/index.ts'
import { Zone } from '../resources/catalog/index.ts'
import { accountNamespace } from '../resources/index.ts'
import { Network, rangesOf } from '../resources/network/index.ts'
import { idleFactsOf, isBeingDeleted } from '../resources/operation/index.ts'
import * as routes from '../resources/router/index.ts'
import { Router, type RouterSpec, type StaticRoutes } from '../resources/router/index.ts'
import { Labels, Printable, PrintableName } from '../resources/kit/shapes.ts'
import { type Change, changesOf, fromBody, type Patch, type Rules, type Subject, type Target } from './kit/define.ts'
import { requireReadable } from './kit/readable.ts'
import { ownNetwork } from './kit/references.ts'
import type { World } from './kit/world.ts'
import { requirePrivateNetworks } from './kit/zone.ts'

const routerOf = ({ accountId, id }: Target) => ({ accountId, routerId: id })

const routesOf = (sent: StaticRoutes): RouterSpec['staticRoutes'] =>
  sent.map(({ destination, next_hop: nextHop, comment }) => ({ destination, nextHop, comment }))

/** Throws 400 for routes that it cannot have. Networks that do not exist yet may contain any next hop. */
function requireRoutes(
  { accountId, spec: { staticRoutes, natEnabled, networkIds } }: Subject<RouterSpec, unknown>,
  world: World,
): void {
  const fault = routesFault(staticRoutes, { natEnabled })
  if (fault !== undefined) throw badField(`staticRoutes.${fault.index}.${fault.field}`, fault.detail)
  const namespace = accountNamespace(accountId)
  const ranges = networkIds.flatMap((name) => {
    const network = world.find(Network, { namespace, name })
    return network === undefined ? [] : [rangesOf(network)]
  })
  const isKnown = ranges.length === networkIds.length && ranges.every(({ ipv6Prefix }) => ipv6Prefix !== '')
  const lost = isKnown ? staticRoutes.findIndex(({ nextHop }) => !isReached(nextHop, ranges)) : -1
  if (lost !== -1) throw badField(`staticRoutes.${lost}.nextHop`, "is in none of the router's networks")
}

const added = (from: readonly string[], to: readonly string[]) => to.filter((one) => !from.includes(one))

/** Networks are detached and none is attached. */
const isParted = (after: RouterSpec, before: RouterSpec): boolean =>
  after.networkIds.length < before.networkIds.length && added(before.networkIds, after.networkIds).length === 0

/** Both changes of its networks. An edit that attaches some networks and detaches others is one change. */
const networks: Omit<Change<RouterSpec, IdleFacts>, 'when' | 'release'> = {
  sets: ['networkIds'],
  of: ({ networkIds }) => networkIds.toSorted(),
  operation: 'router.sync',
  allow({ id, facts, spec: { networkIds }, before }) {
    // A router that is being deleted waits for its networks to be detached.
    const isLeaving = before !== undefined && added(before.networkIds, networkIds).length === 0
    if (isLeaving) requireNoOperation('router', facts)
    else requireIdle('router', facts)
    if (networkIds.length > NETWORKS_OF_ROUTER_MAXIMUM)
      throw badField('networkIds', `a router joins at most ${NETWORKS_OF_ROUTER_MAXIMUM} networks`)
    if (new Set(networkIds).size < networkIds.length) throw claims.atRouter(id)
  },
  claim: (tx, { spec: { networkIds }, before, ...target }) =>
    claims.arrangeRouter(tx, {
      ...routerOf(target),
      joining: before === undefined ? networkIds : added(before.networkIds, networkIds),
      leaving: before && added(networkIds, before.networkIds),
    }),
}

/** The networks before and after a change of them, from its audit entry. */
function networksBetween(changes: readonly AuditChange[]): Record<'before' | 'after', readonly string[]> {
  const change = changes.find(({ field }) => field === 'network_ids')
  const idsOf = (value: unknown) => (Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [])
  return { before: idsOf(change?.before), after: idsOf(change?.after) }
}

const withdrawUpdate: Rules<RouterSpec, IdleFacts>['release'] = (tx, target, stored) =>
  claims.withdrawRouterUpdate(tx, routerOf(target), stored?.spec)

/** Where else it routes traffic: NAT and static routes. */
const configuration: Omit<Change<RouterSpec, IdleFacts>, 'when' | 'needs'> = {
  sets: ['natEnabled', 'staticRoutes'],
  of: ({ natEnabled, staticRoutes }) => [natEnabled, staticRoutes.map(canonicalRoute)],
  action: 'update',
  operation: 'router.sync',
  allow(subject, world) {
    requireIdle('router', subject.facts)
    requireRoutes(subject, world)
  },
  async claim(tx, { spec: { natEnabled }, ...target }) {
    await claims.setNat(tx, { ...routerOf(target), natEnabled })
    const address = (await claims.findRouter(tx, routerOf(target)))?.publicAddress?.address
    return address === undefined ? {} : { arguments: { public_ipv4: address } }
  },
  release: withdrawUpdate,
  by: fromBody(
    routes.updateRouter,
    ({ nat_enabled, static_routes }, spec: RouterSpec): Patch<RouterSpec> => ({
      natEnabled: nat_enabled ?? spec.natEnabled,
      staticRoutes: static_routes === undefined ? spec.staticRoutes : routesOf(static_routes),
    }),
  ),
}

export const routerChanges = changesOf(Router, {
  name: 'router',
  title: 'router',
  finalizedWhen: 'nothing of the router is left',
  factsOf: idleFactsOf,
  refers: { networkIds: ownNetwork('always') },
  reads: [Zone],
  audited: {
    staticRoutes: (known) => ({
      static_routes: known.map(({ destination, nextHop }) => ({ destination, next_hop: nextHop })),
    }),
  },
  readable({ name, labels, staticRoutes }) {
    requireReadable('name', PrintableName, name)
    requireReadable('labels', Labels, labels)
    for (const [index, { comment }] of staticRoutes.entries())
      requireReadable(`staticRoutes.${index}.comment`, Printable, comment)
  },
  create: {
    name: 'create',
    operation: 'router.sync',
    needs: 'standing',
    allow(subject, world) {
      requirePrivateNetworks(world, subject.spec.zone)
      requireRoutes(subject, world)
    },
    async claim(tx, { spec: { zone, name, natEnabled, networkIds }, ...target }) {
      const { publicAddress } = await claims.claimRouter(tx, {
        ...routerOf(target),
        zone,
        name,
        natEnabled,
        networkIds,
      })
      return publicAddress && { arguments: { public_ipv4: publicAddress.address } }
    },
    release: (tx, target) => claims.releaseRouter(tx, routerOf(target)),
    detail: ({ zone, name, natEnabled }) => ({ zone, name, nat_enabled: String(natEnabled) }),
    by: fromBody(
      routes.createRouter,
      ({ zone, name, nat_enabled, network_ids, static_routes, labels }): RouterSpec => ({
        zone,
        name,
        natEnabled: nat_enabled,
        networkIds: [...new Set(network_ids)],
        staticRoutes: routesOf(static_routes),
        labels,
      }),
    ),
  },
  changes: {
    rename: {
      sets: ['name'],
      action: 'update',
      claim: (tx, { spec, ...target }) => claims.renameRouter(tx, routerOf(target), spec.name),
      release: withdrawUpdate,
      by: fromBody(routes.updateRouter, ({ name }, spec: RouterSpec) => ({ name: name ?? spec.name })),
    },
    label: {
      sets: ['labels'],
      action: 'update',
      by: fromBody(routes.updateRouter, ({ labels }, spec: RouterSpec) => ({ labels: labels ?? spec.labels })),
    },
    attach_network: {
      ...networks,
      when: (after, before) => !isParted(after, before),
      async release(tx, { changes, ...target }, stored) {
        const { before, after } = networksBetween(changes)
        const isDesired = (networkId: string) => stored?.spec.networkIds.includes(networkId) === true
        for (const networkId of added(before, after))
          await claims.withdrawJoin(tx, { ...routerOf(target), networkId }, isDesired(networkId))
      },
      by: fromBody(
        routes.attachRouterNetwork,
        ({ network_id }, { networkIds }: RouterSpec) => ({ networkIds: [...networkIds, network_id] }),
        { networkIds: 'network_id' },
      ),
    },
    detach_network: {
      ...networks,
      when: isParted,
      async release(tx, { changes, ...target }, stored) {
        const { before, after } = networksBetween(changes)
        const isDesired = (networkId: string) => stored?.spec.networkIds.includes(networkId) !== true
        for (const networkId of added(after, before))
          await claims.withdrawLeave(tx, { ...routerOf(target), networkId }, isDesired(networkId))
      },
      by: fromBody(
        routes.detachRouterNetwork,
        (_body, { networkIds }: RouterSpec, { network_id: networkId }): Patch<RouterSpec> => {
          if (!networkIds.includes(networkId)) throw notFound('network at the router')
          return { networkIds: networkIds.filter((one) => one !== networkId) }
        },
      ),
    },
    /** An existing router keeps working and may be reconfigured, even if the account owes money. */
    enable_nat: {
      ...configuration,
      when: (after, before) => after.natEnabled && !before.natEnabled,
      needs: 'standing',
    },
    configure: { ...configuration, when: (after, before) => !after.natEnabled || before.natEnabled },
  },
  remove: {
    name: 'delete',
    operation: 'router.sync',
    condition: 'Ended',
    allow: ({ facts }) => requireDeletable('router', facts),
    claim: (tx, target) => claims.endRouter(tx, routerOf(target)),
    release: (tx, target, stored) =>
      claims.withdrawRouterEnd(tx, routerOf(target), stored === undefined || isBeingDeleted(stored)),
    by: { route: routes.deleteRouter },
  },
})
