import type { KyselyPlugin } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { accountNamespace, RESOURCES, ROUTES } from '../../../../resources/index.ts'
import { Backup } from '../../../../resources/backup/index.ts'
import { COUNTED_TYPES } from '../../../../resources/overview/index.ts'
import { Server } from '../../../../resources/server/index.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person } from '../../cloud.ts'
import { makeSamples } from '../../samples.ts'

const database = useDatabase()
let cloud: Cloud
let ada: Person
let bob: Person
let viewer: Person
let queries = 0
let ids: Readonly<Record<string, string>> = {}

const counting: KyselyPlugin = {
  transformQuery({ node }) {
    queries += 1
    return node
  },
  transformResult: async ({ result }) => result,
}

beforeAll(async () => {
  cloud = await openCloud(database.db.withPlugin(counting))
  ada = await cloud.signUp('ada@example.com')
  bob = await cloud.signUp('bob@example.com')
  viewer = await cloud.join(ada.accountId, 'vera@example.com', 'viewer')
})
afterAll(() => cloud.close())

async function overviewOf(person: Person) {
  const reply = await person.send('GET', '/v1/overview')
  expect(reply.status, reply.text).toBe(200)
  return reply.body
}
/** The least of a few reads: what the process does beside them does not count. */
async function queriesOf(person: Person): Promise<number> {
  const counts: number[] = []
  for (let read = 0; read < 5; read += 1) {
    const before = queries
    await overviewOf(person)
    counts.push(queries - before)
  }
  return Math.min(...counts)
}

test('an account that has nothing', async () => {
  const { audit, cost, ...rest } = await overviewOf(bob)
  expect(rest).toEqual({
    resources: COUNTED_TYPES.map((type) => ({ type, total: 0, states: {} })),
    operations: { total: 0, items: [] },
    problems: { total: 0, items: [] },
    maintenance: { total: 0, items: [] },
    quotas: [],
    standing: {
      requires_billing_approval: false,
      can_create_resources: true,
      reason: null,
      suspended_for_payment_at: null,
      suspended_by_staff_at: null,
    },
  })
  expect(audit).toEqual((await bob.send('GET', '/v1/audit/integrity')).body)
  expect(cost).toMatchObject({ month_to_date_cents: 0, estimated_month_cents: 0, credit_balance_cents: 24_900 })
  expect(Object.keys(cost)).not.toContain('daily')
})

test('every kind that customers have is counted', () => {
  const kinds = RESOURCES.filter(({ customers, scope }) => customers === 'write' && scope === 'Namespaced')
  const types = kinds.map(({ kind }) => kind.replace(/(?<=[a-z])[A-Z]/g, '_$&').toLowerCase())
  expect(types.length).toBeGreaterThan(10)
  expect(COUNTED_TYPES).toEqual(expect.arrayContaining(types))
})

interface Item {
  readonly state?: string
}

/** Node pools are listed with their cluster only. */
async function itemsOf(type: string): Promise<readonly Item[]> {
  if (type === 'node_pool')
    return (await ada.send('GET', `/v1/kubernetes-clusters/${ids['kubernetes-clusters']}`)).body['kubernetes_cluster']
      .node_pools
  const list = ROUTES.find(({ id }) => id === `list_${type}s` || id === `list_${type}`)
  return (await ada.send('GET', list?.path ?? '')).body['items']
}

test('it counts what the lists show, with as many queries as before', async () => {
  const before = await queriesOf(ada)
  ids = await makeSamples({ cloud, owner: ada })
  await cloud.admin.patch(
    Server,
    { namespace: accountNamespace(ada.accountId), name: ids['servers'] ?? '' },
    { status: { state: 'started' } },
    'status',
  )
  await expect.poll(async () => (await ada.send('GET', `/v1/servers?limit=100`)).body['items'][0].state).toBe('started')
  const { resources } = await overviewOf(ada)
  for (const { type, total, states } of resources) {
    const items = await itemsOf(type)
    const counted = Object.groupBy(items, ({ state = '' }) => state)
    const expected = Object.entries(counted).map(([state, some = []]) => [state, some.length])
    expect.soft({ type, total, states }).toEqual({
      type,
      total: items.length,
      states: Object.fromEntries(expected.filter(([state]) => state !== '')),
    })
  }
  expect(resources.find(({ type }: { type: string }) => type === 'server')).toMatchObject({ total: 1 })
  expect(await queriesOf(ada)).toBe(before)
})

test('it lists the operations that have not ended, as their list does', async () => {
  const { operations } = await overviewOf(ada)
  const list = async (status: string) => (await ada.send('GET', `/v1/operations?status=${status}&limit=100`)).body
  const pending = [...(await list('pending'))['items'], ...(await list('running'))['items']]
  expect(operations.total).toBe(pending.length)
  expect(operations.items.map(({ id }: { id: string }) => id)).toEqual(
    pending.map(({ id }: { id: string }) => id).slice(0, 20),
  )
})

test('what is in error, and what is damaged, is named with its reason', async () => {
  const namespace = accountNamespace(ada.accountId)
  await cloud.admin.patch(
    Server,
    { namespace, name: ids['servers'] ?? '' },
    { status: { state: 'error', stateDetail: 'Its disk is lost.' } },
    'status',
  )
  await cloud.admin.patch(
    Backup,
    { namespace, name: ids['backups'] ?? '' },
    { status: { state: 'online', verificationError: 'A chunk is missing.' } },
    'status',
  )
  await expect
    .poll(async () => (await overviewOf(ada))['problems'])
    .toEqual({
      total: 2,
      items: [
        { type: 'server', id: ids['servers'], name: 'web', state: 'error', reason: 'Its disk is lost.' },
        expect.objectContaining({ type: 'backup', id: ids['backups'], state: 'online', reason: 'A chunk is missing.' }),
      ],
    })
})

test('a paused webhook is named as well', async () => {
  const paused = (at: Date | null) =>
    cloud.db
      .updateTable('webhook')
      .set({ paused_at: at, pause_reason: at === null ? null : 'Nothing answers.' })
      .where('id', '=', ids['webhooks'] ?? '')
      .execute()
  await paused(new Date())
  expect((await overviewOf(ada))['problems'].items).toContainEqual(
    expect.objectContaining({ type: 'webhook', id: ids['webhooks'], state: 'paused', reason: 'Nothing answers.' }),
  )
  await paused(null)
})

test('a webhook without a secret is named as well', async () => {
  const ofWebhook = cloud.db.updateTable('webhook').where('id', '=', ids['webhooks'] ?? '')
  const { sealed_secret } = await cloud.db
    .selectFrom('webhook')
    .select('sealed_secret')
    .where('id', '=', ids['webhooks'] ?? '')
    .executeTakeFirstOrThrow()
  await ofWebhook.set({ sealed_secret: null }).execute()
  expect((await overviewOf(ada))['problems'].items).toContainEqual(
    expect.objectContaining({ type: 'webhook', id: ids['webhooks'], state: 'no_secret' }),
  )
  await ofWebhook.set({ sealed_secret }).execute()
})

test('announced work on the host of a server', async () => {
  const plannedAt = '2026-01-01T13:00:00.000Z'
  await cloud.admin.patch(
    Server,
    { namespace: accountNamespace(ada.accountId), name: ids['servers'] ?? '' },
    { status: { state: 'started', nodeName: 'node-w' } },
    'status',
  )
  await cloud.addNode('node-w', {
    status: { plannedWork: { operationId: 'op', plannedAt, reason: 'New memory.', action: 'live' } },
  })
  await expect
    .poll(async () => (await overviewOf(ada))['maintenance'])
    .toEqual({
      total: 1,
      items: [
        { server_id: ids['servers'], hostname: 'web', planned_at: plannedAt, reason: 'New memory.', action: 'live' },
      ],
    })
})

test('quotas of which four fifths are used', async () => {
  const set = (name: string, limit: number, used: number) =>
    cloud.db
      .updateTable('account_quota')
      .set({ limit, used })
      .where('account_id', '=', bob.accountId)
      .where('name', '=', name)
      .execute()
  await set('networks', 10, 8)
  await set('routers', 10, 7)
  await set('edges', 3, 3)
  await set('playgrounds', 1, 1)
  expect((await overviewOf(bob))['quotas']).toEqual([
    { name: 'edges', limit: 3, used: 3, scope: 'account' },
    { name: 'networks', limit: 10, used: 8, scope: 'account' },
  ])
})

test('a broken chain of the audit log says where', async () => {
  await cloud.db
    .updateTable('audit_head')
    .set({ break_sequence: 2, break_reason: 'an entry was changed' })
    .where('account_id', '=', bob.accountId)
    .execute()
  expect((await overviewOf(bob))['audit']).toMatchObject({
    status: 'broken',
    break: { sequence: 2, reason: 'an entry was changed' },
  })
})

test('who may not read costs gets no costs; everything else is the same', async () => {
  const [own, seen] = [await overviewOf(ada), await overviewOf(viewer)]
  expect(own['standing']).toBeDefined()
  expect(Object.keys(seen)).not.toEqual(expect.arrayContaining(['cost']))
  expect(Object.keys(seen)).not.toEqual(expect.arrayContaining(['standing']))
  const { cost: _cost, standing: _standing, audit: _audit, ...same } = own
  expect(seen).toMatchObject(same)
})
