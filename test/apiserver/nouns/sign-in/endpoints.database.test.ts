import { beforeAll, expect, test } from 'vitest'
import { useDatabase } from '../../../database.ts'
import { GOOD_PASSWORD, openHarness } from '../../identity/harness.ts'

const database = useDatabase()
let harness: Awaited<ReturnType<typeof openHarness>>
beforeAll(async () => void (harness = await openHarness(database.db)))

const actionsOf = async (accountId: unknown) =>
  (
    await database.db
      .selectFrom('audit_entry')
      .select('body')
      .where('account_id', '=', String(accountId))
      .orderBy('sequence')
      .execute()
  ).map(({ body }) => {
    const { action, outcome } = JSON.parse(body) as { action: string; outcome: string }
    return `${action} ${outcome}`
  })

test('from sign-up to sign-out: mail, verification, session, current user', async () => {
  const browser = harness.openBrowser('198.51.100.200')
  const signUp = await browser.send('POST', '/v1/auth/signup', {
    body: { name: 'Grace Hopper', email: ' Grace@Example.com ', password: GOOD_PASSWORD },
  })
  expect(signUp.status).toBe(202)
  expect(signUp.body).toEqual({ detail: expect.any(String), email: 'grace@example.com' })
  expect(browser.cookies.size).toBe(0)

  const logIn = await browser.send('POST', '/v1/auth/login', {
    body: { email: 'grace@example.com', password: GOOD_PASSWORD },
  })
  expect(logIn.status).toBe(200)
  expect(logIn.body).toMatchObject({
    user: { email: 'grace@example.com', name: 'Grace Hopper', role: 'owner' },
    csrf_token: browser.cookies.get('svccloud_csrf'),
  })
  const set = [logIn.headers['set-cookie'] ?? []].flat()
  expect(set.find((cookie) => cookie.startsWith('svccloud_session='))).toMatch(/; Path=\/; .*HttpOnly/i)
  expect(set.find((cookie) => cookie.startsWith('svccloud_csrf='))).not.toMatch(/HttpOnly/i)
  for (const cookie of set) expect(cookie).toMatch(/SameSite=Lax/i)

  const me = await browser.send('GET', '/v1/auth/me')
  expect(me.body).toMatchObject({
    email_verified: false,
    email_verification_required: true,
    impersonation: null,
    identities: [],
  })
  expect(me.body.permissions).toContain('billing.manage')

  const token = await harness.mailedSecret('grace@example.com')
  expect((await browser.send('POST', '/v1/auth/email-verification/confirm', { body: { token } })).body).toEqual({
    email: 'grace@example.com',
  })
  expect((await browser.send('POST', '/v1/auth/email-verification/confirm', { body: { token } })).status).toBe(400)
  expect((await browser.send('GET', '/v1/auth/me')).body).toMatchObject({
    email_verified: true,
    email_verification_required: false,
  })

  expect((await browser.send('POST', '/v1/auth/logout', { withoutCsrf: true })).status).toBe(403)
  expect((await browser.send('POST', '/v1/auth/logout')).status).toBe(204)
  expect(browser.cookies.size).toBe(0)
  expect((await browser.send('POST', '/v1/auth/logout')).status).toBe(204)
  expect((await browser.send('GET', '/v1/auth/me')).status).toBe(401)
  expect(await actionsOf(me.body.account_id)).toEqual([
    'account.created success',
    'auth.login success',
    'auth.email_verified success',
    'auth.logout denied',
    'auth.logout success',
  ])
})

test('a new account has its quotas and EUR 249 for 60 days', async () => {
  const browser = await harness.signUpAndIn('credit@example.com')
  const { account_id: accountId } = (await browser.send('GET', '/v1/auth/me')).body
  const credit = await database.db
    .selectFrom('credit')
    .selectAll()
    .where('account_id', '=', String(accountId))
    .executeTakeFirstOrThrow()
  expect(credit).toMatchObject({ source: 'sign_up', amount_cents: 24_900 })
  expect((credit.expires_at?.getTime() ?? 0) - credit.created_at.getTime()).toBe(60 * 86_400_000)
  const quotas = await database.db
    .selectFrom('account_quota')
    .select(['name', 'limit'])
    .where('account_id', '=', String(accountId))
    .execute()
  expect(quotas).toContainEqual({ name: 'servers', limit: 25 })
})

test(
  'sign-up answers the same for an address that has a user, makes ' + 'no second account and tells its owner',
  async () => {
    const browser = harness.openBrowser('198.51.100.201')
    const body = { name: 'Eve', email: 'known@example.com', password: GOOD_PASSWORD }
    const first = await browser.send('POST', '/v1/auth/signup', { body })
    await harness.readMails()
    const second = await browser.send('POST', '/v1/auth/signup', {
      body: { ...body, password: 'another fine passphrase 1' },
    })
    expect([second.status, second.body]).toEqual([first.status, first.body])
    const [notice] = await harness.readMails()
    expect(notice).toContain('Subject: Sign-up with your email address')
    expect(
      await database.db.selectFrom('app_user').select('id').where('email', '=', 'known@example.com').execute(),
    ).toHaveLength(1)
    expect(
      (
        await browser.send('POST', '/v1/auth/login', {
          body: { email: body.email, password: 'another fine passphrase 1' },
        })
      ).status,
    ).toBe(401)
  },
)

test('sign-ups with the address of a user lock nobody out, reveal nothing at sign-in, and send few mails', async () => {
  const email = 'pestered@example.com'
  await harness.signUpAndIn(email)
  const signUp = async (address: string) => {
    for (let index = 0; index < 12; index++) {
      const browser = harness.openBrowser(`2001:db8:2:${index}::1`)
      const body = { name: 'Eve', email: address, password: 'another fine passphrase 1' }
      expect((await browser.send('POST', '/v1/auth/signup', { body })).status).toBe(202)
    }
  }
  const logIn = async (address: string, password: string) =>
    (await harness.openBrowser('2001:db8:3::1').send('POST', '/v1/auth/login', { body: { email: address, password } }))
      .status
  await signUp(email)
  const notices = (await harness.readMails()).filter((mail) => mail.includes('Sign-up with your email address'))
  expect(notices).toHaveLength(3)
  await signUp('unheard-of@example.com')
  for (const address of [email, 'unheard-of@example.com'])
    for (let index = 0; index < 4; index++) expect(await logIn(address, 'wrong password here')).toBe(401)
  expect(await logIn(email, GOOD_PASSWORD)).toBe(200)
})

test('many sign-ups of one address at the same moment make one account', async () => {
  const replies = await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      harness.openBrowser(`203.0.113.${index}`).send('POST', '/v1/auth/signup', {
        body: { name: 'Race', email: 'race@example.com', password: GOOD_PASSWORD },
      }),
    ),
  )
  expect(replies.map((reply) => reply.status)).toEqual(Array(8).fill(202))
  expect(
    await database.db.selectFrom('app_user').select('id').where('email', '=', 'race@example.com').execute(),
  ).toHaveLength(1)
  expect(await database.db.selectFrom('account').select('id').where('name', '=', 'Race').execute()).toHaveLength(1)
})

test.each([
  ['too short', 'short pass 1'.slice(0, 11)],
  ['too long', 'x7 '.repeat(50)],
  ['everybody tries it', 'Password1234!'],
  ['one character', 'aaaaaaaaaaaaaaa'],
  ['a keyboard run', 'qwertyuiopasdf'],
  ['the address itself', 'weak@example.com'],
])('a password is refused when it is %s', async (_reason, password) => {
  const reply = await harness.openBrowser('203.0.113.50').send('POST', '/v1/auth/signup', {
    body: { name: 'Weak', email: 'weak@example.com', password },
    from: `2001:db8:${password.length}:${password.charCodeAt(0)}::1`,
  })
  expect(reply.status).toBe(400)
  expect(reply.body.errors).toMatchObject([{ field: 'password' }])
})

test('sign-ups are limited to five a minute for each client address, with the exact wait', async () => {
  const browser = harness.openBrowser('203.0.113.99')
  const signUp = () =>
    browser.send('POST', '/v1/auth/signup', { body: { name: 'x', email: 'limit@example.com', password: 'short' } })
  for (let count = 0; count < 5; count++) expect((await signUp()).status).toBe(400)
  const refused = await signUp()
  expect([refused.status, refused.body.reason]).toEqual([429, 'rate_limited'])
  harness.clock.move(Number(refused.headers['retry-after']) - 1)
  expect((await signUp()).status).toBe(429)
  harness.clock.move(1)
  expect((await signUp()).status).toBe(400)
})

test(
  'five wrong passwords lock the address of a user, and of nobody,' + ' for a quarter of an hour that doubles',
  async () => {
    await harness.signUpAndIn('locked@example.com')
    for (const email of ['locked@example.com', 'nobody@example.com']) {
      const attempt = (password: string, index: number) =>
        harness.openBrowser(`2001:db8:1:${index}::1`).send('POST', '/v1/auth/login', { body: { email, password } })
      for (let index = 0; index < 5; index++) expect((await attempt('wrong password here', index)).status).toBe(401)
      const refused = await attempt(GOOD_PASSWORD, 6)
      expect(refused.status).toBe(429)
      const waitSeconds = Number(refused.headers['retry-after'])
      expect(waitSeconds).toBeGreaterThan(890)
      harness.clock.move(waitSeconds)
      for (let index = 0; index < 5; index++)
        expect((await attempt('wrong password here', index + 10)).status).toBe(401)
      expect(Number((await attempt('wrong', 20)).headers['retry-after'])).toBeGreaterThan(1_700)
    }
    harness.clock.move(1_800)
    expect(
      (
        await harness
          .openBrowser()
          .send('POST', '/v1/auth/login', { body: { email: 'locked@example.com', password: GOOD_PASSWORD } })
      ).status,
    ).toBe(200)
  },
)

test('guesses at the same moment share no count', async () => {
  await harness.signUpAndIn('parallel@example.com')
  const replies = await Promise.all(
    Array.from({ length: 12 }, (_, index) =>
      harness
        .openBrowser(`2001:db8:2:${index}::1`)
        .send('POST', '/v1/auth/login', { body: { email: 'parallel@example.com', password: 'wrong password here' } }),
    ),
  )
  expect(replies.filter((reply) => reply.status === 401)).toHaveLength(5)
  expect(replies.filter((reply) => reply.status === 429)).toHaveLength(7)
})

test('a disabled user is refused with the right password only, and every credential of theirs stops', async () => {
  const browser = await harness.signUpAndIn('disabled@example.com')
  await database.db
    .updateTable('app_user')
    .set({ disabled_at: harness.clock.now() })
    .where('email', '=', 'disabled@example.com')
    .execute()
  harness.clock.move(1)
  expect((await browser.send('GET', '/v1/auth/me')).status).toBe(401)
  const logIn = (password: string) =>
    harness.openBrowser().send('POST', '/v1/auth/login', { body: { email: 'disabled@example.com', password } })
  expect((await logIn('wrong password here')).status).toBe(401)
  expect((await logIn(GOOD_PASSWORD)).status).toBe(403)
})

test('sessions end after a week, after a day without use, and when another sign-in ends them', async () => {
  const idle = await harness.signUpAndIn('idle@example.com')
  harness.clock.move(86_399)
  expect((await idle.send('GET', '/v1/auth/me')).status).toBe(200)
  harness.clock.move(86_401)
  expect((await idle.send('GET', '/v1/auth/me')).status).toBe(401)

  const busy = await harness.signUpAndIn('busy@example.com')
  for (let hour = 0; hour < 7 * 24; hour += 12) {
    expect((await busy.send('GET', '/v1/auth/me')).status).toBe(200)
    harness.clock.move(12 * 3600)
  }
  expect((await busy.send('GET', '/v1/auth/me')).status).toBe(401)

  const [one, two] = [await harness.signUpAndIn('many@example.com'), harness.openBrowser()]
  const reply = await two.send('POST', '/v1/auth/login', {
    body: { email: 'many@example.com', password: GOOD_PASSWORD, end_other_sessions: true },
  })
  expect(reply.body.ended_sessions).toBe(1)
  expect((await one.send('GET', '/v1/auth/me')).status).toBe(401)
  expect((await two.send('GET', '/v1/auth/me')).status).toBe(200)
})

test('signing in again replaces the session of the browser', async () => {
  const browser = await harness.signUpAndIn('rotate@example.com')
  const old = new Map(browser.cookies)
  await browser.send('POST', '/v1/auth/login', { body: { email: 'rotate@example.com', password: GOOD_PASSWORD } })
  expect(browser.cookies.get('svccloud_session')).not.toBe(old.get('svccloud_session'))
  const thief = harness.openBrowser()
  for (const [name, value] of old) thief.cookies.set(name, value)
  expect((await thief.send('GET', '/v1/auth/me')).status).toBe(401)
})

test('the CSRF token belongs to its session: the cookie of another session is refused', async () => {
  const [one, other] = [
    await harness.signUpAndIn('csrf-one@example.com'),
    await harness.signUpAndIn('csrf-other@example.com'),
  ]
  one.cookies.set('svccloud_csrf', other.cookies.get('svccloud_csrf') ?? '')
  expect((await one.send('POST', '/v1/auth/logout')).status).toBe(403)
})

test('verification is mailed again once a minute; older links stop working', async () => {
  const browser = harness.openBrowser('198.51.100.210')
  await browser.send('POST', '/v1/auth/signup', {
    body: { name: 'Again', email: 'again@example.com', password: GOOD_PASSWORD },
  })
  await browser.send('POST', '/v1/auth/login', { body: { email: 'again@example.com', password: GOOD_PASSWORD } })
  const first = await harness.mailedSecret('again@example.com')
  expect((await browser.send('POST', '/v1/auth/email-verification')).status).toBe(202)
  expect((await browser.send('POST', '/v1/auth/email-verification')).status).toBe(429)
  const second = await harness.mailedSecret('again@example.com')
  expect((await browser.send('POST', '/v1/auth/email-verification/confirm', { body: { token: first } })).status).toBe(
    400,
  )
  expect((await browser.send('POST', '/v1/auth/email-verification/confirm', { body: { token: second } })).status).toBe(
    200,
  )
  harness.clock.move(61)
  expect((await browser.send('POST', '/v1/auth/email-verification')).status).toBe(409)
})

test('nothing that signs in is stored or mailed in the clear after it was sent', async () => {
  const browser = await harness.signUpAndIn('hashes@example.com')
  const secrets = [browser.cookies.get('svccloud_session') ?? '', GOOD_PASSWORD]
  for (const table of ['session', 'app_user', 'email_outbox', 'email_token', 'audit_entry'] as const) {
    const text = JSON.stringify(await database.db.selectFrom(table).selectAll().execute())
    for (const secret of secrets) expect(text).not.toContain(secret)
    expect(text).not.toContain('#token=')
  }
})
