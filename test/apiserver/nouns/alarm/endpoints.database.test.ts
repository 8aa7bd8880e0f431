/** What operators read when something is wrong: each kind from the record that shows it. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { STAFF_CHAIN } from '../../../../db/audit/index.ts'
import { updateWhere } from '../../../../db/kit/where.ts'
import { noteAbsences } from '../../../../db/removal/index.ts'
import { Database, type DatabaseSpec } from '../../../../resources/database/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Operation } from '../../../../resources/operation/index.ts'
import { Network } from '../../../../resources/network/index.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person } from '../../cloud.ts'

const database = useDatabase()
let cloud: Cloud
let owner: Person
let networkId: string

beforeAll(async () => {
  cloud = await openCloud(database.db)
  owner = await cloud.signUp('owner@example.com')
  const body = { zone: cloud.zone, name: 'back', ipv4_cidr: '10.1.0.0/24' }
  networkId = (await owner.send('POST', '/v1/networks', { body })).body['network'].id
  await cloud.grant('olga', [{ resources: ['operations'], verbs: ['list'] }])
})
afterAll(() => cloud.close())

/** The kinds that are there, with what is wrong. */
async function alarms(): Promise<Readonly<Record<string, object>>> {
  const { status, body } = await cloud.operate('olga', 'GET', '/v1/operator/alarms')
  expect(status, JSON.stringify(body)).toBe(200)
  return Object.fromEntries((body['items'] as readonly { kind: string }[]).map((item) => [item.kind, item]))
}
const PAST = '2026-01-01T00:00:00.000Z'
const keyOf = (name: string) => ({ namespace: accountNamespace(owner.accountId), name })

test('nothing is wrong at first, and who may not list operations reads nothing', async () => {
  expect(await alarms()).toEqual({})
  expect((await cloud.operate('nobody', 'GET', '/v1/operator/alarms')).status).toBe(403)
  expect((await owner.send('GET', '/v1/operator/alarms')).status).toBe(404)
})

test('a node that does not answer', async () => {
  await cloud.addNode('lost-1', { status: { state: 'unreachable', stateDetail: 'No heartbeat.', lastSeenAt: PAST } })
  expect((await alarms())['node_lost']).toEqual({
    kind: 'node_lost',
    severity: 'critical',
    message: 'No heartbeat.',
    resource: { type: 'node', id: 'lost-1', name: 'lost-1' },
    account_id: null,
    since: PAST,
    alert: 'SvccloudNodeNotFenced',
  })
})

test('an operation beyond its deadline, until it ends', async () => {
  await cloud.admin.create(Operation, {
    metadata: keyOf('late'),
    spec: {
      kind: 'server.start',
      target: { type: 'server', id: 'web', name: 'web' },
      actor: 'operator',
      requestId: 'r',
      createdAt: PAST,
      deadlineAt: PAST,
      stepCount: 1,
    },
  })
  await expect
    .poll(async () => (await alarms())['operation_overdue'])
    .toMatchObject({
      resource: { type: 'server', id: 'web', name: 'web' },
      account_id: owner.accountId,
      since: PAST,
      alert: null,
    })
  const status = { status: 'failed', step: 'started', stepIndex: 0, error: 'x', startedAt: PAST, finishedAt: PAST }
  await cloud.admin.patch(Operation, keyOf('late'), { status }, 'status')
  await expect.poll(alarms).not.toHaveProperty('operation_overdue')
})

test('a resource that its controller calls stalled, until it gets on', async () => {
  const condition = { type: 'Stalled', reason: 'NoRoom', message: 'No host has room.', lastTransitionTime: PAST }
  const report = async (is: 'True' | 'False') =>
    cloud.admin.patch(Network, keyOf(networkId), { status: { conditions: [{ ...condition, status: is }] } }, 'status')
  await report('True')
  await expect
    .poll(async () => (await alarms())['resource_stalled'])
    .toMatchObject({
      severity: 'warning',
      message: 'No host has room.',
      resource: { type: 'network', id: networkId, name: 'back' },
      account_id: owner.accountId,
      since: PAST,
    })
  await report('False')
  await expect.poll(alarms).not.toHaveProperty('resource_stalled')
})

test('many missing records at once, and each kind of them', async () => {
  const absent = Array.from({ length: 4 }, (_, index) => ({ namespace: 'n', name: `s${index}` }))
  await noteAbsences(cloud.db, 'Server', { known: 4, absent }, new Date(PAST))
  expect(await alarms()).toMatchObject({
    sweeps_stopped: { severity: 'critical', since: PAST, resource: null, alert: 'SvccloudSweepsStopped' },
    record_missing: { message: 'Missing and not deleted: 4 of the kind Server. Their claims are kept.' },
  })
})

test.each([
  ['of an account', () => owner.accountId, () => owner.accountId],
  ['of staff', () => STAFF_CHAIN, () => null],
])('an audit log %s that does not verify', async (_name, chain, account) => {
  const broken = { break_sequence: 1, break_id: null, break_reason: 'Entry 1 was changed.' }
  await cloud.operate('olga', 'POST', '/v1/operator/control-plane/expand', { node_ids: ['host-1'] })
  await updateWhere(cloud.db, 'audit_head', { account_id: chain() }).set(broken).execute()
  expect((await alarms())['audit_broken']).toMatchObject({
    account_id: account(),
    message: 'The audit log does not verify: Entry 1 was changed.',
  })
  await updateWhere(cloud.db, 'audit_head', { account_id: chain() }).set({ break_sequence: null }).execute()
})

test.each([
  [
    'paused',
    { pause: { state: 'paused', since: PAST, reason: 'archive_full' } },
    { since: PAST, message: 'archive_full' },
  ],
  ['failing', { failure: 'The store refuses.' }, { message: 'The store refuses.' }],
] as const)('a database whose archive is %s', async (archiveState, backups, expected) => {
  const key = keyOf(`db-${archiveState}`)
  const names = { databaseName: 'shop', ownerName: 'ada' }
  // the schema has defaults for the rest
  const spec = { zone: cloud.zone, name: `shop-${archiveState}`, networkId, ...names } as DatabaseSpec
  await cloud.admin.create(Database, { metadata: key, spec })
  const status = {
    archiveState,
    backups: { isOpen: true, failure: '', observedAt: PAST, gaps: [], backups: [], ...backups },
  } as never
  await cloud.admin.patch(Database, key, { status }, 'status')
  await expect
    .poll(async () => (await alarms())[`archive_${archiveState}`])
    .toMatchObject({
      resource: { type: 'database', id: key.name, name: `shop-${archiveState}` },
      account_id: owner.accountId,
      ...expected,
    })
})
