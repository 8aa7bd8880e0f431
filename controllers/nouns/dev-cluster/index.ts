/** The controller of dev clusters: its watches, what it reads, and its effects. `plan.ts` decides. */
import { devClusterChanges } from '../../../changes/dev-cluster.ts'
import { DEV_CLUSTER_ROLE } from '../../../domain/dev-cluster/rules.ts'
import { Unavailable } from '../../../domain/problem.ts'
import { isDevClusterClaimed, releaseDevCluster } from '../../../db/dev-cluster/index.ts'
import { listOverKubeconfigs } from '../../../db/kubeconfig/index.ts'
import { wasRemovalOrderedByName } from '../../../db/removal/index.ts'
import { ensureIssuer } from '../../../db/kubernetes-cluster/index.ts'
import { watch } from '../../../kit/reconcile/reconciler.ts'
import { watchNamed } from '../../../kit/reconcile/watch-named.ts'
import type { Sealing } from '../../../kit/sys/sealing.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { DevCluster, type DevClusterSpec, type DevClusterStatus } from '../../../resources/dev-cluster/index.ts'
import { Network } from '../../../resources/network/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { findAccountOf } from '../../kit/account.ts'
import { auditEffect } from '../../kit/audit.ts'
import { controller } from '../../kit/controller.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { EffectsOn } from '../../kit/effects.ts'
import { claimEffect, intentOf } from '../../kit/changes.ts'
import {
  deliverDocument,
  findLostMachines,
  machineName,
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
  const own = machines.observe({ namespace, id: devClusterId })
  return {
    accountId,
    isClaimed: accountId !== undefined && (await orUnavailable(isDevClusterClaimed(db, { accountId, devClusterId }))),
    region: caches.of(Zone).get({ name: zone })?.spec.region ?? '',
    networkCidr: network?.status?.ipv4Cidr,
    issuerKey: sealing?.isAvailable === true ? (await orUnavailable(ensureIssuer(db, sealing))).publicKey : undefined,
    machines: own,
    lost: await findLostMachines(parts, { type: 'dev_cluster', namespace, id: devClusterId, accountId }),
    isServerRemoved: own.length === 0 && (await isServerRemoved(db, cluster)),
    endedAdmins: await orUnavailable(listOverKubeconfigs(db, uid, clock.now())),
    requests: await newRequests(db, cluster),
  }
}

/** Its server is made once: an order for that name is for it. */
const isServerRemoved = async (db: Parts['db'], { metadata }: DevClusterObject): Promise<boolean> => {
  const name = machineName({ uid: metadata.uid ?? '', type: 'dev_cluster' }, DEV_CLUSTER_ROLE)
  return await orUnavailable(
    wasRemovalOrderedByName(db, { kind: Server.kind, namespace: metadata.namespace ?? '', name }),
  )
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
