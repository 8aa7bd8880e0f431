import { afterAll, beforeAll, expect, test } from 'vitest'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person } from '../../cloud.ts'
import { saveCard } from './sample.ts'

const database = useDatabase()
let cloud: Cloud
let owner: Person

beforeAll(async () => {
  cloud = await openCloud(database.db)
  owner = await cloud.signUp('owner@example.com')
})
afterAll(() => cloud.close())

const METHODS = '/v1/account/billing/payment-methods'
const methodsOf = async (person: Person) =>
  (await person.send('GET', METHODS)).body['items'] as { id: string; is_default: boolean }[]
const standingOf = async (person: Person) => (await person.send('GET', '/v1/account/billing')).body['standing']
const receive = (body: string, signature: string | undefined) =>
  cloud.send('POST', '/v1/webhooks/payments', { raw: body, headers: { 'stripe-signature': signature } })
const spendCredits = (accountId: string) =>
  cloud.db
    .updateTable('credit')
    .set({ expires_at: new Date(0) })
    .where('account_id', '=', accountId)
    .execute()

test('a card is saved on a page of the processor, chosen, and removed', async () => {
  expect(await methodsOf(owner)).toEqual([])
  const first = await saveCard(cloud, owner)
  const second = await saveCard(cloud, owner)
  expect(cloud.payments.fake.state.customers).toHaveLength(1)
  expect(cloud.payments.fake.state.customers[0]).toMatchObject({
    email: 'owner@example.com',
    metadata: { account_id: owner.accountId },
  })
  expect(await methodsOf(owner)).toMatchObject([
    { id: first, is_default: false, type: 'card', brand: 'visa', last4: '4242', exp_month: 12 },
    { id: second, is_default: false },
  ])
  await spendCredits(owner.accountId)
  expect(await standingOf(owner)).toMatchObject({ can_create_resources: false, reason: 'payment_method_required' })
  const chosen = await owner.send('POST', `${METHODS}/${second}/default`)
  expect(chosen.status).toBe(204)
  expect(await cloud.auditOf(chosen)).toMatchObject([
    { action: 'account.payment_method_default_changed', resource_id: second },
  ])
  expect(await methodsOf(owner)).toMatchObject([{ is_default: false }, { is_default: true }])
  expect(await standingOf(owner)).toMatchObject({ can_create_resources: true, reason: null })
  const removed = await owner.send('DELETE', `${METHODS}/${second}`)
  expect(removed.status).toBe(204)
  expect(await cloud.auditOf(removed)).toMatchObject([{ action: 'account.payment_method_removed' }])
  expect((await methodsOf(owner)).map(({ id }) => id)).toEqual([first])
  expect(await standingOf(owner)).toMatchObject({ can_create_resources: false })
  expect((await owner.send('DELETE', `${METHODS}/${second}`)).status).toBe(404)
})

test('methods are paged by their ids', async () => {
  const other = await cloud.signUp('pages@example.com')
  const saved = [await saveCard(cloud, other), await saveCard(cloud, other), await saveCard(cloud, other)]
  const first = await other.send('GET', `${METHODS}?limit=2`)
  const cursor = String(first.body['next_cursor'])
  const rest = await other.send('GET', `${METHODS}?limit=2&cursor=${encodeURIComponent(cursor)}`)
  const ids = [...first.body['items'], ...rest.body['items']].map(({ id }: { id: string }) => id)
  expect(ids).toEqual(saved)
  expect(rest.body['next_cursor']).toBeNull()
})

test('a suspension by either outranks a card and credits, and creations are refused with 402', async () => {
  const other = await cloud.signUp('suspended@example.com')
  const card = await saveCard(cloud, other)
  await other.send('POST', `${METHODS}/${card}/default`)
  for (const column of ['suspended_for_payment_at', 'suspended_by_staff_at'] as const) {
    const set = (at: Date | null) =>
      cloud.db
        .updateTable('account')
        .set({ [column]: at })
        .where('id', '=', other.accountId)
        .execute()
    await set(new Date())
    expect(await standingOf(other)).toMatchObject({
      reason: 'account_suspended',
      can_create_resources: false,
      [column]: expect.any(String),
    })
    const refused = await other.send('POST', '/v1/storages', {
      body: { title: 'data', zone: 'eu-1-a', size_gibibytes: 1 },
    })
    expect([refused.status, refused.body['reason']]).toEqual([402, 'account_suspended'])
    await set(null)
  }
  expect(await standingOf(other)).toMatchObject({ reason: null })
})

test('an event is stored once, however often it comes, and only with the signature of the processor', async () => {
  const other = await cloud.signUp('events@example.com')
  await saveCard(cloud, other)
  const sent = cloud.payments.takeEvents()
  for (const { body, signature } of [...sent, ...sent]) {
    const reply = await receive(body, signature)
    expect([reply.status, reply.body]).toEqual([200, {}])
  }
  const stored = await cloud.db.selectFrom('payment_event').select(['id', 'processed_at']).execute()
  expect(stored.map(({ id }) => id).toSorted()).toEqual(sent.map(({ event }) => event.id).toSorted())
  expect(stored.every(({ processed_at: at }) => at === null)).toBe(true)
  const [one] = sent
  const forged = JSON.stringify({ id: 'evt_forged', type: 'invoice.paid', data: { object: { object: 'invoice' } } })
  for (const [body, signature] of [
    [forged, one?.signature],
    [forged, undefined],
    ['', one?.signature],
  ] as const)
    expect((await receive(body, signature)).status).toBe(400)
  expect((await receive('x'.repeat(262_145), one?.signature)).status).toBe(413)
  expect(await cloud.db.selectFrom('payment_event').select('id').execute()).toHaveLength(sent.length)
})

test('while the processor does not answer or refuses, customers get 503 and nothing changes', async () => {
  const other = await cloud.signUp('outage@example.com')
  const card = await saveCard(cloud, other)
  for (const kind of ['lost', 'busy', 'broken'] as const) {
    cloud.payments.fault(() => kind)
    for (const [method, path] of [
      ['GET', METHODS],
      ['POST', '/v1/account/billing/setup-session'],
      ['POST', `${METHODS}/${card}/default`],
      ['DELETE', `${METHODS}/${card}`],
    ] as const)
      expect((await other.send(method, path)).status, `${kind} ${path}`).toBe(503)
  }
  cloud.payments.fault(() => undefined)
  expect(await methodsOf(other)).toMatchObject([{ id: card, is_default: false }])
})

test('a person with an unverified address saves no payment method', async () => {
  const person = await cloud.signUp('unverified@example.com', { isVerified: false })
  const reply = await person.send('POST', '/v1/account/billing/setup-session')
  expect([reply.status, reply.body['reason']]).toEqual([403, 'email_unverified'])
})

test('without a processor its routes answer 503, and the account still has a standing', async () => {
  const poor = await openCloud(database.db, { hasPayments: false })
  const person = await poor.signUp('without@example.com')
  expect((await person.send('GET', '/v1/account/billing')).body).toEqual({
    payments_configured: false,
    publishable_key: null,
    standing: {
      requires_billing_approval: false,
      can_create_resources: true,
      reason: null,
      suspended_for_payment_at: null,
      suspended_by_staff_at: null,
    },
  })
  for (const [method, path] of [
    ['GET', METHODS],
    ['POST', '/v1/account/billing/setup-session'],
    ['POST', `${METHODS}/${newUuid(systemRandom)}/default`],
    ['DELETE', `${METHODS}/${newUuid(systemRandom)}`],
  ] as const) {
    const reply = await person.send(method, path)
    expect([reply.status, reply.body['reason']], path).toEqual([503, 'not_configured'])
  }
  const event = await poor.send('POST', '/v1/webhooks/payments', { body: { id: 'evt', type: 'x' } })
  expect(event.status).toBe(503)
  await poor.close()
})
