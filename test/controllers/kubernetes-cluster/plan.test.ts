/** What the controller of Kubernetes clusters decides, situation by situation. */
import { expect, test } from 'vitest'
import type { ClusterObject, HostView, Observed } from '../../../controllers/kubernetes-cluster/observed.ts'
import { plan } from '../../../controllers/kubernetes-cluster/plan.ts'
import { clusterStateOf, KubernetesCluster } from '../../../resources/kubernetes-cluster/index.ts'
import type { OperationStanza } from '../../../resources/shapes.ts'
import { storedOf } from '../../../apiserver/list/stored.ts'

const NOW = new Date('2026-03-01T12:00:00Z')
const PLANE: NonNullable<HostView['plane']> = {
  ...{ id: '00000000-0000-4000-8000-000000000001', phase: 'running', release: '1.35.4', detail: '' },
  ...{ endpoint: 'https://127.0.0.1:1', certificateAuthority: 'pem', apiServer: 'healthy', apiServersReady: 3 },
  ...{ forNodes: null, addons: [] },
  ...{ etcdMembersReady: 3, etcdMembersTotal: 3, hasEtcdQuorum: true, restoreId: null, observedAt: NOW.toISOString() },
}
const OFFER: HostView['offer'] = {
  ...{ driver: 'process', releases: ['1.35.4', '1.36.3'], memoryBytes: 9, reservedBytes: 0 },
  nodesObstacle: '',
  ...{ bytesOfOne: 1, bytesOfThree: 3, nodeCount: 1, etcdBytes: 1 },
}
const hostWith = (plane: HostView['plane'], more: Partial<HostView> = {}): HostView => ({
  ...{ offer: OFFER, plane, snapshots: [], nodes: [], ...more },
})
const observedWith = (more: Partial<Observed> = {}): Observed => ({
  ...{ accountId: 'a', hasNetwork: true, snapshots: [], pools: [], edits: [], editor: 'user:ada' },
  claim: {
    ...{ zone: 'eu-1a', region: 'eu-1', name: 'shop', networkId: 'back', controlPlaneId: PLANE.id },
    ...{ release: '1.35.4', replicas: 3, podCidr: '172.20.0.0/16', serviceCidr: '172.21.0.0/16' },
  },
  host: hostWith(PLANE),
  ...more,
})
const taken = (id: string): HostView['snapshots'][number] => ({
  ...{ id, release: '1.35.4', sizeBytes: 1, createdAt: NOW.toISOString(), detail: '' },
  phase: 'done',
})
const SCHEDULE = '0 */6 * * *'
const DONE = { schedule: SCHEDULE, doneUntil: '2026-03-01T11:00:00Z' }

const operationOf = (kind: OperationStanza['kind'], more: Partial<OperationStanza> = {}): OperationStanza => ({
  ...{ id: '00000000-0000-4000-8000-000000000002', kind, actor: 'user:ada', requestId: 'r' },
  ...{ requestedAt: '2026-03-01T11:59:00Z', deadlineAt: '2026-03-01T13:00:00Z', ...more },
})
const MADE = operationOf('kubernetes_cluster.create', { id: '00000000-0000-4000-8000-000000000003' })
const MAKING: NonNullable<NonNullable<ClusterObject['status']>['operation']> = {
  ...{ id: MADE.id, kind: MADE.kind, step: 'control_plane', stepIndex: 2, stepCount: 2, error: '' },
  ...{ status: 'succeeded', actor: 'user:ada', createdAt: MADE.requestedAt, deadlineAt: MADE.deadlineAt },
}

function clusterWith({
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
    ...{ apiVersion: 'svccloud.dev/v1alpha1', kind: 'KubernetesCluster' },
    metadata: { name: 'shop', namespace: 'acct-a', uid: 'u', generation: 3, creationTimestamp: NOW.toISOString() },
    spec: { ...base, ...spec, operation: operation ?? MADE },
    status: { isMade: true, version: '1.35', snapshots: DONE, operation: MAKING, ...status },
  }
}
interface Decided {
  readonly effects: readonly string[]
  readonly status: Record<string, unknown>
  readonly outcome: string | undefined
  readonly change: unknown
}
function decide(cluster: ClusterObject, observed = observedWith(), now = NOW): Decided {
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

test('one that its host has lost is in error and is not asked for again', () => {
  const { effects, status } = decide(clusterWith(), observedWith({ host: hostWith(undefined) }))
  expect([effects, status['fault']]).toEqual([[], 'The host of its control plane has lost it.'])
  expect(clusterStateOf(storedOf(clusterWith({ status: { fault: 'lost' } })))).toBe('error')
  const upgrading = clusterWith({ operation: operationOf('kubernetes_cluster.upgrade'), spec: { version: '1.36' } })
  const during = decide(upgrading, observedWith({ host: hostWith(undefined) }))
  expect([during.effects, during.outcome]).toEqual([[], 'failed'])
})

test('without quorum it runs for half an hour, then it is in error, and whole it runs again', () => {
  const broken = hostWith({ ...PLANE, hasEtcdQuorum: false, etcdMembersReady: 1 })
  const after = (minutes: number, host: HostView = broken) =>
    decide(
      clusterWith({ status: { quorumLostAt: new Date(NOW.getTime() - minutes * 60_000).toISOString() } }),
      observedWith({ host }),
    ).status['fault']
  expect([after(29), after(30)]).toEqual([undefined, expect.stringContaining('half an hour')])
  expect(after(90, hostWith(PLANE))).toBeUndefined()
})

test('a host that does not answer is nothing but a reason to wait', () => {
  const observed = observedWith({ host: { obstacle: 'its host to answer' } })
  const { effects, status } = decide(clusterWith(), observed)
  expect([effects, status['fault'], status['health']]).toEqual([
    [],
    undefined,
    expect.objectContaining({ apiServer: 'unknown', detail: 'its host to answer' }),
  ])
  const deleting = clusterWith({ operation: operationOf('kubernetes_cluster.delete') })
  const gone = { ...deleting, metadata: { ...deleting.metadata, deletionTimestamp: NOW.toISOString() } }
  expect(decide(gone, observed)).toMatchObject({ effects: [], outcome: undefined })
  expect(decide(gone).effects).toEqual(['dismantle'])
  expect(decide(gone, observedWith({ host: hostWith(undefined) }))).toMatchObject({
    ...{ effects: ['release'], outcome: 'succeeded' },
  })
})

test('an upgrade saves first, then tells the release, then the host', () => {
  const cluster = clusterWith({ operation: operationOf('kubernetes_cluster.upgrade'), spec: { version: '1.36' } })
  const first = plan(cluster, observedWith(), NOW).find((each) => each.do === 'effect' && each.name === 'snapshot')
  const { snapshotId } = (first as { input: { snapshotId: string } }).input // of that effect
  const done = taken(snapshotId)
  expect(decide(cluster, observedWith({ host: hostWith(PLANE, { snapshots: [done] }) })).effects).toEqual(['record'])
  const saved = { ...done, kind: 'pre_upgrade', createdAt: NOW } as const
  expect(decide(cluster, observedWith({ snapshots: [saved] })).effects).toEqual(['setRelease'])
  const { claim } = observedWith()
  const told = { snapshots: [saved], claim: claim && { ...claim, release: '1.36.3' } }
  expect(decide(cluster, observedWith(told)).effects).toEqual(['ensure'])
  const rolling = hostWith({ ...PLANE, phase: 'upgrading' })
  expect(decide(cluster, observedWith({ ...told, host: rolling })).effects).toEqual([])
  const over = decide(cluster, observedWith({ ...told, host: rolling }), new Date('2026-03-01T13:00:01Z'))
  expect([over.outcome, over.status['fault']]).toEqual(['failed', expect.stringContaining('not done in time')])
  const whole = hostWith({ ...PLANE, release: '1.36.3' })
  expect(decide(cluster, observedWith({ ...told, host: whole }))).toMatchObject({
    ...{ outcome: 'succeeded', status: { version: '1.36' } },
  })
})

test('an upgrade that failed is not tried by itself again', () => {
  const operation = operationOf('kubernetes_cluster.upgrade')
  const failed = { ...MAKING, id: operation.id, kind: operation.kind, status: 'failed' } as const
  const quiet = { snapshots: { schedule: SCHEDULE, doneUntil: NOW.toISOString() } }
  const spec = { version: '1.36' }
  const right = decide(clusterWith({ operation, spec, status: { ...quiet, operation: failed } }))
  expect([right.change, right.status['failedVersion']]).toEqual([undefined, '1.36'])
  const later = { ...quiet, failedVersion: '1.36' }
  expect(decide(clusterWith({ spec, status: later })).change).toBeUndefined()
  // Edited back it is forgotten, and then may be asked for anew.
  expect(decide(clusterWith({ status: later })).status['failedVersion']).toBeUndefined()
  expect(decide(clusterWith({ spec, status: quiet })).change).toMatchObject({
    spec: { operation: { kind: 'kubernetes_cluster.upgrade', actor: 'user:ada' } },
  })
})

test('a restore saves first where it can, and is said once', () => {
  const operation = operationOf('kubernetes_cluster.restore', { arguments: { snapshotId: 's' } })
  const cluster = clusterWith({ operation })
  expect(decide(cluster).effects).toEqual(['snapshot'])
  const broken = { ...PLANE, hasEtcdQuorum: false, etcdMembersReady: 0 }
  expect(decide(cluster, observedWith({ host: hostWith(broken) })).effects).toEqual(['restore'])
  expect(decide(cluster, observedWith({ host: hostWith({ ...broken, phase: 'restoring' }) })).effects).toEqual([])
  const back = hostWith({ ...PLANE, restoreId: operation.id })
  expect(decide(cluster, observedWith({ host: back })).outcome).toBe('succeeded')
})

test('a snapshot is due by its schedule, one at a time, and not again when it failed', () => {
  const due = decide(clusterWith())
  expect(due.change).toMatchObject({
    spec: {
      operation: {
        ...{ kind: 'kubernetes_cluster.snapshot', actor: 'system:controllers' },
        arguments: { kind: 'scheduled', slot: '2026-03-01T12:00:00.000Z' },
      },
    },
  })
  const slot = { kind: 'scheduled', slot: NOW.toISOString() }
  const operation = operationOf('kubernetes_cluster.snapshot', { arguments: slot })
  const row = { id: operation.id, kind: 'scheduled', release: '1.35.4', sizeBytes: 1, createdAt: NOW } as const
  expect(decide(clusterWith({ operation }), observedWith({ snapshots: [row] })).status['snapshots']).toEqual({
    ...{ schedule: SCHEDULE, doneUntil: NOW.toISOString() },
  })
  const dealtWith = { snapshots: { schedule: SCHEDULE, doneUntil: NOW.toISOString() } }
  expect(decide(clusterWith({ status: dealtWith })).change).toBeUndefined()
  const another = { snapshots: { schedule: '0 1 * * *', doneUntil: '2020-01-01T00:00:00Z' } }
  expect(decide(clusterWith({ status: another })).status['snapshots']).toEqual({
    ...{ schedule: SCHEDULE, doneUntil: NOW.toISOString() },
  })
  // One that failed: the same slot is not tried for ever.
  const failed = { ...MAKING, id: operation.id, kind: operation.kind, status: 'failed' } as const
  expect(decide(clusterWith({ operation, status: { operation: failed } }))).toMatchObject({
    ...{ change: undefined, status: { snapshots: { doneUntil: NOW.toISOString() } } },
  })
  // It has no quorum: nothing could be taken.
  const broken = hostWith({ ...PLANE, hasEtcdQuorum: false })
  expect(decide(clusterWith(), observedWith({ host: broken })).change).toBeUndefined()
})

test('of each kind so many snapshots are kept, and what nobody wrote down is', () => {
  const snapshots = ['manual', 'scheduled', 'scheduled', 'scheduled', 'manual'] as const
  const rows = snapshots.map((kind, index) => ({
    ...{ id: `${kind}-${index}`, kind, release: '1.35.4', sizeBytes: 1, createdAt: NOW },
  }))
  const cluster = clusterWith({
    spec: { etcdSnapshotRetention: 2 },
    status: { snapshots: { schedule: SCHEDULE, doneUntil: NOW.toISOString() } },
  })
  const unknown = taken('unknown')
  const host = hostWith(PLANE, { snapshots: [unknown] })
  const actions = plan(cluster, observedWith({ snapshots: rows, host }), NOW)
  const effects = actions.flatMap((each) => (each.do === 'effect' ? [each] : []))
  expect(effects).toMatchObject([
    { name: 'forget', input: { snapshotId: 'scheduled-3' } },
    { name: 'record', input: { snapshot: { id: 'unknown', kind: 'manual' } } },
  ])
})
