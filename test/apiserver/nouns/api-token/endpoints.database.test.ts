import { crc32 } from 'node:zlib'
import { beforeAll, expect, test } from 'vitest'
import { formatToken } from '../../../../kit/sys/token-format.ts'
import { useDatabase } from '../../../database.ts'
import { type Browser, openHarness } from '../../identity/harness.ts'

const database = useDatabase()
let harness: Awaited<ReturnType<typeof openHarness>>
let owner: Browser
beforeAll(async () => {
  harness = await openHarness(database.db)
  owner = await harness.signUpAndIn('owner@example.com')
})

const create = async (body: Record<string, unknown>, browser = owner) => {
  const reply = await browser.send('POST', '/v1/account/tokens', { body })
  return {
    status: reply.status,
    reply,
    token: String(reply.body['token']),
    view: reply.body['api_token'] as { id: string; [name: string]: unknown },
  }
}

test('a token is shown once, has the documented form, and acts as its creator within its scope', async () => {
  const { status, token, view } = await create({ name: 'ci', scope: 'read' })
  expect(status).toBe(201)
  expect(token).toMatch(/^svccloud_r_[0-9A-Za-z]{46}$/)
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  expect(Array.from(token.slice(-6)).reduce((sum, digit) => sum * 62 + digits.indexOf(digit), 0)).toBe(
    crc32(token.slice(0, -6)),
  )
  expect(view).toMatchObject({
    name: 'ci',
    scope: 'read',
    token_hint: token.slice(-4),
    user_email: 'owner@example.com',
    last_used_at: null,
    status: 'active',
  })
  expect(Date.parse(String(view['expires_at'])) - Date.parse(String(view['created_at']))).toBe(90 * 86_400_000)
  const script = harness.openBrowser('203.0.113.7')
  expect((await script.send('GET', '/v1/audit', { token })).status).toBe(200)
  expect((await script.send('GET', '/v1/account/tokens', { token })).status).toBe(403) // session-only
  expect((await script.send('GET', '/v1/auth/me', { token })).status).toBe(403)
  await expect
    .poll(async () => ((await owner.send('GET', '/v1/account/tokens')).body['items'] as object[])[0])
    .toMatchObject({ last_used_ip: '203.0.113.7', last_used_at: '2026-03-01T12:00:00.000Z' })
  expect(JSON.stringify(await database.db.selectFrom('api_token').selectAll().execute())).not.toContain(
    token.slice(11, 40),
  )
})

test.each([
  ['an unknown token of the right form', formatToken('read_write', '0'.repeat(40))],
  ['one with a typing error', 'svccloud_r_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'],
  ['anything else', 'hello'],
])('%s is 401', async (_what, token) => {
  expect((await harness.openBrowser().send('GET', '/v1/audit', { token })).status).toBe(401)
})

test('a revoked token stops at once here and within half a second on another replica', async () => {
  const replica = await openHarness(database.db)
  const { token, view } = await create({ name: 'revoked', scope: 'read_write' })
  const use = async (at: typeof harness) => (await at.openBrowser().send('GET', '/v1/audit', { token })).status
  expect([await use(harness), await use(replica)]).toEqual([200, 200])
  expect((await owner.send('DELETE', `/v1/account/tokens/${view.id}`)).status).toBe(204)
  expect(await use(harness)).toBe(401)
  replica.clock.move(0.5)
  expect(await use(replica)).toBe(401)
  expect((await owner.send('DELETE', `/v1/account/tokens/${view.id}`)).status).toBe(404)
  expect((await create({ name: 'revoked', scope: 'read' })).status).toBe(201) // the name is free again
})

test('a token stops when it expires, and when its user leaves the account', async () => {
  const { token } = await create({
    name: 'short',
    scope: 'read',
    expires_at: new Date(harness.clock.now().getTime() + 60_000).toISOString(),
  })
  expect((await harness.openBrowser().send('GET', '/v1/audit', { token })).status).toBe(200)
  harness.clock.move(60)
  expect((await harness.openBrowser().send('GET', '/v1/audit', { token })).status).toBe(401)
  const leaver = await harness.signUpAndIn('leaver@example.com')
  const left = await create({ name: 'left', scope: 'read' }, leaver)
  await database.db.deleteFrom('membership').where('user_id', '=', String(left.view['user_id'])).execute()
  expect((await harness.openBrowser().send('GET', '/v1/audit', { token: left.token })).status).toBe(401)
})

test('a membership that ends takes tokens and sessions with it within half a second on another replica', async () => {
  const replica = await openHarness(database.db, { startsAt: harness.clock.now().toISOString() })
  const member = await harness.signUpAndIn('removed@example.com')
  const { token, view } = await create({ name: 'elsewhere', scope: 'read' }, member)
  const browser = replica.openBrowser()
  for (const [name, value] of member.cookies) browser.cookies.set(name, value)
  const use = async () => [
    (await replica.openBrowser().send('GET', '/v1/audit', { token })).status,
    (await browser.send('GET', '/v1/auth/me')).status,
  ]
  expect(await use()).toEqual([200, 200])
  await database.db.deleteFrom('membership').where('user_id', '=', String(view['user_id'])).execute()
  replica.clock.move(0.5)
  expect(await use()).toEqual([401, 401])
})

test('a token of a user who is disabled stops within half a second, and works again when they are not', async () => {
  const person = await harness.signUpAndIn('disabled@example.com')
  const { token, view } = await create({ name: 'theirs', scope: 'read' }, person)
  const use = async () => (await harness.openBrowser().send('GET', '/v1/audit', { token })).status
  const disable = (disabled_at: Date | null) =>
    database.db.updateTable('app_user').set({ disabled_at }).where('id', '=', String(view['user_id'])).execute()
  expect(await use()).toBe(200)
  await disable(harness.clock.now())
  harness.clock.move(0.5)
  expect(await use()).toBe(401)
  await disable(null)
  harness.clock.move(0.5)
  expect(await use()).toBe(200)
})

test('a token is used from its allowed addresses only', async () => {
  const { token, view } = await create({
    name: 'fenced',
    scope: 'read',
    allowed_cidrs: ['203.0.113.0/28', '2001:DB8:7:0::/48', '2001:db8:7::/48'],
  })
  expect(view['allowed_cidrs'], 'in their canonical form, each once').toEqual(['203.0.113.0/28', '2001:db8:7::/48'])
  const status = async (from: string) => {
    const reply = await harness.openBrowser().send('GET', '/v1/audit', { token, from })
    return [reply.status, reply.body['reason']]
  }
  expect(await status('203.0.113.15')).toEqual([200, undefined])
  expect(await status('2001:db8:7:1::1')).toEqual([200, undefined])
  expect(await status('203.0.113.16')).toEqual([403, 'address_not_allowed'])
  expect(await status('2001:db8:8::1')).toEqual([403, 'address_not_allowed'])
})

test.each<[string, Record<string, unknown>, number]>([
  ['an unknown scope', { name: 'x', scope: 'write' }, 400],
  ['no permission', { name: 'x', scope: [] }, 400],
  ['an expiry in the past', { name: 'x', scope: 'read', expires_at: '2020-01-01T00:00:00Z' }, 400],
  ['a CIDR that is none', { name: 'x', scope: 'read', allowed_cidrs: ['10.0.0.0/40'] }, 400],
  ['an empty name', { name: ' ', scope: 'read' }, 400],
  ['a name that is taken', { name: 'fenced', scope: 'read' }, 409],
  ['no name', { scope: 'read' }, 400],
])('creating is refused for %s', async (_what, body, status) => expect((await create(body)).status).toBe(status))

test('a name that is taken is refused with the token that has it', async () => {
  const { view } = await create({ name: 'once', scope: 'read' })
  expect((await create({ name: 'once', scope: 'read' })).reply.body).toMatchObject({
    reason: 'name_taken',
    resource: { type: 'api_token', id: view.id },
  })
})

test('members make and see their own tokens only, never beyond their role', async () => {
  const member = await harness.signUpAndIn('member@example.com')
  const me = (await member.send('GET', '/v1/auth/me')).body as { account_id: string; user: { id: string } }
  await database.db.updateTable('membership').set({ role: 'member' }).where('user_id', '=', me.user.id).execute()
  harness.clock.move(1)
  expect((await create({ name: 'm', scope: ['read', 'billing.read'] }, member)).status).toBe(400)
  const own = await create({ name: 'm', scope: ['read', 'operate'] }, member)
  expect(own.status).toBe(201)
  await database.db
    .insertInto('membership')
    .values({
      account_id: me.account_id,
      user_id: (await owner.send('GET', '/v1/auth/me').then((reply) => reply.body as { user: { id: string } })).user.id,
      role: 'owner',
      joined_at: harness.clock.now(),
    })
    .execute()
  await database.db
    .insertInto('api_token')
    .values({
      id: '11111111-1111-4111-8111-111111111111',
      account_id: me.account_id,
      user_id: (await owner.send('GET', '/v1/auth/me').then((reply) => reply.body as { user: { id: string } })).user.id,
      name: 'not theirs',
      secret_hash: Buffer.from('x'),
      token_hint: 'xxxx',
      scope: '"read"',
      created_at: harness.clock.now(),
      last_used_ip: null,
    })
    .execute()
  expect(
    ((await member.send('GET', '/v1/account/tokens')).body['items'] as { name: string }[]).map((item) => item.name),
  ).toEqual(['m'])
  expect((await member.send('DELETE', '/v1/account/tokens/11111111-1111-4111-8111-111111111111')).status).toBe(404)
  await database.db.updateTable('membership').set({ role: 'viewer' }).where('user_id', '=', me.user.id).execute()
  harness.clock.move(1)
  expect((await member.send('GET', '/v1/account/tokens')).status).toBe(403)
})

test('a foreign token is 404; lists page with cursors that hold for their account only', async () => {
  const other = await harness.signUpAndIn('other@example.com')
  for (let index = 0; index < 5; index++) await create({ name: `page-${index}`, scope: 'read' }, other)
  const page = async (query: string, browser = other) =>
    (await browser.send('GET', `/v1/account/tokens${query}`)).body as {
      items: { id: string; name: string }[]
      next_cursor: string | null
    }
  const first = await page('?limit=2')
  const second = await page(`?limit=2&cursor=${first.next_cursor}`)
  const third = await page(`?limit=2&cursor=${second.next_cursor}`)
  expect([...first.items, ...second.items, ...third.items].map((item) => item.name).sort()).toEqual(
    [0, 1, 2, 3, 4].map((index) => `page-${index}`),
  )
  expect(third.next_cursor).toBeNull()
  expect((await owner.send('GET', `/v1/account/tokens?cursor=${first.next_cursor}`)).status).toBe(400)
  expect((await owner.send('DELETE', `/v1/account/tokens/${first.items[0]?.id}`)).status).toBe(404)
  expect((await owner.send('DELETE', '/v1/account/tokens/nonsense')).status).toBe(404)
})

test('fifty tokens are the most a user has, also when they are made at the same moment', async () => {
  const many = await harness.signUpAndIn('fifty@example.com')
  const replies = await Promise.all(
    Array.from({ length: 55 }, (_, index) => create({ name: `t${index}`, scope: 'read' }, many)),
  )
  expect(replies.filter(({ status }) => status === 201)).toHaveLength(50)
  expect(replies.find(({ status }) => status === 422)?.reply.body).toMatchObject({
    reason: 'quota_exceeded',
    quota: { name: 'api_tokens', limit: 50, used: 50, requested: 1 },
  })
})

test('the audit log shows who made what, exports in pages, and audits the start of an export', async () => {
  const person = await harness.signUpAndIn('auditor@example.com')
  const { token } = await create({ name: 'script', scope: 'read' }, person)
  const list = (await person.send('GET', '/v1/audit')).body as { items: Record<string, unknown>[]; next_cursor: null }
  expect(list.items.map((item) => item['action'])).toEqual([
    'account.token_created',
    'auth.login',
    'auth.email_verified',
    'account.created',
  ])
  expect(list.items[0]).toMatchObject({
    actor_kind: 'user',
    actor_email: 'auditor@example.com',
    resource_type: 'api_token',
    outcome: 'success',
    sequence: 4,
  })
  const script = harness.openBrowser()
  const exported = await script.send('GET', '/v1/audit/export?limit=3', { token })
  expect(exported.headers['content-type']).toContain('application/x-ndjson')
  expect(
    exported.text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).sequence),
  ).toEqual([1, 2, 3])
  expect(exported.headers['x-next-after']).toBe('3')
  const rest = await script.send('GET', '/v1/audit/export?limit=3&after=3', { token })
  const entries = rest.text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(entries.map((entry) => entry.action)).toEqual(['account.token_created', 'audit.export'])
  expect(entries[1]).toMatchObject({ actor_kind: 'token', token_name: 'script' })
  expect(rest.headers).not.toHaveProperty('x-next-after')
  for (const limit of ['0', '1001', 'x'])
    expect((await script.send('GET', `/v1/audit/export?limit=${limit}`, { token })).status).toBe(400)
  expect((await person.send('GET', '/v1/audit/integrity')).body).toMatchObject({
    status: 'unverified',
    head_sequence: 5,
    break: null,
  })
})
