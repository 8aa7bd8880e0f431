/** Managed Kubernetes clusters as the API shows them: public shape, bridge from the stored one, routes. */
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
import { activeOperationOf, OperationView, toOperationView } from '../operation/index.ts'
import { completeListOf, DateTime, Id, Labels, Printable, type Stored, Uuid, ZoneName } from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'
import { viewOf } from '../kit/view.ts'
import { NewNodePool, NodePoolView } from '../node-pool/index.ts'
import type { KubernetesClusterSpec, KubernetesClusterStatus } from './stored.ts'

const Health = z
  .strictObject({
    api_server: z.enum(['healthy', 'unhealthy', 'unknown']).describe('Whether its API answers.'),
    etcd_members_ready: z.int().describe('Members of etcd that serve.'),
    etcd_members_total: z.int().describe('Members of etcd that there are.'),
    has_etcd_quorum: z.boolean().describe('Whether enough of them serve for writes.'),
    nodes_ready: z.int().describe('Nodes that report Ready.'),
    nodes_total: z.int().describe('Nodes that its API knows.'),
    observed_at: DateTime.nullable().describe('When that was seen; null when it never was.'),
    detail: z.string().describe('What is wrong, for people; empty otherwise.'),
  })
  .meta({ id: 'KubernetesHealth' })
const Addon = z
  .strictObject({ name: z.string(), version: z.string().describe('The release that is installed.') })
  .meta({ id: 'KubernetesAddon' })
const PlatformRegistration = z
  .strictObject({
    state: z
      .enum(['pending', 'unlinked', 'registered', 'failed', 'deregistered'])
      .describe('unlinked: the account has no organisation on the platform.'),
    organisation_id: z.string().nullable().describe('The organisation that it is registered in.'),
    cluster_id: z.string().nullable().describe('What the platform calls it.'),
    url: z.string().nullable().describe('Its page there, once it is registered.'),
    reason: z.string().describe('Why it is not registered; empty when it is.'),
    next_attempt_at: DateTime.nullable().describe('When a pending registration is tried again.'),
    registered_at: DateTime.nullable().describe('Since when it is registered.'),
  })
  .meta({ id: 'KubernetesPlatformRegistration' })

export const KubernetesClusterView = z
  .strictObject({
    id: z.string(),
    zone: z.string(),
    region: z.string().describe('Where its control plane runs.'),
    name: z.string(),
    version: z.string().describe('Minor version of Kubernetes.'),
    kubernetes_version: z.string().describe('Release that its control plane runs; empty until it does.'),
    available_upgrade: z.string().nullable().describe('The next minor version; null when there is none.'),
    state: z.enum(CLUSTER_STATES),
    network_id: z.string(),
    public_ipv4: z.boolean(),
    private_endpoint: z.boolean().describe('Always false.'),
    endpoint: z.string().nullable().describe('URL of its API; null until its control plane is up.'),
    endpoint_ipv4: z.string().nullable().describe('URL of its API on IPv4; null without public_ipv4.'),
    oidc_issuer_url: z.string().describe('Who signs the tokens that its API takes from people.'),
    labels: z.record(z.string(), z.string()),
    health: Health,
    addons: z.array(Addon).describe('What the platform has installed in it.'),
    etcd_snapshot_schedule: z.string().describe('When snapshots are taken: five fields as cron has them, in UTC.'),
    etcd_snapshot_retention: z.int().describe('How many snapshots of each kind are kept.'),
    node_pools: z.array(NodePoolView).optional().describe('Only when one cluster is read.'),
    platform: PlatformRegistration,
    is_protected: z.boolean(),
    active_operation: OperationView.nullable(),
    created_at: DateTime,
  })
  .meta({ id: 'KubernetesCluster' })
export type KubernetesClusterView = z.infer<typeof KubernetesClusterView>
export type StoredKubernetesCluster = Stored<KubernetesClusterSpec, KubernetesClusterStatus>

/** `error` when its creation failed, when a restore or an upgrade left it broken, and half an hour after its etcd has
 *  lost its quorum. */
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
  reason: platform?.reason ?? 'No organisation platform knows of it.',
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
    active_operation: operation === undefined ? null : toOperationView(operation, { type: 'kubernetes_cluster', id }),
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
    zone: ZoneName.describe('Zone of its nodes by default; its region hosts the control plane.'),
    name: z
      .string()
      .min(CLUSTER_NAME.least)
      .max(CLUSTER_NAME.most)
      .regex(CLUSTER_NAME.pattern, 'must be lower-case letters, digits and dashes, and begin and end with no dash'),
    network_id: Id,
    version: Minor.optional().describe('The newest that is offered when left out.'),
    public_ipv4: z.boolean().default(false),
    private_endpoint: z.boolean().default(false).describe('Not offered: true is refused.'),
    labels: Labels.default({}),
    node_pools: z.array(NewNodePool).max(10).default([]).describe('Node pools to make with it.'),
  })
  .meta({ id: 'CreateKubernetesCluster' })
export const UpdateKubernetesCluster = z
  .strictObject({
    labels: Labels.optional(),
    etcd_snapshot_schedule: Schedule.optional().describe(
      'When snapshots are taken: five fields as cron has them, in UTC.',
    ),
    etcd_snapshot_retention: z
      .int()
      .min(SNAPSHOT_RETENTION.least)
      .max(SNAPSHOT_RETENTION.most)
      .optional()
      .describe('How many snapshots of each kind are kept.'),
    is_protected: z.boolean().optional(),
  })
  .meta({ id: 'UpdateKubernetesCluster' })
export type UpdateKubernetesCluster = z.infer<typeof UpdateKubernetesCluster>
export const UpgradeKubernetesCluster = z
  .strictObject({
    version: Minor.describe('The next minor version, or its own for the newest patch release.'),
    node_pools: z.boolean().default(true).describe('Whether its node pools are upgraded afterwards.'),
  })
  .meta({ id: 'UpgradeKubernetesCluster' })

const Envelope = z.strictObject({ kubernetes_cluster: KubernetesClusterView })
const SnapshotView = z
  .strictObject({
    id: z.string(),
    kind: z.enum(SNAPSHOT_KINDS).describe('Why it was taken.'),
    kubernetes_version: z.string().describe('Release that ran when it was taken.'),
    size_bytes: z.int().describe('Its size in bytes.'),
    place: z
      .enum(['host', 'object_storage'])
      .describe(
        'Where it is: with its control plane only, or sealed in the object storage of its zone too, which outlives ' +
          'the loss of that host.',
      ),
    created_at: DateTime,
    expires_at: DateTime.nullable().describe('null: it is kept until newer ones of its kind take its place.'),
  })
  .meta({ id: 'KubernetesClusterSnapshot' })
const VersionView = z
  .strictObject({
    version: z.string().describe('Minor version.'),
    kubernetes_version: z.string().describe('Its newest release.'),
    status: z.enum(['preview', 'supported', 'deprecated', 'expired']),
    is_default: z.boolean().describe('Whether new clusters get it.'),
    end_of_life_at: DateTime.nullable().describe('When its makers end their support; null while that is not known.'),
    upgradable_to: z.array(z.string()).describe('Minor versions that a cluster of it can be upgraded to.'),
    control_plane_price_monthly_cents: z.int().describe('Price of a control plane per month, in euro cents.'),
  })
  .meta({ id: 'KubernetesVersion' })
export type KubernetesVersionView = z.infer<typeof VersionView>

const verbs = verbsOf({
  path: '/v1/kubernetes-clusters',
  area: 'Managed Kubernetes',
  noun: 'kubernetes_cluster',
  view: KubernetesClusterView,
})

export const listKubernetesClusters = verbs.list('list_kubernetes_clusters', {
  summary: 'List Kubernetes clusters',
  description: 'Newest first, without their node pools.',
})

export const createKubernetesCluster = verbs.create('create_kubernetes_cluster', {
  summary: 'Make a Kubernetes cluster',
  description: 'Its control plane is run by the platform and billed by the hour; its nodes are servers of the account.',
  needs: 'standing',
  starts: ['kubernetes_cluster.create'],
  body: CreateKubernetesCluster,
  example: { zone: 'eu-1a', name: 'shop', network_id: EXAMPLE.id },
  answers: {
    202: Envelope.extend({
      operation: OperationView,
      node_pools: z.array(NodePoolView).describe('The node pools that are made with it.'),
    }),
  },
  refuses: [400, 402, 404, 409, 422, 503],
})

export const listKubernetesVersions = verbs.get('list_kubernetes_versions', '/versions', {
  summary: 'List the versions of Kubernetes that are offered',
  description: 'Newest first; empty where no zone has Kubernetes.',
  answers: { 200: completeListOf(VersionView) },
})

export const getKubernetesCluster = verbs.read('get_kubernetes_cluster', {
  summary: 'Read a Kubernetes cluster with its node pools',
  clusterScopes: ['load_balancers'],
})

export const updateKubernetesCluster = verbs.change('update_kubernetes_cluster', {
  summary: 'Change labels, snapshots or protection of a Kubernetes cluster',
  description: 'labels replaces all labels. With If-Match the change is made only to that version.',
  body: UpdateKubernetesCluster,
  example: { etcd_snapshot_retention: 14 },
})

export const deleteKubernetesCluster = verbs.remove('delete_kubernetes_cluster', {
  summary: 'Delete a Kubernetes cluster with its snapshots',
  description: 'Its node pools go first. One that is still being made can be deleted too.',
  starts: ['kubernetes_cluster.delete'],
  query: z.strictObject({
    associated: z
      .enum(['keep', 'delete'])
      .default('keep')
      .describe('Whether volumes and load balancers that were made from inside the cluster go with it.'),
  }),
})

export const upgradeKubernetesCluster = verbs.post('upgrade_kubernetes_cluster', '/{id}/upgrade', {
  summary: 'Upgrade a Kubernetes cluster',
  description: 'A snapshot is taken first; then its API servers are exchanged one after another.',
  starts: ['kubernetes_cluster.upgrade'],
  body: UpgradeKubernetesCluster,
  example: { version: '1.36' },
  refuses: [400, 404, 409, 503],
})

export const getKubernetesClusterKubeconfig = verbs.get('get_kubernetes_cluster_kubeconfig', '/{id}/kubeconfig', {
  summary: 'Read how kubectl gets into a Kubernetes cluster',
  description:
    'The context svccloud-admin has a token with all rights until expires_at, which is of the caller alone and ends ' +
    'with their membership, role or API token; svccloud-oidc asks the svccloud ' +
    'program for short tokens, with the rights of your role.',
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
      .describe('How long its token is taken.'),
  }),
  answers: {
    200: z.strictObject({
      kubeconfig: z.string().describe('YAML, as kubectl reads it.'),
      expires_at: DateTime.describe('Until when its token is taken.'),
    }),
  },
  refuses: [400, 404, 409, 503],
})

export const getKubernetesClusterToken = verbs.get('get_kubernetes_cluster_token', '/{id}/token', {
  summary: 'Get a short token for the API of a Kubernetes cluster',
  description:
    'It says who you are and your role: owners and admins may do everything in the cluster, members edit, viewers ' +
    'view. It is kept nowhere.',
  isCredentialRead: true,
  audit: 'kubernetes_cluster.token',
  answers: {
    200: z.strictObject({
      token: z.string().describe('A bearer token.'),
      expires_at: DateTime.describe('Until when it is taken: 15 minutes at most.'),
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
  summary: 'Take a snapshot of the state of a Kubernetes cluster',
  description: 'Of what its API stores. Volumes are not in it.',
  starts: ['kubernetes_cluster.snapshot'],
  body: z
    .strictObject({ title: Printable.max(100).default('').describe('For the audit log.') })
    .meta({ id: 'CreateKubernetesClusterSnapshot' }),
  example: { title: 'before the migration' },
  refuses: [400, 404, 409, 422, 503],
})

export const restoreKubernetesCluster = verbs.post('restore_kubernetes_cluster', '/{id}/restore', {
  summary: 'Take a Kubernetes cluster back to a snapshot',
  description:
    'Its API is closed meanwhile. What was stored since then is lost, but for a snapshot of it that is taken first ' +
    'where the cluster still answers.',
  starts: ['kubernetes_cluster.restore'],
  isDestructive: true,
  body: z.strictObject({ snapshot_id: Uuid }).meta({ id: 'RestoreKubernetesCluster' }),
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
    summary: 'Take a Kubernetes cluster out of the organisation platform',
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
