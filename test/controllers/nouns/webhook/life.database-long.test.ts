/** Webhooks with real controllers, a real database and a real receiver. */
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { appendAudit } from '../../../../db/audit/index.ts'
import { listQuotas } from '../../../../db/account/index.ts'
import { recordKubernetesRequest } from '../../../../db/request/index.ts'
import { findWebhook, listDeliveries, rotateSecret } from '../../../../db/webhook/index.ts'
import { secretText } from '../../../../domain/webhook/signature.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { createSealing } from '../../../../kit/sys/sealing.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Server, type ServerSpec } from '../../../../resources/server/index.ts'
import { Webhook, type WebhookSpec } from '../../../../resources/webhook/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, fastClock, openCloud, SEALING_KEYS, ZONE } from '../../cloud.ts'
import { type Receiver, startReceiver } from './receiver.ts'

const END = { timeout: 60_000 }
const database = useDatabase()
let cloud: Cloud
let receiver: Receiver
let accountId: string
let namespace: string

beforeAll(async () => {
  receiver = await startReceiver()
  cloud = await openCloud(database.db)
  cloud.startAgent()
})
afterAll(async () => {
  await cloud.close()
  await receiver.close()
})
beforeEach(async () => {
  receiver.received.splice(0)
  accountId = await createAccount(database.db)
  namespace = accountNamespace(accountId)
  await cloud.openAccount(accountId)
})

const create = (spec: Partial<WebhookSpec> = {}, name = 'hook') =>
  cloud.kubectl.create(Webhook, {
    metadata: { name, namespace },
    spec: { name: 'Hook', url: receiver.url(), events: ['*'], enabled: true, ...spec },
  })
const read = () => cloud.kubectl.get(Webhook, { namespace, name: 'hook' })
const row = () => findWebhook(database.db, { accountId, webhookId: 'hook' })
const used = async () => (await listQuotas(database.db, accountId)).find(({ name }) => name === 'webhooks')?.used
/** An entry of the audit log, as a change of the resource has it. */
const change = (resourceId: string, action = 'ssh_key.create') =>
  database.db.transaction().execute((tx) =>
    appendAudit(
      tx,
      {
        account_id: accountId,
        actor_email: 'ada@example.com',
        actor_kind: 'user',
        user_id: null,
        staff_id: null,
        token_id: null,
        token_name: null,
        action,
        resource_type: action.split('.')[0] ?? '',
        resource_id: resourceId,
        detail: {},
        outcome: 'success',
        source_ip: '',
        user_agent: '',
        request_id: newUuid(systemRandom),
        changes: [],
      },
      { clock: fastClock, random: systemRandom },
    ),
  )
/** Of the account of the test: the webhooks of the tests before have not ended. */
const received = () => receiver.received.filter(({ event }) => event['account_id'] === accountId)
const sent = (type: RegExp) => received().filter(({ event }) => type.test(event.type))

/** As whoever has created it by kubectl does. */
const rotate = () =>
  database.db.transaction().execute((tx) =>
    rotateSecret(
      tx,
      createSealing(SEALING_KEYS, systemRandom),
      { accountId, webhookId: 'hook' },
      {
        secret: secretText(Buffer.alloc(32, 1)),
        now: fastClock.now(),
      },
    ),
  )
const deliveryState = async () => (await read())?.status?.deliveryState

/** They end with the test, also when it fails. */
const startControllers = () => onTestFinished(cloud.startControllers(undefined, { trust: receiver.trust }))
const createServer = (name: string) =>
  cloud.kubectl.create(Server, {
    metadata: { namespace, name },
    spec: { hostname: name, zone: ZONE, plan: 'tiny', template: 'tiny-linux' } as unknown as ServerSpec,
  })
const hasStarted = async (name: string) => {
  const state = async () => (await cloud.kubectl.get(Server, { namespace, name }))?.status?.state
  await expect.poll(state, END).toBe('started')
}

test('a webhook of kubectl is claimed, configured and deleted; its requests have entries', async () => {
  startControllers()
  const {
    metadata: { uid = '' },
  } = await create()
  await expect.poll(row, END).toMatchObject({ name: 'Hook', events: ['*'], enabled: true })
  await expect.poll(deliveryState, END).toBe('no_secret')
  await rotate()
  await expect.poll(deliveryState, END).toBe('active')
  expect(await used()).toBe(1)
  await recordKubernetesRequest(database.db, {
    uid,
    action: 'webhook.update',
    generation: 2,
    username: 'grace@example.com',
    requestedAt: new Date(),
    changes: [],
  })
  await cloud.kubectl.patch(Webhook, { namespace, name: 'hook' }, { spec: { enabled: false } })
  await expect.poll(deliveryState, END).toBe('disabled')
  await cloud.kubectl.delete(Webhook, { namespace, name: 'hook' })
  await expect.poll(read, END).toBeUndefined()
  expect([await row(), await used()]).toEqual([undefined, 0])
})

test('a webhook whose row a restore has lost sends nothing until its secret is rotated, and says so', async () => {
  startControllers()
  await create({ events: ['ssh_key.*'] })
  await expect.poll(row, END).toBeDefined()
  await rotate()
  await expect.poll(deliveryState, END).toBe('active')
  await database.db.deleteFrom('webhook').where('account_id', '=', accountId).execute()
  await expect.poll(deliveryState, END).toBe('no_secret')
  await change('key')
  const waits = async () =>
    (await listDeliveries(database.db, { accountId, webhookId: 'hook' }, { limit: 100 })).map(({ state }) => state)
  await expect.poll(waits, END).toEqual(['pending'])
  expect([await row(), received()]).toMatchObject([{ hasSecret: false }, []])
  await rotate()
  await expect.poll(() => received().length, END).toBe(1)
})

test('without keys nothing is sent, and what is noted for webhooks does not pile up', END, async () => {
  onTestFinished(cloud.startControllers(undefined, { trust: receiver.trust, hasSealing: false }))
  await create()
  await expect.poll(deliveryState, END).toBe('no_secret')
  await createServer('guest')
  await hasStarted('guest')
  const noted = async () =>
    (
      await database.db
        .selectFrom('webhook_ended_operation')
        .select('number')
        .where('account_id', '=', accountId)
        .execute()
    ).length
  const waiting = async () =>
    (await listDeliveries(database.db, { accountId, webhookId: 'hook' }, { limit: 100 })).map(({ type }) => type)
  await expect.poll(waiting, END).toContain('server.created')
  await expect.poll(noted, END).toBe(0)
  expect(received()).toEqual([])
})

test('a server that is created, changes its state and is deleted sends events in that order', async () => {
  startControllers()
  await create({ events: ['server.*', 'operation.finished'] })
  await expect.poll(row, END).toBeDefined()
  await rotate()
  const key = { namespace, name: 'web' }
  await createServer('web')
  await expect.poll(() => sent(/^server\.created$/).length, END).toBe(1)
  await expect
    .poll(() => sent(/^server\.state$/).map(({ event }) => event['data']), END)
    .toContainEqual(expect.objectContaining({ state: 'started' }))
  await cloud.kubectl.delete(Server, key)
  await expect.poll(() => sent(/^server\.deleted$/).length, END).toBe(1)
  await expect.poll(() => sent(/^operation\.finished$/).length, END).toBeGreaterThanOrEqual(2)
  const types = received().map(({ event }) => event.type)
  expect(types.indexOf('server.created')).toBeLessThan(types.indexOf('server.deleted'))
  expect(
    received().every(
      ({ event }) => JSON.stringify(event['resource']) === JSON.stringify({ type: 'server', id: 'web' }),
    ),
  ).toBe(true)
  const [end] = sent(/^operation\.finished$/)
  expect(end?.event).toMatchObject({
    account_id: accountId,
    data: { operation: { kind: 'server.create', status: 'succeeded', server_id: 'web' } },
  })
})

test('a server that has started before anybody looks is an event, unless it is older than the webhook', async () => {
  // These look for no events.
  const stop = cloud.startControllers()
  const { metadata } = await createServer('old')
  await hasStarted('old')
  // Beyond the difference of clocks.
  const isOlder = () => fastClock.now().getTime() - Date.parse(metadata.creationTimestamp ?? '') > 10_000
  await expect.poll(isOlder, END).toBe(true)
  await create({ events: ['server.state'] })
  await expect.poll(row, END).toBeDefined()
  await rotate()
  await createServer('new')
  await hasStarted('new')
  await stop()
  startControllers()
  await expect
    .poll(() => received().map(({ event }) => event['data']), END)
    .toEqual([{ state: 'started', previous_state: null }])
  // Of the same look.
  const logged = await listDeliveries(database.db, { accountId, webhookId: 'hook' }, { limit: 100 })
  expect(logged.map(({ resourceId }) => resourceId)).toEqual(['new'])
})

test('controllers that are killed again and again lose no event, keep its id, and keep the order', async () => {
  await create({ events: ['ssh_key.*'] })
  const mortals = cloud.startMortals(25, 12, { trust: receiver.trust })
  await expect.poll(row, END).toBeDefined()
  await rotate()
  const expected: string[] = []
  const resources = ['a', 'b', 'c']
  for (let turn = 0; turn < 12; turn += 1)
    for (const resource of resources) {
      await change(resource, turn === 0 ? 'ssh_key.create' : 'ssh_key.update')
      expected.push(resource)
    }
  const deliveries = () => listDeliveries(database.db, { accountId, webhookId: 'hook' }, { limit: 100 })
  await expect
    .poll(async () => (await deliveries()).filter(({ state }) => state === 'delivered').length, END)
    .toBe(expected.length)
  expect(mortals.deaths()).toBeGreaterThan(0)
  await mortals.stop()

  const logged = await deliveries()
  const own = received()
  const got = own.map(({ id }) => id)
  expect(new Set(got)).toEqual(new Set(logged.map(({ id }) => id)))
  for (const resource of resources) {
    const order = logged.toReversed().flatMap(({ id, resourceId }) => (resourceId === resource ? [id] : []))
    // Each for the first time: duplicates follow, they never come before.
    expect([...new Set(got)].filter((id) => order.includes(id))).toEqual(order)
  }
  for (const id of new Set(got))
    expect(new Set(own.filter((one) => one.id === id).map(({ body }) => body)).size).toBe(1)
})
