/** Making, reading, changing and deleting routers, and the networks at them. */
import { isDeepStrictEqual } from 'node:util'
import type { AuditChange } from '../../domain/audit.ts'
import { requireDeletable, requireIdle } from '../../domain/idle-rules.ts'
import { canonicalRoute, NETWORKS_OF_ROUTER_MAXIMUM } from '../../domain/private-network.ts'
import { badField, notFound } from '../../domain/problem.ts'
import * as claims from '../../db/router/index.ts'
import type { Answer, Call, Customer } from '../../kit/http/call.ts'
import { customerEndpoint, type Endpoint } from '../../kit/http/endpoint.ts'
import { replacing } from '../../kit/kube/merge-patch.ts'
import { finalizerOf } from '../../resources/define.ts'
import { accountNamespace } from '../../resources/index.ts'
import { isBeingDeleted } from '../../resources/operation/index.ts'
import {
  attachRouterNetwork,
  createRouter,
  deleteRouter,
  detachRouterNetwork,
  getRouter,
  listRouters,
  Router,
  type RouterSpec,
  type StaticRoutes,
  type UpdateRouter,
  updateRouter,
} from '../../resources/router/index.ts'
import { create } from '../change/create.ts'
import { begin, operate } from '../change/operate.ts'
import { requirePrivateNetworks } from '../network/index.ts'
import type { Parts } from '../parts.ts'
import { changeObject } from '../plain/change-object.ts'
import { etagOfObject, getObject, listObjects } from '../plain/objects.ts'
import type { Routers } from './routers.ts'
import { requireRoutes } from './rules.ts'

export type RouterParts = Parts & { readonly routers: Routers }

const FIELDS = { routes: 'static_routes', destination: 'destination', nextHop: 'next_hop' }

export const routerEndpoints = (parts: RouterParts): readonly Endpoint[] => [
  getObject(parts.routers, getRouter),
  listObjects(parts, parts.routers, listRouters, ({ zone }) => ({ fields: { zone } })),
  customerEndpoint(createRouter, (call) => createEndpoint(parts, call)),
  customerEndpoint(updateRouter, (call) => update(parts, call)),
  customerEndpoint(deleteRouter, (call) => remove(parts, call)),
  customerEndpoint(attachRouterNetwork, (call) => attach(parts, call)),
  customerEndpoint(detachRouterNetwork, (call) => detach(parts, call)),
]

const routesOf = (routes: StaticRoutes): RouterSpec['staticRoutes'] =>
  routes.map(({ destination, next_hop: nextHop, comment }) => ({ destination, nextHop, comment }))

async function createEndpoint(parts: RouterParts, call: Call<typeof createRouter, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    body: { zone, name, nat_enabled: natEnabled, network_ids, static_routes, labels },
  } = call
  requirePrivateNetworks(parts, zone)
  const networkIds = [...new Set(network_ids)]
  const staticRoutes = routesOf(static_routes)
  const namespace = accountNamespace(accountId)
  requireRoutes({ caches: parts.caches, namespace }, { staticRoutes, natEnabled, networkIds }, FIELDS)
  return create(parts, parts.routers, call, {
    kind: 'router.sync',
    arguments: { action: 'create' },
    finalizer: finalizerOf(Router),
    detail: { zone, name, nat_enabled: String(natEnabled) },
    claim: (tx, routerId) => claims.claimRouter(tx, { accountId, routerId, zone, name, natEnabled, networkIds }),
    release: (tx, routerId) => claims.releaseRouter(tx, { accountId, routerId }),
    specOf: (operation, { publicAddress }): RouterSpec => ({
      zone,
      name,
      natEnabled,
      networkIds,
      staticRoutes,
      labels,
      operation: {
        ...operation,
        arguments: {
          ...operation.arguments,
          ...(publicAddress === undefined ? {} : { public_ipv4: publicAddress.address }),
        },
      },
    }),
  })
}

/** What leads elsewhere starts an operation; the rest is there at once. */
async function update(parts: RouterParts, call: Call<typeof updateRouter, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    params: { id: routerId },
    body,
  } = call
  const { routers } = parts
  const { spec } = await routers.read(accountId, routerId)
  const { name } = body
  const id = { accountId, routerId }
  const natEnabled = body.nat_enabled ?? spec.natEnabled
  const staticRoutes = body.static_routes === undefined ? spec.staticRoutes : routesOf(body.static_routes)
  const isRenamed = name !== undefined && name !== spec.name
  const isNatChanged = natEnabled !== spec.natEnabled
  if (!isNatChanged && isDeepStrictEqual(staticRoutes, spec.staticRoutes.map(canonicalRoute))) {
    const written = await changeObject(parts, routers, call, {
      changes: (router) => changesOf(router.spec, body),
      patch: (router) => patchOf(router.spec, body),
      ...(isRenamed
        ? {
            claim: (tx) => claims.renameRouter(tx, id, name),
            release: (tx, stored) => claims.withdrawRouterUpdate(tx, id, stored?.spec),
          }
        : {}),
    })
    return { status: 200, body: { router: routers.viewOf(written) }, headers: { etag: etagOfObject(written) } }
  }
  const namespace = accountNamespace(accountId)
  requireRoutes({ caches: parts.caches, namespace }, { ...spec, staticRoutes, natEnabled }, FIELDS)
  let address: string | undefined
  const operation = await begin(parts, routers, call, {
    kind: 'router.sync',
    arguments: () => ({ action: 'update', ...(address === undefined ? {} : { public_ipv4: address }) }),
    validate: (facts) => requireIdle('router', facts),
    changes: (router) => changesOf(router.spec, body),
    spec: ({ target }) => patchOf(target.spec, body),
    async claim(tx) {
      if (isRenamed) await claims.renameRouter(tx, id, name)
      if (isNatChanged) await claims.setNat(tx, { ...id, natEnabled })
      address = (await claims.findRouter(tx, id))?.publicAddress?.address
    },
    release: (tx, { stored }) => claims.withdrawRouterUpdate(tx, id, stored?.spec),
  })
  return { status: 202, ...(await viewed(parts, id, operation)) }
}

/** The router as it is by now, beside its operation. */
async function viewed({ routers }: RouterParts, { accountId, routerId }: claims.RouterId, operation: unknown) {
  const router = routers.find(accountId, routerId) ?? (await routers.read(accountId, routerId))
  return { body: { router: routers.viewOf(router), operation }, headers: { etag: etagOfObject(router) } }
}

const patchOf = (spec: RouterSpec, { name, labels, nat_enabled, static_routes }: UpdateRouter) => ({
  ...(name === undefined ? {} : { name }),
  ...(labels === undefined ? {} : { labels: replacing(spec.labels, labels) }),
  ...(nat_enabled === undefined ? {} : { natEnabled: nat_enabled }),
  ...(static_routes === undefined ? {} : { staticRoutes: routesOf(static_routes) }),
})

function changesOf(spec: RouterSpec, body: UpdateRouter): readonly AuditChange[] {
  const routes = spec.staticRoutes.map(({ nextHop, ...route }) => ({ ...route, next_hop: nextHop }))
  const fields = [
    ['name', spec.name, body.name],
    ['labels', spec.labels, body.labels],
    ['nat_enabled', spec.natEnabled, body.nat_enabled],
    ['static_routes', withoutComments(routes), body.static_routes && withoutComments(body.static_routes)],
  ] as const
  return fields.flatMap(([field, before, after]) =>
    after === undefined || isDeepStrictEqual(before, after) ? [] : [{ field, before, after }],
  )
}

/** The audit log holds no comments. */
const withoutComments = (routes: readonly { readonly destination: string; readonly next_hop: string }[]) =>
  routes.map(({ destination, next_hop }) => ({ destination, next_hop }))

function remove(parts: RouterParts, call: Call<typeof deleteRouter, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    params: { id: routerId },
  } = call
  return operate(parts, parts.routers, call, {
    kind: 'router.sync',
    arguments: { action: 'delete' },
    validate: (facts) => requireDeletable('router', facts),
    spec: {},
    claim: (tx) => claims.endRouter(tx, { accountId, routerId }),
    release: (tx, { stored }) =>
      claims.withdrawRouterEnd(tx, { accountId, routerId }, stored === undefined || isBeingDeleted(stored)),
  })
}

async function attach(parts: RouterParts, call: Call<typeof attachRouterNetwork, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    params: { id: routerId },
    body: { network_id: networkId },
  } = call
  const id = { accountId, routerId, networkId }
  const operation = await begin(parts, parts.routers, call, {
    kind: 'router.sync',
    arguments: { action: 'attach_network' },
    validate: (facts) => requireIdle('router', facts),
    changes: ({ spec }) => networksChange(spec, [...spec.networkIds, networkId]),
    spec: ({ target: { spec } }) => {
      if (spec.networkIds.length >= NETWORKS_OF_ROUTER_MAXIMUM)
        throw badField('network_id', `a router joins at most ${NETWORKS_OF_ROUTER_MAXIMUM} networks`)
      return { networkIds: [...spec.networkIds, networkId] }
    },
    claim: (tx) => claims.attachToRouter(tx, id),
    release: (tx, { stored }) => claims.withdrawJoin(tx, id, stored?.spec.networkIds.includes(networkId) === true),
  })
  return { status: 202, ...(await viewed(parts, id, operation)) }
}

async function detach(parts: RouterParts, call: Call<typeof detachRouterNetwork, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    params: { id: routerId, network_id: networkId },
  } = call
  const id = { accountId, routerId, networkId }
  const { spec: before } = await parts.routers.read(accountId, routerId)
  if (!before.networkIds.includes(networkId)) throw notFound('network at the router')
  return operate(parts, parts.routers, call, {
    kind: 'router.sync',
    arguments: { action: 'detach_network' },
    validate: (facts) => requireIdle('router', facts),
    changes: ({ spec }) => networksChange(spec, without(spec, networkId)),
    spec: ({ target: { spec } }) => ({ networkIds: without(spec, networkId) }),
    claim: (tx) => claims.detachFromRouter(tx, id),
    release: (tx, { stored }) => claims.withdrawLeave(tx, id, stored?.spec.networkIds.includes(networkId) !== true),
  })
}

const without = ({ networkIds }: RouterSpec, networkId: string): readonly string[] =>
  networkIds.filter((id) => id !== networkId)

const networksChange = ({ networkIds }: RouterSpec, after: readonly string[]): readonly AuditChange[] => [
  { field: 'network_ids', before: networkIds, after },
]
