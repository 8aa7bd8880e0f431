/** Public shape and routes of dev clusters, and the conversion from the stored shape. */
import { z } from 'zod'
import {
  DEV_API_PORT,
  DEV_CLUSTER_STATES,
  type DevClusterFacts,
  type DevClusterState,
  plainVersion,
  PRODUCTION_WARNING,
} from '../../domain/dev-cluster/rules.ts'
import { CLUSTER_NAME, MINOR_PATTERN } from '../../domain/kubernetes-cluster/rules.ts'
import { CreateServer } from '../server/index.ts'
import { completeListOf, DateTime, Id, Labels, type Stored, ZoneName } from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'
import { viewOf } from '../kit/view.ts'
import type { DevClusterSpec, DevClusterStatus } from './stored.ts'

export const DevClusterView = z
  .strictObject({
    id: z.string(),
    zone: z.string(),
    region: z.string().describe('Region of its zone.'),
    name: z.string(),
    version: z.string().describe('Minor version of Kubernetes.'),
    k3s_version: z.string().describe('Release installed at creation; the suffix +plain means that it is not k3s.'),
    plan: z.string().describe('Plan of its server at creation.'),
    state: z.enum(DEV_CLUSTER_STATES),
    public_ipv4: z.boolean().describe('Whether its server also has a public IPv4 address.'),
    network_id: z.string().nullable().describe('Private network of its server at creation; null when there is none.'),
    server_id: z.string().nullable().describe('Its server; null until it is created.'),
    endpoint: z.string().nullable().describe('URL of its API on IPv6; null until its server has an address.'),
    endpoint_ipv4: z.string().nullable().describe('URL of its API on IPv4; null without public_ipv4.'),
    ipv6_address: z
      .string()
      .nullable()
      .describe('Address of its API on port 6443 and its ingress on ports 80 and 443.'),
    ipv4_address: z.string().nullable().describe('The same on IPv4; null without public_ipv4.'),
    labels: z.record(z.string(), z.string()),
    health: z
      .strictObject({
        api_server: z.enum(['healthy', 'unhealthy', 'unknown']).describe('Whether its API reports ready.'),
        node_ready: z.boolean().describe('Whether its node reports ready.'),
        observed_at: DateTime.nullable().describe('Time of the observation; null before the first.'),
        detail: z.string().describe('Human-readable description of the problem; empty when there is none.'),
      })
      .meta({ id: 'DevClusterHealth' }),
    failure_reason: z.string().nullable().describe('Human-readable reason for the error; null when there is none.'),
    production_recommended: z.literal(false).describe('Always false.'),
    production_warning: z.string().describe('Warning to display together with the cluster.'),
    created_at: DateTime,
    updated_at: DateTime.describe('Time of the last change of its state.'),
  })
  .meta({ id: 'DevCluster' })
export type DevClusterView = z.infer<typeof DevClusterView>
export type StoredDevCluster = Stored<DevClusterSpec, DevClusterStatus>

export function devClusterStateOf({ status, isDeleting }: StoredDevCluster): DevClusterState {
  if (isDeleting) return 'deleting'
  if (status?.failureReason !== undefined) return 'error'
  return status?.isMade === true ? 'running' : 'creating'
}

/** Values that its view needs besides it. */
export interface DevClusterSurroundings {
  readonly region: string
  /** Kubernetes release of new clusters of its version; empty when none are offered. */
  readonly release: string
}

const endpointOn = (host: string | undefined): string | null =>
  host === undefined ? null : `https://${host}:${DEV_API_PORT}`

export function toDevClusterView(cluster: StoredDevCluster, around: DevClusterSurroundings): DevClusterView {
  const { name: id, spec, status, createdAt } = cluster
  const { health, ipv6Address, ipv4Address } = status ?? {}
  const changes = (status?.conditions ?? []).map(({ lastTransitionTime }) => lastTransitionTime)
  return viewOf(DevClusterView, spec, {
    id,
    region: around.region,
    k3s_version: status?.version ?? plainVersion(around.release),
    state: devClusterStateOf(cluster),
    server_id: status?.serverId ?? null,
    endpoint: endpointOn(ipv6Address === undefined ? undefined : `[${ipv6Address}]`),
    endpoint_ipv4: endpointOn(ipv4Address),
    ipv6_address: ipv6Address ?? null,
    ipv4_address: ipv4Address ?? null,
    health: {
      api_server: health?.apiServer ?? 'unknown',
      node_ready: health?.isNodeReady ?? false,
      observed_at: health?.observedAt ?? null,
      detail: health?.detail ?? '',
    },
    failure_reason: status?.failureReason ?? null,
    production_recommended: false,
    production_warning: PRODUCTION_WARNING,
    created_at: createdAt,
    updated_at: changes.reduce((latest, each) => (each > latest ? each : latest), createdAt),
  })
}

export const devClusterFactsOf = (cluster: StoredDevCluster): DevClusterFacts => ({
  id: cluster.name,
  state: devClusterStateOf(cluster),
  isSimulated: cluster.status?.isSimulated === true,
})

export const CreateDevCluster = z
  .strictObject({
    zone: ZoneName.describe('A zone that offers dev clusters.'),
    name: z
      .string()
      .min(CLUSTER_NAME.least)
      .max(CLUSTER_NAME.most)
      .regex(CLUSTER_NAME.pattern, 'must be lower-case letters, digits and dashes, and begin and end with no dash'),
    plan: z.string().min(1).max(63).describe('Plan of its server; it must have enough memory.'),
    version: z
      .string()
      .regex(MINOR_PATTERN, 'must be a minor version such as 1.36')
      .optional()
      .describe('Defaults to the version with is_default.'),
    public_ipv4: z.boolean().default(false),
    network_id: Id.optional().describe('Additional private network of its server, in the same zone.'),
    ssh_keys: CreateServer.shape.ssh_keys,
    ssh_key_ids: CreateServer.shape.ssh_key_ids,
    labels: Labels.default({}),
  })
  .meta({ id: 'CreateDevCluster' })
export type CreateDevCluster = z.infer<typeof CreateDevCluster>

const VersionView = z
  .strictObject({
    version: z.string().describe('Minor version.'),
    k3s_version: z.string().describe('Installed release; the suffix +plain means that it is not k3s.'),
    is_default: z.boolean().describe('Whether it is the default for new clusters.'),
    status: z.enum(['preview', 'supported', 'deprecated', 'expired']),
  })
  .meta({ id: 'DevClusterVersion' })
export type DevClusterVersionView = z.infer<typeof VersionView>

const Envelope = z.strictObject({ dev_cluster: DevClusterView })

const verbs = verbsOf({ path: '/v1/dev-clusters', noun: 'dev_cluster', view: DevClusterView })

export const listDevClusters = verbs.list('list_dev_clusters', {
  summary: 'List dev clusters',
  description: 'Newest first.',
})

export const createDevCluster = verbs.create('create_dev_cluster', {
  summary: 'Create a Kubernetes cluster for development',
  description:
    'One server of the plan is control plane, only node, ingress on ports 80 and 443, and storage; it is billed ' +
    'as that server. Not for production. Refusals that concern the server are returned immediately. Within 30 ' +
    'minutes the cluster is running or in error.',
  needs: 'standing',
  body: CreateDevCluster,
  example: { zone: 'eu-1a', name: 'playground', plan: 'starter-2c-4g' },
  refuses: [400, 402, 404, 409, 422, 503],
})

export const listDevClusterVersions = verbs.get('list_dev_cluster_versions', '/versions', {
  summary: 'List Kubernetes versions for dev clusters and their zones',
  description: 'Newest first.',
  answers: {
    200: completeListOf(VersionView).extend({
      minimum_memory_mebibytes: z.int().describe('Minimum memory of its plan in MiB.'),
      zones: z.array(z.string()).describe('Names of the zones that offer dev clusters.'),
    }),
  },
})

export const getDevCluster = verbs.read('get_dev_cluster', { summary: 'Get a dev cluster' })

export const deleteDevCluster = verbs.remove('delete_dev_cluster', {
  summary: 'Delete a dev cluster with its server',
  description:
    'Its workloads and volumes are deleted too. A cluster that is still being created or is in error can be deleted.',
  answers: { 200: Envelope },
})

export const getDevClusterKubeconfig = verbs.get('get_dev_cluster_kubeconfig', '/{id}/kubeconfig', {
  summary: 'Get the kubeconfig of a dev cluster',
  description:
    'The context admin has a service account token with all rights until expires_at. The token belongs to the ' +
    'caller only and ends with their membership, role or API token. The context oidc gets short-lived tokens from ' +
    'the svccloud program, with the rights of your role.',
  permission: 'operate',
  isCredentialRead: true,
  audit: 'dev_cluster.kubeconfig',
  answers: {
    200: z.strictObject({
      kubeconfig: z.string().describe('kubeconfig in YAML.'),
      expires_at: DateTime.describe('Time when its token expires.'),
    }),
  },
  refuses: [404, 409, 503],
})

export const getDevClusterToken = verbs.get('get_dev_cluster_token', '/{id}/token', {
  summary: 'Get a short-lived token for the API of a dev cluster',
  description:
    'The token contains your identity and role: owners and admins have all rights in the cluster, members may ' +
    'edit, viewers may view. It is not stored.',
  isCredentialRead: true,
  audit: 'dev_cluster.token',
  answers: {
    200: z.strictObject({
      token: z.string().describe('Bearer token.'),
      expires_at: DateTime.describe('Expiry time, at most 15 minutes from now.'),
    }),
  },
  refuses: [404, 409, 503],
})

export const DEV_CLUSTER_ROUTES = [
  listDevClusters,
  createDevCluster,
  listDevClusterVersions,
  getDevCluster,
  deleteDevCluster,
  getDevClusterKubeconfig,
  getDevClusterToken,
] as const
