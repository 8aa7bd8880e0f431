/** What signed-in people change about their own sign-in: the password, and where they are signed in. */
import { generate } from 'otplib'
import { beforeAll, expect, test } from 'vitest'
import { systemRandom } from '../../../../kit/sys/random.ts'
import { useDatabase } from '../../../database.ts'
import { type Browser, GOOD_PASSWORD, openHarness } from '../../identity/harness.ts'

const database = useDatabase()
const NEXT_PASSWORD = 'a quieter walk by the river'
let harness: Awaited<ReturnType<typeof openHarness>>
beforeAll(
  async () =>
    void (harness = await openHarness(database.db, { sealingKeys: [{ id: 'k', key: systemRandom.bytes(32) }] })),
)

const logIn = (email: string, password: string, browser = harness.openBrowser()) =>
  browser.send('POST', '/v1/auth/login', { body: { email, password } })
const isSignedIn = async (browser: Browser) => (await browser.send('GET', '/v1/auth/me')).status === 200
const change = (browser: Browser, body: object) => browser.send('PUT', '/v1/account/password', { body })
const actionsOf = async (browser: Browser) =>
  ((await browser.send('GET', '/v1/audit')).body['items'] as { action: string; outcome: string }[]).map(
    ({ action, outcome }) => `${action} ${outcome}`,
  )

test(
  'a password is changed with the current one; other sessions, mailed reset links and open challenges end, and a ' +
    'mail says so',
  async () => {
    const browser = await harness.signUpAndIn('change@example.com')
    const other = harness.openBrowser()
    await logIn('change@example.com', GOOD_PASSWORD, other)
    await harness.openBrowser().send('POST', '/v1/auth/password-reset', { body: { email: 'change@example.com' } })
    const reset = await harness.mailedSecret('change@example.com')

    expect((await change(browser, { current_password: 'not the current one', password: NEXT_PASSWORD })).status).toBe(
      403,
    )
    expect((await change(browser, { current_password: GOOD_PASSWORD, password: 'password1234' })).status).toBe(400)
    expect((await change(browser, { current_password: GOOD_PASSWORD })).status).toBe(400)
    expect(await isSignedIn(other)).toBe(true)
    expect((await change(browser, { current_password: GOOD_PASSWORD, password: NEXT_PASSWORD })).status).toBe(204)
    expect([await isSignedIn(browser), await isSignedIn(other)]).toEqual([true, false])
    expect(
      (
        await harness
          .openBrowser()
          .send('POST', '/v1/auth/password-reset/confirm', { body: { token: reset, password: GOOD_PASSWORD } })
      ).status,
    ).toBe(400)
    expect((await logIn('change@example.com', GOOD_PASSWORD)).status).toBe(401)
    expect((await logIn('change@example.com', NEXT_PASSWORD)).status).toBe(200)
    expect(
      (await harness.readMails()).filter((mail) => mail.includes('Subject: Your password was changed')),
    ).toHaveLength(1)
    expect(await actionsOf(browser)).toEqual(
      expect.arrayContaining(['auth.password_changed success', 'auth.password_changed denied']),
    )
  },
)

test('guesses of the current password count as guesses at sign-in do', async () => {
  const browser = await harness.signUpAndIn('guess@example.com')
  for (let guess = 0; guess < 5; guess++)
    expect((await change(browser, { current_password: `guess number ${guess}`, password: NEXT_PASSWORD })).status).toBe(
      403,
    )
  const locked = await change(browser, { current_password: GOOD_PASSWORD, password: NEXT_PASSWORD })
  expect([locked.status, locked.headers['retry-after']]).toEqual([429, '900'])
  expect((await logIn('guess@example.com', GOOD_PASSWORD)).status).toBe(429)
})

test('who has a second factor proves it to change the password', async () => {
  const browser = await harness.signUpAndIn('proof@example.com')
  const codeOf = (secret: string) => generate({ secret, epoch: Math.floor(harness.clock.now().getTime() / 1000) })
  const { secret } = (await browser.send('POST', '/v1/account/mfa/totp')).body as { secret: string }
  await browser.send('POST', '/v1/account/mfa/totp/confirm', { body: { code: await codeOf(secret) } })
  harness.clock.move(31)
  const passwords = { current_password: GOOD_PASSWORD, password: NEXT_PASSWORD }
  const { challenge } = (await logIn('proof@example.com', GOOD_PASSWORD)).body
  expect((await change(browser, passwords)).status).toBe(400)
  expect((await change(browser, { ...passwords, code: await codeOf(secret), recovery_code: 'x' })).status).toBe(400)
  const wrong = await change(browser, { ...passwords, recovery_code: 'nobody has this one' })
  expect([wrong.status, wrong.body['reason']]).toEqual([403, 'second_factor_invalid'])
  expect((await change(browser, { ...passwords, code: await codeOf(secret) })).status).toBe(204)
  harness.clock.move(31)
  const stale = await harness
    .openBrowser()
    .send('POST', '/v1/auth/login/mfa', { body: { challenge, code: await codeOf(secret) } })
  expect(stale.status).toBe(401)
})

test('people see where they are signed in and end one session, only their own', async () => {
  const browser = await harness.signUpAndIn('where@example.com')
  const phone = harness.openBrowser('203.0.113.77')
  harness.clock.move(61)
  await phone.send('POST', '/v1/auth/login', {
    body: { email: 'where@example.com', password: GOOD_PASSWORD },
    headers: { 'user-agent': 'Phone/1' },
  })
  const list = async () =>
    (await browser.send('GET', '/v1/account/sessions')).body['items'] as {
      id: string
      is_current: boolean
      user_agent: string
      source_ip: string
    }[]
  const [first, second] = await list()
  expect([first, second].map((session) => session?.is_current).sort()).toEqual([false, true])
  const ofPhone = (await list()).find(({ is_current }) => !is_current)
  expect(ofPhone).toMatchObject({ user_agent: 'Phone/1', source_ip: '203.0.113.77' })

  const stranger = await harness.signUpAndIn('elsewhere@example.com')
  expect((await stranger.send('DELETE', `/v1/account/sessions/${ofPhone?.id}`)).status).toBe(404)
  expect((await browser.send('DELETE', '/v1/account/sessions/nonsense')).status).toBe(404)
  expect(await isSignedIn(phone)).toBe(true)
  expect((await browser.send('DELETE', `/v1/account/sessions/${ofPhone?.id}`)).status).toBe(204)
  expect([await isSignedIn(phone), await isSignedIn(browser)]).toEqual([false, true])
  expect((await browser.send('DELETE', `/v1/account/sessions/${ofPhone?.id}`)).status).toBe(404)
  expect(await actionsOf(browser)).toContain('auth.session_ended success')
  const [own] = await list()
  expect((await browser.send('DELETE', `/v1/account/sessions/${own?.id}`)).status).toBe(204)
  expect(browser.cookies.size).toBe(0)
})
