/** DevCluster: Kubernetes for development on one server of an account, as it is stored. */
import { z } from 'zod'
import { DEV_ADMINS_MAXIMUM } from '../../domain/dev-cluster/rules.ts'
import { CLUSTER_NAME, MINOR_PATTERN } from '../../domain/kubernetes-cluster/rules.ts'
import { resource } from '../kit/define.ts'
import { SSH_KEY_LENGTH_MAXIMUM, SSH_KEYS_PER_SERVER_MAXIMUM } from '../../domain/ssh-key/rules.ts'
import { StoredLabels, ZoneName } from '../kit/shapes.ts'
import { CidrText, OBSERVED } from '../kit/fields.ts'
import { AGE, READY, TITLE, ZONE } from '../kit/columns.ts'

const Name = z.string().min(1).max(253)
const Instant = z.string().max(64).meta({ format: 'date-time' })
const Minor = z.string().max(8).regex(MINOR_PATTERN)
const PEM_LENGTH_MAXIMUM = 4_096
const DETAIL_LENGTH_MAXIMUM = 1_024

export const DevCluster = resource({
  kind: 'DevCluster',
  plural: 'devclusters',
  shortNames: ['dc'],
  scope: 'Namespaced',
  customers: 'write',
  description:
    'Kubernetes for development on one server of the account: control plane, only node, ingress and storage. Not ' +
    'for production. The API returns the kubeconfig.',
  spec: z
    .strictObject({
      zone: ZoneName.describe('Zone of its server.'),
      name: z
        .string()
        .min(CLUSTER_NAME.least)
        .max(CLUSTER_NAME.most)
        .regex(CLUSTER_NAME.pattern)
        .describe('DNS label, unique among the dev clusters of the account.'),
      plan: z.string().min(1).max(63).describe('Plan of its server.'),
      version: Minor.describe('Minor version of Kubernetes.'),
      publicIpv4: z.boolean().default(false).describe('Whether it also has a public IPv4 address.'),
      networkId: Name.optional().describe('Name of an additional Network for its server.'),
      sshKeys: z
        .array(z.string().min(1).max(SSH_KEY_LENGTH_MAXIMUM))
        .min(1)
        .max(SSH_KEYS_PER_SERVER_MAXIMUM)
        .describe('Public keys that may sign in to its server as root.'),
      labels: StoredLabels.default({}).describe('Labels, as in the API; its server has them too.'),
    })
    .describe('The desired state of the cluster.'),
  status: z
    .strictObject({
      ...OBSERVED,
      serverId: Name.optional().describe('Name of its Server.'),
      isMade: z.boolean().optional().describe('Whether its API has answered and its node has been ready once.'),
      isSimulated: z
        .boolean()
        .optional()
        .describe('Whether its host only simulates it: nothing runs, and nobody can sign in.'),
      failureReason: z
        .string()
        .max(DETAIL_LENGTH_MAXIMUM)
        .optional()
        .describe('Human-readable reason for the error; absent when there is none. Only deletion ends the error.'),
      version: z.string().max(64).optional().describe('Release reported by its API.'),
      ipv6Address: CidrText.optional().describe('Public IPv6 address of its server.'),
      ipv4Address: CidrText.optional().describe('Public IPv4 address of its server.'),
      certificateAuthority: z
        .string()
        .max(PEM_LENGTH_MAXIMUM)
        .optional()
        .describe('PEM of the CA with which clients verify its API.'),
      admins: z
        .array(
          z.strictObject({
            name: Name.describe('Name of the service account.'),
            uid: z.uuid().describe('Its uid in the cluster.'),
          }),
        )
        .max(DEV_ADMINS_MAXIMUM)
        .optional()
        .describe('Service accounts with all rights that its server reported. Each is assigned to one token holder.'),
      health: z
        .strictObject({
          apiServer: z.enum(['healthy', 'unhealthy', 'unknown']).describe('Whether its API reports ready.'),
          isNodeReady: z.boolean().describe('Whether its node reports ready.'),
          observedAt: Instant.optional().describe('Time of the observation.'),
          detail: z
            .string()
            .max(DETAIL_LENGTH_MAXIMUM)
            .describe('Human-readable description of the problem; empty when there is none.'),
        })
        .optional()
        .describe('Health from the last report of its server.'),
    })
    .describe('Observed state of the cluster. Written by its controller.'),
  columns: [
    TITLE,
    { name: 'Version', type: 'string', jsonPath: '.status.version' },
    { name: 'IPv6', type: 'string', jsonPath: '.status.ipv6Address' },
    ZONE,
    READY,
    { name: 'Reason', type: 'string', jsonPath: '.status.failureReason', priority: 1 },
    AGE,
  ],
  selectableFields: ['.spec.zone'],
  fixed: ['zone', 'name', 'plan', 'version', 'publicIpv4', 'networkId', 'sshKeys', 'labels'],
})
export type DevClusterSpec = z.infer<typeof DevCluster.spec>
export type DevClusterStatus = z.infer<typeof DevCluster.status>
