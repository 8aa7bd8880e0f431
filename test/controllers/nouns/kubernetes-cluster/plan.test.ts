/** What the controller of Kubernetes clusters decides, situation by situation. */
import { expect, test } from 'vitest'
import type { ClusterObject, HostView, Observed } from '../../../../controllers/nouns/kubernetes-cluster/observed.ts'
import { plan } from '../../../../controllers/nouns/kubernetes-cluster/plan.ts'
import { clusterStateOf } from '../../../../resources/kubernetes-cluster/index.ts'
import { Storage } from '../../../../resources/storage/index.ts'
import { storedOf } from '../../../../resources/kit/shapes.ts'
import { nodeNameOf } from '../../../../domain/node-pool/rules.ts'
import { poolWith, UID } from '../node-pool/situations.ts'
import {
  NOW,
  PLANE,
  hostWith,
  observedWith,
  taken,
  SCHEDULE,
  DONE,
  operationOf,
  MAKING,
  clusterWith,
  decide,
} from './situations.ts'

test('one that its host has lost is in error and is not asked for again', () => {
  const { effects, status } = decide(clusterWith(), observedWith({ host: hostWith(undefined) }))
  expect([effects, status['fault']]).toEqual([[], 'The host of its control plane has lost it.'])
  expect(clusterStateOf(storedOf(clusterWith({ status: { fault: 'lost' } })))).toBe('error')
  const upgrading = clusterWith({ operation: operationOf('kubernetes_cluster.upgrade'), spec: { version: '1.36' } })
  const during = decide(upgrading, observedWith({ host: hostWith(undefined) }))
  expect([during.effects, during.outcome]).toEqual([[], 'failed'])
})

test('one that its host has lost is restored from a snapshot in object storage, and from no other', () => {
  const [stored, other] = ['00000000-0000-4000-8000-00000000000a', '00000000-0000-4000-8000-00000000000b']
  const restoring = (snapshotId: string) =>
    decide(
      clusterWith({
        operation: operationOf('kubernetes_cluster.restore', { arguments: { snapshotId } }),
        status: { fault: 'lost', storedSnapshots: [stored] },
      }),
      observedWith({ host: hostWith(undefined) }),
    )
  expect(restoring(stored)).toMatchObject({ effects: ['recover'], outcome: undefined })
  expect(restoring(other)).toMatchObject({ effects: [], outcome: 'failed' })
})

test('its host gets the place of further snapshots, again while they do not get there', () => {
  const told = (place: string | undefined, snapshotStore: { mark: string; detail: string }) =>
    decide(
      clusterWith({ status: { snapshots: { ...DONE, doneUntil: NOW.toISOString() } } }),
      observedWith({ place, host: hostWith({ ...PLANE, snapshotStore }) }),
    )
  expect(told(undefined, { mark: '', detail: '' }).effects).toEqual([])
  expect(told('', { mark: '', detail: '' }).effects).toEqual(['place'])
  expect(told('m', { mark: 'other', detail: '' }).effects).toEqual(['place'])
  expect(told('m', { mark: 'm', detail: '' }).effects).toEqual([])
  const away = told('m', { mark: 'm', detail: 'the store is away' })
  expect([away.effects, away.status['health']]).toEqual([
    ['place'],
    expect.objectContaining({ detail: 'the store is away' }),
  ])
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
    effects: ['release'],
    outcome: 'succeeded',
  })
})

test('an upgrade takes a snapshot first, then changes the release, then the host', () => {
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
    outcome: 'succeeded',
    status: { version: '1.36' },
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
        kind: 'kubernetes_cluster.snapshot',
        actor: 'system:controllers',
        arguments: { kind: 'scheduled', slot: '2026-03-01T12:00:00.000Z' },
      },
    },
  })
  const slot = { kind: 'scheduled', slot: NOW.toISOString() }
  const operation = operationOf('kubernetes_cluster.snapshot', { arguments: slot })
  const row = { id: operation.id, kind: 'scheduled', release: '1.35.4', sizeBytes: 1, createdAt: NOW } as const
  expect(decide(clusterWith({ operation }), observedWith({ snapshots: [row] })).status['snapshots']).toEqual({
    schedule: SCHEDULE,
    doneUntil: NOW.toISOString(),
  })
  const dealtWith = { snapshots: { schedule: SCHEDULE, doneUntil: NOW.toISOString() } }
  expect(decide(clusterWith({ status: dealtWith })).change).toBeUndefined()
  const another = { snapshots: { schedule: '0 1 * * *', doneUntil: '2020-01-01T00:00:00Z' } }
  expect(decide(clusterWith({ status: another })).status['snapshots']).toEqual({
    schedule: SCHEDULE,
    doneUntil: NOW.toISOString(),
  })
  // One that failed: the same slot is not tried for ever.
  const failed = { ...MAKING, id: operation.id, kind: operation.kind, status: 'failed' } as const
  expect(decide(clusterWith({ operation, status: { operation: failed } }))).toMatchObject({
    change: undefined,
    status: { snapshots: { doneUntil: NOW.toISOString() } },
  })
  // It has no quorum: nothing could be taken.
  const broken = hostWith({ ...PLANE, hasEtcdQuorum: false })
  expect(decide(clusterWith(), observedWith({ host: broken })).change).toBeUndefined()
})

test('of each kind so many snapshots are kept, and what nobody wrote down is', () => {
  const snapshots = ['manual', 'scheduled', 'scheduled', 'scheduled', 'manual'] as const
  const rows = snapshots.map((kind, index) => ({
    id: `${kind}-${index}`,
    kind,
    release: '1.35.4',
    sizeBytes: 1,
    createdAt: NOW,
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

test('an add-on that its host can run has a token of the cluster that is known and young', () => {
  const tokenId = '00000000-0000-4000-8000-000000000009'
  const cluster = clusterWith({ status: { snapshots: { schedule: SCHEDULE, doneUntil: NOW.toISOString() } } })
  const granted = (has: string | null, hoursAgo: number | undefined, addon = 'csi-driver', more: object = {}) => {
    const host = hostWith({ ...PLANE, grants: [{ addon, tokenId: has }], ...more })
    const createdAt = new Date(NOW.getTime() - (hoursAgo ?? 0) * 3_600_000)
    const tokens = hoursAgo === undefined ? [] : [{ id: tokenId, program: 'csi-driver', createdAt }]
    return decide(cluster, observedWith({ host, tokens })).effects
  }
  expect(granted(null, undefined)).toEqual(['grant'])
  expect(granted(tokenId, undefined)).toEqual(['grant'])
  expect(granted(null, 0)).toEqual(['grant']) // made, and never handed over
  expect(granted(tokenId, 23)).toEqual([])
  expect(granted(tokenId, 24)).toEqual(['grant'])
  expect(granted(null, undefined, 'of a newer host')).toEqual([])
  expect(granted(null, undefined, 'csi-driver', { hasEtcdQuorum: false })).toEqual([])
})

test('a node without a pool is removed, unless it reports, or customers joined it', () => {
  const cluster = clusterWith({ status: { snapshots: { schedule: SCHEDULE, doneUntil: NOW.toISOString() } } })
  const [pool, uid] = [poolWith(), UID]
  const node = (name: string, isReady: boolean, marked = 'm') => ({
    name,
    isReady,
    marked,
    kubeletVersion: 'v1.36.3',
    address: '10.0.0.9',
    podCidr: '',
  })
  const nodes = [
    node('gone-0', false),
    node('gone-1', true),
    node('own', false, ''),
    node(nodeNameOf({ name: pool.spec.name, uid }, 0), false),
  ]
  const said = plan(cluster, observedWith({ host: hostWith(PLANE, { nodes }), pools: [pool] }), NOW)
  expect(said).toContainEqual(
    expect.objectContaining({ name: 'forgetNodes', input: expect.objectContaining({ names: ['gone-0'] }) }),
  )
})

test('what it made goes last, when that was said, and it waits for that', () => {
  const deleting = (associated?: string): ClusterObject => {
    const args = associated === undefined ? {} : { arguments: { associated } }
    const cluster = clusterWith({ operation: operationOf('kubernetes_cluster.delete', args) })
    return { ...cluster, metadata: { ...cluster.metadata, deletionTimestamp: NOW.toISOString() } }
  }
  const made = (isDeleting: boolean) => ({ type: Storage, key: { namespace: 'acct-a', name: 'data' }, isDeleting })
  const removedOf = (cluster: ClusterObject, observed: Observed) =>
    plan(cluster, observed, NOW).flatMap((each) => (each.do === 'remove' ? [each.key.name] : []))
  const running = observedWith({ associated: [made(false)] })
  const gone = (isDeleting: boolean) => observedWith({ associated: [made(isDeleting)], host: hostWith(undefined) })
  expect([decide(deleting('delete'), running).effects, removedOf(deleting('delete'), running)]).toEqual([
    ['dismantle'],
    [],
  ])
  expect(removedOf(deleting('delete'), gone(false))).toEqual(['data'])
  expect(decide(deleting('delete'), gone(false)).outcome).toBeUndefined()
  const waiting = decide(deleting('delete'), gone(true))
  expect([removedOf(deleting('delete'), gone(true)), waiting.outcome]).toEqual([[], undefined])
  for (const kept of [deleting('keep'), deleting()]) {
    expect(removedOf(kept, gone(false))).toEqual([])
    expect(decide(kept, gone(false))).toMatchObject({ effects: ['release'], outcome: 'succeeded' })
  }
})
