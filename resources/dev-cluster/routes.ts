/** Dev clusters as the API shows them: public shape, bridge from the stored one, routes. */
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
import { DateTime, Id, Labels, type Stored, ZoneName } from '../kit/shapes.ts'
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
    k3s_version: z.string().describe('What was installed when it was made; +plain says that it is no k3s.'),
    plan: z.string().describe('Plan that its server was made with.'),
    state: z.enum(DEV_CLUSTER_STATES),
    public_ipv4: z.boolean().describe('Whether its server has a public IPv4 address too.'),
    network_id: z.string().nullable().describe('Private network that its server was made in; null without.'),
    server_id: z.string().nullable().describe('Its server; null until that is made.'),
    endpoint: z.string().nullable().describe('URL of its API on IPv6; null until its server has an address.'),
    endpoint_ipv4: z.string().nullable().describe('URL of its API on IPv4; null without public_ipv4.'),
    ipv6_address: z.string().nullable().describe('Of its API on port 6443, and of its ingress on 80 and 443.'),
    ipv4_address: z.string().nullable().describe('The same on IPv4; null without public_ipv4.'),
    labels: z.record(z.string(), z.string()),
    health: z
      .strictObject({
        api_server: z.enum(['healthy', 'unhealthy', 'unknown']).describe('Whether its API says that it is ready.'),
        node_ready: z.boolean().describe('Whether its node says so.'),
        observed_at: DateTime.nullable().describe('When that was seen; null when it never was.'),
        detail: z.string().describe('What is wrong, for people; empty otherwise.'),
      })
      .meta({ id: 'DevClusterHealth' }),
    failure_reason: z.string().nullable().describe('Why it is in error, for people; null when it is not.'),
    production_recommended: z.literal(false).describe('Always false.'),
    production_warning: z.string().describe('To be shown wherever the cluster is.'),
    created_at: DateTime,
    updated_at: DateTime.describe('When its condition last changed.'),
  })
  .meta({ id: 'DevCluster' })
export type DevClusterView = z.infer<typeof DevClusterView>
export type StoredDevCluster = Stored<DevClusterSpec, DevClusterStatus>

export function devClusterStateOf({ status, isDeleting }: StoredDevCluster): DevClusterState {
  if (isDeleting) return 'deleting'
  if (status?.failureReason !== undefined) return 'error'
  return status?.isMade === true ? 'running' : 'creating'
}

/** What its view shows besides it. */
export interface DevClusterSurroundings {
  readonly region: string
  /** Of Kubernetes, that clusters of its version are made with now; empty when none are. */
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
    plan: z.string().min(1).max(63).describe('Plan of its server, with enough memory.'),
    version: z
      .string()
      .regex(MINOR_PATTERN, 'must be a minor version such as 1.36')
      .optional()
      .describe('The default one when left out.'),
    public_ipv4: z.boolean().default(false),
    network_id: Id.optional().describe('Private network of the zone that its server is in as well.'),
    ssh_keys: CreateServer.shape.ssh_keys,
    ssh_key_ids: CreateServer.shape.ssh_key_ids,
    labels: Labels.default({}),
  })
  .meta({ id: 'CreateDevCluster' })
export type CreateDevCluster = z.infer<typeof CreateDevCluster>

const VersionView = z
  .strictObject({
    version: z.string().describe('Minor version.'),
    k3s_version: z.string().describe('What is installed; +plain says that it is no k3s.'),
    is_default: z.boolean().describe('Whether new clusters get it.'),
    status: z.enum(['preview', 'supported', 'deprecated', 'expired']),
  })
  .meta({ id: 'DevClusterVersion' })
export type DevClusterVersionView = z.infer<typeof VersionView>

const Envelope = z.strictObject({ dev_cluster: DevClusterView })

const verbs = verbsOf({ path: '/v1/dev-clusters', area: 'Dev clusters', noun: 'dev_cluster', view: DevClusterView })

export const listDevClusters = verbs.list('list_dev_clusters', {
  summary: 'List dev clusters',
  description: 'Newest first.',
})

export const createDevCluster = verbs.create('create_dev_cluster', {
  summary: 'Make a Kubernetes cluster for development',
  description:
    'One server of the plan is its control plane, its only node, its ingress on ports 80 and 443 and its storage; it ' +
    'is billed as that server. Not for production. What its server would be refused with is answered at once; it is ' +
    'up within 30 minutes or in error.',
  needs: 'standing',
  body: CreateDevCluster,
  example: { zone: 'eu-1a', name: 'playground', plan: 'starter-2c-4g' },
  refuses: [400, 402, 404, 409, 422, 503],
})

export const listDevClusterVersions = verbs.get('list_dev_cluster_versions', '/versions', {
  summary: 'List the versions of Kubernetes that dev clusters can have, and where',
  description: 'Newest first.',
  answers: {
    200: z.strictObject({
      items: z.array(VersionView),
      next_cursor: z.null(),
      minimum_memory_mebibytes: z.int().describe('Memory in MiB that its plan has at least.'),
      zones: z.array(z.string()).describe('Names of the zones that offer dev clusters.'),
    }),
  },
})

export const getDevCluster = verbs.read('get_dev_cluster', { summary: 'Read a dev cluster' })

export const deleteDevCluster = verbs.remove('delete_dev_cluster', {
  summary: 'Delete a dev cluster with its server',
  description: 'Workloads and volumes go with it. One that is still being made, or is in error, can be deleted too.',
  answers: { 200: Envelope },
})

export const getDevClusterKubeconfig = verbs.get('get_dev_cluster_kubeconfig', '/{id}/kubeconfig', {
  summary: 'Read how kubectl gets into a dev cluster',
  description:
    'The context admin has a token of a service account with all rights until expires_at, which is of the caller ' +
    'alone and ends with their membership, role or API token; oidc asks the svccloud program for short tokens, with ' +
    'the rights of your role.',
  permission: 'operate',
  isCredentialRead: true,
  audit: 'dev_cluster.kubeconfig',
  answers: {
    200: z.strictObject({
      kubeconfig: z.string().describe('YAML, as kubectl reads it.'),
      expires_at: DateTime.describe('Until when its token is taken.'),
    }),
  },
  refuses: [404, 409, 503],
})

export const getDevClusterToken = verbs.get('get_dev_cluster_token', '/{id}/token', {
  summary: 'Get a short token for the API of a dev cluster',
  description:
    'It says who you are and your role: owners and admins may do everything in the cluster, members edit, viewers ' +
    'view. It is kept nowhere.',
  isCredentialRead: true,
  audit: 'dev_cluster.token',
  answers: {
    200: z.strictObject({
      token: z.string().describe('A bearer token.'),
      expires_at: DateTime.describe('Until when it is taken: 15 minutes at most.'),
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
