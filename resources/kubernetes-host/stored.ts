/** KubernetesHost: a host of control planes that the platform creates from servers, as it is stored. Hosts from the
 *  settings have no such object. */
import { z } from 'zod'
import { MINOR_PATTERN } from '../../domain/kubernetes-cluster/rules.ts'
import { NODES_MAXIMUM } from '../../domain/node-pool/rules.ts'
import { fixed, resource } from '../kit/define.ts'
import { Conditions, ObservedGeneration, ReportedOperation, RequestedOperation, ZoneName } from '../kit/shapes.ts'

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
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
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
          address: z.string().max(253).optional().describe('Address of its load balancer; absent until it has one.'),
        })
        .optional()
        .describe('The host process in the cluster; absent until it exists.'),
      operation: ReportedOperation,
    })
    .describe('Observed state of the host. Written by its controller.'),
  columns: [
    { name: 'Region', type: 'string', jsonPath: '.spec.region' },
    { name: 'Nodes', type: 'integer', jsonPath: '.status.nodesReady' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Message', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].message', priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  rules: ['region', 'zones', 'plan', 'nodesPerZone', 'version', 'controlPlaneRegion'].map(fixed),
})
export type KubernetesHostSpec = z.infer<typeof KubernetesHost.spec>
export type KubernetesHostStatus = z.infer<typeof KubernetesHost.status>
