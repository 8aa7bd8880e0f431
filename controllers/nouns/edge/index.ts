/** The edge controller: its watches, what it reads, and its effects. `plan.ts` decides. */
import { edgeChanges } from '../../../changes/edge.ts'
import { defined } from '../../../domain/defined.ts'
import { edgeMachineParts } from '../../../domain/edge/document.ts'
import { Unavailable } from '../../../domain/problem.ts'
import { claimEdge, findEdge, releaseEdge, setGateway } from '../../../db/edge/index.ts'
import { findRouterOf } from '../../../db/router/index.ts'
import { keyOf } from '../../../kit/kube/object.ts'
import { watch } from '../../../kit/reconcile/reconciler.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { Edge, type EdgeSpec, type EdgeStatus } from '../../../resources/edge/index.ts'
import { LoadBalancer } from '../../../resources/load-balancer/index.ts'
import { Network } from '../../../resources/network/index.ts'
import { Router } from '../../../resources/router/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { findAccountOf } from '../../kit/account.ts'
import { auditEffect } from '../../kit/audit.ts'
import { controller } from '../../kit/controller.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { EffectsOn } from '../../kit/effects.ts'
import {
  deliverDocument,
  findLostMachines,
  MACHINE_READS,
  MACHINE_WRITES,
  type Machines,
  openMachines,
} from '../managed-machine/index.ts'
import { intentOf } from '../../kit/changes.ts'
import { applyNetwork } from '../network/index.ts'
import { requireNewest } from '../../kit/newest.ts'
import { findEditor, requesterOf } from '../../kit/operation/direct-edit.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import { routerRows } from '../../network/ovn/router.ts'
import type { Parts } from '../../kit/parts.ts'
import { grantedCondition, withRefusalCondition } from '../../kit/refusal.ts'
import { requireStandingOfEdit } from '../../kit/standing.ts'
import { type Bundles, editsOf, newRequests, openBundles } from '../../kit/synced.ts'
import { type HostKeyAccess, keptHostKey } from './host-key.ts'
import { inputOf, rulesOf } from './machines.ts'
import { pairIdOf } from './pair.ts'
import { CLAIMED, type EdgeEffects, type EdgeObject, type Observed } from './observed.ts'
import { detectEdit, plan } from './plan.ts'

const EDGES_OF = 'edges of a network'

export const edgeController = controller<EdgeEffects>()({
  name: 'edge',
  resource: Edge,
  sharding: 'by-zone',
  finalizer: finalizerOf(Edge),
  intent: intentOf(edgeChanges),
  plan,
  reads: [...MACHINE_READS, Network, Router, Zone],
  // An edge whose operation is its deletion is deleted here.
  writes: [...MACHINE_WRITES, Edge, LoadBalancer],
  open(parts: Parts & HostKeyAccess) {
    const bundles = openBundles(parts.ovn)
    const machines = openMachines(parts, 'edge')
    const edges = parts.caches.of(Edge)
    edges.addIndex(EDGES_OF, ({ metadata: { namespace }, spec }) => [`${namespace}/${spec.networkId}`])
    const edgesOf = (namespace: string, networkId: string) => edges.by(EDGES_OF, `${namespace}/${networkId}`).map(keyOf)
    return {
      watches: [
        ...machines.watches,
        watch(LoadBalancer, ({ metadata: { namespace = '' }, spec }) =>
          spec.managedBy === undefined ? [] : edgesOf(namespace, spec.networkId),
        ),
        watch(Network, ({ metadata: { namespace = '', name } }) => edgesOf(namespace, name)),
        watch(Zone, ({ metadata: { name } }) =>
          edges
            .list()
            .filter(({ spec, status }) => spec.zone === name && status?.operation?.status === 'running')
            .map(keyOf),
        ),
        watch(Router, ({ metadata: { namespace = '' }, spec, status }) =>
          [...new Set([...spec.networkIds, ...(status?.networks ?? []).map(({ networkId }) => networkId)])].flatMap(
            (networkId) => edgesOf(namespace, networkId),
          ),
        ),
      ],
      observe: (edge) => observe(parts, { bundles, machines }, edge),
      effects: edgeEffects(parts, { bundles, machines }),
    }
  },
})

const ownerOf = (uid: string): string => `Edge/${uid}`

interface OpenNetwork {
  readonly bundles: Bundles
  readonly machines: Machines
}

async function observe(parts: Parts, { bundles, machines }: OpenNetwork, edge: EdgeObject): Promise<Observed> {
  const { db, caches, store, ovn } = parts
  const {
    metadata: { namespace = '', name, uid = '' },
    spec: { zone, networkId },
    status,
  } = edge
  const accountId = await findAccountOf(db, namespace)
  const claim = accountId === undefined ? undefined : await orUnavailable(findEdge(db, { accountId, edgeId: name }))
  const zoneObject = caches.of(Zone).get({ name: zone })
  const requests = await newRequests(db, edge)
  const isWaiting = activeOperation(edge) !== undefined && status?.appliedSequence !== undefined
  return {
    accountId,
    claim,
    hasNetworks: zoneObject?.status?.hasPrivateNetworks === true,
    network: await networkOf(parts, edge, accountId),
    resolvers: zoneObject?.spec.publicNetwork?.dnsServers ?? [],
    machines: machines.observe({ namespace, id: name }),
    lost: await findLostMachines(parts, { type: 'edge', namespace, id: name, accountId }),
    pair: caches.of(LoadBalancer).get({ namespace, name: pairIdOf(edge) }),
    routerDigest: bundles.digestOf(ownerOf(uid)),
    installed: isWaiting ? await ovn?.installed([]) : undefined,
    serversWithoutIpv4: caches
      .of(Server)
      .by('namespace', namespace)
      .filter(({ spec }) => spec.managedBy === undefined && !spec.publicIpv4)
      .filter(({ spec }) => (spec.networks ?? []).some((each) => each.networkId === networkId))
      .map(({ metadata }) => metadata.name)
      .sort(),
    edits: editsOf(requests),
    editor:
      detectEdit(edge) === undefined
        ? ''
        : (requesterOf(requests, 'edge.sync') ??
          requesterOf(requests, 'edge.delete') ??
          (await findEditor(store, Edge, edge, ''))),
  }
}

async function networkOf(
  { db, caches }: Parts,
  { metadata: { namespace = '' }, spec: { networkId } }: EdgeObject,
  accountId: string | undefined,
): Promise<Observed['network']> {
  const { metadata, status } = caches.of(Network).get({ namespace, name: networkId }) ?? {}
  const { ipv4Cidr, ipv6Prefix } = status ?? {}
  if (metadata?.uid === undefined || ipv4Cidr === undefined || ipv6Prefix === undefined || accountId === undefined)
    return undefined
  const router = await orUnavailable(findRouterOf(db, { accountId, networkId }))
  return { uid: metadata.uid, ipv4Cidr, ipv6Prefix, isAtRouter: router !== undefined }
}

/** A claim for an edge that is deleted meanwhile would never be released. */
const edgeEffects = (
  parts: Parts & HostKeyAccess,
  { bundles, machines }: OpenNetwork,
): EffectsOn<EdgeEffects, EdgeSpec, EdgeStatus> => ({
  claim: withRefusalCondition(CLAIMED, async ({ granted, ...demand }, edge) => {
    await requireNewest(parts.store, Edge, edge)
    await requireStandingOfEdit(parts, edge, demand.accountId)
    await orUnavailable(parts.db.transaction().execute((tx) => claimEdge(tx, demand)))
    return { ...grantedCondition(CLAIMED), status: { granted } }
  }),
  async announce({ accountId, edgeId, networkId, zone, gateway, router }, edge) {
    const { namespace = '', uid = '' } = edge.metadata
    await orUnavailable(parts.db.transaction().execute((tx) => setGateway(tx, { accountId, edgeId, gateway })))
    // In a network without a router, another row has the router's address: the two must never exist together.
    if (router === undefined) await bundles.clear(ownerOf(uid), zone)
    await applyNetwork(parts, { namespace, name: networkId })
    const sequence = router && (await bundles.apply(ownerOf(uid), zone, router, routerRows(router)))
    return { status: { leadsOut: gateway, ...defined({ appliedSequence: sequence }) } }
  },
  async deliver(delivery, edge) {
    const accountId = await findAccountOf(parts.db, edge.metadata.namespace ?? '')
    const rule = rulesOf(edge).find(({ name }) => name === delivery.role)
    const zone = parts.caches.of(Zone).get({ name: edge.spec.zone })
    const input =
      rule &&
      inputOf(
        edge,
        {
          network: await networkOf(parts, edge, accountId),
          resolvers: zone?.spec.publicNetwork?.dnsServers ?? [],
          machines: machines.observe({ namespace: edge.metadata.namespace ?? '', id: edge.metadata.name }),
        },
        rule,
      )
    if (input === undefined) throw new Unavailable('the addresses of the machine')
    const document = edgeMachineParts(input)
    const edgeId = accountId && { accountId, edgeId: edge.metadata.name }
    const hostKey = edgeId && document.bastion && (await keptHostKey(parts, edgeId))
    await deliverDocument(
      parts,
      delivery,
      document.bastion && hostKey ? { ...document, bastion: { ...document.bastion, hostKey } } : document,
    )
    return undefined
  },
  async release({ id }) {
    if (id !== undefined) await orUnavailable(parts.db.transaction().execute((tx) => releaseEdge(tx, id)))
    return undefined
  },
  audit: auditEffect(parts),
})
