/** Creating, reading, changing and deleting managed Kubernetes clusters. */
import {
  kubernetesClusterChanges,
  requireKubernetes,
  requireRelease,
  requireUpgrade,
} from '../../../changes/kubernetes-cluster.ts'
import { worldOf } from '../../../changes/kit/world.ts'
import {
  isOfNewerMinor,
  minorOf,
  requireRestorableCluster,
  requireRunningCluster,
  requireServingCluster,
} from '../../../domain/kubernetes-cluster/rules.ts'
import { badField, conflict, notFound, unavailable } from '../../../domain/problem.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import { claimCluster, listClusterSnapshots, releaseCluster } from '../../../db/kubernetes-cluster/index.ts'
import { replicasFor } from '../../../integrations/control-planes/replicas.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import { accountNamespace } from '../../../resources/index.ts'
import {
  createKubernetesCluster,
  createKubernetesClusterSnapshot,
  getKubernetesCluster,
  getKubernetesClusterKubeconfig,
  getKubernetesClusterToken,
  KubernetesCluster,
  type KubernetesClusterSpec,
  listKubernetesClusters,
  listKubernetesClusterSnapshots,
  registerKubernetesClusterInPlatform,
  removeKubernetesClusterFromPlatform,
  restoreKubernetesCluster,
  upgradeKubernetesCluster,
} from '../../../resources/kubernetes-cluster/index.ts'
import { Network } from '../../../resources/network/index.ts'
import { auditEntryOf } from '../../kit/change/audit.ts'
import { create } from '../../kit/change/create.ts'
import { operate } from '../../kit/change/operate.ts'
import { changeEndpoints } from '../../kit/rest.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'
import type { NodePools } from '../node-pool/index.ts'
import { etagOfObject, listObjects } from '../../kit/plain/objects.ts'
import { type AccessParts, kubeconfigOf, requireClaim, requireHost, requireIssuer, tokenFor } from './access.ts'
import type { KubernetesClusterObject, KubernetesClusters } from './objects.ts'
import { versionsEndpoint } from './versions.ts'

export type KubernetesClusterParts = AccessParts & {
  readonly kubernetesClusters: KubernetesClusters
  readonly nodePools: NodePools
}

const NO_PLATFORM = 'This cloud is not connected to an organisation platform.'

export const kubernetesClusterEndpoints = (parts: KubernetesClusterParts): readonly Endpoint[] => [
  listObjects(parts, parts.kubernetesClusters, listKubernetesClusters, () => ({})),
  versionsEndpoint(parts),
  customerEndpoint(getKubernetesCluster, (call) => read(parts, call)),
  customerEndpoint(createKubernetesCluster, (call) => createEndpoint(parts, call)),
  ...changeEndpoints(parts, kubernetesClusterChanges, { ...parts.kubernetesClusters, factsOf }),
  customerEndpoint(upgradeKubernetesCluster, (call) => upgrade(parts, call)),
  customerEndpoint(getKubernetesClusterKubeconfig, (call) => readKubeconfig(parts, call)),
  customerEndpoint(getKubernetesClusterToken, (call) => readToken(parts, call)),
  customerEndpoint(listKubernetesClusterSnapshots, (call) => listSnapshots(parts, call)),
  customerEndpoint(createKubernetesClusterSnapshot, (call) =>
    operate(parts, parts.kubernetesClusters, call, {
      kind: 'kubernetes_cluster.snapshot',
      arguments: { kind: 'manual' },
      changes: () => (call.body.title === '' ? [] : [{ field: 'title', before: '', after: call.body.title }]),
      validate: requireRunningCluster,
      spec: {},
    }),
  ),
  customerEndpoint(restoreKubernetesCluster, (call) => restore(parts, call)),
  customerEndpoint(registerKubernetesClusterInPlatform, (call) => setRegistration(parts, call, true)),
  customerEndpoint(removeKubernetesClusterFromPlatform, (call) => setRegistration(parts, call, false)),
]

async function read(
  { kubernetesClusters, nodePools }: KubernetesClusterParts,
  { caller, params }: Call<typeof getKubernetesCluster, Customer>,
): Promise<Answer> {
  const cluster = await kubernetesClusters.read(caller.accountId, params.id)
  const pools = await nodePools.ofCluster(caller.accountId, params.id)
  const body = {
    kubernetes_cluster: { ...kubernetesClusters.viewOf(cluster), node_pools: pools.map(nodePools.viewOf) },
  }
  return { status: 200, body, headers: { etag: etagOfObject(cluster) } }
}

async function createEndpoint(
  parts: KubernetesClusterParts,
  call: Call<typeof createKubernetesCluster, Customer>,
): Promise<Answer> {
  const {
    caller: { accountId },
    body: {
      zone,
      name,
      network_id: networkId,
      version,
      public_ipv4: publicIpv4,
      labels,
      is_protected: isProtected,
      ...body
    },
  } = call
  if (body.private_endpoint) throw badField('private_endpoint', 'is not offered: the API of a cluster is public')
  const { region, releases } = requireKubernetes(worldOf(parts.caches), zone)
  const release = requireRelease(releases, version)
  await requireIssuer(parts)
  const network = { namespace: accountNamespace(accountId), name: networkId }
  if (parts.caches.of(Network).get(network) === undefined) throw notFound('network')
  const pooled = { zone, networkId, version: minorOf(release) }
  await parts.nodePools.rehearse(accountId, pooled, body.node_pools, 'node_pools')
  const replicas = replicasFor(await requireHost(parts, region).offer())
  if (replicas === undefined)
    throw unavailable('no_capacity', 'The host of control planes has no memory left for another one.')
  const controlPlane = { controlPlaneId: newUuid(parts.random), release, replicas }
  const answer = await create(parts, parts.kubernetesClusters, call, {
    kind: 'kubernetes_cluster.create',
    detail: {
      zone,
      name,
      network_id: networkId,
      version: minorOf(release),
      ...(body.node_pools.length === 0 ? {} : { node_pools: body.node_pools.map((pool) => pool.name).join(',') }),
    },
    claim: (tx, clusterId) =>
      claimCluster(tx, { accountId, clusterId, zone, region, name, networkId, ...controlPlane }),
    release: (tx, clusterId) => releaseCluster(tx, { accountId, clusterId }),
    specOf: (operation): KubernetesClusterSpec => ({
      ...KubernetesCluster.spec.parse({
        zone,
        name,
        networkId,
        version: minorOf(release),
        publicIpv4,
        labels,
        isProtected,
      }),
      operation,
    }),
  })
  // The cluster and the operation; then each pool and its operation.
  const begun = bodyOf<{ readonly kubernetes_cluster: { readonly id: string } }>(answer)
  const of = { ...pooled, id: begun.kubernetes_cluster.id }
  const pools: unknown[] = []
  for (const pool of body.node_pools)
    pools.push(bodyOf<{ readonly node_pool: unknown }>(await parts.nodePools.make(call, of, pool)).node_pool)
  return { status: 202, body: { ...begun, node_pools: pools } }
}

/** Throws 503 where there is no organisation platform. */
async function setRegistration(
  parts: KubernetesClusterParts,
  call: Call<typeof registerKubernetesClusterInPlatform, Customer>,
  registersInPlatform: boolean,
): Promise<Answer> {
  const { kubernetesClusters, hasOrganisationPlatform } = parts
  const { caller, params } = call
  requireRunningCluster(kubernetesClusters.factsOf(await kubernetesClusters.read(caller.accountId, params.id)))
  if (hasOrganisationPlatform !== true) throw unavailable('not_configured', NO_PLATFORM)
  return operate(parts, kubernetesClusters, call, {
    kind: registersInPlatform ? 'kubernetes_cluster.platform_register' : 'kubernetes_cluster.platform_deregister',
    validate: requireRunningCluster,
    spec: { registersInPlatform },
  })
}

/** Of an answer whose form its caller knows. */
const bodyOf = <Body>(answer: Answer): Body => ('body' in answer ? answer.body : {}) as Body

/** With the release that it runs. */
const factsOf = (cluster: KubernetesClusterObject) => kubernetesClusterChanges.factsOf(storedOf(cluster))

async function upgrade(
  parts: KubernetesClusterParts,
  call: Call<typeof upgradeKubernetesCluster, Customer>,
): Promise<Answer> {
  const { kubernetesClusters } = parts
  const {
    caller: { accountId },
    params: { id },
    body: { version, node_pools: nodePools },
  } = call
  const cluster = await kubernetesClusters.read(accountId, id)
  await parts.nodePools.catchUp(accountId)
  const subject = { accountId, id, spec: { ...cluster.spec, version }, facts: factsOf(cluster) }
  const release = requireUpgrade(subject, worldOf(parts.caches))
  return operate(parts, kubernetesClusters, call, {
    kind: 'kubernetes_cluster.upgrade',
    arguments: { release, nodePools: String(nodePools) },
    changes: ({ spec }) => [{ field: 'version', before: spec.version, after: version }],
    validate: requireRunningCluster,
    spec: { version },
  })
}

async function readKubeconfig(
  parts: KubernetesClusterParts,
  call: Call<typeof getKubernetesClusterKubeconfig, Customer>,
): Promise<Answer> {
  const cluster = await serving(parts, call.caller.accountId, call.params.id)
  const body = await kubeconfigOf(parts, call, { cluster, seconds: call.query.expires_in_seconds })
  await noteRead(parts, call, cluster)
  return { status: 200, body }
}

async function readToken(
  parts: KubernetesClusterParts,
  call: Call<typeof getKubernetesClusterToken, Customer>,
): Promise<Answer> {
  const { caller, now } = call
  const cluster = await serving(parts, caller.accountId, call.params.id)
  const { controlPlaneId } = await requireClaim(parts, caller.accountId, cluster)
  const body = tokenFor(await requireIssuer(parts), { caller, now, audience: controlPlaneId })
  await noteRead(parts, call, cluster)
  return { status: 200, body }
}

async function serving(
  { kubernetesClusters }: KubernetesClusterParts,
  accountId: string,
  id: string,
): Promise<KubernetesClusterObject> {
  const cluster = await kubernetesClusters.read(accountId, id)
  requireServingCluster(kubernetesClusters.factsOf(cluster))
  if (cluster.status?.isSimulated === true)
    throw conflict('state_not_allowed', 'The cluster is simulated: nothing answers there.')
  return cluster
}

/** Shows nothing that the audit log does not record. */
const noteRead = (
  parts: KubernetesClusterParts,
  call: Call<typeof getKubernetesClusterKubeconfig | typeof getKubernetesClusterToken, Customer>,
  { metadata: { name: resourceId } }: KubernetesClusterObject,
): Promise<void> =>
  parts.db.transaction().execute(async (tx) => void (await appendAudit(tx, auditEntryOf(call, { resourceId }), parts)))

async function listSnapshots(
  { db, kubernetesClusters }: KubernetesClusterParts,
  { caller: { accountId }, params: { id } }: Call<typeof listKubernetesClusterSnapshots, Customer>,
): Promise<Answer> {
  const { status } = await kubernetesClusters.read(accountId, id)
  const stored = new Set(status?.storedSnapshots)
  const items = (await listClusterSnapshots(db, { accountId, clusterId: id })).map((each) => ({
    id: each.id,
    kind: each.kind,
    kubernetes_version: each.release,
    size_bytes: each.sizeBytes,
    place: stored.has(each.id) ? 'object_storage' : 'host',
    created_at: each.createdAt.toISOString(),
    expires_at: null,
  }))
  return { status: 200, body: { items, next_cursor: null } }
}

async function restore(
  parts: KubernetesClusterParts,
  call: Call<typeof restoreKubernetesCluster, Customer>,
): Promise<Answer> {
  const {
    caller: { accountId },
    params: { id: clusterId },
    body: { snapshot_id: snapshotId },
  } = call
  const { kubernetesClusters } = parts
  const cluster = await kubernetesClusters.read(accountId, clusterId)
  requireRestorableCluster(kubernetesClusters.factsOf(cluster))
  if (cluster.status?.isMade !== true) throw conflict('state_not_allowed', 'The cluster has never run.')
  const snapshots = await listClusterSnapshots(parts.db, { accountId, clusterId })
  const snapshot = snapshots.find(({ id }) => id === snapshotId)
  if (snapshot === undefined) throw notFound('snapshot')
  const { release } = await requireClaim(parts, accountId, cluster)
  if (isOfNewerMinor(snapshot.release, release))
    throw badField('snapshot_id', `is of Kubernetes ${snapshot.release}, newer than the cluster's ${release}`)
  return operate(parts, kubernetesClusters, call, {
    kind: 'kubernetes_cluster.restore',
    arguments: { snapshotId },
    changes: () => [{ field: 'snapshot_id', before: '', after: snapshotId }],
    validate: requireRestorableCluster,
    spec: {},
  })
}
