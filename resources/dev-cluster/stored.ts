/** DevCluster: Kubernetes for development on one server of an account, as it is stored. */
import { z } from 'zod'
import { DEV_ADMINS_MAXIMUM } from '../../domain/dev-cluster/rules.ts'
import { CLUSTER_NAME, MINOR_PATTERN } from '../../domain/kubernetes-cluster/rules.ts'
import { fixed, resource } from '../kit/define.ts'
import { SSH_KEYS_PER_SERVER_MAXIMUM } from '../server/index.ts'
import { Conditions, ObservedGeneration, StoredLabels, ZoneName } from '../kit/shapes.ts'

const Name = z.string().min(1).max(253)
const Instant = z.string().max(64).meta({ format: 'date-time' })
const Minor = z.string().max(8).regex(MINOR_PATTERN)
const KEY_LENGTH_MAXIMUM = 16_384
const PEM_LENGTH_MAXIMUM = 4_096
const ADDRESS_LENGTH_MAXIMUM = 49
const DETAIL_LENGTH_MAXIMUM = 1_024

export const DevCluster = resource({
  kind: 'DevCluster',
  plural: 'devclusters',
  shortNames: ['dc'],
  scope: 'Namespaced',
  customers: 'write',
  description:
    'Kubernetes for development: one server of the account that is its control plane, its only node, its ingress and ' +
    'its storage. Not for production. How to get into it is read through the API.',
  spec: z
    .strictObject({
      zone: ZoneName.describe('Zone of its server. Cannot be changed.'),
      name: z
        .string()
        .min(CLUSTER_NAME.least)
        .max(CLUSTER_NAME.most)
        .regex(CLUSTER_NAME.pattern)
        .describe('DNS label, unique among the dev clusters of the account. Cannot be changed.'),
      plan: z.string().min(1).max(63).describe('Plan that its server is made with. Cannot be changed.'),
      version: Minor.describe('Minor version of Kubernetes. Cannot be changed.'),
      publicIpv4: z.boolean().default(false).describe('Whether it has a public IPv4 address too. Cannot be changed.'),
      networkId: Name.optional().describe('Name of a Network that its server is in as well. Cannot be changed.'),
      sshKeys: z
        .array(z.string().min(1).max(KEY_LENGTH_MAXIMUM))
        .min(1)
        .max(SSH_KEYS_PER_SERVER_MAXIMUM)
        .describe('Public keys of who may sign in to its server, as root. Cannot be changed.'),
      labels: StoredLabels.default({}).describe('Labels of the API, also of its server. Cannot be changed.'),
    })
    .describe('The desired state of the cluster.'),
  status: z
    .strictObject({
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
      serverId: Name.optional().describe('Name of its Server.'),
      isMade: z.boolean().optional().describe('Whether its API has answered and its node was ready once.'),
      isSimulated: z
        .boolean()
        .optional()
        .describe('Whether its host only counts, and nothing runs: nobody gets into it.'),
      failureReason: z
        .string()
        .max(DETAIL_LENGTH_MAXIMUM)
        .optional()
        .describe('Why it is in error, for people; absent when it is not. Only its deletion ends that.'),
      version: z.string().max(64).optional().describe('Release that its API says it runs.'),
      ipv6Address: z.string().max(ADDRESS_LENGTH_MAXIMUM).optional().describe('Public IPv6 address of its server.'),
      ipv4Address: z.string().max(ADDRESS_LENGTH_MAXIMUM).optional().describe('Public IPv4 address of its server.'),
      certificateAuthority: z
        .string()
        .max(PEM_LENGTH_MAXIMUM)
        .optional()
        .describe('Certificate in PEM that clients verify its API by.'),
      admins: z
        .array(
          z.strictObject({
            name: Name.describe('Name of the service account.'),
            uid: z.uuid().describe('Its uid in the cluster.'),
          }),
        )
        .max(DEV_ADMINS_MAXIMUM)
        .optional()
        .describe('Service accounts with all rights that its server has said: each is given to one holder of a token.'),
      health: z
        .strictObject({
          apiServer: z.enum(['healthy', 'unhealthy', 'unknown']).describe('Whether its API says that it is ready.'),
          isNodeReady: z.boolean().describe('Whether its node says so.'),
          observedAt: Instant.optional().describe('When that was seen.'),
          detail: z.string().max(DETAIL_LENGTH_MAXIMUM).describe('What is wrong, for people; empty otherwise.'),
        })
        .optional()
        .describe('How it was when its server said so last.'),
    })
    .describe('What the cluster is. Written by its controller.'),
  columns: [
    { name: 'Title', type: 'string', jsonPath: '.spec.name' },
    { name: 'Version', type: 'string', jsonPath: '.status.version' },
    { name: 'IPv6', type: 'string', jsonPath: '.status.ipv6Address' },
    { name: 'Zone', type: 'string', jsonPath: '.spec.zone' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Reason', type: 'string', jsonPath: '.status.failureReason', priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: ['.spec.zone'],
  rules: ['zone', 'name', 'plan', 'version', 'publicIpv4', 'networkId', 'sshKeys', 'labels'].map(fixed),
})
export type DevClusterSpec = z.infer<typeof DevCluster.spec>
export type DevClusterStatus = z.infer<typeof DevCluster.status>
