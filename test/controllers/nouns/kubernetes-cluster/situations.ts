/** Situations of a Kubernetes cluster, and what its controller decides in them. */
import type { ClusterObject, HostView, Observed } from '../../../../controllers/nouns/kubernetes-cluster/observed.ts'
import { plan } from '../../../../controllers/nouns/kubernetes-cluster/plan.ts'
import { KubernetesCluster } from '../../../../resources/kubernetes-cluster/index.ts'
import type { OperationStanza } from '../../../../resources/kit/shapes.ts'

export const NOW = new Date('2026-03-01T12:00:00Z')
export const PLANE: NonNullable<HostView['plane']> = {
  id: '00000000-0000-4000-8000-000000000001',
  phase: 'running',
  release: '1.35.4',
  detail: '',
  endpoint: 'https://127.0.0.1:1',
  certificateAuthority: 'pem',
  apiServer: 'healthy',
  apiServersReady: 3,
  forNodes: null,
  addons: [],
  grants: [],
  snapshotStore: { mark: '', detail: '' },
  etcdMembersReady: 3,
  etcdMembersTotal: 3,
  hasEtcdQuorum: true,
  restoreId: null,
  observedAt: NOW.toISOString(),
}
export const OFFER: HostView['offer'] = {
  driver: 'process',
  releases: ['1.35.4', '1.36.3'],
  memoryBytes: 9,
  reservedBytes: 0,
  nodesObstacle: '',
  guests: { obstacle: '', bytesOfOne: 1, appDomain: '' },
  bytesOfOne: 1,
  bytesOfThree: 3,
  nodeCount: 1,
  etcdBytes: 1,
}
export const hostWith = (plane: HostView['plane'], more: Partial<HostView> = {}): HostView => ({
  offer: OFFER,
  plane,
  snapshots: [],
  nodes: [],
  ...more,
})
export const observedWith = (more: Partial<Observed> = {}): Observed => ({
  accountId: 'a',
  hasNetwork: true,
  snapshots: [],
  tokens: [],
  pools: [],
  edits: [],
  editor: 'user:ada',
  associated: [],
  place: undefined,
  platform: { isConfigured: false, organisationId: undefined },
  claim: {
    zone: 'eu-1a',
    region: 'eu-1',
    name: 'shop',
    networkId: 'back',
    controlPlaneId: PLANE.id,
    release: '1.35.4',
    replicas: 3,
    podCidr: '172.20.0.0/16',
    serviceCidr: '172.21.0.0/16',
  },
  host: hostWith(PLANE),
  ...more,
})
export const taken = (id: string): HostView['snapshots'][number] => ({
  id,
  release: '1.35.4',
  sizeBytes: 1,
  createdAt: NOW.toISOString(),
  detail: '',
  phase: 'done',
  isStored: false,
})
export const SCHEDULE = '0 */6 * * *'
export const DONE = { schedule: SCHEDULE, doneUntil: '2026-03-01T11:00:00Z' }

export const operationOf = (kind: OperationStanza['kind'], more: Partial<OperationStanza> = {}): OperationStanza => ({
  id: '00000000-0000-4000-8000-000000000002',
  kind,
  actor: 'user:ada',
  requestId: 'r',
  requestedAt: '2026-03-01T11:59:00Z',
  deadlineAt: '2026-03-01T13:00:00Z',
  ...more,
})
export const MADE = operationOf('kubernetes_cluster.create', { id: '00000000-0000-4000-8000-000000000003' })
export const MAKING: NonNullable<NonNullable<ClusterObject['status']>['operation']> = {
  id: MADE.id,
  kind: MADE.kind,
  step: 'control_plane',
  stepIndex: 2,
  stepCount: 2,
  error: '',
  status: 'succeeded',
  actor: 'user:ada',
  createdAt: MADE.requestedAt,
  deadlineAt: MADE.deadlineAt,
}

export function clusterWith({
  status = {},
  operation,
  spec = {},
}: {
  readonly status?: Partial<NonNullable<ClusterObject['status']>>
  readonly operation?: OperationStanza
  readonly spec?: Partial<ClusterObject['spec']>
} = {}): ClusterObject {
  const base = KubernetesCluster.spec.parse({ zone: 'eu-1a', name: 'shop', networkId: 'back', version: '1.35' })
  return {
    apiVersion: 'svccloud.dev/v1alpha1',
    kind: 'KubernetesCluster',
    metadata: { name: 'shop', namespace: 'acct-a', uid: 'u', generation: 3, creationTimestamp: NOW.toISOString() },
    spec: { ...base, ...spec, operation: operation ?? MADE },
    status: { isMade: true, version: '1.35', snapshots: DONE, operation: MAKING, ...status },
  }
}
export interface Decided {
  readonly effects: readonly string[]
  readonly status: Record<string, unknown>
  readonly outcome: string | undefined
  readonly change: unknown
}
export function decide(cluster: ClusterObject, observed = observedWith(), now = NOW): Decided {
  const actions = plan(cluster, observed, now)
  const find = <Kind extends (typeof actions)[number]['do']>(kind: Kind) =>
    actions.find(({ do: what }) => what === kind)
  const [status, operation, change] = [find('status'), find('operation'), find('change')]
  return {
    effects: actions.flatMap((each) => (each.do === 'effect' && each.name !== 'audit' ? [each.name] : [])),
    status: status?.do === 'status' ? (status.status as Record<string, unknown>) : {}, // that of a cluster
    outcome: operation?.do === 'operation' ? operation.outcome : undefined,
    change: change?.do === 'change' ? change.patch : undefined,
  }
}
