/** When a cluster is registered in an organisation platform, and when it is taken out, situation by situation. */
import { expect, test } from 'vitest'
import type { ClusterObject, Observed } from '../../../../controllers/nouns/kubernetes-cluster/observed.ts'
import { defined } from '../../../../domain/defined.ts'
import { nextAttemptAt } from '../../../../domain/kubernetes-cluster/platform-registration.ts'
import { clusterWith, decide, DONE, NOW, observedWith, operationOf } from './situations.ts'

type Registration = NonNullable<NonNullable<ClusterObject['status']>['platform']>

const REGISTER = 'kubernetes_cluster.platform_register'
const DEREGISTER = 'kubernetes_cluster.platform_deregister'
const ORGANISATION = '00000000-0000-4000-8000-0000000000aa'
const LATER = '2026-03-01T12:05:00.000Z'
const linked = (organisationId: string | undefined = ORGANISATION): Observed =>
  observedWith({ platform: { isConfigured: true, organisationId } })
const unlinked = observedWith({ platform: { isConfigured: true, organisationId: undefined } })
const REGISTERED: Registration = {
  state: 'registered',
  organisationId: ORGANISATION,
  clusterId: 'c',
  url: 'https://p/c',
  reason: '',
  attempts: 0,
}
/** Saved lately, so that nothing else is due. */
const cluster = (platform?: Registration, spec: Partial<ClusterObject['spec']> = {}, more = {}): ClusterObject =>
  clusterWith({
    spec,
    status: {
      endpoint: 'https://127.0.0.1:1',
      certificateAuthority: 'pem',
      ...more,
      snapshots: { ...DONE, doneUntil: NOW.toISOString() },
      ...defined({ platform }),
    },
  })
const begun = (object: ClusterObject, observed: Observed): unknown =>
  (decide(object, observed).change as { spec?: { operation?: { kind: string; actor: string } } } | undefined)?.spec
    ?.operation
const off = { registersInPlatform: false }

test('it is registered by itself once it runs and its account has an organisation', () => {
  expect(begun(cluster(), linked())).toMatchObject({ kind: REGISTER, actor: 'system:controllers' })
  expect(begun(cluster(), unlinked)).toBeUndefined()
  expect(decide(cluster(), unlinked).status['platform']).toMatchObject({
    state: 'unlinked',
    reason: expect.stringContaining('links one'),
  })
  expect(begun(cluster({ state: 'unlinked', reason: '', attempts: 0 }), linked())).toMatchObject({ kind: REGISTER })
  expect(begun(cluster(undefined, {}, { isSimulated: true }), linked())).toBeUndefined()
  expect(begun(cluster(undefined, off), linked())).toBeUndefined()
  expect(decide(cluster(undefined, off), linked()).status['platform']).toMatchObject({ state: 'deregistered' })
  expect(begun(cluster(), observedWith())).toBeUndefined()
  expect(decide(cluster(), observedWith()).status['platform']).toBeUndefined()
})

test('one that is registered stays so, unless its organisation or its owner changes', () => {
  expect(begun(cluster(REGISTERED), linked())).toBeUndefined()
  expect(begun(cluster(REGISTERED), linked('other'))).toMatchObject({ kind: REGISTER, actor: 'system:controllers' })
  expect(begun(cluster(REGISTERED), unlinked)).toMatchObject({ kind: DEREGISTER, actor: 'system:controllers' })
  expect(begun(cluster(REGISTERED, off), linked())).toMatchObject({ kind: DEREGISTER, actor: 'user:ada' })
  const back = cluster({ state: 'deregistered', reason: '', attempts: 0 })
  expect(begun(back, linked())).toMatchObject({ kind: REGISTER, actor: 'user:ada' })
})

test('what the platform did not answer is tried again in time, without an operation', () => {
  const pending: Registration = { state: 'pending', reason: 'away', attempts: 1, nextAttemptAt: LATER }
  expect(decide(cluster(pending), linked())).toMatchObject({ effects: [], change: undefined })
  expect(decide(cluster(pending), linked(), new Date(LATER)).effects).toEqual(['register'])
  const stuck = { ...REGISTERED, nextAttemptAt: LATER }
  expect(decide(cluster(stuck, off), linked())).toMatchObject({ effects: [], change: undefined })
  expect(decide(cluster(stuck, off), linked(), new Date(LATER)).effects).toEqual(['deregister'])
  const refused: Registration = { state: 'failed', reason: 'no', attempts: 0 }
  expect(decide(cluster(refused), linked())).toMatchObject({ effects: [], change: undefined })
  const minutes = [1, 2, 3, 7, 100].map((attempts) => (nextAttemptAt(attempts, NOW).getTime() - NOW.getTime()) / 60_000)
  expect(minutes).toEqual([1, 2, 4, 60, 60])
})

const during = (kind: typeof REGISTER | typeof DEREGISTER, platform?: Registration, spec = {}) =>
  ({ ...cluster(platform), spec: { ...cluster().spec, ...spec, operation: operationOf(kind) } }) satisfies ClusterObject
const TRIED = { operationId: operationOf(REGISTER).id }

test('an operation tries once, and ends as that did', () => {
  expect(decide(during(REGISTER), linked())).toMatchObject({ effects: ['register'], outcome: undefined })
  expect(decide(during(REGISTER, { ...REGISTERED, ...TRIED }), linked()).outcome).toBe('succeeded')
  const pending: Registration = { state: 'pending', reason: 'away', attempts: 1, ...TRIED }
  expect(decide(during(REGISTER, pending), linked()).outcome).toBe('failed')
  // A registered one says its stacks again.
  expect(decide(during(REGISTER, REGISTERED), linked()).effects).toEqual(['register'])
  const without = decide(during(REGISTER), unlinked)
  expect([without.effects, without.outcome, without.status['platform']]).toEqual([
    [],
    'failed',
    expect.objectContaining({ state: 'unlinked', ...TRIED }),
  ])
  expect(decide(during(REGISTER), observedWith()).outcome).toBe('failed')
  expect(decide(during(DEREGISTER, REGISTERED, off), linked())).toMatchObject({ effects: ['deregister'] })
  expect(decide(during(DEREGISTER, { ...REGISTERED, ...TRIED }, off), linked()).outcome).toBe('failed')
  const kept: Registration = { state: 'pending', reason: 'away', attempts: 2, ...TRIED }
  expect(decide(during(DEREGISTER, kept, off), linked()).outcome).toBe('failed')
  expect(begun(cluster({ state: 'failed', reason: 'no', attempts: 0 }, off), linked())).toMatchObject({
    kind: DEREGISTER,
  })
  const gone: Registration = { state: 'deregistered', reason: '', attempts: 0, ...TRIED }
  expect(decide(during(DEREGISTER, gone, off), linked()).outcome).toBe('succeeded')
})

test('its deletion waits for the platform, for ten minutes', () => {
  const going = (platform: Registration): ClusterObject => {
    const object = cluster(platform)
    const metadata = { ...object.metadata, deletionTimestamp: NOW.toISOString() }
    return { ...object, metadata, spec: { ...object.spec, operation: operationOf('kubernetes_cluster.delete') } }
  }
  expect(decide(going(REGISTERED), linked()).effects).toEqual(['deregister'])
  expect(decide(going({ ...REGISTERED, nextAttemptAt: LATER }), linked()).effects).toEqual([])
  const givenUp = new Date(NOW.getTime() + 600_000)
  expect(decide(going(REGISTERED), linked(), givenUp).effects).toEqual(['dismantle'])
  expect(decide(going({ ...REGISTERED, state: 'deregistered' }), linked()).effects).toEqual(['dismantle'])
  expect(decide(going(REGISTERED), observedWith()).effects).toEqual(['dismantle'])
  // Its entry may be there although nothing was heard of it.
  for (const state of ['pending', 'failed'] as const)
    expect(decide(going({ state, reason: 'away', attempts: 1 }), linked()).effects).toEqual(['deregister'])
})
