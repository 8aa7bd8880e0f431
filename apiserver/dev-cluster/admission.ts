/** Dev clusters that people make and delete past the API must satisfy its rules. Everything is checked and nothing is
 *  claimed: that is the controller's part, once the object is there. */
import { requireDeletableDevCluster } from '../../domain/dev-cluster.ts'
import { badField } from '../../domain/problem.ts'
import { parsePublicKey } from '../../domain/ssh-key.ts'
import { claimDevCluster } from '../../db/dev-cluster/index.ts'
import { Plan, Template, Zone } from '../../resources/catalog/index.ts'
import { finalizerOf } from '../../resources/define.ts'
import {
  DevCluster,
  devClusterFactsOf,
  type DevClusterSpec,
  type DevClusterStatus,
} from '../../resources/dev-cluster/index.ts'
import { Network } from '../../resources/network/index.ts'
import { admitDeletion, requireAccount, requireStanding } from '../admission/account-objects.ts'
import type { AdmissionParts, AdmissionRules, AdmittedChange } from '../admission/kind.ts'
import { denyPlatformFields, type PlatformFields } from '../admission/platform-fields.ts'
import { requireLabels } from '../admission/readable-fields.ts'
import { rehearse } from '../admission/rehearse.ts'
import { storedOf } from '../list/stored.ts'
import type { DevClusterObject } from './clusters.ts'
import { rehearseDevCluster, requireDevClusters, requireDevPlan, requireNetwork, requireVersion } from './rules.ts'

const PLATFORM: PlatformFields = {
  noun: 'dev cluster',
  finalizer: finalizerOf(DevCluster),
  goesWhen: 'nothing of the cluster is left',
}

/** Throws the Problem that the API would answer. */
async function validateCreation(parts: AdmissionParts, cluster: DevClusterObject): Promise<readonly AdmittedChange[]> {
  const {
    metadata: { name: devClusterId, namespace = '' },
    spec,
  } = cluster
  const accountId = await requireAccount(parts, cluster, 'dev clusters')
  denyPlatformFields(cluster, undefined, PLATFORM)
  requireLabels(spec)
  spec.sshKeys.forEach((text, index) => {
    const key = parsePublicKey(text)
    if (typeof key === 'string') throw badField(`spec.sshKeys.${index}`, key)
  })
  requireDevClusters(parts, spec.zone, 'spec.zone')
  requireVersion(spec.version, 'spec.version')
  requireDevPlan(parts, spec.plan, 'spec.plan')
  await requireStanding(parts, accountId)
  // The network of the same manifest may come later: the cluster waits for it.
  const { networkId = '' } = spec
  if (parts.caches.of(Network).get({ namespace, name: networkId })?.status?.ipv4Cidr !== undefined)
    requireNetwork(parts, accountId, spec, 'spec.networkId')
  await rehearse(parts, (tx) => claimDevCluster(tx, { accountId, devClusterId, name: spec.name }))
  await rehearseDevCluster(parts, accountId, spec)
  return [{ action: 'dev_cluster.create', changes: [] }]
}

export const devClusterAdmission: AdmissionRules<DevClusterSpec, DevClusterStatus> = {
  create: validateCreation,
  /** Nothing of it changes: the kind itself refuses that. */
  update(_parts, cluster, before) {
    denyPlatformFields(cluster, before, PLATFORM)
    return []
  },
  delete: admitDeletion('dev_cluster.delete', (before) =>
    requireDeletableDevCluster(devClusterFactsOf(storedOf(before))),
  ),
  reads: [Zone, Network, Plan, Template],
}
