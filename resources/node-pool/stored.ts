/** NodePool: servers of an account that are the nodes of a managed Kubernetes cluster, as it is stored. */
import { z } from 'zod'
import { MINOR_PATTERN } from '../../domain/kubernetes-cluster/rules.ts'
import {
  NODE_LABELS_MAXIMUM,
  NODES_MAXIMUM,
  POOL_NAME,
  TAINT_EFFECTS,
  TAINTS_MAXIMUM,
} from '../../domain/node-pool/rules.ts'
import { resource } from '../kit/define.ts'
import { SERVER_STATES } from '../server/index.ts'
import { ReportedOperation, RequestedOrEditedOperation, ZoneName } from '../kit/shapes.ts'
import { CidrText, OBSERVED } from '../kit/fields.ts'
import { AGE, READY, TITLE, ZONE } from '../kit/columns.ts'

const Name = z.string().min(1).max(253)
const Minor = z.string().max(8).regex(MINOR_PATTERN)
const Instant = z.string().max(64).meta({ format: 'date-time' })
const Address = CidrText

const StoredTaint = z.strictObject({
  key: Name.describe('Name of the taint.'),
  value: z.string().max(63).default('').describe('Value of the taint; may be empty.'),
  effect: z.enum(TAINT_EFFECTS).describe('Effect on pods.'),
})

export const NodePool = resource({
  kind: 'NodePool',
  plural: 'nodepools',
  shortNames: ['np'],
  scope: 'Namespaced',
  customers: 'write',
  description: 'Nodes of a KubernetesCluster: servers of the account that join it, are drained and are replaced.',
  spec: z
    .strictObject({
      clusterId: Name.describe('Name of the KubernetesCluster.'),
      zone: ZoneName.describe("Zone of its nodes: the zone of the cluster's network."),
      name: z
        .string()
        .min(POOL_NAME.least)
        .max(POOL_NAME.most)
        .regex(POOL_NAME.pattern)
        .describe('DNS label, unique among the pools of the cluster; prefix of the names of its nodes.'),
      plan: z.string().min(1).max(63).describe('Plan of its servers.'),
      count: z.int().min(0).max(NODES_MAXIMUM).describe('Number of nodes.'),
      autoscaling: z
        .strictObject({
          min: z.int().min(0).max(NODES_MAXIMUM).describe('Minimum number of nodes.'),
          max: z.int().min(1).max(NODES_MAXIMUM).describe('Maximum number of nodes.'),
        })
        .optional()
        .describe(
          'Bounds within which count follows the needs of pods in the cluster; absent when autoscaling is disabled.',
        ),
      skipped: z
        .array(
          z
            .int()
            .min(0)
            .max(2 * NODES_MAXIMUM),
        )
        .max(2 * NODES_MAXIMUM)
        .optional()
        .describe(
          'Numbers of nodes that autoscaling has removed. count applies to the other numbers, from 0 on. ' +
            'Written by the platform only.',
        ),
      version: Minor.describe(
        'Minor version of Kubernetes on its nodes. A change replaces the nodes one after another.',
      ),
      labels: z
        .record(z.string(), z.string().max(63))
        .meta({ maxProperties: NODE_LABELS_MAXIMUM })
        .default({})
        .describe('Labels of its nodes in the cluster.'),
      taints: z.array(StoredTaint).max(TAINTS_MAXIMUM).default([]).describe('Taints of its nodes in the cluster.'),
      publicIpv4: z.boolean().default(false).describe('Whether its servers have public IPv4 addresses.'),
      maxUnavailable: z
        .int()
        .min(1)
        .max(NODES_MAXIMUM)
        .default(1)
        .describe('Maximum number of nodes that may be unavailable at a time during a replacement.'),
      operation: RequestedOrEditedOperation,
    })
    .describe('The desired state of the pool.'),
  status: z
    .strictObject({
      ...OBSERVED,
      isMade: z.boolean().optional().describe('Whether all of its nodes have been ready once.'),
      fault: z
        .string()
        .max(1024)
        .optional()
        .describe('Reason for the error after its creation; absent when there is none. The platform keeps retrying.'),
      followed: z
        .string()
        .max(64)
        .optional()
        .describe('Digest of the spec for which the last operation started; a different one starts the next.'),
      grantedCount: z
        .int()
        .min(0)
        .optional()
        .describe(
          'Number of nodes when the account could last create billable resources. Meanwhile the pool has no more.',
        ),
      nodes: z
        .array(
          z.strictObject({
            serverId: Name.describe('Name of its Server.'),
            serverUid: z
              .string()
              .max(64)
              .optional()
              .describe('Uid of that Server. A node whose Server is missing stays until its deletion is found by it.'),
            serverCreatedAt: Instant.optional().describe('Time when that Server was created.'),
            hostname: Name.describe('Name of the node in the cluster.'),
            state: z.enum(SERVER_STATES).describe('State of its server.'),
            isReady: z.boolean().describe('Whether it reports Ready.'),
            kubeletVersion: z.string().max(64).describe('Version of the kubelet; empty until it has joined.'),
            publicIpv6: Address.optional().describe('Public IPv6 address of its server.'),
            publicIpv4: Address.optional().describe('Public IPv4 address of its server.'),
          }),
        )
        .max(2 * NODES_MAXIMUM)
        .optional()
        .describe('Its nodes, including those that are being created.'),
      drains: z
        .array(
          z.strictObject({
            hostname: Name.describe('Name of the node.'),
            since: Instant.describe('Time when eviction of its pods started.'),
            isDone: z.boolean().describe('Whether no pod is left that must leave.'),
            isCalledOff: z
              .boolean()
              .optional()
              .describe('Whether autoscaling chose it and its pods could not leave: the node stays.'),
          }),
        )
        .max(2 * NODES_MAXIMUM)
        .optional()
        .describe('Nodes to remove, and the progress of evicting their pods.'),
      growthFailedAt: Instant.optional().describe('Time when autoscaling last gave up waiting for nodes.'),
      join: z
        .strictObject({
          tokenId: z.string().max(6).describe('Public part of the bootstrap token.'),
          expiresAt: Instant.describe('Expiry time.'),
        })
        .optional()
        .describe('Credentials with which nodes join; absent while none is waiting.'),
      operation: ReportedOperation,
    })
    .describe('Observed state of the pool. Written by its controller.'),
  columns: [
    { name: 'Cluster', type: 'string', jsonPath: '.spec.clusterId' },
    TITLE,
    { name: 'Count', type: 'integer', jsonPath: '.spec.count' },
    { name: 'Version', type: 'string', jsonPath: '.spec.version' },
    ZONE,
    READY,
    AGE,
  ],
  selectableFields: ['.spec.zone', '.spec.clusterId'],
  fixed: ['clusterId', 'zone', 'name', 'plan', 'publicIpv4'],
})
export type NodePoolSpec = z.infer<typeof NodePool.spec>
export type NodePoolStatus = z.infer<typeof NodePool.status>
