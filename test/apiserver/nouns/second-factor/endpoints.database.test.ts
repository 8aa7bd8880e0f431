import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { generate } from 'otplib'
import { beforeAll, describe, expect, test } from 'vitest'
import { matchedStep } from '../../../../apiserver/identity/second-factor.ts'
import { parseSealingKeys } from '../../../../kit/sys/sealing.ts'
import { systemRandom } from '../../../../kit/sys/random.ts'
import { useDatabase } from '../../../database.ts'
import { type Browser, GOOD_PASSWORD, openHarness } from '../../identity/harness.ts'

const database = useDatabase()
const oldKey = { id: 'old', key: systemRandom.bytes(32) }
const newKey = { id: 'new', key: systemRandom.bytes(32) }
let harness: Awaited<ReturnType<typeof openHarness>>
beforeAll(async () => void (harness = await openHarness(database.db, { sealingKeys: [oldKey] })))

const codeOf = (secret: string, at = harness.clock.now()) =>
  generate({ secret, epoch: Math.floor(at.getTime() / 1000) })
const logIn = (email: string, browser = harness.openBrowser(), rest = {}) =>
  browser.send('POST', '/v1/auth/login', { body: { email, password: GOOD_PASSWORD, ...rest } })

async function enable(browser: Browser): Promise<{ secret: string; codes: string[] }> {
  const setup = await browser.send('POST', '/v1/account/mfa/totp')
  const secret = String(setup.body['secret'])
  const confirmed = await browser.send('POST', '/v1/account/mfa/totp/confirm', { body: { code: await codeOf(secret) } })
  expect([setup.status, confirmed.status]).toEqual([200, 200])
  harness.clock.move(31)
  return { secret, codes: confirmed.body['recovery_codes'] as string[] }
}

describe('codes', () => {
  const rfc = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ' // the SHA-1 seed of RFC 6238, appendix B
  test.each([
    [1_111_111_109, '081804'],
    [1_111_111_111, '050471'],
    [1_234_567_890, '005924'],
    [2_000_000_000, '279037'],
    [20_000_000_000, '353130'],
  ])('RFC 6238 at %d is %s, one step to either side is accepted, two are not', (seconds, code) => {
    const at = (shift: number) => matchedStep(rfc, code, new Date((seconds + shift) * 1000))
    const step = Math.floor(seconds / 30)
    expect([at(0), at(30), at(-30)]).toEqual([step, step, step])
    expect([at(60), at(-60)]).toEqual([undefined, undefined])
  })

  const oathtool = (...args: string[]) =>
    promisify(execFile)('oathtool', args).then(
      ({ stdout }) => stdout.trim(),
      () => undefined,
    )
  test('agree with oathtool, where it is installed', async (context) => {
    if ((await oathtool('--version')) === undefined) return context.skip('oathtool is not installed')
    const browser = await harness.signUpAndIn('oathtool@example.com')
    const { secret } = (await browser.send('POST', '/v1/account/mfa/totp')).body as { secret: string }
    const code = await oathtool(
      '--totp',
      '--base32',
      '--now',
      harness.clock.now().toISOString().replace('T', ' ').replace(/\..*/, ' UTC'),
      secret,
    )
    expect((await browser.send('POST', '/v1/account/mfa/totp/confirm', { body: { code } })).status).toBe(200)
  })
})

test('from setup to sign-in: pending, confirmed, asked for, and the session opens with a code only', async () => {
  const browser = await harness.signUpAndIn('factor@example.com')
  expect((await browser.send('GET', '/v1/account/mfa')).body).toMatchObject({
    totp_enabled: false,
    totp_pending: false,
    available: true,
    required_by_account: false,
  })
  const first = (await browser.send('POST', '/v1/account/mfa/totp')).body as { secret: string; otpauth_uri: string }
  // replaces the unconfirmed one
  const setup = (await browser.send('POST', '/v1/account/mfa/totp')).body as { secret: string; otpauth_uri: string }
  expect(setup.otpauth_uri).toContain(`secret=${setup.secret}`)
  expect((await browser.send('GET', '/v1/account/mfa')).body).toMatchObject({ totp_enabled: false, totp_pending: true })
  const wrong = await browser.send('POST', '/v1/account/mfa/totp/confirm', {
    body: { code: await codeOf(first.secret) },
  })
  expect([wrong.status, wrong.body['reason']]).toEqual([403, 'second_factor_invalid'])
  const code = await codeOf(setup.secret)
  const confirmed = await browser.send('POST', '/v1/account/mfa/totp/confirm', { body: { code } })
  expect(new Set(confirmed.body['recovery_codes'] as string[]).size).toBe(10)
  expect((await browser.send('POST', '/v1/account/mfa/totp')).status).toBe(409)
  expect((await browser.send('GET', '/v1/account/mfa')).body).toMatchObject({
    totp_enabled: true,
    totp_pending: false,
    recovery_codes_remaining: 10,
  })

  const stranger = harness.openBrowser()
  const asked = await logIn('factor@example.com', stranger)
  expect(asked.body).toEqual({
    mfa_required: true,
    mfa_step: 'verify',
    challenge: expect.any(String),
    challenge_expires_at: expect.any(String),
  })
  expect(stranger.cookies.size).toBe(0)
  const challenge = asked.body['challenge']
  const prove = (proof: object) => stranger.send('POST', '/v1/auth/login/mfa', { body: { challenge, ...proof } })
  expect((await prove({ code })).status).toBe(401) // the setup's code cannot sign in
  expect((await prove({})).status).toBe(400)
  expect((await prove({ code, recovery_code: 'x' })).status).toBe(400)
  expect((await stranger.send('POST', '/v1/auth/login/mfa/enroll', { body: { challenge } })).status).toBe(409)
  harness.clock.move(30)
  const done = await prove({ code: await codeOf(setup.secret) })
  expect(done.body).toMatchObject({ user: { email: 'factor@example.com' }, recovery_codes_remaining: 10 })
  expect((await stranger.send('GET', '/v1/auth/me')).status).toBe(200)
  const { items } = (await stranger.send('GET', '/v1/audit')).body as { items: { action: string; outcome: string }[] }
  expect(items.map(({ action, outcome }) => `${action} ${outcome}`).slice(0, 7)).toEqual([
    'auth.login success',
    'auth.mfa_failed failed',
    'auth.login_mfa_required success',
    'account.mfa_setup_started failed',
    'account.mfa_enabled success',
    'auth.mfa_failed denied',
    'account.mfa_setup_started success',
  ])
})

test('one code opens one session, however many requests bring it at the same moment', async () => {
  const { secret } = await enable(await harness.signUpAndIn('replay@example.com'))
  const asked = await logIn('replay@example.com')
  const code = await codeOf(secret)
  const replies = await Promise.all(
    [1, 2, 3, 4].map((index) =>
      harness
        .openBrowser(`192.0.2.${index}`)
        .send('POST', '/v1/auth/login/mfa', { body: { challenge: asked.body['challenge'], code } }),
    ),
  )
  expect(replies.map((reply) => reply.status).sort()).toEqual([200, 401, 401, 401])
})

test('a recovery code works once, however it is typed, and never for another person', async () => {
  const { codes } = await enable(await harness.signUpAndIn('recovery@example.com'))
  await enable(await harness.signUpAndIn('recovery-other@example.com'))
  const use = async (email: string, code: string) => {
    const asked = await logIn(email)
    return await harness
      .openBrowser()
      .send('POST', '/v1/auth/login/mfa', { body: { challenge: asked.body['challenge'], recovery_code: code } })
  }
  expect((await use('recovery-other@example.com', codes[0]!)).status).toBe(401)
  expect((await use('recovery@example.com', ` ${codes[0]!.toUpperCase().replaceAll('-', ' ')}`)).body).toMatchObject({
    recovery_codes_remaining: 9,
  })
  expect((await use('recovery@example.com', codes[0]!)).status).toBe(401)
  expect(JSON.stringify(await database.db.selectFrom('recovery_code').selectAll().execute())).not.toContain(codes[1])
})

test(
  'five wrong codes lock the factor, not the password, for a ' + 'while that doubles, and its owner is told',
  async () => {
    const { secret } = await enable(await harness.signUpAndIn('lock@example.com'))
    await harness.readMails()
    const attempt = async (code: string, from: string) => {
      const asked = await logIn('lock@example.com', harness.openBrowser(from))
      return await harness
        .openBrowser(from)
        .send('POST', '/v1/auth/login/mfa', { body: { challenge: asked.body['challenge'], code } })
    }
    for (let index = 0; index < 5; index++) expect((await attempt('000000', `203.0.113.${index}`)).status).toBe(401)
    const locked = await attempt(await codeOf(secret), '203.0.113.9')
    expect(locked.status).toBe(429)
    expect((await harness.readMails()).filter((mail) => mail.includes('Your second factor is locked'))).toHaveLength(1)
    harness.clock.move(Number(locked.headers['retry-after']))
    expect((await attempt(await codeOf(secret), '203.0.113.10')).status).toBe(200)
  },
)

test('ten checks a minute for each client address', async () => {
  const browser = harness.openBrowser('203.0.113.77')
  const check = () => browser.send('POST', '/v1/auth/login/mfa', { body: { challenge: 'x', code: '123456' } })
  for (let index = 0; index < 10; index++) expect((await check()).status).toBe(401)
  expect((await check()).status).toBe(429)
})

test('a challenge ends after five minutes, with another password, and is none for another purpose', async () => {
  const { secret } = await enable(await harness.signUpAndIn('challenge@example.com'))
  const asked = await logIn('challenge@example.com')
  const finish = async (challenge: unknown) =>
    (
      await harness
        .openBrowser(`198.18.0.${(checks += 1)}`)
        .send('POST', '/v1/auth/login/mfa', { body: { challenge, code: await codeOf(secret) } })
    ).status
  harness.clock.move(301)
  expect(await finish(asked.body['challenge'])).toBe(401)
  const again = await logIn('challenge@example.com')
  await database.db
    .updateTable('app_user')
    .set((set) => ({ password_generation: set('password_generation', '+', 1) }))
    .where('email', '=', 'challenge@example.com')
    .execute()
  expect(await finish(again.body['challenge'])).toBe(401)
})
let checks = 0

test(
  'an account can require a second factor of everyone: enrolment ' + 'at sign-in, and it cannot be turned off',
  async () => {
    const owner = await harness.signUpAndIn('policy@example.com')
    const me = (await owner.send('GET', '/v1/auth/me')).body as { account_id: string }
    expect((await owner.send('PUT', '/v1/account/mfa/policy', { body: { required: true } })).status).toBe(409)
    const { secret } = await enable(owner)
    const member = await harness.signUpAndIn('enrolled@example.com')
    const user = (await member.send('GET', '/v1/auth/me')).body['user'] as { id: string }
    await database.db
      .insertInto('membership')
      .values({ account_id: me.account_id, user_id: user.id, role: 'admin', joined_at: harness.clock.now() })
      .execute()
    expect((await owner.send('PUT', '/v1/account/mfa/policy', { body: { required: true } })).body).toMatchObject({
      required_by_account: true,
    })
    expect((await member.send('GET', '/v1/auth/me')).status).toBe(200) // open sessions keep running
    expect((await owner.send('DELETE', '/v1/account/mfa/totp', { body: { code: await codeOf(secret) } })).status).toBe(
      409,
    )

    const browser = harness.openBrowser('203.0.113.120')
    const asked = await logIn('enrolled@example.com', browser, { end_other_sessions: true })
    expect(asked.body).toMatchObject({ mfa_step: 'enroll' })
    const { challenge } = asked.body
    expect((await browser.send('POST', '/v1/auth/login/mfa', { body: { challenge, code: '123456' } })).status).toBe(409)
    expect(
      (await browser.send('POST', '/v1/auth/login/mfa/enroll/confirm', { body: { challenge, code: '123456' } })).status,
    ).toBe(409)
    const setup = (await browser.send('POST', '/v1/auth/login/mfa/enroll', { body: { challenge } })).body as {
      secret: string
    }
    const done = await browser.send('POST', '/v1/auth/login/mfa/enroll/confirm', {
      body: { challenge, code: await codeOf(setup.secret) },
    })
    expect(done.body).toMatchObject({ recovery_codes: expect.any(Array), ended_sessions: 1 })
    expect((await browser.send('GET', '/v1/account/mfa')).body).toMatchObject({ totp_enabled: true })
    // of the account that they own
    expect((await browser.send('PUT', '/v1/account/mfa/policy', { body: { required: false } })).status).toBe(200)
  },
)

test('a sign-in with a second factor that ends other sessions ends them at once', async () => {
  const first = await harness.signUpAndIn('elsewhere@example.com')
  const { secret } = await enable(first)
  const browser = harness.openBrowser('203.0.113.121')
  const { challenge } = (await logIn('elsewhere@example.com', browser, { end_other_sessions: true })).body
  const code = await codeOf(secret)
  expect((await first.send('GET', '/v1/auth/me')).status).toBe(200)
  const done = await browser.send('POST', '/v1/auth/login/mfa', { body: { challenge, code } })
  expect(done.body).toMatchObject({ ended_sessions: 1 })
  expect((await first.send('GET', '/v1/auth/me')).status).toBe(401)
})

describe('an account that asks for a second factor is not entered by', () => {
  let count = 0
  /** The owner of such an account, and a person with a separate session, from before they joined it. */
  async function join(prepare: (person: Browser) => Promise<unknown> = async () => undefined) {
    const name = `entering-${(count += 1)}`
    const owner = await harness.signUpAndIn(`owner-of-${name}@example.com`)
    await enable(owner)
    expect((await owner.send('PUT', '/v1/account/mfa/policy', { body: { required: true } })).status).toBe(200)
    const person = await harness.signUpAndIn(`${name}@example.com`)
    await prepare(person)
    harness.clock.move(60)
    const body = { email: `${name}@example.com`, role: 'member' }
    expect((await owner.send('POST', '/v1/account/invitations', { body })).status).toBe(201)
    const invitation = await harness.mailedSecret(body.email)
    const elsewhere = harness.openBrowser(`203.0.113.${200 + count}`)
    const accepted = await elsewhere.send('POST', '/v1/auth/accept-invitation', {
      body: { invitation, password: GOOD_PASSWORD },
    })
    const accountId = (await owner.send('GET', '/v1/auth/me')).body['account_id']
    return { person, elsewhere, accepted, accountId, email: body.email }
  }

  test('an older session of a new member, until they proved one', async () => {
    const { person, elsewhere, accepted, accountId } = await join()
    expect(accepted.body).toMatchObject({ mfa_required: true, mfa_step: 'enroll' })
    expect((await person.send('GET', '/v1/auth/me')).status).toBe(401)

    const { challenge } = accepted.body
    const setup = await elsewhere.send('POST', '/v1/auth/login/mfa/enroll', { body: { challenge } })
    const code = await codeOf(String(setup.body['secret']))
    const entered = await elsewhere.send('POST', '/v1/auth/login/mfa/enroll/confirm', { body: { challenge, code } })
    expect(entered.body).toMatchObject({ user: { account_id: accountId, role: 'member' } })
    expect((await elsewhere.send('GET', '/v1/auth/me')).body).toMatchObject({ account_id: accountId })
    expect((await person.send('GET', '/v1/auth/me')).status).toBe(401)

    // Of the account that they own, which asks for nothing, the older session is as good as it was.
    const { items } = (await elsewhere.send('GET', '/v1/accounts')).body as { items: { id: string }[] }
    const own = items.find(({ id }) => id !== accountId)
    const active = '/v1/accounts/active'
    expect((await elsewhere.send('POST', active, { body: { account_id: own?.id } })).status).toBe(200)
    expect((await person.send('GET', '/v1/auth/me')).body).toMatchObject({ account_id: own?.id })
    const refused = await person.send('POST', active, { body: { account_id: accountId } })
    expect([refused.status, refused.body['reason']]).toEqual([403, 'second_factor_required'])
    expect((await elsewhere.send('POST', active, { body: { account_id: accountId } })).status).toBe(200)
  })

  test('a session whose factor was taken away; one in which it was proven enters', async () => {
    const proven = await join(enable)
    expect((await proven.person.send('GET', '/v1/auth/me')).body).toMatchObject({ account_id: proven.accountId })
    const removed = await join(async (person) => {
      const { codes } = await enable(person)
      const body = { recovery_code: codes[0] }
      expect((await person.send('DELETE', '/v1/account/mfa/totp', { body })).status).toBe(204)
    })
    expect((await removed.person.send('GET', '/v1/auth/me')).status).toBe(401)
  })
})

test('replacing codes and disabling ask for a proof', async () => {
  const browser = await harness.signUpAndIn('off@example.com')
  expect((await browser.send('DELETE', '/v1/account/mfa/totp', { body: { code: '123456' } })).status).toBe(404)
  const { secret, codes } = await enable(browser)
  const replaced = await browser.send('POST', '/v1/account/mfa/recovery-codes', { body: { recovery_code: codes[0] } })
  expect(replaced.body['recovery_codes']).toHaveLength(10)
  const refused = await browser.send('DELETE', '/v1/account/mfa/totp', { body: { recovery_code: codes[1] } })
  expect([refused.status, refused.body['reason']]).toEqual([403, 'second_factor_invalid'])
  expect((await browser.send('DELETE', '/v1/account/mfa/totp', { body: { code: await codeOf(secret) } })).status).toBe(
    204,
  )
  expect((await browser.send('GET', '/v1/account/mfa')).body).toMatchObject({
    totp_enabled: false,
    recovery_codes_remaining: 0,
  })
  expect((await logIn('off@example.com')).body).toHaveProperty('csrf_token')
})

test('a new sealing key takes over at the next use, and the old one may go', async () => {
  const { secret } = await enable(await harness.signUpAndIn('rotate-key@example.com'))
  const sealed = async () =>
    (
      await database.db
        .selectFrom('second_factor')
        .innerJoin('app_user', 'app_user.id', 'user_id')
        .select('sealed_secret')
        .where('email', '=', 'rotate-key@example.com')
        .executeTakeFirstOrThrow()
    ).sealed_secret
  expect(await sealed()).toMatch(/^old\./)
  expect(await sealed()).not.toContain(secret)
  const signIn = async (at: typeof harness) => {
    at.clock.move(harness.clock.now().getTime() / 1000 - at.clock.now().getTime() / 1000 + 31)
    harness.clock.move(31)
    const asked = await logIn('rotate-key@example.com', at.openBrowser('198.18.1.1'))
    return await at.openBrowser('198.18.1.2').send('POST', '/v1/auth/login/mfa', {
      body: { challenge: asked.body['challenge'], code: await codeOf(secret, at.clock.now()) },
    })
  }
  expect((await signIn(await openHarness(database.db, { sealingKeys: [newKey, oldKey] }))).status).toBe(200)
  expect(await sealed()).toMatch(/^new\./)
  expect((await signIn(await openHarness(database.db, { sealingKeys: [newKey] }))).status).toBe(200)
  const keyless = await openHarness(database.db)
  expect((await signIn(keyless)).status).toBe(503)
  const other = await keyless.signUpAndIn('keyless@example.com')
  expect((await other.send('GET', '/v1/account/mfa')).body).toMatchObject({ available: false })
  expect((await other.send('POST', '/v1/account/mfa/totp')).status).toBe(503)
})

test('sealing keys are read strictly', () => {
  const key = Buffer.alloc(32, 7).toString('base64')
  expect(parseSealingKeys(`a:${key}, b:${key}`).map(({ id }) => id)).toEqual(['a', 'b'])
  for (const text of ['a', `:${key}`, 'a:c2hvcnQ=', `a.b:${key}`])
    expect(() => parseSealingKeys(text)).toThrow(/sealing keys are written as/)
})
