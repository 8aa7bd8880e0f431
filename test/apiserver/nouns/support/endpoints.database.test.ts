import { generate } from 'otplib'
import { sql } from 'kysely'
import { beforeAll, expect, test } from 'vitest'
import { createSealing } from '../../../../kit/sys/sealing.ts'
import { makeStaff } from '../../../../apiserver/staff/create.ts'
import type { StaffRole } from '../../../../domain/permissions.ts'
import { STAFF_CHAIN } from '../../../../db/audit/index.ts'
import { createStaff } from '../../../../db/staff/staff.ts'
import { issueSupportSession } from '../../../../db/staff/support.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { useDatabase } from '../../../database.ts'
import { type Browser, GOOD_PASSWORD, openHarness } from '../../identity/harness.ts'

const database = useDatabase()
const key = { id: 'k', key: systemRandom.bytes(32) }
let harness: Awaited<ReturnType<typeof openHarness>>
const staff: Partial<Record<StaffRole, Browser>> = {}

async function hire(role: StaffRole, at = harness): Promise<Browser> {
  const email = `${role}@staff.example`
  const made = await makeStaff(
    { db: database.db, clock: at.clock, random: systemRandom, sealing: createSealing([key], systemRandom) },
    { email, name: `Sam ${role}`, role },
  )
  const browser = at.openBrowser('10.0.0.1', 'operator')
  const asked = await browser.send('POST', '/v1/admin/auth/login', { body: { email, password: made?.password } })
  const code = await generate({ secret: made?.secret ?? '', epoch: Math.floor(at.clock.now().getTime() / 1000) })
  expect(
    (await browser.send('POST', '/v1/admin/auth/login/mfa', { body: { challenge: asked.body['challenge'], code } }))
      .status,
  ).toBe(200)
  expect(
    (await browser.send('POST', '/v1/admin/auth/login/mfa', { body: { challenge: asked.body['challenge'], code } }))
      .status,
  ).toBe(401) // each code once
  return browser
}

beforeAll(async () => {
  harness = await openHarness(database.db, { sealingKeys: [key] })
  for (const role of ['support', 'finance', 'operations'] as const) staff[role] = await hire(role)
})
const by = (role: StaffRole): Browser =>
  staff[role] ??
  (() => {
    throw new Error('nobody was hired')
  })()
const accountOf = async (browser: Browser): Promise<string> =>
  String((await browser.send('GET', '/v1/auth/me')).body['account_id'])

async function enter(owner: Browser, mode: 'read_only' | 'elevated'): Promise<Browser> {
  await owner.send('POST', '/v1/account/support-consents', { body: { mode } })
  const issued = await by('support').send('POST', `/v1/admin/accounts/${await accountOf(owner)}/support-sessions`, {
    body: { mode, reason: 'looking into ticket 7' },
  })
  expect(issued.status).toBe(201)
  const browser = harness.openBrowser()
  harness.clock.move(7)
  expect((await browser.send('POST', '/v1/auth/support-handoff', { body: { code: issued.body['code'] } })).status).toBe(
    200,
  )
  return browser
}

test(
  'staff sign in with both factors only; their credential and a customer ' + 'one are worth nothing on the other side',
  async () => {
    const stranger = harness.openBrowser('10.0.0.9', 'operator')
    expect(
      (
        await stranger.send('POST', '/v1/admin/auth/login', {
          body: { email: 'support@staff.example', password: 'wrong password here' },
        })
      ).status,
    ).toBe(401)
    expect((await stranger.send('GET', '/v1/admin/accounts')).status).toBe(401)
    expect((await by('support').send('GET', '/v1/admin/auth/me')).body['staff']).toMatchObject({
      email: 'support@staff.example',
      role: 'support',
    })
    const customer = await harness.signUpAndIn('two-sides@example.com')
    const crossed = harness.openBrowser('10.0.0.9', 'operator')
    crossed.cookies.set('svccloud_staff_session', customer.cookies.get('svccloud_session') ?? '')
    crossed.cookies.set('svccloud_session', customer.cookies.get('svccloud_session') ?? '')
    expect((await crossed.send('GET', '/v1/admin/accounts')).status).toBe(401)
    const other = harness.openBrowser()
    other.cookies.set('svccloud_session', by('operations').cookies.get('svccloud_staff_session') ?? '')
    expect((await other.send('GET', '/v1/auth/me')).status).toBe(401)
    expect((await other.send('GET', '/v1/admin/accounts')).status).toBe(404) // not on this listener
  },
)

test('an elevated session needs a live consent; the code works once and for two minutes', async () => {
  const owner = await harness.signUpAndIn('consent@example.com')
  const account = await accountOf(owner)
  const issue = (mode: string) =>
    by('support').send('POST', `/v1/admin/accounts/${account}/support-sessions`, { body: { mode, reason: 'why' } })
  expect([(await issue('read_only')).status, (await issue('elevated')).status]).toEqual([403, 403])
  const granted = await owner.send('POST', '/v1/account/support-consents', {
    body: { mode: 'elevated', expires_in_hours: 2, reference: 'T-1' },
  })
  expect(granted.body['support_consent']).toMatchObject({
    mode: 'elevated',
    granted_by_email: 'consent@example.com',
    reference: 'T-1',
    sessions: 0,
  })
  expect((await owner.send('POST', '/v1/account/support-consents', { body: { mode: 'elevated' } })).status).toBe(409)
  const late = await issue('elevated')
  expect((await issue('elevated')).status).toBe(409) // one is open
  expect(late.body['handoff_url']).toBe(`http://127.0.0.1:8080/support/handoff#code=${String(late.body['code'])}`)
  harness.clock.move(121)
  const redeem = (code: unknown) => harness.openBrowser().send('POST', '/v1/auth/support-handoff', { body: { code } })
  expect((await redeem(late.body['code'])).status).toBe(401)
  const { code } = (await issue('elevated')).body
  const entered = await redeem(code)
  expect(entered.headers['set-cookie']).toEqual([
    expect.stringMatching(/^svccloud_session=.*; Max-Age=3600;/),
    expect.stringMatching(/^svccloud_csrf=.*; Max-Age=3600;/),
  ])
  expect(entered.body).toMatchObject({
    redirect: '/dashboard',
    user: { email: 'consent@example.com', role: 'owner' },
    impersonation: { mode: 'elevated', staff_email: 'support@staff.example', account_id: account },
  })
  expect((await redeem(code)).status).toBe(401)
  expect(((await owner.send('GET', '/v1/account/support-consents')).body['items'] as object[])[0]).toMatchObject({
    sessions: 2,
  })
})

test('what support may not do, in either mode; and both identities are in the audit log', async () => {
  const owner = await harness.signUpAndIn('entered@example.com')
  for (const mode of ['read_only', 'elevated'] as const) {
    const support = await enter(owner, mode)
    expect((await support.send('GET', '/v1/auth/me')).body).toMatchObject({
      impersonation: { mode, staff_name: 'Sam support' },
      permissions: mode === 'elevated' ? ['read', 'operate', 'billing.read'] : ['read', 'billing.read'],
    })
    expect((await support.send('GET', '/v1/audit')).status).toBe(200)
    for (const [method, path, body] of [
      ['POST', '/v1/account/tokens', { name: 'x', scope: 'read' }],
      ['GET', '/v1/account/tokens', undefined],
      ['POST', '/v1/account/invitations', { email: 'x@example.com', role: 'viewer' }],
      ['POST', '/v1/account/support-consents', { mode: 'elevated' }],
      ['POST', '/v1/account/mfa/totp', undefined],
      ['PUT', '/v1/account/mfa/policy', { required: true }],
      ['POST', '/v1/auth/email-verification', undefined],
      ['POST', '/v1/account/coupons', { code: 'x' }],
    ] as const) {
      const refused = await support.send(method, path, { body })
      expect([path, refused.status, refused.body['detail']]).toEqual([path, 403, expect.not.stringContaining('CSRF')])
    }
    const left = await support.send('POST', '/v1/auth/end-impersonation')
    expect([left.status, left.body]).toEqual([200, { redirect: `/admin/accounts/${await accountOf(owner)}` }])
    expect((await support.send('GET', '/v1/auth/me')).status).toBe(401)
    const { items } = (await owner.send('GET', '/v1/audit')).body as { items: Record<string, unknown>[] }
    const me = (await owner.send('GET', '/v1/auth/me')).body['user'] as { id: string }
    expect(items[0]).toMatchObject({
      action: 'support.session_ended',
      actor_kind: 'staff',
      actor_email: 'support@staff.example',
      user_id: me.id,
      detail: { support_mode: mode, support_reason: 'looking into ticket 7' },
    })
    expect(
      items.find(({ action, outcome }) => action === 'account.token_created' && outcome === 'denied'),
    ).toMatchObject({ actor_kind: 'staff', user_id: me.id })
  }
  expect((await owner.send('POST', '/v1/auth/end-impersonation')).status).toBe(409)
})

test('the end of a session answers a whole address where the portal of the staff is known', async () => {
  const owner = await harness.signUpAndIn('elsewhere@example.com')
  const support = await enter(owner, 'elevated')
  const account = await accountOf(owner)
  const other = await openHarness(database.db, {
    sealingKeys: [key],
    staffPortalUrl: 'https://staff.example.com:8443/start',
    startsAt: harness.clock.now().toISOString(),
  })
  const browser = other.openBrowser()
  for (const [name, value] of support.cookies) browser.cookies.set(name, value)
  const left = await browser.send('POST', '/v1/auth/end-impersonation')
  expect([left.status, left.body]).toEqual([
    200,
    { redirect: `https://staff.example.com:8443/admin/accounts/${account}` },
  ])
})

test('a session ends when the customer revokes, when staff end it, and after an hour', async () => {
  const owner = await harness.signUpAndIn('ending@example.com')
  const alive = async (browser: Browser) => (await browser.send('GET', '/v1/auth/me')).status
  const first = await enter(owner, 'elevated')
  const consents = async () =>
    (await owner.send('GET', '/v1/account/support-consents')).body['items'] as { id: string }[]
  expect((await owner.send('DELETE', `/v1/account/support-consents/${(await consents())[0]!.id}`)).status).toBe(204)
  expect(await alive(first)).toBe(401)
  const entries = (await owner.send('GET', '/v1/audit')).body['items'] as { action: string; actor_kind: string }[]
  expect(entries.filter(({ action }) => action === 'support.session_ended')).toMatchObject([
    { actor_kind: 'user', resource_type: 'support_session', detail: { support_mode: 'elevated' } },
  ])
  expect((await owner.send('DELETE', `/v1/account/support-consents/${(await consents())[0]!.id}`)).status).toBe(409)
  const second = await enter(owner, 'elevated')
  const { items } = (await by('support').send('GET', '/v1/admin/support-sessions')).body as {
    items: { id: string; account_id: string }[]
  }
  const account = await accountOf(owner)
  expect(
    (
      await by('support').send(
        'DELETE',
        `/v1/admin/support-sessions/${items.find((item) => item.account_id === account)!.id}`,
      )
    ).status,
  ).toBe(204)
  expect(await alive(second)).toBe(401)
  const third = await enter(owner, 'elevated')
  for (let minutes = 0; minutes < 60; minutes += 20) {
    harness.clock.move(1_190)
    await by('support').send('GET', '/v1/admin/auth/me')
  }
  expect(await alive(third)).toBe(200)
  harness.clock.move(60)
  expect(await alive(third)).toBe(401)
})

test(
  'roles of the staff: support looks and enters, finance gives money, operations does everything; CSRF holds here ' +
    'too',
  async () => {
    for (const role of ['finance', 'operations', 'support'] as const)
      staff[role] = (await by(role).send('GET', '/v1/admin/auth/me')).status === 200 ? by(role) : await rehire(role)
    const owner = await harness.signUpAndIn('governed@example.com')
    const account = await accountOf(owner)
    const suspend = (role: StaffRole, rest = {}) =>
      by(role).send('POST', `/v1/admin/accounts/${account}/suspend`, { body: { reason: 'abuse' }, ...rest })
    expect([
      (await suspend('support')).status,
      (await suspend('finance')).status,
      (await suspend('operations', { withoutCsrf: true })).status,
    ]).toEqual([403, 403, 403])
    expect((await suspend('operations')).body).toMatchObject({
      id: account,
      owner_email: 'governed@example.com',
      suspended_by_staff_at: expect.any(String),
    })
    expect((await suspend('operations')).status).toBe(409)
    await expect(
      harness.identity.requireStanding({ accountId: account } as Parameters<
        typeof harness.identity.requireStanding
      >[0]),
    ).rejects.toMatchObject({ status: 402, members: { reason: 'account_suspended' } })
    expect((await by('operations').send('POST', `/v1/admin/accounts/${account}/unsuspend`)).status).toBe(200)
    expect(
      (
        await by('support').send('POST', `/v1/admin/accounts/${account}/credits`, {
          body: { label: 'x', amount_cents: 1 },
        })
      ).status,
    ).toBe(403)
    const credit = await by('finance').send('POST', `/v1/admin/accounts/${account}/credits`, {
      body: { label: 'sorry', amount_cents: 500 },
    })
    expect((await owner.send('GET', '/v1/account/credits')).body).toMatchObject({ balance_cents: 25_400 })
    expect(
      (
        await by('finance').send(
          'DELETE',
          `/v1/admin/accounts/${account}/credits/${(credit.body['credit'] as { id: string }).id}`,
        )
      ).status,
    ).toBe(204)
    expect(
      (await by('operations').send('PUT', `/v1/admin/accounts/${account}/quotas/servers`, { body: { limit: 3 } })).body,
    ).toMatchObject({ name: 'servers', limit: 3 })
    expect(
      (await by('operations').send('PUT', `/v1/admin/accounts/${account}/quotas/nothing`, { body: { limit: 3 } }))
        .status,
    ).toBe(404)
    const coupon = await by('finance').send('POST', '/v1/admin/coupons', {
      body: { code: 'Staff-1', amount_cents: 700, credit_days: 1 },
    })
    expect(coupon.body['coupon']).toMatchObject({ code: 'staff-1', redemptions: 0, is_active: true })
    const again = await by('finance').send('POST', '/v1/admin/coupons', { body: { code: 'STAFF-1', amount_cents: 1 } })
    expect(again.body).toMatchObject({
      reason: 'name_taken',
      resource: { type: 'coupon', id: (coupon.body['coupon'] as { id: string }).id },
    })
    await by('finance').send('PATCH', `/v1/admin/coupons/${(coupon.body['coupon'] as { id: string }).id}`, {
      body: { is_active: false },
    })
    expect((await owner.send('POST', '/v1/account/coupons', { body: { code: 'STAFF-1' } })).body['reason']).toBe(
      'coupon_inactive',
    )
    expect(
      (await by('support').send('GET', '/v1/admin/accounts?email=Governed@example.com')).body['items'],
    ).toMatchObject([{ id: account }])
    expect(
      (await by('support').send('POST', '/v1/admin/audit/verify', { body: { account_id: account } })).body,
    ).toMatchObject({ status: 'verified', break: null })
    const log = (await by('support').send('GET', `/v1/admin/audit?account_id=${account}`)).body['items'] as {
      action: string
      actor_email: string
    }[]
    expect(log.map(({ action }) => action).sort()).toEqual([
      'account.credit_granted',
      'account.credit_revoked',
      'account.quota_changed',
      'account.suspended',
      'account.unsuspended',
    ])
    const chain = (await owner.send('GET', '/v1/audit')).body['items'] as { action: string; actor_kind: string }[]
    expect(chain.find(({ action }) => action === 'account.suspended')).toMatchObject({ actor_kind: 'staff' })
  },
)

test.each<[string, object]>([
  ['is disabled', { disabled_at: new Date() }],
  ['may not enter accounts any more', { role: 'finance' }],
])('who %s has no support session, neither one that is open nor one that is issued', async (what, change) => {
  const email = `left-${what.length}@staff.example`
  const id = newUuid(systemRandom)
  const now = harness.clock.now()
  await createStaff(database.db, { id, email, name: 'Lee', role: 'support', passwordHash: 'x', sealedSecret: 'x', now })
  const owner = await harness.signUpAndIn(`left-${what.length}@example.com`)
  const { id: userId } = (await owner.send('GET', '/v1/auth/me')).body['user'] as { id: string }
  const issue = (code: string) =>
    database.db.transaction().execute(async (tx) =>
      issueSupportSession(tx, {
        id: newUuid(systemRandom),
        accountId: await accountOf(owner),
        userId,
        consentId: null,
        staffId: id,
        staffEmail: email,
        staffName: 'Lee',
        mode: 'read_only',
        reason: 'why',
        ticket: null,
        code,
        createdAt: now,
        codeExpiresAt: new Date(now.getTime() + 60_000),
        expiresAt: new Date(now.getTime() + 3_600_000),
      }),
    )
  const [code, later] = [newUuid(systemRandom), newUuid(systemRandom)]
  for (const each of [code, later]) await issue(each)
  const open = harness.openBrowser()
  const redeem = (browser: Browser, each: string) =>
    browser.send('POST', '/v1/auth/support-handoff', { body: { code: each } })
  expect((await redeem(open, code)).status).toBe(200)
  expect((await open.send('GET', '/v1/auth/me')).status).toBe(200)
  await database.db.updateTable('staff_user').set(change).where('id', '=', id).execute()
  harness.clock.move(1)
  expect((await open.send('GET', '/v1/auth/me')).status).toBe(401)
  expect((await redeem(harness.openBrowser('192.0.2.77'), later)).status).toBe(401)
})

test('what staff does is in a chain that staff verify: a change by hand is found and named', async () => {
  const chief = await present('operations')
  const verify = () => chief.send('POST', '/v1/admin/audit/verify', { body: {} })
  const before = (await verify()).body
  expect(before).toMatchObject({ status: 'verified', break: null })
  const acted = await chief.send('POST', '/v1/admin/coupons', { body: { code: 'sealed-1', amount_cents: 100 } })
  expect(acted.status).toBe(201)
  const after = (await verify()).body
  expect(after).toMatchObject({ status: 'verified', head_sequence: Number(before['head_sequence']) + 2 })
  const [verified, made] = (await chief.send('GET', '/v1/admin/audit?limit=2')).body['items'] as { action: string }[]
  expect([verified?.action, made]).toEqual([
    'audit.verify',
    expect.objectContaining({ action: 'coupon.create', actor_kind: 'staff', resource_id: expect.any(String) }),
  ])
  const sequence = Number(after['head_sequence']) - 1
  await database.db
    .updateTable('audit_entry')
    .set((row) => ({ body: sql<string>`replace(${row.ref('body')}, 'sealed-1', 'another-1')` }))
    .where('account_id', '=', STAFF_CHAIN)
    .where('sequence', '=', sequence)
    .execute()
  expect((await verify()).body).toMatchObject({ status: 'broken', break: { sequence } })
})

test.each(['/v1/admin/accounts', '/v1/admin/audit', '/v1/admin/coupons'])(
  'the pages of %s hold what the whole list does, in its order',
  async (path) => {
    const reader = await present('operations')
    for (const code of ['page-1', 'page-2', 'page-3'])
      await reader.send('POST', '/v1/admin/coupons', { body: { code, amount_cents: 100 } })
    const idsOf = (items: unknown) => (items as { id: string }[]).map(({ id }) => id)
    const whole = idsOf((await reader.send('GET', path)).body['items'])
    const read: string[] = []
    for (let cursor = ''; read.length <= whole.length; ) {
      const page = (await reader.send('GET', `${path}?limit=2${cursor}`)).body
      read.push(...idsOf(page['items']))
      if (page['next_cursor'] === null) break
      cursor = `&cursor=${String(page['next_cursor'])}`
    }
    expect(whole.length).toBeGreaterThan(2)
    expect(read).toEqual(whole)
  },
)

/** Whoever holds the role; somebody new where the session has ended meanwhile. */
const present = async (role: StaffRole): Promise<Browser> =>
  (await by(role).send('GET', '/v1/admin/auth/me')).status === 200 ? by(role) : await rehire(role)

async function rehire(role: StaffRole): Promise<Browser> {
  await database.db.deleteFrom('staff_user').where('email', '=', `${role}@staff.example`).execute()
  harness.clock.move(60)
  return await hire(role)
}

test('a person is disabled and enabled, and loses a second factor that they no longer have', async () => {
  const person = await harness.signUpAndIn('person@example.com')
  const { id } = (await person.send('GET', '/v1/auth/me')).body['user'] as { id: string }
  const act = async (verb: string) =>
    (await by('operations').send('POST', `/v1/admin/users/${id}/${verb}`, { body: { reason: 'asked for' } })).status
  expect(await act('reset-second-factor')).toBe(409)
  const { secret } = (await person.send('POST', '/v1/account/mfa/totp')).body as { secret: string }
  await person.send('POST', '/v1/account/mfa/totp/confirm', {
    body: { code: await generate({ secret, epoch: Math.floor(harness.clock.now().getTime() / 1000) }) },
  })
  expect(await act('reset-second-factor')).toBe(204)
  expect((await person.send('GET', '/v1/auth/me')).status).toBe(401)
  const logIn = () =>
    harness
      .openBrowser()
      .send('POST', '/v1/auth/login', { body: { email: 'person@example.com', password: GOOD_PASSWORD } })
  expect((await logIn()).body).toHaveProperty('csrf_token')
  expect([
    await act('disable'),
    await act('disable'),
    (await logIn()).status,
    await act('enable'),
    await act('enable'),
    (await logIn()).status,
  ]).toEqual([204, 409, 403, 204, 409, 200])
})
