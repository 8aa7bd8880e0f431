import { expect, test } from 'vitest'
import { openKubernetesMetrics } from '../../../../controllers/nouns/kubernetes-cluster/metrics.ts'
import type { ClusterObject } from '../../../../controllers/nouns/kubernetes-cluster/observed.ts'
import type { NodePoolObject } from '../../../../controllers/nouns/node-pool/observed.ts'
import { defined } from '../../../../domain/defined.ts'
import { openRegistry } from '../../../../kit/sys/metrics.ts'
import { KubernetesCluster } from '../../../../resources/kubernetes-cluster/index.ts'
import { nodeOf, poolWith } from '../node-pool/situations.ts'

const NOW = new Date('2026-03-01T12:20:00Z')
type Status = NonNullable<ClusterObject['status']>
const HEALTH: NonNullable<Status['health']> = {
  apiServer: 'healthy' as const,
  etcdMembersReady: 3,
  etcdMembersTotal: 3,
  hasEtcdQuorum: true,
  nodesReady: 0,
  nodesTotal: 0,
  detail: '',
}
const DONE = { schedule: '0 */6 * * *', doneUntil: '2026-03-01T06:00:00Z' }
const cluster = (status: Partial<Status>, operation?: ClusterObject['spec']['operation']): ClusterObject => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'KubernetesCluster',
  metadata: { name: 'c', namespace: 'a' },
  spec: {
    ...KubernetesCluster.spec.parse({ zone: 'z1', name: 'shop', networkId: 'n', version: '1.36' }),
    ...defined({ operation }),
  },
  status: { isMade: true, health: HEALTH, snapshots: DONE, ...status },
})
const SAVING: NonNullable<ClusterObject['spec']['operation']> = {
  id: 'o',
  kind: 'kubernetes_cluster.snapshot',
  actor: 'system:controllers',
  requestId: 'r',
  requestedAt: '2026-03-01T12:00:00Z',
  deadlineAt: '2026-03-01T12:10:00Z',
  arguments: { slot: 'x' },
}
const FAILED: NonNullable<Status['operation']> = {
  id: 'o',
  kind: SAVING.kind,
  step: 'taken',
  stepIndex: 1,
  stepCount: 2,
  error: 'no',
  status: 'failed',
  actor: SAVING.actor,
  createdAt: SAVING.requestedAt,
  deadlineAt: SAVING.deadlineAt,
}

test('unavailability, missing snapshots and missing nodes are reported, of what has run', async () => {
  const clusters: ClusterObject[] = []
  const pools: NodePoolObject[] = []
  let now = NOW
  const registry = openRegistry({ isProcessWide: false })
  openKubernetesMetrics({ clusters: () => clusters, pools: () => pools }, registry, { now: () => now })
  const lines = async () =>
    (await registry.metrics()).split('\n').filter((line) => line.startsWith('svccloud_') && !line.endsWith(' 0'))
  expect(await lines()).toEqual([])
  const ready = { ...nodeOf(0), serverId: 's', hostname: 'h', state: 'started' as const }
  clusters.push(
    cluster({}),
    cluster({ isMade: false, health: { ...HEALTH, apiServer: 'unknown' } }),
    cluster({ health: { ...HEALTH, apiServer: 'unhealthy' } }),
    cluster({ health: { ...HEALTH, etcdMembersReady: 2 } }),
    cluster({ fault: 'lost' }),
    cluster({ operation: FAILED }, SAVING),
  )
  pools.push(
    poolWith({ count: 0, status: { nodes: [] } }),
    poolWith({ count: 1, status: { nodes: [ready] } }),
    poolWith({ count: 2, status: { nodes: [ready, { ...ready, isReady: false }] } }),
    poolWith({ count: 2, status: { nodes: [], isMade: false } }),
  )
  const expected = (overdue: number) => [
    'svccloud_kubernetes_clusters_unhealthy 3',
    `svccloud_kubernetes_clusters_snapshot_overdue ${overdue}`,
    'svccloud_node_pools_short 1',
    'svccloud_kubernetes_clusters{zone="z1"} 6',
  ]
  // The slot of twelve o'clock has its half hour still.
  expect(await lines()).toEqual(expected(1))
  now = new Date('2026-03-01T12:31:00Z')
  expect(await lines()).toEqual(expected(5))
})
