/** The controller of dev clusters: its watches, what it reads, and its effects. `plan.ts` decides. */
import { devClusterChanges } from '../../../changes/dev-cluster.ts'
import { Unavailable } from '../../../domain/problem.ts'
import { isDevClusterClaimed, releaseDevCluster } from '../../../db/dev-cluster/index.ts'
import { listOverKubeconfigs } from '../../../db/kubeconfig/index.ts'
import { ensureIssuer } from '../../../db/kubernetes-cluster/index.ts'
import { watch } from '../../../kit/reconcile/reconciler.ts'
import { watchNamed } from '../../../kit/reconcile/watch-named.ts'
import type { Sealing } from '../../../kit/sys/sealing.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { DevCluster, type DevClusterSpec, type DevClusterStatus } from '../../../resources/dev-cluster/index.ts'
import { Network } from '../../../resources/network/index.ts'
import { findAccountOf } from '../../kit/account.ts'
import { auditEffect } from '../../kit/audit.ts'
import { controller } from '../../kit/controller.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { EffectsOn } from '../../kit/effects.ts'
import { claimEffect, intentOf } from '../../kit/changes.ts'
import {
  deliverDocument,
  MACHINE_READS,
  MACHINE_WRITES,
  type Machines,
  openMachines,
} from '../managed-machine/index.ts'
import type { Parts } from '../../kit/parts.ts'
import { newRequests } from '../../kit/synced.ts'
import { devClusterDemand, devClusterDocument } from './machine.ts'
import { type DevClusterEffects, type DevClusterObject, type Observed } from './observed.ts'
import { plan } from './plan.ts'

/** Parts besides those of every controller. */
interface SecretAccess {
  /** Opens the key that signs tokens; no dev cluster is created without it. */
  readonly sealing?: Sealing
}

export const devClusterController = controller<DevClusterEffects>()({
  name: 'dev-cluster',
  resource: DevCluster,
  sharding: 'by-zone',
  finalizer: finalizerOf(DevCluster),
  intent: intentOf(devClusterChanges),
  plan,
  reads: [Network, Zone, ...MACHINE_READS],
  writes: MACHINE_WRITES,
  open(parts: Parts & SecretAccess) {
    const machines = openMachines(parts, 'dev_cluster')
    return {
      watches: [
        watchNamed(parts.caches.of(DevCluster), Network, ({ spec }) => spec.networkId),
        watch(Zone, () => []),
        ...machines.watches,
      ],
      observe: (cluster) => observe(parts, machines, cluster),
      effects: effectsOf(parts, machines),
    }
  },
})

async function observe(parts: Parts & SecretAccess, machines: Machines, cluster: DevClusterObject): Promise<Observed> {
  const { db, caches, clock, sealing } = parts
  const { namespace = '', name: devClusterId, uid = '' } = cluster.metadata
  const { zone, networkId } = cluster.spec
  const accountId = await findAccountOf(db, namespace)
  const network = networkId === undefined ? undefined : caches.of(Network).get({ namespace, name: networkId })
  return {
    accountId,
    isClaimed: accountId !== undefined && (await orUnavailable(isDevClusterClaimed(db, { accountId, devClusterId }))),
    region: caches.of(Zone).get({ name: zone })?.spec.region ?? '',
    networkCidr: network?.status?.ipv4Cidr,
    issuerKey: sealing?.isAvailable === true ? (await orUnavailable(ensureIssuer(db, sealing))).publicKey : undefined,
    machines: machines.observe({ namespace, id: devClusterId }),
    endedAdmins: await orUnavailable(listOverKubeconfigs(db, uid, clock.now())),
    requests: await newRequests(db, cluster),
  }
}

const effectsOf = (
  parts: Parts & SecretAccess,
  machines: Machines,
): EffectsOn<DevClusterEffects, DevClusterSpec, DevClusterStatus> => ({
  claim: claimEffect(parts, devClusterChanges),
  async deliver(delivery, cluster) {
    const observed = await observe(parts, machines, cluster)
    // The configuration has changed meanwhile: the next reconcile delivers the new one.
    if (devClusterDemand(cluster, observed).configuration?.fingerprint !== delivery.fingerprint) return undefined
    const document = devClusterDocument(cluster, observed)
    if (document === undefined) throw new Unavailable('the server of the dev cluster')
    await deliverDocument(parts, delivery, document)
    return undefined
  },
  async release(id) {
    await orUnavailable(parts.db.transaction().execute((tx) => releaseDevCluster(tx, id)))
    return undefined
  },
  audit: auditEffect(parts),
})
