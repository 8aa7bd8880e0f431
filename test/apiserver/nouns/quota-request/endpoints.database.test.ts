/** Requests for larger quotas: made by an account, decided by staff; a decision and the new limit are one. */
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { mailStaff } from '../../../../apiserver/kit/request-mails.ts'
import { mail } from '../../../../domain/mail/mails.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { newUuid, systemRandom as random } from '../../../../kit/sys/random.ts'
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
  await cloud.grant('boss', [{ resources: ['staffroles'], verbs: ['use'] }])
  await sql`
    insert into staff_user (id, email, name, password_hash, role, created_at) values
      (${newUuid(random)}, 'boss@staff.example', 'B', 'x', 'operations', now()),
      (${newUuid(random)}, 'money@staff.example', 'M', 'x', 'finance', now())`.execute(database.db)
})
afterAll(() => cloud.close())

const PATH = '/v1/account/quota-requests'
const ASKED = { name: 'servers', limit: 100, reason: 'A new shop.' }
const ask = (body: object = ASKED, person = ada) => person.send('POST', PATH, { body })
const decide = (id: string, verb: string, body?: object) =>
  cloud.operate('boss', 'POST', `/v1/admin/quota-requests/${id}/${verb}`, body)
const mailsTo = async (recipient: string) =>
  (
    await database.db
      .selectFrom('email_outbox')
      .select(['subject', 'body'])
      .where('recipient', '=', recipient)
      .execute()
  )
    .filter(({ subject }) => subject.includes('quota'))
    .map(({ subject }) => subject)
const limitOf = async (name: string, person = ada): Promise<number> =>
  (await person.send('GET', '/v1/account/quotas')).body['items'].find((quota: { name: string }) => quota.name === name)
    .limit
const withdraw = (id: string, person = ada) => person.send('DELETE', `${PATH}/${id}`)

test.each([
  ['no larger limit', { ...ASKED, limit: 25 }, 422],
  ['an unknown quota', { ...ASKED, name: 'wishes' }, 400],
  ['no reason', { ...ASKED, reason: ' ' }, 400],
  ['half a server', { ...ASKED, limit: 30.5 }, 400],
  ['everything', { ...ASKED, limit: Number.MAX_SAFE_INTEGER }, 400],
])('%s cannot be requested', async (_what, body, status) => {
  expect((await ask(body)).status).toBe(status)
  expect((await ada.send('GET', PATH)).body['items']).toEqual([])
})

test('staff hear of a request, and only its account can withdraw it, once', async () => {
  const made = await ask()
  const { id } = made.body['request']
  expect([made.status, made.body['request']]).toMatchObject([
    201,
    { ...ASKED, state: 'open', granted_limit: null, requested_by_email: 'ada@example.com', decided_at: null },
  ])
  expect(await cloud.auditOf(made)).toMatchObject([{ action: 'quota_request.create', resource_id: id }])
  expect([await mailsTo('boss@staff.example'), await mailsTo('money@staff.example')]).toEqual([
    ['A request for a larger quota'],
    [],
  ])
  expect((await withdraw(id, bob)).status).toBe(404)
  const withdrawn = await withdraw(id)
  expect([withdrawn.status, withdrawn.body['request'].state]).toEqual([200, 'withdrawn'])
  expect(await cloud.auditOf(withdrawn)).toMatchObject([{ action: 'quota_request.withdraw', resource_id: id }])
  expect((await withdraw(id)).status).toBe(409)
  expect((await bob.send('GET', PATH)).body['items']).toEqual([])
})

test('one undecided request for a quota, and five altogether, also when they come at once', async () => {
  const names = ['servers', 'cores', 'storages', 'networks', 'routers', 'edges', 'databases', 'backups']
  const replies = await Promise.all(
    [...names, ...names].map((name) => ask({ name, limit: 1_000_000, reason: 'More.' }, bob)),
  )
  expect(replies.map(({ status }) => status).toSorted()).toEqual([
    ...Array.from({ length: 5 }, () => 201),
    ...Array.from({ length: 11 }, () => 409),
  ])
  const { items } = (await bob.send('GET', PATH)).body as { items: { id: string; name: string }[] }
  expect(new Set(items.map(({ name }) => name)).size).toBe(5)
  await Promise.all(items.map(({ id }) => withdraw(id, bob)))
  expect((await ask({ ...ASKED, limit: 50 }, bob)).status).toBe(201)
})

test('staff get one mail in an hour for an account, which makes so many requests at most', async () => {
  const eager = await cloud.signUp('eager@example.com')
  const count = async () => (await mailsTo('boss@staff.example')).length
  const before = await count()
  const statuses: number[] = []
  for (let turn = 0; turn < 21; turn++) {
    const made = await ask(ASKED, eager)
    statuses.push(made.status)
    if (made.status === 201) expect((await withdraw(made.body['request'].id, eager)).status).toBe(200)
  }
  expect(statuses).toEqual([...Array.from({ length: 20 }, () => 201), 429])
  expect(await count()).toBe(before + 1)
  const after = await count()
  await ask(ASKED, await cloud.signUp('other@example.com'))
  expect(await count()).toBe(after + 1)
})

test('a mail just before the full hour is the only one until an hour has passed', async () => {
  const accountId = newUuid(random)
  const count = async () => (await mailsTo('boss@staff.example')).length
  const before = await count()
  const sentBy = async (time: string) => {
    const clock = { now: () => new Date(`2026-05-04T${time}Z`) }
    const asked = mail('quota_request', { request: newUuid(random) })
    await database.db
      .transaction()
      .execute((tx) => mailStaff(tx, { clock: { ...systemClock, ...clock } }, accountId, asked))
    return (await count()) - before
  }
  expect(await sentBy('10:59:59')).toBe(1)
  expect(await sentBy('11:00:01')).toBe(1)
  expect(await sentBy('11:59:58')).toBe(1)
  expect(await sentBy('11:59:59')).toBe(2)
  expect(await sentBy('12:00:00')).toBe(2)
})

test('staff review and grant: the quota is larger, the request is answered, and a mail says so', async () => {
  const { id } = (await ask()).body['request']
  expect((await decide(id, 'grant')).status).toBe(409)
  expect((await decide(id, 'review')).body['request']).toMatchObject({ state: 'in_review', decided_at: null })
  expect((await decide(id, 'review')).status).toBe(409)
  expect((await decide(id, 'grant', { limit: 25 })).status).toBe(422)
  expect(await limitOf('servers')).toBe(25)
  const granted = await decide(id, 'grant', { limit: 80 })
  expect(granted.body['request']).toMatchObject({
    state: 'granted',
    limit: 100,
    granted_limit: 80,
    account_id: ada.accountId,
  })
  expect(await limitOf('servers')).toBe(80)
  expect(await cloud.staffAuditOf(granted)).toMatchObject([{ action: 'quota_request.grant', resource_id: id }])
  expect(await cloud.auditOf(granted)).toContainEqual(
    expect.objectContaining({
      action: 'quota_request.grant',
      changes: [{ field: 'limit', before: 25, after: 80 }],
    }),
  )
  expect(await mailsTo('ada@example.com')).toEqual(['Your quota is larger'])
  expect((await decide(id, 'grant')).status).toBe(409)
  expect((await withdraw(id)).status).toBe(409)
  expect((await ask({ ...ASKED, limit: 80 })).status).toBe(422)
})

test('staff grant what was requested when they name no limit', async () => {
  const { id } = (await ask({ name: 'networks', limit: 33, reason: 'Tests.' })).body['request']
  await decide(id, 'review')
  expect((await decide(id, 'grant', {})).body['request'].granted_limit).toBe(33)
  expect(await limitOf('networks')).toBe(33)
})

test('staff decline with a reason, which the account reads; nothing else changes', async () => {
  const { id } = (await ask({ name: 'edges', limit: 99, reason: 'Many.' })).body['request']
  expect((await decide(id, 'decline', { staff_reason: ' ' })).status).toBe(400)
  expect((await decide(newUuid(random), 'decline', { staff_reason: 'No.' })).status).toBe(404)
  const declined = await decide(id, 'decline', { staff_reason: 'Not now.' })
  expect(declined.body['request']).toMatchObject({ state: 'declined', granted_limit: null })
  expect((await ada.send('GET', PATH)).body['items'][0]).toMatchObject({ id, staff_reason: 'Not now.' })
  expect(await limitOf('edges')).toBe(10)
  expect(await mailsTo('ada@example.com')).toContain('Your request for a larger quota')
  const listed = await cloud.operate('boss', 'GET', '/v1/admin/quota-requests?state=declined')
  expect((listed.body['items'] as { id: string }[]).map((item) => item.id)).toEqual([id])
  expect((await cloud.operate('boss', 'GET', `/v1/admin/quota-requests/${id}`)).body['request']).toMatchObject({ id })
})
