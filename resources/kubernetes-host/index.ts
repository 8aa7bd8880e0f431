/** KubernetesHost: a host of control planes that the platform creates from servers. Hosts from the settings have no
 *  such object. Stored shape, public shape, conversion and routes. */
import { z } from 'zod'
import { MINOR_PATTERN } from '../../domain/kubernetes-cluster/rules.ts'
import { NODES_MAXIMUM } from '../../domain/node-pool/rules.ts'
import { resource } from '../kit/define.ts'
import { DateTime, ReportedOperation, RequestedOperation, Uuid, ZoneName } from '../kit/shapes.ts'
import { KUBERNETES_HOST_STATES } from '../../domain/kubernetes-host/rules.ts'
import { OperationView } from '../operation/index.ts'
import { verbsOf } from '../kit/verbs.ts'
import { ObjectName, OBSERVED } from '../kit/fields.ts'
import { AGE, READY } from '../kit/columns.ts'

const Instant = z.string().max(64).meta({ format: 'date-time' })

export const KubernetesHost = resource({
  kind: 'KubernetesHost',
  plural: 'kuberneteshosts',
  shortNames: ['kh'],
  scope: 'Cluster',
  description:
    'A host of control planes that the platform creates: a KubernetesCluster of the platform on servers, with the ' +
    'host process in it. Created through the API; its deletion removes all of these.',
  spec: z
    .strictObject({
      region: z.string().min(1).max(63).describe('Region of the clusters with control planes on it.'),
      zones: z.array(ZoneName).min(1).max(16).describe('Zones of its nodes, in the region.'),
      plan: z.string().min(1).max(63).describe('Plan of its nodes.'),
      nodesPerZone: z.int().min(1).max(NODES_MAXIMUM).describe('Nodes in each zone.'),
      version: z.string().max(8).regex(MINOR_PATTERN).describe('Minor version of Kubernetes at creation.'),
      controlPlaneRegion: z
        .string()
        .min(1)
        .max(63)
        .describe("Region whose host of control planes runs the control plane of this host's own cluster."),
      operation: RequestedOperation,
    })
    .describe('The desired state of the host.'),
  status: z
    .strictObject({
      ...OBSERVED,
      isMade: z.boolean().optional().describe('Whether it has answered once.'),
      nodesReady: z.int().min(0).optional().describe('Nodes of it that report Ready.'),
      process: z
        .strictObject({
          digest: z.string().max(64).describe('Digest of its last configuration.'),
          appliedAt: Instant.describe('Time when it was applied.'),
          isReady: z.boolean().describe('Whether its pod is ready.'),
          detail: z
            .string()
            .max(1024)
            .describe('Human-readable reason why it is not in its desired state; empty when it is.'),
          address: ObjectName.optional().describe('Address of its load balancer; absent until it has one.'),
        })
        .optional()
        .describe('The host process in the cluster; absent until it exists.'),
      operation: ReportedOperation,
    })
    .describe('Observed state of the host. Written by its controller.'),
  columns: [
    { name: 'Region', type: 'string', jsonPath: '.spec.region' },
    { name: 'Nodes', type: 'integer', jsonPath: '.status.nodesReady' },
    READY,
    { name: 'Message', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].message', priority: 1 },
    AGE,
  ],
  fixed: ['region', 'zones', 'plan', 'nodesPerZone', 'version', 'controlPlaneRegion'],
})
export type KubernetesHostSpec = z.infer<typeof KubernetesHost.spec>
export type KubernetesHostStatus = z.infer<typeof KubernetesHost.status>

const NODES_PER_ZONE_MAXIMUM = 100
const RegionName = z.string().min(1).max(63)
const Count = z.int().min(0)

export const KubernetesHostView = z
  .strictObject({
    id: Uuid,
    region: RegionName.describe('Region of the clusters with control planes on it.'),
    zones: z.array(z.string()).describe('Zones of the clusters that it serves.'),
    version: z.string().nullable().describe('Newest Kubernetes release that it offers; null while it does not answer.'),
    state: z
      .enum(KUBERNETES_HOST_STATES)
      .describe(
        'bootstrapping: being created. degraded: no room for another control plane. error: does not answer, or ' +
          'creation failed; the operation has the reason.',
      ),
    node_count: Count.describe('Number of its machines.'),
    clusters_hosted: Count.describe('Number of control planes on it.'),
    clusters_capacity: Count.describe('Maximum number of control planes; the current number while it does not answer.'),
    etcd_capacity_bytes: Count.describe('Free disk space for etcd data; 0 while it does not answer.'),
    created_at: DateTime.describe('Time when the platform first knew it.'),
  })
  .meta({ id: 'KubernetesHost' })
export type KubernetesHostView = z.infer<typeof KubernetesHostView>

const verbs = verbsOf({
  path: '/v1/operator/kubernetes-hosts',
  noun: 'kubernetes_host',
  view: KubernetesHostView,
  staff: { reads: 'any', changes: 'operations' },
  access: { resource: 'regions', scope: 'cluster' },
})

export const listKubernetesHosts = verbs.listWhole('list_kubernetes_hosts', {
  summary: 'List the hosts of control planes',
  query: z.strictObject({ region: RegionName.optional() }),
})

export const getKubernetesHost = verbs.read('get_kubernetes_host', { summary: 'Get a host of control planes' })

export const bootstrapKubernetesHost = verbs.post('bootstrap_kubernetes_host', '', {
  summary: 'Create a host of control planes',
  description:
    'Creates a Kubernetes cluster from servers of the platform, with the host process in it. The host of another ' +
    'region, named in the settings, runs its control plane. Repeating the request continues a failed bootstrap. ' +
    'Answers 409 when the region has a host, and 503 when the platform is not configured for it.',
  starts: ['kubernetes_host.bootstrap'],
  body: z
    .strictObject({
      region: RegionName.describe('A region without a host.'),
      zones: z.array(ZoneName).min(1).max(16).describe('Zone of the region for its machines; exactly one for now.'),
      plan: z.string().min(1).max(63).describe('Plan of its machines.'),
      nodes_per_zone: z.int().min(1).max(NODES_PER_ZONE_MAXIMUM).describe('Machines in each zone.'),
      version: z.string().min(1).max(32).describe('Minor version of the Kubernetes that it runs.'),
    })
    .meta({ id: 'BootstrapKubernetesHost' }),
  example: { region: 'eu-1', zones: ['eu-1a'], plan: 'starter-2c-4g', nodes_per_zone: 3, version: '1.36' },
  answers: { 202: z.strictObject({ kubernetes_host: KubernetesHostView, operation: OperationView }) },
  refuses: [400, 409, 503],
})

export const KUBERNETES_HOST_ROUTES = [listKubernetesHosts, getKubernetesHost, bootstrapKubernetesHost] as const
