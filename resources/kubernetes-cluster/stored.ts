/** KubernetesCluster: a Kubernetes control plane that the platform runs for an account, as it is stored. */
import { z } from 'zod'
import { BACKUP_SCHEDULE_CHARACTERS_MAXIMUM } from '../../domain/backup/schedule.ts'
import { REGISTRATION_STATES } from '../../domain/kubernetes-cluster/platform-registration.ts'
import {
  CLUSTER_NAME,
  MINOR_PATTERN,
  SNAPSHOT_KINDS,
  SNAPSHOT_RETENTION,
  SNAPSHOT_SCHEDULE_DEFAULT,
} from '../../domain/kubernetes-cluster/rules.ts'
import { resource } from '../kit/define.ts'
import { ReportedOperation, RequestedOrEditedOperation, StoredLabels, ZoneName } from '../kit/shapes.ts'
import { EndpointUrl, OBSERVED } from '../kit/fields.ts'
import { AGE, READY, TITLE, ZONE } from '../kit/columns.ts'

const Instant = z.string().max(64).meta({ format: 'date-time' })
const Minor = z.string().max(8).regex(MINOR_PATTERN)
const PEM_LENGTH_MAXIMUM = 8_192
const COUNT_MAXIMUM = 1_000
/** Maximum kept of each kind; each kind may have one more that is being removed. */
export const STORED_SNAPSHOTS_MAXIMUM = SNAPSHOT_KINDS.length * (SNAPSHOT_RETENTION.most + 1)

export const KubernetesCluster = resource({
  kind: 'KubernetesCluster',
  plural: 'kubernetesclusters',
  shortNames: ['kc'],
  scope: 'Namespaced',
  customers: 'write',
  description: 'A Kubernetes cluster whose control plane the platform runs. The API returns the kubeconfig.',
  spec: z
    .strictObject({
      zone: ZoneName.describe('Default zone of its nodes; its region hosts the control plane.'),
      name: z
        .string()
        .min(CLUSTER_NAME.least)
        .max(CLUSTER_NAME.most)
        .regex(CLUSTER_NAME.pattern)
        .describe('DNS label, unique among the clusters of the account.'),
      networkId: z.string().min(1).max(253).describe('Name of the Network of its nodes.'),
      controlPlaneRegion: z
        .string()
        .min(1)
        .max(63)
        .optional()
        .describe(
          'Region whose host runs the control plane; the region of its zone when absent. Only for clusters of ' +
            'the platform.',
        ),
      version: Minor.describe(
        'Minor version of Kubernetes. A newer version, or the same version set again, upgrades the cluster.',
      ),
      publicIpv4: z.boolean().default(false).describe('Whether its API also has an IPv4 address.'),
      labels: StoredLabels.default({}).describe('Labels, as in the API.'),
      etcdSnapshotSchedule: z
        .string()
        .max(BACKUP_SCHEDULE_CHARACTERS_MAXIMUM)
        .default(SNAPSHOT_SCHEDULE_DEFAULT)
        .describe('Schedule of snapshots of its state: five cron fields, in UTC.'),
      etcdSnapshotRetention: z
        .int()
        .min(SNAPSHOT_RETENTION.least)
        .max(SNAPSHOT_RETENTION.most)
        .default(SNAPSHOT_RETENTION.default)
        .describe('Number of snapshots kept of each kind.'),
      registersInPlatform: z
        .boolean()
        .default(true)
        .describe('Whether to register it in the organisation platform, if this cloud has one.'),
      isProtected: z.boolean().default(false).describe('Whether deletion is refused.'),
      operation: RequestedOrEditedOperation,
    })
    .describe('The desired state of the cluster.'),
  status: z
    .strictObject({
      ...OBSERVED,
      isMade: z.boolean().optional().describe('Whether its control plane has run once.'),
      isSimulated: z
        .boolean()
        .optional()
        .describe('Whether its host only simulates it: nothing runs, nobody can sign in, and it is not billed.'),
      fault: z
        .string()
        .max(1024)
        .optional()
        .describe('Reason for the error after its creation; empty or absent when there is none. A restore may fix it.'),
      version: Minor.optional().describe('Minor version of its last creation or upgrade.'),
      failedVersion: Minor.optional().describe(
        'Version to which the upgrade failed. It is not tried again automatically.',
      ),
      kubernetesVersion: z.string().max(16).optional().describe('Release that all its API servers run.'),
      availableUpgrade: Minor.optional().describe('Next minor version; absent when there is none.'),
      replicas: z.int().optional().describe('Number of API servers, and of etcd members.'),
      endpoint: EndpointUrl.optional().describe('URL of its API.'),
      certificateAuthority: z
        .string()
        .max(PEM_LENGTH_MAXIMUM)
        .optional()
        .describe('PEM of the CA with which clients verify its API.'),
      health: z
        .strictObject({
          apiServer: z.enum(['healthy', 'unhealthy', 'unknown']).describe('Whether its API answers.'),
          etcdMembersReady: z.int().min(0).max(COUNT_MAXIMUM).describe('Healthy members of etcd.'),
          etcdMembersTotal: z.int().min(0).max(COUNT_MAXIMUM).describe('Total members of etcd.'),
          hasEtcdQuorum: z.boolean().describe('Whether enough members of etcd are healthy for writes.'),
          nodesReady: z.int().min(0).describe('Nodes that report Ready.'),
          nodesTotal: z.int().min(0).describe('Nodes known to its API.'),
          observedAt: Instant.optional().describe('Time of the observation.'),
          detail: z.string().max(1024).describe('Human-readable description of the problem; empty when there is none.'),
        })
        .optional()
        .describe('Last observed health of its control plane.'),
      quorumLostAt: Instant.optional().describe('Time since when its etcd has no quorum; absent while it has quorum.'),
      addons: z
        .array(
          z.strictObject({
            name: z.string().max(63).describe('Name of the software.'),
            version: z.string().max(63).describe('Installed release.'),
          }),
        )
        .max(16)
        .optional()
        .describe('Software that the platform has installed in it.'),
      snapshots: z
        .strictObject({
          schedule: z.string().max(BACKUP_SCHEDULE_CHARACTERS_MAXIMUM).describe('Schedule in effect.'),
          doneUntil: Instant.describe('Time up to which the schedule has been processed.'),
        })
        .optional()
        .describe('Progress of its snapshot schedule.'),
      storedSnapshots: z
        .array(z.string().max(36))
        .max(STORED_SNAPSHOTS_MAXIMUM)
        .optional()
        .describe('Ids of its snapshots that are also in the object storage of its zone; absent for none.'),
      platform: z
        .strictObject({
          state: z.enum(REGISTRATION_STATES).describe('State of its registration in the organisation platform.'),
          organisationId: z.string().max(36).optional().describe('Organisation in which it is registered.'),
          clusterId: z.string().max(100).optional().describe('Its id on the organisation platform.'),
          url: EndpointUrl.optional().describe('Its page there.'),
          reason: z.string().max(1024).describe('Reason why it is not in its desired state; empty when it is.'),
          attempts: z.int().min(0).describe('Consecutive attempts that the platform did not answer.'),
          operationId: z.string().max(36).optional().describe('Newest operation that tried it.'),
          nextAttemptAt: Instant.optional().describe('Time of the next attempt.'),
          registeredAt: Instant.optional().describe('Time of its registration.'),
        })
        .optional()
        .describe('Its registration in the organisation platform; absent when this cloud has none.'),
      operation: ReportedOperation,
    })
    .describe('Observed state of the cluster. Written by its controller.'),
  columns: [
    TITLE,
    { name: 'Version', type: 'string', jsonPath: '.status.kubernetesVersion' },
    { name: 'Endpoint', type: 'string', jsonPath: '.status.endpoint' },
    ZONE,
    READY,
    AGE,
  ],
  selectableFields: ['.spec.zone'],
  fixed: ['zone', 'name', 'networkId', 'publicIpv4', 'controlPlaneRegion'],
})
export type KubernetesClusterSpec = z.infer<typeof KubernetesCluster.spec>
export type KubernetesClusterStatus = z.infer<typeof KubernetesCluster.status>
