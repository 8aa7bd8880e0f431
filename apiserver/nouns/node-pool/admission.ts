/** Node pools that people create, change and delete past the API must satisfy its rules. Everything is checked and
 *  nothing is claimed: the controller claims, once the object exists. */
import { isDeepStrictEqual } from 'node:util'
import { requireIdle } from '../../../domain/idle-rules.ts'
import {
  nodeLabelsFault,
  poolVersionFault,
  requireDeletablePool,
  taintsFault,
} from '../../../domain/node-pool/rules.ts'
import { badField, forbidden } from '../../../domain/problem.ts'
import { claimNodePool } from '../../../db/node-pool/index.ts'
import { findCluster } from '../../../db/kubernetes-cluster/index.ts'
import { Plan, Template, Zone } from '../../../resources/catalog/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { KubernetesCluster } from '../../../resources/kubernetes-cluster/index.ts'
import { NodePool, type NodePoolSpec, type NodePoolStatus } from '../../../resources/node-pool/index.ts'
import { idleFactsOf } from '../../../resources/operation/index.ts'
import { admitDeletion, requireAccount, requireStanding } from '../../kit/admission/account-objects.ts'
import {
  type AdmissionParts,
  type AdmissionRules,
  type AdmittedChange,
  editedFields,
} from '../../kit/admission/kind.ts'
import { denyPlatformFields, type PlatformFields } from '../../kit/admission/platform-fields.ts'
import { rehearse } from '../../kit/admission/rehearse.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'
import { type NodePoolObject, type PoolCluster, poolClusterOf } from './objects.ts'
import { rehearseNodes, requireNodeImage, requireNodePlan } from './rules.ts'
import { WORDS } from '../../kit/words.ts'

const PLATFORM: PlatformFields = {
  noun: 'node pool',
  finalizer: finalizerOf(NodePool),
  goesWhen: 'nothing of the pool is left',
}

/** Throws 403 for fields that only the platform writes, and 400 for invalid ones. */
function requireReadable(pool: NodePoolObject, before: NodePoolObject | undefined, of: PoolCluster | undefined): void {
  denyPlatformFields(pool, before, PLATFORM)
  if (!isDeepStrictEqual(pool.spec.skipped, before?.spec.skipped))
    throw forbidden('spec.skipped is written by the platform only.')
  const { spec } = pool
  for (const [field, fault] of [
    ['labels', nodeLabelsFault(spec.labels)],
    ['taints', taintsFault(spec.taints)],
    ['version', of && poolVersionFault(spec.version, of.version)],
    ['autoscaling', autoscalingFault(spec)],
    ['zone', of === undefined || of.zone === spec.zone ? undefined : `the cluster is in ${of.zone}`],
  ] as const)
    if (fault !== undefined) throw badField(`spec.${field}`, fault)
}

const autoscalingFault = ({ autoscaling }: NodePoolSpec): string | undefined =>
  autoscaling !== undefined && autoscaling.min > autoscaling.max ? 'has a min above its max' : undefined

/** The cluster of the same manifest may be created later: the pool waits for it. */
function clusterOf(
  { caches }: AdmissionParts,
  { metadata: { namespace = '' }, spec }: NodePoolObject,
): PoolCluster | undefined {
  const cluster = caches.of(KubernetesCluster).get({ namespace, name: spec.clusterId })
  return cluster && poolClusterOf(cluster)
}

async function rehearseMore(
  parts: AdmissionParts,
  accountId: string,
  { metadata: { name: nodePoolId }, spec }: NodePoolObject,
  count: number,
  of: PoolCluster | undefined,
): Promise<void> {
  const { zone, plan, publicIpv4 } = spec
  if (of !== undefined)
    await rehearseNodes(parts, WORDS.kubectl, {
      accountId,
      zone,
      plan,
      publicIpv4,
      count,
      nodePoolId,
      networkId: of.networkId,
    })
}

/** Throws the Problem that the API would answer. */
async function validateCreation(parts: AdmissionParts, pool: NodePoolObject): Promise<readonly AdmittedChange[]> {
  const {
    metadata: { name: nodePoolId },
    spec: { zone, clusterId, name, plan, count },
  } = pool
  const accountId = await requireAccount(parts, pool, 'node pools')
  const of = clusterOf(parts, pool)
  requireReadable(pool, undefined, of)
  requireNodeImage(parts, zone)
  requireNodePlan(parts, plan, 'spec.plan')
  await requireStanding(parts, accountId)
  if ((await findCluster(parts.db, { accountId, clusterId })) !== undefined)
    await rehearse(parts, (tx) => claimNodePool(tx, { accountId, nodePoolId, clusterId, name }))
  await rehearseMore(parts, accountId, pool, count, of)
  return [{ action: 'node_pool.create', changes: [] }]
}

/** Throws the Problem that the API would answer. */
async function validateChange(
  parts: AdmissionParts,
  pool: NodePoolObject,
  before: NodePoolObject,
): Promise<readonly AdmittedChange[]> {
  const of = clusterOf(parts, pool)
  requireReadable(pool, before, of)
  const changes = editedFields(
    ['count', 'autoscaling', 'labels', 'taints', 'version', 'maxUnavailable'],
    pool.spec,
    before.spec,
  )
  if (changes.length === 0) return []
  requireIdle('node_pool', idleFactsOf(storedOf(before)))
  const more = pool.spec.count - before.spec.count
  if (more > 0) {
    const accountId = await requireAccount(parts, pool, 'node pools')
    await requireStanding(parts, accountId)
    requireNodeImage(parts, pool.spec.zone)
    await rehearseMore(parts, accountId, pool, more, of)
  }
  return [{ action: 'node_pool.sync', changes }]
}

export const nodePoolAdmission: AdmissionRules<NodePoolSpec, NodePoolStatus> = {
  create: validateCreation,
  update: validateChange,
  delete: admitDeletion('node_pool.delete', (before) => requireDeletablePool(idleFactsOf(storedOf(before)))),
  reads: [Zone, Plan, Template, KubernetesCluster],
}
