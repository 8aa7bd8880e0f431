/** A POST that is sent twice is done once. */
import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CLEAN_ANSWERS } from '../../db/migrations/0048-turns-and-answers.ts'
import {
  answerIdempotencyKey,
  forgetIdempotencyKeys,
  releaseIdempotencyKey,
  takeIdempotencyKey,
} from '../../db/request/index.ts'
import { defined } from '../../domain/defined.ts'
import { createAccount } from '../accounts.ts'
import { useDatabase } from '../database.ts'
import { type Cloud, openCloud, type Person, PUBLIC_KEY } from './cloud.ts'

const database = useDatabase()
let cloud: Cloud
let owner: Person
let token = ''

beforeAll(async () => {
  cloud = await openCloud(database.db)
  owner = await cloud.signUp('owner@example.com')
  token = await owner.token('read_write')
  await create('/v1/ssh-keys', { name: 'key', public_key: PUBLIC_KEY })
})
afterAll(() => cloud.close())

const create = (path: string, body: object, key?: string, bearer = token) =>
  cloud.send('POST', path, {
    body,
    headers: { authorization: `Bearer ${bearer}`, ...defined({ 'idempotency-key': key }) },
  })
const server = (hostname: string) => ({ zone: cloud.zone, hostname, plan: 'tiny', template: 'tiny-linux' })

test('the same request again answers the same, makes nothing and writes nothing', async () => {
  const key = randomUUID()
  const first = await create('/v1/servers', server('once'), key)
  expect(first.status).toBe(202)
  const again = await create('/v1/servers', server('once'), key.toUpperCase())
  expect([again.status, again.text, again.headers['idempotent-replayed'], again.headers['content-type']]).toEqual([
    202,
    first.text,
    'true',
    'application/json',
  ])
  expect(again.headers['x-request-id']).not.toBe(first.headers['x-request-id'])
  expect(first.headers).not.toHaveProperty('idempotent-replayed')
  expect(await cloud.auditOf(again)).toEqual([])
  expect((await owner.send('GET', '/v1/servers?hostname=once')).body['items']).toHaveLength(1)
})

test('a repeated answer has no credentials, and none are kept', async () => {
  const key = randomUUID()
  const first = await create('/v1/object-storage', { zone: cloud.zone }, key)
  expect([first.status, Object.keys(first.body)]).toEqual([201, ['object_storage', 'credentials']])
  const again = await create('/v1/object-storage', { zone: cloud.zone }, key)
  expect([again.status, again.headers['idempotent-replayed'], again.body]).toEqual([
    201,
    'true',
    { object_storage: first.body['object_storage'] },
  ])
  const kept = await database.db.selectFrom('idempotency_key').select('body').execute()
  expect(JSON.stringify(kept)).not.toContain(first.body['credentials'].secret_access_key)
})

test('answers that were kept with credentials lose them at the upgrade', async () => {
  const row = { account_id: owner.accountId, request_hash: 'a', created_at: new Date(), status: 201 }
  const bodies = [
    '{"object_storage":{"id":"a"},"credentials":{"secret_access_key":"S"}}',
    '{"title":"\\"credentials\\""}',
    '',
  ]
  await database.db
    .insertInto('idempotency_key')
    .values(bodies.map((body) => ({ ...row, key: randomUUID(), body })))
    .execute()
  await sql.raw(CLEAN_ANSWERS).execute(database.db)
  const kept = await database.db.selectFrom('idempotency_key').select('body').where('request_hash', '=', 'a').execute()
  expect(kept.map(({ body }) => body?.replaceAll(' ', '')).sort()).toEqual(
    ['', bodies[1], '{"object_storage":{"id":"a"}}'].sort(),
  )
})

test('another request under the key: 422, and nothing is made', async () => {
  const key = randomUUID()
  await create('/v1/servers', server('taken'), key)
  const other = await create('/v1/servers', server('other'), key)
  expect([other.status, other.body['reason']]).toEqual([422, 'idempotency_key_reused'])
  expect((await owner.send('GET', '/v1/servers?hostname=other')).body['items']).toHaveLength(0)
  const elsewhere = await create('/v1/ssh-keys', { name: 'x', public_key: PUBLIC_KEY }, key)
  expect(elsewhere.status).toBe(422)
})

test('of many at once one is done; the others answer 409 until it is answered', async () => {
  const key = randomUUID()
  const replies = await Promise.all(Array.from({ length: 5 }, () => create('/v1/servers', server('many'), key)))
  const statuses = replies.map(({ status }) => status)
  expect(statuses.filter((status) => status === 202).length).toBeGreaterThan(0)
  expect(statuses.every((status) => status === 202 || status === 409)).toBe(true)
  expect(new Set(replies.filter(({ status }) => status === 202).map(({ body }) => body['server'].id)).size).toBe(1)
  expect((await create('/v1/servers', server('many'), key)).status).toBe(202)
})

test('a refusal frees its key', async () => {
  const key = randomUUID()
  expect((await create('/v1/servers', { ...server('refused'), plan: 'no-such' }, key)).status).toBe(400)
  expect((await create('/v1/servers', server('refused'), key)).status).toBe(202)
})

test('keys belong to their account, and must be UUIDs', async () => {
  const key = randomUUID()
  const stranger = await cloud.signUp('stranger@example.com')
  const theirs = await stranger.token('read_write')
  const body = { name: 'same', public_key: PUBLIC_KEY.replace('AAAAIB', 'AAAAIC') }
  expect((await create('/v1/ssh-keys', body, key)).status).toBe(201)
  const other = await create('/v1/ssh-keys', body, key, theirs)
  expect([other.status, other.headers['idempotent-replayed']]).toEqual([201, undefined])
  expect((await create('/v1/ssh-keys', body, 'not-a-uuid')).body['errors']).toMatchObject([
    { field: 'Idempotency-Key' },
  ])
})

test('one account neither answers nor frees the key of another', async () => {
  const key = randomUUID()
  const [mine, theirs] = [
    { holder: { accountId: owner.accountId }, key },
    { holder: { accountId: await createAccount(cloud.db) }, key },
  ]
  const now = new Date('2026-01-01T00:00:00Z')
  const take = (of: typeof mine) => takeIdempotencyKey(cloud.db, of, 'a', now)
  expect([await take(mine), await take(theirs)]).toEqual([{ is: 'new' }, { is: 'new' }])
  await releaseIdempotencyKey(cloud.db, theirs)
  expect(await take(mine)).toEqual({ is: 'open', hash: 'a' })
  expect(await take(theirs)).toEqual({ is: 'new' })
  await answerIdempotencyKey(cloud.db, mine, { status: 201, body: '{}' })
  expect(await take(theirs)).toEqual({ is: 'open', hash: 'a' })
  await releaseIdempotencyKey(cloud.db, mine)
  expect(await take(mine)).toEqual({ is: 'answered', hash: 'a', status: 201, body: '{}' })
})

test('operators have keys too: a credit that is granted twice is granted once', async () => {
  const { accountId } = await cloud.signUp('credited@example.com')
  for (const user of ['olga', 'rita']) await cloud.grant(user, [{ resources: ['staffroles'], verbs: ['use'] }])
  const key = randomUUID()
  const grant = (user: string, amount: number) =>
    cloud.operate(
      user,
      'POST',
      `/v1/admin/accounts/${accountId}/credits`,
      { label: 'Sorry', amount_cents: amount },
      { 'idempotency-key': key },
    )
  const [first, again] = [await grant('olga', 100), await grant('olga', 100)]
  expect([first.status, again.status, again.headers['idempotent-replayed']]).toEqual([201, 201, 'true'])
  expect(again.body).toEqual(first.body)
  expect(await cloud.staffAuditOf(again)).toEqual([])
  // the key of one operator is none of another
  const other = await grant('rita', 200)
  expect([other.status, other.headers['idempotent-replayed']]).toEqual([201, undefined])
  expect((await grant('olga', 300)).body['reason']).toBe('idempotency_key_reused')
  const credits = await database.db
    .selectFrom('credit')
    .select('amount_cents')
    .where('account_id', '=', accountId)
    .where('label', '=', 'Sorry')
    .execute()
  expect(credits.map(({ amount_cents }) => Number(amount_cents)).toSorted()).toEqual([100, 200])
})

test('after a day a key is as good as new', async () => {
  const key = { holder: { accountId: owner.accountId }, key: randomUUID() }
  const [now, dayLater] = [new Date('2026-01-01T00:00:00Z'), new Date('2026-01-02T00:00:01Z')]
  expect(await takeIdempotencyKey(cloud.db, key, 'a', now)).toEqual({ is: 'new' })
  expect(await takeIdempotencyKey(cloud.db, key, 'b', now)).toEqual({ is: 'open', hash: 'a' })
  expect(await takeIdempotencyKey(cloud.db, key, 'b', dayLater)).toEqual({ is: 'new' })
  await forgetIdempotencyKeys(cloud.db, new Date('2026-01-03T00:00:02Z'))
  expect(await takeIdempotencyKey(cloud.db, key, 'c', dayLater)).toEqual({ is: 'new' })
})
