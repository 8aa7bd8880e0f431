/** Metrics of clusters for operators, by zone where it helps. Only the leader of a shard knows them, for its own zones;
 *  every other replica reports 0. The content of a cluster is visible to its owner only. */
import { dueSlot, parseBackupSchedule } from '../../../domain/backup/schedule.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import { gaugesIn, Gauge, type Registry } from '../../../kit/sys/metrics.ts'
import type { NodePoolSpec, NodePoolStatus } from '../../../resources/node-pool/index.ts'
import type { ClusterObject } from './observed.ts'

type NodePoolObject = KubeObject<NodePoolSpec, NodePoolStatus>

/** How late a snapshot may be. */
const SNAPSHOT_GRACE_MILLISECONDS = 1_800_000

interface Sources {
  clusters(): readonly ClusterObject[]
  pools(): readonly NodePoolObject[]
}

export function openKubernetesMetrics(
  { clusters, pools }: Sources,
  registry: Registry,
  clock: Pick<Clock, 'now'>,
): void {
  const gauge = gaugesIn(registry)
  const existing = () => clusters().filter(({ status }) => status?.isMade === true)
  gauge(
    'svccloud_kubernetes_clusters_unhealthy',
    'Clusters of Kubernetes whose control plane does not serve as configured',
    () => existing().filter(isUnhealthy).length,
  )
  gauge(
    'svccloud_kubernetes_clusters_snapshot_overdue',
    'Clusters whose last snapshot by their schedule failed, or was due half an hour ago',
    () => existing().filter((cluster) => isOverdue(cluster, clock.now())).length,
  )
  gauge(
    'svccloud_node_pools_short',
    'Node pools that have run, with fewer ready nodes than desired',
    () => pools().filter(isShort).length,
  )
  new Gauge({
    name: 'svccloud_kubernetes_clusters',
    help: 'Clusters of Kubernetes by zone',
    labelNames: ['zone'],
    registers: [registry],
    collect() {
      this.reset()
      for (const { spec } of clusters()) this.inc({ zone: spec.zone })
    },
  })
}

/** A cluster that is upgraded or restored is incomplete for a while, as expected. */
const isUnhealthy = ({ status }: ClusterObject): boolean =>
  (status?.fault ?? '') !== '' ||
  status?.health?.apiServer !== 'healthy' ||
  status.health.hasEtcdQuorum !== true ||
  status.health.etcdMembersReady < status.health.etcdMembersTotal

function isOverdue({ spec, status }: ClusterObject, now: Date): boolean {
  const { operation, snapshots } = status ?? {}
  const isOfSchedule = spec.operation?.id === operation?.id && spec.operation?.arguments?.['slot'] !== undefined
  if (isOfSchedule && operation?.status === 'failed') return true
  const schedule = parseBackupSchedule(spec.etcdSnapshotSchedule)
  if ('fault' in schedule || snapshots === undefined) return false
  const until = new Date(now.getTime() - SNAPSHOT_GRACE_MILLISECONDS)
  return dueSlot(schedule, { after: new Date(snapshots.doneUntil), now: until }) !== undefined
}

const isShort = ({ spec, status, metadata }: NodePoolObject): boolean =>
  status?.isMade === true &&
  metadata.deletionTimestamp === undefined &&
  (status.nodes ?? []).filter(({ isReady }) => isReady).length < spec.count
