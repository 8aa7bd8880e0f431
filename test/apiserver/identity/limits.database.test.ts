/** The contract's limits of requests, each driven to its edge: the last one is admitted, one more learns how long to
 *  wait, other addresses are not touched, and the window passes. */
import { beforeAll, expect, test } from 'vitest'
import { useDatabase } from '../../database.ts'
import { type Browser, GOOD_PASSWORD, openHarness } from './harness.ts'

const database = useDatabase()
let harness: Awaited<ReturnType<typeof openHarness>>
beforeAll(async () => void (harness = await openHarness(database.db)))

let number = 0
const password = GOOD_PASSWORD
const newEmail = () => `limit-${(number += 1)}@example.com`
const token = 'A'.repeat(43)

test.each<[name: string, perMinute: number, method: string, path: string, body: () => object | undefined]>([
  ['sign-up', 5, 'POST', '/v1/auth/signup', () => ({ name: 'L', email: newEmail(), password })],
  ['login', 10, 'POST', '/v1/auth/login', () => ({ email: newEmail(), password })],
  ['second-factor verification', 10, 'POST', '/v1/auth/login/mfa', () => ({ challenge: 'none', code: '123456' })],
  ['second-factor enrolment', 10, 'POST', '/v1/auth/login/mfa/enroll', () => ({ challenge: 'none' })],
  [
    'second-factor confirmation',
    10,
    'POST',
    '/v1/auth/login/mfa/enroll/confirm',
    () => ({ challenge: 'none', code: '123456' }),
  ],
  ['identity-provider login start', 20, 'GET', '/v1/auth/oidc/login', () => undefined],
  ['identity-provider sign-up start', 20, 'GET', '/v1/auth/oidc/signup', () => undefined],
  ['identity-provider callback', 10, 'GET', '/v1/auth/oidc/callback?state=x', () => undefined],
  ['identity-provider callback at a provider', 10, 'GET', '/v1/auth/oidc/callback/any?state=x', () => undefined],
  ['invitation lookup', 20, 'GET', `/v1/auth/invitation?invitation=${token}`, () => undefined],
  ['invitation accept', 10, 'POST', '/v1/auth/accept-invitation', () => ({ invitation: token, password })],
  ['support handoff', 10, 'POST', '/v1/auth/support-handoff', () => ({ code: token })],
  ['password reset', 5, 'POST', '/v1/auth/password-reset', () => ({ email: newEmail() })],
  ['password reset confirmation', 10, 'POST', '/v1/auth/password-reset/confirm', () => ({ token, password })],
  ['email verification confirmation', 20, 'POST', '/v1/auth/email-verification/confirm', () => ({ token })],
])('%s: %d a minute for each client address', async (_name, perMinute, method, path, body) => {
  harness.clock.move(60)
  const from = `203.0.113.${(number += 1) % 250}`
  const other = `2001:db8:77:${number}::1`
  const send = (address = from) => harness.openBrowser(address).send(method, path, { body: body() })
  for (let sent = 0; sent < perMinute; sent++) expect((await send()).status).not.toBe(429)
  const refused = await send()
  expect([refused.status, refused.body['reason']]).toEqual([429, 'rate_limited'])
  const waitSeconds = Number(refused.headers['retry-after'])
  expect(waitSeconds).toBeGreaterThan(0)
  expect(waitSeconds).toBeLessThanOrEqual(60)
  expect((await send(other)).status).not.toBe(429)
  harness.clock.move(waitSeconds)
  expect((await send()).status).not.toBe(429)
})

async function unverified(): Promise<Browser> {
  const email = newEmail()
  const browser = harness.openBrowser(`198.51.100.${100 + (number % 100)}`)
  await browser.send('POST', '/v1/auth/signup', { body: { name: 'L', email, password } })
  await browser.send('POST', '/v1/auth/login', { body: { email, password } })
  return browser
}

test('the verification link is mailed once a minute and five times an hour for each person', async () => {
  const browser = await unverified()
  const send = () => browser.send('POST', '/v1/auth/email-verification')
  for (let sent = 0; sent < 5; sent++) {
    expect((await send()).status).toBe(202)
    expect((await send()).status).toBe(429)
    harness.clock.move(61)
  }
  expect((await send()).status).toBe(429)
  harness.clock.move(3_600)
  expect((await send()).status).toBe(202)
})

test('coupons are tried ten times an hour for each account', async () => {
  const browser = await harness.signUpAndIn(newEmail())
  const redeem = async () =>
    (await browser.send('POST', '/v1/account/coupons', { body: { code: 'NO-SUCH-COUPON' } })).status
  for (let tried = 0; tried < 10; tried++) expect(await redeem()).toBe(422)
  expect(await redeem()).toBe(429)
  harness.clock.move(3_600)
  expect(await redeem()).toBe(422)
})
