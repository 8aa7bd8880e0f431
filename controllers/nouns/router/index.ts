/** The router controller: its watches, what it reads, and its effects. `plan.ts` decides. */
import { routerChanges } from '../../../changes/router.ts'
import { effectiveRoutes, gatewayOf, gatewayRoutes, withRoutes } from '../../../domain/network/rules.ts'
import { Unavailable } from '../../../domain/problem.ts'
import {
  type RouterClaim,
  type RouterNetwork,
  findRouter,
  releaseRouter,
  trimRouter,
} from '../../../db/router/index.ts'
import { keyOf } from '../../../kit/kube/object.ts'
import { watch } from '../../../kit/reconcile/reconciler.ts'
import { accountOfNamespace } from '../../../resources/index.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { Edge } from '../../../resources/edge/index.ts'
import { Network } from '../../../resources/network/index.ts'
import { Node } from '../../../resources/node/index.ts'
import { Router, type RouterSpec, type RouterStatus } from '../../../resources/router/index.ts'
import { findAccountOf } from '../../kit/account.ts'
import { auditEffect } from '../../kit/audit.ts'
import { controller } from '../../kit/controller.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { EffectsOn } from '../../kit/effects.ts'
import { gatewayNodes } from '../../network/gateway-nodes.ts'
import { applyNetwork } from '../network/index.ts'
import { claimEffect, intentOf, readEdits } from '../../kit/changes.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import { routerOwner } from '../../network/ovn/difference.ts'
import { type RouterFacts, routerRows } from '../../network/ovn/router.ts'
import type { Parts } from '../../kit/parts.ts'
import { type Bundles, factsDigest, openBundles } from '../../kit/synced.ts'
import { type Observed, type RouterEffects, type RouterObject, appliedRouter, plan } from './plan.ts'

const ROUTERS_OF = 'routers of a network'

export const routerController = controller<RouterEffects>()({
  name: 'router',
  resource: Router,
  sharding: 'by-zone',
  finalizer: finalizerOf(Router),
  intent: intentOf(routerChanges),
  plan,
  reads: [Edge, Network, Node, Zone],
  // A router whose operation is its deletion is deleted here.
  writes: [Router],
  open(parts: Parts) {
    const bundles = openBundles(parts.ovn)
    const routers = parts.caches.of(Router)
    routers.addIndex(ROUTERS_OF, ({ metadata: { namespace }, spec }) =>
      spec.networkIds.map((networkId) => `${namespace}/${networkId}`),
    )
    const inZone = (zone: string) => routers.list().filter(({ spec }) => spec.zone === zone)
    return {
      watches: [
        watch(Network, ({ metadata: { namespace, name } }) =>
          routers.by(ROUTERS_OF, `${namespace}/${name}`).map(keyOf),
        ),
        // The gateways of its networks.
        watch(Edge, ({ metadata: { namespace }, spec: { networkId } }) =>
          routers.by(ROUTERS_OF, `${namespace}/${networkId}`).map(keyOf),
        ),
        watch(Node, ({ spec: { zone } }) =>
          inZone(zone)
            .filter(({ spec }) => spec.natEnabled)
            .map(keyOf),
        ),
        watch(Zone, ({ metadata: { name } }) =>
          inZone(name)
            .filter(({ status }) => status?.operation?.status === 'running')
            .map(keyOf),
        ),
      ],
      observe: (router) => observe(parts, bundles, router),
      effects: routerEffects(parts, bundles),
    }
  },
})

async function observe(parts: Parts, bundles: Bundles, router: RouterObject): Promise<Observed> {
  const { db, caches, ovn } = parts
  const {
    metadata: { namespace = '', name, uid = '' },
    spec: { zone, networkIds },
    status,
  } = router
  const accountId = await findAccountOf(db, namespace)
  const claim = accountId === undefined ? undefined : await orUnavailable(findRouter(db, { accountId, routerId: name }))
  const zoneObject = caches.of(Zone).get({ name: zone })
  const networks = caches.of(Network)
  const facts = claim && factsOf(parts, router, claim)
  const isWaiting = activeOperation(router) !== undefined && status?.appliedSequence !== undefined
  return {
    accountId,
    claim,
    hasNetworks: zoneObject?.status?.hasPrivateNetworks === true,
    region: zoneObject?.spec.region,
    missing: networkIds.filter(
      (networkId) => networks.get({ namespace, name: networkId })?.status?.ipv4Cidr === undefined,
    ),
    facts,
    isApplied: facts !== undefined && bundles.digestOf(routerOwner(uid)) === factsDigest(facts),
    installed: isWaiting ? await ovn?.installed(facts?.nat === undefined ? [] : facts.gatewayNodes) : undefined,
    ...(await readEdits(parts, routerChanges, router, appliedRouter(router))),
  }
}

/** Undefined while Kubernetes has lost one of its networks: a network leaves its router before it is deleted. The rows
 *  in OVN stay as they are. */
function factsOf(parts: Parts, { metadata: { namespace, uid = '' }, spec }: RouterObject, claim: RouterClaim) {
  const networks = claim.networks.filter(({ isLeaving }) => !isLeaving)
  const { publicAddress } = claim
  const attached = networks.flatMap(({ networkId, ipv4Cidr, ipv6Prefix, gateway }) => {
    const of = parts.caches.of(Network).get({ namespace: namespace ?? '', name: networkId })?.metadata.uid
    return of === undefined
      ? []
      : [{ networkId: of, cidr: ipv4Cidr, ipv4: gatewayOf(ipv4Cidr), ipv6: gatewayOf(ipv6Prefix), gateway }]
  })
  if (attached.length < networks.length) return undefined
  const facts: RouterFacts = {
    zone: spec.zone,
    id: uid,
    networks: attached,
    staticRoutes: withRoutes(
      effectiveRoutes(spec.staticRoutes, networks),
      networks.flatMap(({ gateway }) => gatewayRoutes(gateway, claim)),
    ),
    ...(claim.natEnabled && publicAddress !== undefined
      ? {
          nat: { address: publicAddress.address, prefix: publicAddress.prefix, gateway: publicAddress.gateway },
        }
      : {}),
    gatewayNodes: claim.natEnabled ? gatewayNodes(parts.caches, spec.zone) : [],
  }
  return facts
}

const routerEffects = (parts: Parts, bundles: Bundles): EffectsOn<RouterEffects, RouterSpec, RouterStatus> => ({
  claim: claimEffect(parts, routerChanges),
  async trim(id) {
    await orUnavailable(parts.db.transaction().execute((tx) => trimRouter(tx, id)))
    return undefined
  },
  async apply({ facts }, router) {
    const networks = await networksAt(parts, router)
    const apply = async (some: readonly RouterNetwork[]) => {
      for (const { networkId } of some) await applyNetwork(parts, keyOfNetwork(router, networkId), router)
    }
    // In a network without a router, another row has the router's address: the two must never exist together.
    await apply(networks.filter(({ isLeaving }) => !isLeaving))
    const sequence = await bundles.apply(routerOwner(facts.id), facts.zone, facts, routerRows(facts))
    await apply(networks.filter(({ isLeaving }) => isLeaving))
    return { status: { appliedSequence: sequence } }
  },
  async release({ zone, id }, { metadata: { uid = '' } }) {
    await bundles.clear(routerOwner(uid), zone)
    if (id !== undefined) await orUnavailable(parts.db.transaction().execute((tx) => releaseRouter(tx, id)))
    return undefined
  },
  audit: auditEffect(parts),
})

const keyOfNetwork = ({ metadata: { namespace = '' } }: RouterObject, name: string) => ({ namespace, name })

async function networksAt(
  { db }: Parts,
  { metadata: { namespace = '', name } }: RouterObject,
): Promise<readonly RouterNetwork[]> {
  const accountId = accountOfNamespace(namespace)
  const claim = accountId && (await orUnavailable(findRouter(db, { accountId, routerId: name })))
  if (claim === undefined || claim === '') throw new Unavailable('the claims of the router')
  return claim.networks
}
