/** KubernetesCluster: a control plane of Kubernetes that the platform runs for an account, as it is stored. */
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
import { fixed, resource } from '../kit/define.ts'
import {
  Conditions,
  ObservedGeneration,
  ReportedOperation,
  RequestedOrEditedOperation,
  StoredLabels,
  ZoneName,
} from '../kit/shapes.ts'

const Instant = z.string().max(64).meta({ format: 'date-time' })
const Minor = z.string().max(8).regex(MINOR_PATTERN)
const PEM_LENGTH_MAXIMUM = 8_192
const URL_LENGTH_MAXIMUM = 300
const COUNT_MAXIMUM = 1_000
/** So many of each kind are kept at most, and each may have one more on its way out. */
export const STORED_SNAPSHOTS_MAXIMUM = SNAPSHOT_KINDS.length * (SNAPSHOT_RETENTION.most + 1)

export const KubernetesCluster = resource({
  kind: 'KubernetesCluster',
  plural: 'kubernetesclusters',
  shortNames: ['kc'],
  scope: 'Namespaced',
  customers: 'write',
  description:
    'A Kubernetes cluster whose control plane the platform runs. How to get into it is read through the API.',
  spec: z
    .strictObject({
      zone: ZoneName.describe('Zone of its nodes by default; its region hosts the control plane. Cannot be changed.'),
      name: z
        .string()
        .min(CLUSTER_NAME.least)
        .max(CLUSTER_NAME.most)
        .regex(CLUSTER_NAME.pattern)
        .describe('DNS label, unique among the clusters of the account. Cannot be changed.'),
      networkId: z.string().min(1).max(253).describe('Name of the Network of its nodes. Cannot be changed.'),
      controlPlaneRegion: z
        .string()
        .min(1)
        .max(63)
        .optional()
        .describe(
          'Region whose host runs the control plane; that of its zone when absent. Of clusters of the platform only. ' +
            'Cannot be changed.',
        ),
      version: Minor.describe('Minor version of Kubernetes. A newer one, or the same again, upgrades the cluster.'),
      publicIpv4: z.boolean().default(false).describe('Whether its API has an IPv4 address too. Cannot be changed.'),
      labels: StoredLabels.default({}).describe('Labels of the API.'),
      etcdSnapshotSchedule: z
        .string()
        .max(BACKUP_SCHEDULE_CHARACTERS_MAXIMUM)
        .default(SNAPSHOT_SCHEDULE_DEFAULT)
        .describe('When snapshots of its state are taken: five fields as cron has them, in UTC.'),
      etcdSnapshotRetention: z
        .int()
        .min(SNAPSHOT_RETENTION.least)
        .max(SNAPSHOT_RETENTION.most)
        .default(SNAPSHOT_RETENTION.default)
        .describe('How many snapshots of each kind are kept.'),
      registersInPlatform: z
        .boolean()
        .default(true)
        .describe('Whether it is registered in the organisation platform, where this cloud has one.'),
      isProtected: z.boolean().default(false).describe('Whether it refuses to be deleted.'),
      operation: RequestedOrEditedOperation,
    })
    .describe('The desired state of the cluster.'),
  status: z
    .strictObject({
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
      isMade: z.boolean().optional().describe('Whether its control plane has run once.'),
      isSimulated: z
        .boolean()
        .optional()
        .describe('Whether its host only counts, and nothing runs: nobody gets into it, and it is not billed.'),
      fault: z
        .string()
        .max(1024)
        .optional()
        .describe('Why it is in error once it was made; empty or absent when it is not. A restore may cure it.'),
      version: Minor.optional().describe('Minor version that it was last made or upgraded to.'),
      failedVersion: Minor.optional().describe(
        'Version that it could not be upgraded to. It is not tried by itself again.',
      ),
      kubernetesVersion: z.string().max(16).optional().describe('Release that all its API servers run.'),
      availableUpgrade: Minor.optional().describe('Next minor version; absent when there is none.'),
      replicas: z.int().optional().describe('API servers, and members of etcd, that it has.'),
      endpoint: z.string().max(URL_LENGTH_MAXIMUM).optional().describe('URL of its API.'),
      certificateAuthority: z
        .string()
        .max(PEM_LENGTH_MAXIMUM)
        .optional()
        .describe('Certificate in PEM that clients verify its API by.'),
      health: z
        .strictObject({
          apiServer: z.enum(['healthy', 'unhealthy', 'unknown']).describe('Whether its API answers.'),
          etcdMembersReady: z.int().min(0).max(COUNT_MAXIMUM).describe('Members of etcd that serve.'),
          etcdMembersTotal: z.int().min(0).max(COUNT_MAXIMUM).describe('Members of etcd that there are.'),
          hasEtcdQuorum: z.boolean().describe('Whether enough of them serve for writes.'),
          nodesReady: z.int().min(0).describe('Nodes that report Ready.'),
          nodesTotal: z.int().min(0).describe('Nodes that its API knows.'),
          observedAt: Instant.optional().describe('When that was seen.'),
          detail: z.string().max(1024).describe('What is wrong, for people; empty otherwise.'),
        })
        .optional()
        .describe('How its control plane was when it was looked at last.'),
      quorumLostAt: Instant.optional().describe('Since when its etcd has no quorum; absent while it has.'),
      addons: z
        .array(
          z.strictObject({
            name: z.string().max(63).describe('What it is.'),
            version: z.string().max(63).describe('The release that is installed.'),
          }),
        )
        .max(16)
        .optional()
        .describe('What the platform has installed in it.'),
      snapshots: z
        .strictObject({
          schedule: z.string().max(BACKUP_SCHEDULE_CHARACTERS_MAXIMUM).describe('The schedule that is followed.'),
          doneUntil: Instant.describe('Up to which moment it has been dealt with.'),
        })
        .optional()
        .describe('How far its schedule of snapshots is.'),
      storedSnapshots: z
        .array(z.string().max(36))
        .max(STORED_SNAPSHOTS_MAXIMUM)
        .optional()
        .describe('Ids of its snapshots that are in the object storage of its zone too; absent for none.'),
      platform: z
        .strictObject({
          state: z.enum(REGISTRATION_STATES).describe('How its registration in the organisation platform is.'),
          organisationId: z.string().max(36).optional().describe('The organisation that it is registered in.'),
          clusterId: z.string().max(100).optional().describe('What the platform calls it.'),
          url: z.string().max(URL_LENGTH_MAXIMUM).optional().describe('Its page there.'),
          reason: z.string().max(1024).describe('Why it is not in its desired state; empty when it is.'),
          attempts: z.int().min(0).describe('Attempts in a row that the platform did not answer.'),
          operationId: z.string().max(36).optional().describe('The newest operation that has tried.'),
          nextAttemptAt: Instant.optional().describe('When it is tried again.'),
          registeredAt: Instant.optional().describe('Since when it is registered.'),
        })
        .optional()
        .describe('Its registration in the organisation platform; absent where this cloud has none.'),
      operation: ReportedOperation,
    })
    .describe('What the cluster is. Written by its controller.'),
  columns: [
    { name: 'Title', type: 'string', jsonPath: '.spec.name' },
    { name: 'Version', type: 'string', jsonPath: '.status.kubernetesVersion' },
    { name: 'Endpoint', type: 'string', jsonPath: '.status.endpoint' },
    { name: 'Zone', type: 'string', jsonPath: '.spec.zone' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: ['.spec.zone'],
  rules: ['zone', 'name', 'networkId', 'publicIpv4', 'controlPlaneRegion'].map(fixed),
})
export type KubernetesClusterSpec = z.infer<typeof KubernetesCluster.spec>
export type KubernetesClusterStatus = z.infer<typeof KubernetesCluster.status>
