/** The load balancer controller: its watches, what it reads, and its effects. `plan.ts` decides. */
import { loadBalancerChanges } from '../../../changes/load-balancer.ts'
import { Unavailable } from '../../../domain/problem.ts'
import { prefixOf } from '../../../domain/public-pool/rules.ts'
import {
  certificateOwner,
  dropCertificates,
  findLoadBalancer,
  listCertificates,
  listUnusedCertificates,
  releaseLoadBalancer,
} from '../../../db/load-balancer/index.ts'
import { watchNamed } from '../../../kit/reconcile/watch-named.ts'
import type { Sealing } from '../../../kit/sys/sealing.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { LoadBalancer, type LoadBalancerSpec, type LoadBalancerStatus } from '../../../resources/load-balancer/index.ts'
import { Network } from '../../../resources/network/index.ts'
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
import { claimEffect, intentOf } from '../../kit/changes.ts'
import { detectLife } from '../../kit/made-plan.ts'
import { findEditor, requesterOf, SYSTEM_ACTOR } from '../../kit/operation/direct-edit.ts'
import { loadBalancerOwner } from '../../network/ovn/difference.ts'
import { prefixRoute } from '../../network/ovn/prefix-route.ts'
import type { Parts } from '../../kit/parts.ts'
import { type Bundles, editsOf, newRequests, openBundles } from '../../kit/synced.ts'
import { loadBalancerDocument, isRole, type OpenedCertificate, usedCertificates } from './machines.ts'
import type { LoadBalancerEffects, LoadBalancerObject, Observed } from './observed.ts'
import { LIFE, plan } from './plan.ts'

/** Parts besides those of every controller. */
interface CertificateAccess {
  /** Opens the keys of certificates; there are none without it. */
  readonly sealing?: Sealing
}

export const loadBalancerController = controller<LoadBalancerEffects>()({
  name: 'load-balancer',
  resource: LoadBalancer,
  sharding: 'by-zone',
  finalizer: finalizerOf(LoadBalancer),
  // The controller deletes certificates that no spec names.
  intent: intentOf(loadBalancerChanges),
  plan,
  reads: [Network, ...MACHINE_READS],
  // A load balancer whose operation is its deletion is deleted here.
  writes: [...MACHINE_WRITES, LoadBalancer],
  open(parts: Parts & CertificateAccess) {
    const opened = { bundles: openBundles(parts.ovn), machines: openMachines(parts, 'load_balancer') }
    return {
      watches: [
        watchNamed(parts.caches.of(LoadBalancer), Network, ({ spec }) => spec.networkId),
        ...opened.machines.watches,
      ],
      observe: (balancer, now) => observe(parts, opened, balancer, now),
      effects: effectsOf(parts, opened),
    }
  },
})

interface OpenNetwork {
  readonly bundles: Bundles
  readonly machines: Machines
}

async function observe(
  parts: Parts,
  { bundles, machines }: OpenNetwork,
  balancer: LoadBalancerObject,
  now: Date,
): Promise<Observed> {
  const { db, caches, store } = parts
  const {
    metadata: { namespace = '', name: id },
    spec,
  } = balancer
  const accountId = await findAccountOf(db, namespace)
  const loadBalancer = accountId === undefined ? undefined : { accountId, loadBalancerId: id }
  const certificateIds = spec.certificates.map((certificate) => certificate.id)
  const requests = await newRequests(db, balancer)
  const edit = detectLife(balancer, LIFE)
  return {
    accountId,
    claim: loadBalancer && (await orUnavailable(findLoadBalancer(db, loadBalancer))),
    hasNetwork: caches.of(Network).get({ namespace, name: spec.networkId })?.status?.ipv4Cidr !== undefined,
    routeDigest: bundles.digestOf(loadBalancerOwner(balancer.metadata.uid ?? '')),
    machines: machines.observe({ namespace, id }),
    lost: await findLostMachines(parts, { type: 'load_balancer', namespace, id, accountId }),
    unusedCertificates:
      loadBalancer === undefined
        ? []
        : await orUnavailable(listUnusedCertificates(db, loadBalancer, certificateIds, now)),
    edits: editsOf(requests),
    editor:
      edit === undefined
        ? ''
        : (requesterOf(requests, edit) ??
          (spec.managedBy === undefined ? await findEditor(store, LoadBalancer, balancer, '') : SYSTEM_ACTOR)),
  }
}

const effectsOf = (
  parts: Parts & CertificateAccess,
  { bundles, machines }: OpenNetwork,
): EffectsOn<LoadBalancerEffects, LoadBalancerSpec, LoadBalancerStatus> => ({
  claim: claimEffect(parts, loadBalancerChanges),
  async route({ address }, balancer) {
    const { zone } = balancer.spec
    await bundles.apply(loadBalancerOwner(balancer.metadata.uid ?? ''), zone, address, [
      prefixRoute(zone, prefixOf(address), address),
    ])
    return undefined
  },
  async drop({ certificateIds, ...id }) {
    await orUnavailable(dropCertificates(parts.db, id, certificateIds))
    return undefined
  },
  async deliver(delivery, balancer) {
    const { namespace = '', name: loadBalancerId } = balancer.metadata
    const accountId = await findAccountOf(parts.db, namespace)
    if (accountId === undefined || !isRole(delivery.role)) return undefined
    const id = { accountId, loadBalancerId }
    const claim = await orUnavailable(findLoadBalancer(parts.db, id))
    const document =
      claim &&
      loadBalancerDocument(
        balancer,
        accountId,
        { claim, machines: machines.observe({ namespace, id: loadBalancerId }), role: delivery.role },
        await openCertificates(parts, id, usedCertificates(balancer)),
      )
    if (document === undefined) throw new Unavailable('the addresses of the machines')
    await deliverDocument(parts, delivery, document)
    return undefined
  },
  async release(id, balancer) {
    await bundles.clear(loadBalancerOwner(balancer.metadata.uid ?? ''), balancer.spec.zone)
    await orUnavailable(parts.db.transaction().execute((tx) => releaseLoadBalancer(tx, id)))
    return undefined
  },
  audit: auditEffect(parts),
})

async function openCertificates(
  { db, sealing }: Parts & CertificateAccess,
  id: { readonly accountId: string; readonly loadBalancerId: string },
  certificateIds: readonly string[],
): Promise<readonly OpenedCertificate[]> {
  const rows = await orUnavailable(listCertificates(db, id, certificateIds))
  if (rows.length < certificateIds.length) throw new Unavailable('a certificate of the load balancer')
  return rows.map(({ id: certificateId, certificate, sealedKey }) => {
    if (sealing === undefined) throw new Unavailable('the sealing key of certificates')
    return { id: certificateId, certificate, privateKey: sealing.open(sealedKey, certificateOwner(id, certificateId)) }
  })
}
