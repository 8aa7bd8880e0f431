/** The controller of floating IPs: its watches, what it reads, and its effects. `plan.ts` decides. */
import { floatingIpChanges } from '../../../changes/floating-ip.ts'
import { findFloatingIp, findForwarding, releaseFloatingIp } from '../../../db/floating-ip/index.ts'
import { isAnyHeld } from '../../../db/public-pool/index.ts'
import { wasRemovalOrderedByName } from '../../../db/removal/index.ts'
import { findServerClaims } from '../../../db/server/index.ts'
import { canonicalAddress } from '../../../domain/network/addresses.ts'
import { keyOf } from '../../../kit/kube/object.ts'
import { watch } from '../../../kit/reconcile/reconciler.ts'
import { watchNamed } from '../../../kit/reconcile/watch-named.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { FloatingIp, type FloatingIpSpec, type FloatingIpStatus } from '../../../resources/floating-ip/index.ts'
import { Node } from '../../../resources/node/index.ts'
import { Router } from '../../../resources/router/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { findAccountOf } from '../../kit/account.ts'
import { auditEffect } from '../../kit/audit.ts'
import { controller } from '../../kit/controller.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { EffectsOn } from '../../kit/effects.ts'
import { gatewayNodes } from '../../network/gateway-nodes.ts'
import { claimEffect, intentOf, readEdits } from '../../kit/changes.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import { floatingIpOwner } from '../../network/ovn/difference.ts'
import { type Forwarding, floatingIpRows } from '../../network/ovn/floating-ip.ts'
import type { Parts } from '../../kit/parts.ts'
import { type Bundles, factsDigest, openBundles } from '../../kit/synced.ts'
import { type FloatingIpEffects, type FloatingIpObject, type Observed, appliedFloatingIp, plan } from './plan.ts'

export const floatingIpController = controller<FloatingIpEffects>()({
  name: 'floatingip',
  resource: FloatingIp,
  sharding: 'by-zone',
  finalizer: finalizerOf(FloatingIp),
  intent: intentOf(floatingIpChanges),
  plan,
  reads: [Node, Router, Server, Zone],
  // A floating IP whose operation is its release is deleted here.
  writes: [FloatingIp],
  open(parts: Parts) {
    const bundles = openBundles(parts.ovn)
    const floatingIps = parts.caches.of(FloatingIp)
    return {
      watches: [
        watchNamed(floatingIps, Server, ({ spec }) => spec.serverId),
        watch(Router, ({ metadata: { namespace = '' } }) =>
          floatingIps
            .inNamespace(namespace)
            .filter(({ spec: { target = 'public' } }) => target !== 'public')
            .map(keyOf),
        ),
        watch(Node, () => []),
        watch(Zone, () => []),
      ],
      observe: (floatingIp) => observe(parts, bundles, floatingIp),
      effects: floatingIpEffects(parts, bundles),
    }
  },
})

async function observe(parts: Parts, bundles: Bundles, floatingIp: FloatingIpObject): Promise<Observed> {
  const { db, caches, ovn } = parts
  const {
    metadata: { namespace = '', name, uid = '' },
    spec: { zone },
    status,
  } = floatingIp
  const accountId = await findAccountOf(db, namespace)
  const claim =
    accountId === undefined ? undefined : await orUnavailable(findFloatingIp(db, { accountId, floatingIpId: name }))
  const target =
    accountId === undefined || claim === undefined ? undefined : await factsOf(parts, floatingIp, { accountId, claim })
  const facts = target === 'no router' ? undefined : target
  const server = await serverOf(parts, floatingIp, accountId)
  const owner = floatingIpOwner(uid)
  const isForgotten = server === 'unmade' && claim?.serverId === undefined
  const isWaiting = activeOperation(floatingIp) !== undefined && status?.appliedSequence !== undefined
  return {
    accountId,
    claim,
    server,
    isTargetTaken: isForgotten && (await forwardsToHeld(parts, { zone, owner })),
    facts,
    isRouterMissing: target === 'no router',
    isApplied: bundles.digestOf(owner) === factsDigest(facts ?? null),
    installed: isWaiting ? await ovn?.installed(gatewayNodes(caches, zone)) : undefined,
    ...(await readEdits(parts, floatingIpChanges, floatingIp, appliedFloatingIp(floatingIp))),
  }
}

async function factsOf(
  { db, caches }: Parts,
  { metadata: { namespace = '', uid = '' }, spec: { zone } }: FloatingIpObject,
  of: Parameters<typeof findForwarding>[1],
): Promise<Forwarding | 'no router' | undefined> {
  const target = await orUnavailable(findForwarding(db, of))
  if (target === undefined) return undefined
  const { address } = of.claim
  if (target.kind === 'public') {
    const gateways = caches.of(Zone).get({ name: zone })?.spec.publicNetwork?.gateways ?? []
    const nextHop = gateways.find((gateway) => !gateway.includes(':'))
    const way = nextHop === undefined ? {} : { nextHop: canonicalAddress(nextHop) }
    return { zone, id: uid, address, target: { ...target, ...way } }
  }
  const routerId = caches.of(Router).get({ namespace, name: target.routerId })?.metadata.uid
  return routerId === undefined ? 'no router' : { zone, id: uid, address, target: { ...target, routerId } }
}

const forwardsToHeld = async (
  { db, ovn }: Parts,
  of: { readonly zone: string; readonly owner: string },
): Promise<boolean> => await orUnavailable(isAnyHeld(db, (await ovn?.forwardsTo(of)) ?? []))

async function serverOf(
  { db, caches, store }: Parts,
  { metadata: { namespace = '' }, spec: { serverId } }: FloatingIpObject,
  accountId: string | undefined,
): Promise<Observed['server']> {
  if (serverId === undefined || accountId === undefined) return 'gone'
  if ((await orUnavailable(findServerClaims(db, { accountId, serverId }))) !== undefined) return 'there'
  const key = { namespace, name: serverId }
  const server = caches.of(Server).get(key) ?? (await store.get(Server, key))
  // A server that is being deleted has released its claims already, and will not claim again. One that is missing
  // without an order is lost, and its guest may still run.
  const isGone =
    server === undefined
      ? await orUnavailable(wasRemovalOrderedByName(db, { kind: Server.kind, ...key }))
      : server.metadata.deletionTimestamp !== undefined
  return isGone ? 'gone' : 'unmade'
}

const floatingIpEffects = (
  parts: Parts,
  bundles: Bundles,
): EffectsOn<FloatingIpEffects, FloatingIpSpec, FloatingIpStatus> => ({
  claim: claimEffect(parts, floatingIpChanges),
  async apply({ zone, facts }, { metadata: { uid = '' } }) {
    const rows = facts === undefined ? [] : floatingIpRows(facts)
    return { status: { appliedSequence: await bundles.apply(floatingIpOwner(uid), zone, facts ?? null, rows) } }
  },
  async release({ zone, id }, { metadata: { uid = '' } }) {
    await bundles.clear(floatingIpOwner(uid), zone)
    if (id !== undefined) await orUnavailable(parts.db.transaction().execute((tx) => releaseFloatingIp(tx, id)))
    return undefined
  },
  audit: auditEffect(parts),
})
