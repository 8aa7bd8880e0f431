/** Public shape and routes of managed Kubernetes clusters, and the conversion from the stored shape. */
import { z } from 'zod'
import {
  CLUSTER_NAME,
  CLUSTER_STATES,
  type ClusterFacts,
  type ClusterState,
  KUBECONFIG_SECONDS,
  MINOR_PATTERN,
  SNAPSHOT_KINDS,
  SNAPSHOT_RETENTION,
  snapshotScheduleFault,
  TOKEN_ISSUER_URL,
} from '../../domain/kubernetes-cluster/rules.ts'
import { EXAMPLE } from '../kit/examples.ts'
import { activeOperationOf, OperationView, namedTarget, toOperationView } from '../operation/index.ts'
import { completeListOf, DateTime, Id, Labels, Printable, type Stored, Uuid, ZoneName } from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'
import { viewOf } from '../kit/view.ts'
import { NewNodePool, NodePoolView } from '../node-pool/index.ts'
import type { KubernetesClusterSpec, KubernetesClusterStatus } from './stored.ts'

const Health = z
  .strictObject({
    api_server: z.enum(['healthy', 'unhealthy', 'unknown']).describe('Whether its API answers.'),
    etcd_members_ready: z.int().describe('Healthy members of etcd.'),
    etcd_members_total: z.int().describe('Total members of etcd.'),
    has_etcd_quorum: z.boolean().describe('Whether enough members of etcd are healthy for writes.'),
    nodes_ready: z.int().describe('Nodes that report Ready.'),
    nodes_total: z.int().describe('Nodes known to its API.'),
    observed_at: DateTime.nullable().describe('Time of the observation; null before the first.'),
    detail: z.string().describe('Human-readable description of the problem; empty when there is none.'),
  })
  .meta({ id: 'KubernetesHealth' })
const Addon = z
  .strictObject({ name: z.string(), version: z.string().describe('Installed release.') })
  .meta({ id: 'KubernetesAddon' })
const PlatformRegistration = z
  .strictObject({
    state: z
      .enum(['pending', 'unlinked', 'registered', 'failed', 'deregistered'])
      .describe('unlinked: the account has no organisation on the platform.'),
    organisation_id: z.string().nullable().describe('Organisation in which it is registered.'),
    cluster_id: z.string().nullable().describe('Its id on the organisation platform.'),
    url: z.string().nullable().describe('Its page on the organisation platform, after registration.'),
    reason: z.string().describe('Reason why it is not registered; empty when it is.'),
    next_attempt_at: DateTime.nullable().describe('Time of the next attempt of a pending registration.'),
    registered_at: DateTime.nullable().describe('Time of its registration.'),
  })
  .meta({ id: 'KubernetesPlatformRegistration' })

export const KubernetesClusterView = z
  .strictObject({
    id: z.string(),
    zone: z.string(),
    region: z.string().describe('Region of its control plane.'),
    name: z.string(),
    version: z.string().describe('Minor version of Kubernetes.'),
    kubernetes_version: z.string().describe('Release of its control plane; empty until it runs.'),
    available_upgrade: z.string().nullable().describe('The next minor version; null when there is none.'),
    state: z.enum(CLUSTER_STATES),
    network_id: z.string(),
    public_ipv4: z.boolean(),
    private_endpoint: z.boolean().describe('Always false.'),
    endpoint: z.string().nullable().describe('URL of its API; null until its control plane is up.'),
    endpoint_ipv4: z.string().nullable().describe('URL of its API on IPv4; null without public_ipv4.'),
    oidc_issuer_url: z.string().describe('Issuer of the tokens that its API accepts from people.'),
    labels: z.record(z.string(), z.string()),
    health: Health,
    addons: z.array(Addon).describe('Software that the platform has installed in it.'),
    etcd_snapshot_schedule: z.string().describe('Schedule of snapshots: five cron fields, in UTC.'),
    etcd_snapshot_retention: z.int().describe('Number of snapshots kept of each kind.'),
    node_pools: z.array(NodePoolView).optional().describe('Included only when a single cluster is read.'),
    platform: PlatformRegistration,
    is_protected: z.boolean(),
    active_operation: OperationView.nullable(),
    created_at: DateTime,
  })
  .meta({ id: 'KubernetesCluster' })
export type KubernetesClusterView = z.infer<typeof KubernetesClusterView>
export type StoredKubernetesCluster = Stored<KubernetesClusterSpec, KubernetesClusterStatus>

/** `error` when its creation failed, when a restore or an upgrade left it broken, or half an hour after its etcd lost
 *  its quorum. */
export function clusterStateOf(cluster: StoredKubernetesCluster): ClusterState {
  const { spec, status, isDeleting } = cluster
  const active = activeOperationOf(cluster)?.kind
  if (isDeleting || spec.operation?.kind === 'kubernetes_cluster.delete') return 'deleting'
  if (status?.isMade !== true) {
    const isFailed = status?.operation?.status === 'failed' && status.operation.id === spec.operation?.id
    return isFailed ? 'error' : 'creating'
  }
  if (active === 'kubernetes_cluster.restore') return 'restoring'
  if (active === 'kubernetes_cluster.upgrade') return 'upgrading'
  return (status.fault ?? '') === '' ? 'running' : 'error'
}

const UNSEEN: NonNullable<KubernetesClusterStatus['health']> = {
  apiServer: 'unknown',
  etcdMembersReady: 0,
  etcdMembersTotal: 0,
  hasEtcdQuorum: false,
  nodesReady: 0,
  nodesTotal: 0,
  detail: '',
}
const platformOf = (platform: KubernetesClusterStatus['platform']): KubernetesClusterView['platform'] => ({
  state: platform?.state ?? 'unlinked',
  organisation_id: platform?.organisationId ?? null,
  cluster_id: platform?.clusterId ?? null,
  url: platform?.url ?? null,
  reason: platform?.reason ?? 'No organisation platform knows it.',
  next_attempt_at: platform?.nextAttemptAt ?? null,
  registered_at: platform?.registeredAt ?? null,
})

export function toKubernetesClusterView(
  cluster: StoredKubernetesCluster,
  { region }: { readonly region: string },
): KubernetesClusterView {
  const { name: id, spec, status, createdAt } = cluster
  const operation = activeOperationOf(cluster)
  const health = status?.health ?? UNSEEN
  const endpoint = status?.endpoint ?? null
  return viewOf(KubernetesClusterView, spec, {
    id,
    region,
    version: status?.version ?? spec.version,
    kubernetes_version: status?.kubernetesVersion ?? '',
    available_upgrade: status?.availableUpgrade ?? null,
    state: clusterStateOf(cluster),
    private_endpoint: false,
    endpoint,
    endpoint_ipv4: spec.publicIpv4 && endpoint !== null && /^https:\/\/[\d.]+:/.test(endpoint) ? endpoint : null,
    oidc_issuer_url: TOKEN_ISSUER_URL,
    health: {
      api_server: health.apiServer,
      etcd_members_ready: health.etcdMembersReady,
      etcd_members_total: health.etcdMembersTotal,
      has_etcd_quorum: health.hasEtcdQuorum,
      nodes_ready: health.nodesReady,
      nodes_total: health.nodesTotal,
      observed_at: health.observedAt ?? null,
      detail: health.detail,
    },
    addons: status?.addons ?? [],
    platform: platformOf(status?.platform),
    active_operation:
      operation === undefined ? null : toOperationView(operation, namedTarget('kubernetes_cluster', cluster)),
    created_at: createdAt,
  })
}

export function clusterFactsOf(cluster: StoredKubernetesCluster): ClusterFacts {
  const { name: id, spec, isDeleting } = cluster
  const operation = activeOperationOf(cluster)
  return {
    id,
    state: clusterStateOf(cluster),
    isProtected: spec.isProtected,
    isDeleting,
    activeOperation: operation && { id: operation.id, kind: operation.kind },
  }
}

const Minor = z.string().regex(MINOR_PATTERN, 'must be a minor version such as 1.36')
const Schedule = z
  .string()
  .min(1)
  .max(64)
  .superRefine((text, context) => {
    const message = snapshotScheduleFault(text)
    if (message !== undefined) context.addIssue({ code: 'custom', message })
  })

export const CreateKubernetesCluster = z
  .strictObject({
    zone: ZoneName.describe('Default zone of its nodes; its region hosts the control plane.'),
    name: z
      .string()
      .min(CLUSTER_NAME.least)
      .max(CLUSTER_NAME.most)
      .regex(CLUSTER_NAME.pattern, 'must be lower-case letters, digits and dashes, and begin and end with no dash'),
    network_id: Id,
    version: Minor.optional().describe('Defaults to the newest offered version.'),
    public_ipv4: z.boolean().default(false),
    private_endpoint: z.boolean().default(false).describe('Not available: true is refused.'),
    labels: Labels.default({}),
    is_protected: z.boolean().default(false),
    node_pools: z.array(NewNodePool).max(10).default([]).describe('Node pools to create together with the cluster.'),
  })
  .meta({ id: 'CreateKubernetesCluster' })
export const UpdateKubernetesCluster = z
  .strictObject({
    labels: Labels.optional(),
    etcd_snapshot_schedule: Schedule.optional().describe('Schedule of snapshots: five cron fields, in UTC.'),
    etcd_snapshot_retention: z
      .int()
      .min(SNAPSHOT_RETENTION.least)
      .max(SNAPSHOT_RETENTION.most)
      .optional()
      .describe('Number of snapshots kept of each kind.'),
    is_protected: z.boolean().optional(),
  })
  .meta({ id: 'UpdateKubernetesCluster' })
export type UpdateKubernetesCluster = z.infer<typeof UpdateKubernetesCluster>
export const UpgradeKubernetesCluster = z
  .strictObject({
    version: Minor.describe('The next minor version, or the current one for the newest patch release.'),
    node_pools: z.boolean().default(true).describe('Whether to upgrade its node pools afterwards.'),
  })
  .meta({ id: 'UpgradeKubernetesCluster' })

const Envelope = z.strictObject({ kubernetes_cluster: KubernetesClusterView })
const SnapshotView = z
  .strictObject({
    id: z.string(),
    kind: z.enum(SNAPSHOT_KINDS).describe('Reason for the snapshot.'),
    kubernetes_version: z.string().describe('Release that ran at the time of the snapshot.'),
    size_bytes: z.int().describe('Size in bytes.'),
    place: z
      .enum(['host', 'object_storage'])
      .describe(
        'Where it is: only with its control plane, or also encrypted in the object storage of its zone. The ' +
          "second survives the loss of the control plane's host.",
      ),
    created_at: DateTime,
    expires_at: DateTime.nullable().describe('null: it is kept until newer snapshots of its kind replace it.'),
  })
  .meta({ id: 'KubernetesClusterSnapshot' })
const VersionView = z
  .strictObject({
    version: z.string().describe('Minor version.'),
    kubernetes_version: z.string().describe('Newest release of the minor version.'),
    status: z.enum(['preview', 'supported', 'deprecated', 'expired']),
    is_default: z.boolean().describe('Whether it is the default for new clusters.'),
    end_of_life_at: DateTime.nullable().describe('End of upstream support; null when unknown.'),
    upgradable_to: z.array(z.string()).describe('Minor versions to which a cluster can be upgraded from it.'),
    control_plane_price_monthly_cents: z.int().describe('Price of a control plane per month in euro cents.'),
  })
  .meta({ id: 'KubernetesVersion' })
export type KubernetesVersionView = z.infer<typeof VersionView>

const verbs = verbsOf({
  path: '/v1/kubernetes-clusters',
  noun: 'kubernetes_cluster',
  view: KubernetesClusterView,
})

export const listKubernetesClusters = verbs.list('list_kubernetes_clusters', {
  summary: 'List Kubernetes clusters',
  description: 'Newest first, without their node pools.',
})

export const createKubernetesCluster = verbs.create('create_kubernetes_cluster', {
  summary: 'Create a Kubernetes cluster',
  description:
    'The platform runs its control plane, which is billed by the hour. Its nodes are servers of the account.',
  needs: 'standing',
  starts: ['kubernetes_cluster.create'],
  body: CreateKubernetesCluster,
  example: { zone: 'eu-1a', name: 'shop', network_id: EXAMPLE.id },
  answers: {
    202: Envelope.extend({
      operation: OperationView,
      node_pools: z.array(NodePoolView).describe('Node pools created together with the cluster.'),
    }),
  },
  refuses: [400, 402, 404, 409, 422, 503],
})

export const listKubernetesVersions = verbs.get('list_kubernetes_versions', '/versions', {
  summary: 'List the offered Kubernetes versions',
  description: 'Newest first; empty when no zone offers Kubernetes.',
  answers: { 200: completeListOf(VersionView) },
})

export const getKubernetesCluster = verbs.read('get_kubernetes_cluster', {
  summary: 'Get a Kubernetes cluster with its node pools',
  clusterScopes: ['load_balancers'],
})

export const updateKubernetesCluster = verbs.change('update_kubernetes_cluster', {
  summary: 'Update labels, snapshots or protection of a Kubernetes cluster',
  description: 'labels replaces all labels. With If-Match only that version is changed.',
  body: UpdateKubernetesCluster,
  example: { etcd_snapshot_retention: 14 },
})

export const deleteKubernetesCluster = verbs.remove('delete_kubernetes_cluster', {
  summary: 'Delete a Kubernetes cluster with its snapshots',
  description: 'Its node pools are deleted first. A cluster that is still being created can be deleted too.',
  starts: ['kubernetes_cluster.delete'],
  query: z.strictObject({
    associated: z
      .enum(['keep', 'delete'])
      .default('keep')
      .describe('Whether to delete volumes and load balancers that were created from inside the cluster.'),
  }),
})

export const upgradeKubernetesCluster = verbs.post('upgrade_kubernetes_cluster', '/{id}/upgrade', {
  summary: 'Upgrade a Kubernetes cluster',
  description: 'The platform takes a snapshot first, then replaces the API servers one after another.',
  starts: ['kubernetes_cluster.upgrade'],
  body: UpgradeKubernetesCluster,
  example: { version: '1.36' },
  refuses: [400, 404, 409, 503],
})

export const getKubernetesClusterKubeconfig = verbs.get('get_kubernetes_cluster_kubeconfig', '/{id}/kubeconfig', {
  summary: 'Get the kubeconfig of a Kubernetes cluster',
  description:
    'The context svccloud-admin has a token with all rights until expires_at. The token belongs to the caller ' +
    'only and ends with their membership, role or API token. The context svccloud-oidc gets short-lived tokens ' +
    'from the svccloud program, with the rights of your role.',
  permission: 'operate',
  isCredentialRead: true,
  audit: 'kubernetes_cluster.kubeconfig',
  query: z.strictObject({
    expires_in_seconds: z.coerce
      .number()
      .int()
      .min(KUBECONFIG_SECONDS.least)
      .max(KUBECONFIG_SECONDS.most)
      .default(KUBECONFIG_SECONDS.default)
      .describe('Lifetime of its token in seconds.'),
  }),
  answers: {
    200: z.strictObject({
      kubeconfig: z.string().describe('kubeconfig in YAML.'),
      expires_at: DateTime.describe('Time when its token expires.'),
    }),
  },
  refuses: [400, 404, 409, 503],
})

export const getKubernetesClusterToken = verbs.get('get_kubernetes_cluster_token', '/{id}/token', {
  summary: 'Get a short-lived token for the API of a Kubernetes cluster',
  description:
    'The token contains your identity and role: owners and admins have all rights in the cluster, members may ' +
    'edit, viewers may view. It is not stored.',
  isCredentialRead: true,
  audit: 'kubernetes_cluster.token',
  answers: {
    200: z.strictObject({
      token: z.string().describe('Bearer token.'),
      expires_at: DateTime.describe('Expiry time, at most 15 minutes from now.'),
    }),
  },
  refuses: [404, 409, 503],
})

export const listKubernetesClusterSnapshots = verbs.get('list_kubernetes_cluster_snapshots', '/{id}/snapshots', {
  summary: 'List the snapshots of a Kubernetes cluster',
  description: 'Newest first.',
  answers: { 200: completeListOf(SnapshotView) },
})

export const createKubernetesClusterSnapshot = verbs.post('create_kubernetes_cluster_snapshot', '/{id}/snapshots', {
  summary: 'Create a snapshot of the state of a Kubernetes cluster',
  description: 'Contains the state that its API stores. Volumes are not included.',
  starts: ['kubernetes_cluster.snapshot'],
  body: z
    .strictObject({ title: Printable.max(100).default('').describe('Note for the audit log.') })
    .meta({ id: 'CreateKubernetesClusterSnapshot' }),
  example: { title: 'before the migration' },
  refuses: [400, 404, 409, 422, 503],
})

export const restoreKubernetesCluster = verbs.post('restore_kubernetes_cluster', '/{id}/restore', {
  summary: 'Restore a Kubernetes cluster to a snapshot',
  description:
    'The API of the cluster is closed during the restore. Everything stored since the snapshot is lost, except in ' +
    'a snapshot that is taken first when the cluster still answers.',
  starts: ['kubernetes_cluster.restore'],
  isDestructive: true,
  body: z
    .strictObject({ snapshot_id: Uuid.describe('Snapshot of the cluster to restore.') })
    .meta({ id: 'RestoreKubernetesCluster' }),
  example: { snapshot_id: EXAMPLE.id },
  refuses: [400, 404, 409, 503],
})

export const registerKubernetesClusterInPlatform = verbs.post(
  'register_kubernetes_cluster_in_platform',
  '/{id}/platform/register',
  {
    summary: 'Register a Kubernetes cluster in the organisation platform',
    starts: ['kubernetes_cluster.platform_register'],
    refuses: [404, 409, 503],
  },
)

export const removeKubernetesClusterFromPlatform = verbs.delete(
  'remove_kubernetes_cluster_from_platform',
  '/{id}/platform',
  {
    summary: 'Remove a Kubernetes cluster from the organisation platform',
    starts: ['kubernetes_cluster.platform_deregister'],
    refuses: [404, 409, 503],
  },
)

export const KUBERNETES_CLUSTER_ROUTES = [
  listKubernetesClusters,
  createKubernetesCluster,
  listKubernetesVersions,
  getKubernetesCluster,
  updateKubernetesCluster,
  deleteKubernetesCluster,
  upgradeKubernetesCluster,
  getKubernetesClusterKubeconfig,
  getKubernetesClusterToken,
  listKubernetesClusterSnapshots,
  createKubernetesClusterSnapshot,
  restoreKubernetesCluster,
  registerKubernetesClusterInPlatform,
  removeKubernetesClusterFromPlatform,
] as const
