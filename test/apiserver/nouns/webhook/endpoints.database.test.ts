import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { webhookChanges } from '../../../../changes/webhook.ts'
import { listQuotas } from '../../../../db/account/index.ts'
import { addEventFor } from '../../../../db/webhook/index.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { systemRandom } from '../../../../kit/sys/random.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person } from '../../cloud.ts'

const database = useDatabase()
let cloud: Cloud
let ada: Person
let bob: Person

beforeAll(async () => {
  cloud = await openCloud(database.db)
  ada = await cloud.signUp('ada@example.com')
  bob = await cloud.signUp('bob@example.com')
})
afterAll(() => cloud.close())

const HOOKS = '/v1/account/webhooks'
const URL = 'https://hooks.example.com/cloud'
const SECRET = /^whsec_[A-Za-z0-9+/]{43}=$/
const create = (body: object = {}, by: Person = ada) =>
  by.send('POST', HOOKS, { body: { url: URL, events: ['server.*'], ...body } })
const created = async (body: object = {}): Promise<{ readonly id: string; readonly secret: string }> => {
  const { body: answer, status, text } = await create(body)
  expect(status, text).toBe(201)
  return { id: answer['webhook'].id, secret: answer['secret'] }
}
const rowOf = (id: string) =>
  database.db.selectFrom('webhook').selectAll().where('id', '=', id).executeTakeFirstOrThrow()

describe('a webhook', () => {
  test('is created, read, changed and deleted; its secret is shown once and stored sealed', async () => {
    const made = await create({ name: 'deployments' })
    expect(made.status, made.text).toBe(201)
    const { webhook, secret } = made.body
    expect(secret).toMatch(SECRET)
    expect(webhook).toMatchObject({
      name: 'deployments',
      url: URL,
      events: ['server.*'],
      enabled: true,
      state: 'active',
      pending_deliveries: 0,
      last_delivered_at: null,
    })
    const read = await ada.send('GET', `${HOOKS}/${webhook.id}`)
    expect([read.status, read.body]).toEqual([200, { webhook }])
    expect(JSON.stringify(await rowOf(webhook.id))).not.toContain(secret.slice('whsec_'.length))

    const etag = String(read.headers['etag'])
    const change = await ada.send('PATCH', `${HOOKS}/${webhook.id}`, {
      body: { enabled: false, events: ['*'] },
      headers: { 'if-match': etag },
    })
    expect(change.body['webhook']).toMatchObject({ state: 'disabled', events: ['*'], name: 'deployments' })
    const late = await ada.send('PATCH', `${HOOKS}/${webhook.id}`, {
      body: { name: 'b' },
      headers: { 'if-match': etag },
    })
    expect(late.status).toBe(409)

    expect((await ada.send('GET', HOOKS)).body['items'].map(({ id }: { id: string }) => id)).toContain(webhook.id)
    expect((await bob.send('GET', `${HOOKS}/${webhook.id}`)).status).toBe(404)
    const remove = await ada.send('DELETE', `${HOOKS}/${webhook.id}`)
    expect(remove.status).toBe(204)
    expect((await ada.send('GET', `${HOOKS}/${webhook.id}`)).status).toBe(404)
    const entries = (await Promise.all([made, change, remove].map((reply) => cloud.auditOf(reply)))).flat()
    expect(entries.map(({ action, outcome }) => `${action} ${outcome}`)).toEqual([
      'webhook.create success',
      'webhook.update success',
      'webhook.delete success',
    ])
    expect(JSON.stringify(entries)).not.toContain(secret)
  })

  test('is named after the host of its address when nobody names it', async () => {
    expect((await create()).body['webhook'].name).toBe('hooks.example.com')
  })

  test('a repeated request gets the answer without the secret', async () => {
    const headers = { 'idempotency-key': '01a1ff50-8add-720c-b721-970d86569b22' }
    const request = { body: { url: URL, events: ['*'] }, headers }
    const first = await ada.send('POST', HOOKS, request)
    const second = await ada.send('POST', HOOKS, request)
    expect([first.status, second.status, second.body['webhook'].id]).toEqual([201, 201, first.body['webhook'].id])
    expect([first.body['secret'], second.body['secret']]).toEqual([expect.stringMatching(SECRET), undefined])
  })

  test('has a new secret after a rotation, and the previous one beside it for a day', async () => {
    const { id, secret } = await created()
    const rotate = await ada.send('POST', `${HOOKS}/${id}/rotate-secret`)
    expect(rotate.status, rotate.text).toBe(200)
    expect(rotate.body['secret']).toMatch(SECRET)
    expect(rotate.body['secret']).not.toBe(secret)
    expect(Date.parse(rotate.body['previous_valid_until'])).toBeGreaterThan(0)
    expect((await cloud.auditOf(rotate)).map(({ action }) => action)).toEqual(['webhook.rotate_secret'])
    expect((await bob.send('POST', `${HOOKS}/${id}/rotate-secret`)).status).toBe(404)
  })

  test('a deletion that Kubernetes refuses leaves its secret and its log', async () => {
    const { id } = await created({ name: 'stays' })
    await ada.send('POST', `${HOOKS}/${id}/probe`)
    const before = await rowOf(id)
    const { remove } = webhookChanges
    const subject = { accountId: ada.accountId, id, spec: {} as never, facts: {} as never }
    const means = { clock: systemClock, random: systemRandom, changeId: id }
    await database.db.transaction().execute(async (tx) => remove.claim?.(tx, subject, means as never))
    expect((await ada.send('GET', `${HOOKS}/${id}`)).status).toBe(404)
    expect(JSON.stringify((await ada.send('GET', HOOKS)).body)).not.toContain(id)
    await database.db
      .transaction()
      .execute(async (tx) => remove.release?.(tx, { ...subject, changeId: id, changes: [] } as never, undefined))
    expect(await rowOf(id)).toEqual(before)
    expect((await ada.send('GET', `${HOOKS}/${id}/deliveries`)).body['items']).toHaveLength(1)
  })

  test('counts against the quota', async () => {
    const used = async () => (await listQuotas(database.db, bob.accountId)).find(({ name }) => name === 'webhooks')
    while (((await used())?.used ?? 0) < ((await used())?.limit ?? 0)) expect((await create({}, bob)).status).toBe(201)
    const refused = await create({}, bob)
    expect([refused.status, refused.body['quota']]).toMatchObject([422, { name: 'webhooks' }])
  })
})

describe('events of billing', () => {
  test('are for readers of bills, whoever chose them', async () => {
    const member = await cloud.join(ada.accountId, 'grace@example.com')
    expect((await create({ events: ['*'] }, member)).status).toBe(201)
    expect((await create({ events: ['billing.standing'] }, member)).status).toBe(403)
    const { id } = await created({ events: ['billing.*'] })
    const send = (method: 'PATCH' | 'POST', path: string, body?: object) =>
      member.send(method, `${HOOKS}/${id}${path}`, body === undefined ? {} : { body })
    expect((await send('PATCH', '', { url: 'https://elsewhere.example.com/' })).status).toBe(403)
    expect((await send('POST', '/rotate-secret')).status).toBe(403)
    const own = (await create({}, member)).body['webhook'].id
    const widen = await member.send('PATCH', `${HOOKS}/${own}`, { body: { events: ['billing.*'] } })
    expect(widen.status).toBe(403)
    expect((await ada.send('PATCH', `${HOOKS}/${id}`, { body: { enabled: false } })).status).toBe(200)
  })
})

describe('deliveries', () => {
  test('a test event waits in the log, is listed in pages, and is sent again by hand', async () => {
    const { id } = await created()
    const probes = [await ada.send('POST', `${HOOKS}/${id}/probe`), await ada.send('POST', `${HOOKS}/${id}/probe`)]
    expect(probes.map(({ status }) => status)).toEqual([202, 202])
    const [first, second] = probes.map(({ body }) => body['delivery'])
    expect(first).toMatchObject({ event_type: 'webhook.test', state: 'pending', attempts: 0, resource_type: null })
    const page = await ada.send('GET', `${HOOKS}/${id}/deliveries?limit=1`)
    expect(page.body['items']).toEqual([second])
    const next = await ada.send('GET', `${HOOKS}/${id}/deliveries?limit=1&cursor=${page.body['next_cursor']}`)
    expect([next.body['items'], next.body['next_cursor']]).toEqual([[first], null])

    await database.db
      .updateTable('webhook_delivery')
      .set({ state: 'failed', next_attempt_at: null, ended_at: new Date() })
      .where('event_id', '=', first.id)
      .execute()
    const again = await ada.send('POST', `${HOOKS}/${id}/deliveries/${first.id}/resend`)
    expect([again.status, again.body['delivery']]).toMatchObject([202, { id: first.id, state: 'pending' }])
    expect((await ada.send('POST', `${HOOKS}/${id}/deliveries/evt-unknown/resend`)).status).toBe(404)
    expect((await bob.send('GET', `${HOOKS}/${id}/deliveries`)).status).toBe(404)
  })

  test('an event that the webhook no longer selects is not sent again', async () => {
    const { accountId, send } = await cloud.signUp('ines@example.com')
    const { body } = await send('POST', HOOKS, { body: { url: URL, events: ['server.*'] } })
    const { id } = body['webhook']
    const event = { id: `evt-${id}`, type: 'storage.changed', body: '{}' }
    await database.db.transaction().execute((tx) => addEventFor(tx, { accountId, webhookId: id }, event, new Date()))
    const resend = () => send('POST', `${HOOKS}/${id}/deliveries/${event.id}/resend`)
    const refused = await resend()
    expect([refused.status, refused.body['detail']]).toEqual([
      409,
      'The webhook does not select events of the type storage.changed.',
    ])
    expect((await send('PATCH', `${HOOKS}/${id}`, { body: { events: ['storage.*'] } })).status).toBe(200)
    expect((await resend()).status).toBe(202)
  })

  test('ten test events may wait for a webhook', async () => {
    const { send } = await cloud.signUp('hedy@example.com')
    const { body } = await send('POST', HOOKS, { body: { url: URL, events: ['server.*'] } })
    const { id } = body['webhook']
    const statuses: number[] = []
    for (let count = 0; count < 11; count++) statuses.push((await send('POST', `${HOOKS}/${id}/probe`)).status)
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 202), 409])
  })
})
