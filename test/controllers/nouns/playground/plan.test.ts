/** What is done about a playground: its end above all, which nothing may stand in the way of. */
import { expect, test } from 'vitest'
import { type Observed, plan, type PlaygroundObject } from '../../../../controllers/nouns/playground/plan.ts'

const NOW = new Date('2026-01-01T12:00:00Z')
const before = (minutes: number) => new Date(NOW.getTime() - minutes * 60_000)
const ID = '0b0f1c52-6d53-4c2b-8a1b-0c8f6a1f0001'

const PLANE: NonNullable<Extract<Observed['host'], { isSimulated: boolean }>['plane']> = {
  id: ID,
  phase: 'running',
  release: '1.36.3',
  endpoint: 'https://192.0.2.1:6443',
  certificateAuthority: 'CA',
  apiServer: 'healthy',
  apiServersReady: 1,
  etcdMembersReady: 1,
  etcdMembersTotal: 1,
  hasEtcdQuorum: true,
  forNodes: null,
  addons: [],
  grants: [],
  restoreId: null,
  snapshotStore: { mark: '', detail: '' },
  detail: '',
  observedAt: NOW.toISOString(),
}
const ROW: NonNullable<Observed['row']> = {
  accountId: 'a',
  id: 'try',
  name: 'pg-0123456789',
  region: 'eu-1',
  controlPlaneId: ID,
  release: '1.36.3',
  appDomain: '*.pg-0123456789.apps.test',
  endpoint: null,
  certificateAuthority: null,
  createdAt: before(1),
  expiresAt: before(-239),
  readyAt: null,
  endedAt: null,
  deletedAt: null,
  endReason: null,
  failureReason: null,
}
const root = (more: object = {}): PlaygroundObject => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Playground',
  metadata: { name: 'try', namespace: 'acct-a', generation: 1, ...more },
  spec: { region: 'eu-1' },
})
const world = (row: Partial<typeof ROW> | undefined, host: Observed['host']): Observed => ({
  accountId: 'a',
  row: row && { ...ROW, ...row },
  host,
  requests: [],
})
const hosted = (plane: typeof PLANE | undefined) => ({ plane, isSimulated: false })
const AWAY = { obstacle: 'its host to answer' }
const GOING = { deletionTimestamp: NOW.toISOString() }
const READY = { readyAt: before(1) }
/** What is done, without what is only said. */
const done = (object: PlaygroundObject, observed: Observed) =>
  plan(object, observed, NOW).flatMap((action) =>
    action.do === 'effect'
      ? [action.name === 'end' ? `end ${action.input.reason}` : action.name]
      : action.do === 'remove' || action.do === 'finalized'
        ? [action.do]
        : [],
  )

test.each([
  ['it is not claimed', root(), world(undefined, AWAY), ['claim']],
  ['it goes before it was claimed', root(GOING), world(undefined, AWAY), ['finalized']],
  ['nothing of it is there', root(), world({}, hosted(undefined)), ['ensure']],
  ['its host is away', root(), world({}, AWAY), []],
  ['its node is not ready', root(), world({}, hosted({ ...PLANE, phase: 'starting' })), []],
  ['all of it is ready', root(), world({}, hosted(PLANE)), ['ready']],
  [
    'it takes too long',
    root(),
    world({ createdAt: before(16) }, hosted({ ...PLANE, phase: 'starting' })),
    ['end failed'],
  ],
  ['it is ready', root(), world(READY, hosted(PLANE)), []],
  ['its host has lost it', root(), world(READY, hosted(undefined)), ['end failed']],
  ['its time is over', root(), world({ ...READY, expiresAt: NOW }, hosted(PLANE)), ['dismantle', 'end expired']],
  [
    'its time is over, and nothing is left',
    root(),
    world({ ...READY, expiresAt: NOW }, hosted(undefined)),
    ['end expired', 'close', 'remove'],
  ],
  ['its time is over, and its host is away', root(), world({ ...READY, expiresAt: NOW }, AWAY), []],
  ['it was deleted', root(GOING), world(READY, hosted(PLANE)), ['dismantle', 'end deleted']],
  [
    'staff ended it',
    root(),
    world({ ...READY, endReason: 'ended_by_staff', endedAt: NOW }, hosted(PLANE)),
    ['dismantle'],
  ],
  [
    'it has ended, and nothing is left',
    root(GOING),
    world({ ...READY, endReason: 'deleted', endedAt: NOW }, hosted(undefined)),
    ['close', 'finalized'],
  ],
] as const)('when %s', (_when, object, observed, expected) => {
  expect(done(object, observed)).toEqual(expected)
})

test('it is looked at when its time is over', () => {
  const soon = new Date(NOW.getTime() + 3_000)
  const actions = plan(root(), world({ ...READY, expiresAt: soon }, hosted(PLANE)), NOW)
  expect(actions).toContainEqual({ do: 'wait', seconds: 3, for: 'a change' })
})
