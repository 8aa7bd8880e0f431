/** The network controller: its watches, what it reads, and its effects. `plan.ts` decides. */
import { networkChanges } from '../../../changes/network.ts'
import { findNetwork, releaseNetwork } from '../../../db/network/index.ts'
import { findEdgeOf } from '../../../db/edge/index.ts'
import { isRemovalOpen } from '../../../db/removal/index.ts'
import { findRouterOf } from '../../../db/router/index.ts'
import type { Queries } from '../../../db/kit/open.ts'
import { type KubeObject, keyOf } from '../../../kit/kube/object.ts'
import { watch } from '../../../kit/reconcile/reconciler.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { accountOfNamespace } from '../../../resources/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { Edge } from '../../../resources/edge/index.ts'
import { Network, type NetworkSpec, type NetworkStatus } from '../../../resources/network/index.ts'
import { Router, type RouterSpec } from '../../../resources/router/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { findAccountOf } from '../../kit/account.ts'
import { auditEffect } from '../../kit/audit.ts'
import { controller } from '../../kit/controller.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { EffectsOn } from '../../kit/effects.ts'
import { claimEffect, intentOf, readEdits } from '../../kit/changes.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import { networkOwner } from '../../network/ovn/difference.ts'
import { type NetworkFacts, networkRows } from '../../network/ovn/private-network.ts'
import type { Parts } from '../../kit/parts.ts'
import { type Bundles, factsDigest, openBundles } from '../../kit/synced.ts'
import { type At, networkFactsOf } from './facts.ts'
import { type NetworkEffects, type NetworkObject, type Observed, appliedNetwork, plan } from './plan.ts'

export const networkController = controller<NetworkEffects>()({
  name: 'network',
  resource: Network,
  sharding: 'by-zone',
  finalizer: finalizerOf(Network),
  intent: intentOf(networkChanges),
  plan,
  reads: [Edge, Router, Zone, Server],
  // A network whose operation is its deletion is deleted here.
  writes: [Network],
  open(parts: Parts) {
    const bundles = openBundles(parts.ovn)
    const { caches } = parts
    return {
      watches: [
        watch(Router, ({ metadata: { namespace = '' }, spec, status }) =>
          [...new Set([...spec.networkIds, ...(status?.networks ?? []).map(({ networkId }) => networkId)])].map(
            (name) => ({ namespace, name }),
          ),
        ),
        watch(Edge, ({ metadata: { namespace = '' }, spec: { networkId } }) => [{ namespace, name: networkId }]),
        watch(Server, ({ metadata: { namespace = '' }, spec, status }) =>
          [...new Set([...(spec.networks ?? []), ...(status?.interfaces ?? [])].map(({ networkId }) => networkId))].map(
            (name) => ({ namespace, name }),
          ),
        ),
        watch(Zone, ({ metadata: { name } }) =>
          caches
            .of(Network)
            .list()
            .filter(({ spec, status }) => spec.zone === name && status?.operation?.status === 'running')
            .map(keyOf),
        ),
      ],
      observe: (network) => observe(parts, bundles, network),
      effects: networkEffects(parts, bundles),
    }
  },
})

/** The desired facts of the network for OVN; undefined while nothing is claimed, and while Kubernetes has lost its
 *  router: only that has the static routes. */
async function readNetworkFacts(
  parts: RouterReads,
  network: NetworkObject,
  accountId: string,
  newest?: Pick<RouterSpec, 'staticRoutes'>,
): Promise<NetworkFacts | undefined> {
  const { db } = parts
  const { namespace = '', name } = network.metadata
  const id = { accountId, networkId: name }
  const claim = await orUnavailable(findNetwork(db, id))
  if (claim === undefined) return undefined
  const router = await orUnavailable(findRouterOf(db, id))
  const isStaying = router?.networks.some(({ networkId, isLeaving }) => networkId === name && !isLeaving) === true
  const at = router !== undefined && isStaying ? await atRouter(parts, namespace, router, newest) : undefined
  if (at === 'no router') return undefined
  const edge = await orUnavailable(findEdgeOf(db, id))
  return networkFactsOf(network, claim, { at, gateway: edge?.gateway })
}

interface RouterReads {
  readonly db: Queries
  readonly caches: Parts['caches']
}

async function atRouter(
  { db, caches }: RouterReads,
  namespace: string,
  claim: NonNullable<Awaited<ReturnType<typeof findRouterOf>>>,
  newest: Pick<RouterSpec, 'staticRoutes'> | undefined,
): Promise<At | 'no router'> {
  const key = { namespace, name: claim.routerId }
  const spec = newest ?? caches.of(Router).get(key)?.spec
  if (spec !== undefined) return { claim, spec }
  const isGoing = await orUnavailable(isRemovalOpen(db, { kind: Router.kind, ...key }))
  return isGoing ? { claim, spec: { staticRoutes: [] } } : 'no router'
}

/** Writes the network's desired rows, for the router or the edge that changes them. */
export async function applyNetwork(
  parts: Parts,
  key: { readonly namespace: string; readonly name: string },
  router?: Pick<KubeObject<RouterSpec>, 'spec'>,
): Promise<void> {
  const network = parts.caches.of(Network).get(key)
  const accountId = accountOfNamespace(key.namespace)
  if (network?.metadata.uid === undefined || accountId === undefined) return
  const facts = await readNetworkFacts(parts, network, accountId, router?.spec)
  if (facts !== undefined)
    await parts.ovn?.apply({ zone: facts.zone, owner: networkOwner(facts.id), rows: networkRows(facts) })
}

async function observe(parts: Parts, bundles: Bundles, network: NetworkObject): Promise<Observed> {
  const { db, caches, ovn } = parts
  const {
    metadata: { namespace = '', name, uid = '' },
    spec: { zone },
    status,
  } = network
  const accountId = await findAccountOf(db, namespace)
  const claim =
    accountId === undefined ? undefined : await orUnavailable(findNetwork(db, { accountId, networkId: name }))
  const facts = accountId === undefined ? undefined : await readNetworkFacts(parts, network, accountId)
  const zoneObject = caches.of(Zone).get({ name: zone })
  const isWaiting = activeOperation(network) !== undefined && status?.appliedSequence !== undefined
  return {
    accountId,
    claim,
    hasNetworks: zoneObject?.status?.hasPrivateNetworks === true,
    region: zoneObject?.spec.region,
    facts,
    isApplied: facts !== undefined && bundles.digestOf(networkOwner(uid)) === factsDigest(facts),
    installed: isWaiting ? await ovn?.installed([]) : undefined,
    ...(await readEdits(parts, networkChanges, network, appliedNetwork(network))),
  }
}

const networkEffects = (parts: Parts, bundles: Bundles): EffectsOn<NetworkEffects, NetworkSpec, NetworkStatus> => ({
  claim: claimEffect(parts, networkChanges),
  async apply({ facts }) {
    const sequence = await bundles.apply(networkOwner(facts.id), facts.zone, facts, networkRows(facts))
    return { status: { appliedSequence: sequence } }
  },
  async release({ zone, id }, { metadata: { uid = '' } }) {
    await bundles.clear(networkOwner(uid), zone)
    if (id !== undefined) await orUnavailable(parts.db.transaction().execute((tx) => releaseNetwork(tx, id)))
    return undefined
  },
  audit: auditEffect(parts),
})
