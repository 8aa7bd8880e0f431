import { generate } from 'otplib'
import { expect, test } from 'vitest'
import { systemRandom } from '../../../kit/sys/random.ts'
import { useDatabase } from '../../database.ts'
import { GOOD_PASSWORD, openHarness } from './harness.ts'
import { openLogGuard } from './log-guard.ts'

const database = useDatabase()

test('no password, token, cookie, code or mailed secret is ever logged', async () => {
  const harness = await openHarness(database.db, { sealingKeys: [{ id: 'k', key: systemRandom.bytes(32) }] })
  const browser = harness.openBrowser()
  await browser.send('POST', '/v1/auth/signup', {
    body: { name: 'L', email: 'logged@example.com', password: GOOD_PASSWORD },
  })
  const verification = await harness.mailedSecret('logged@example.com')
  await browser.send('POST', '/v1/auth/email-verification/confirm', { body: { token: verification } })
  await browser.send('POST', '/v1/auth/login', {
    body: { email: 'logged@example.com', password: 'a wrong password here' },
  })
  await browser.send('POST', '/v1/auth/login', { body: { email: 'logged@example.com', password: GOOD_PASSWORD } })
  const token = String(
    (await browser.send('POST', '/v1/account/tokens', { body: { name: 't', scope: 'read' } })).body['token'],
  )
  harness.guard.learn(token.slice(11, 40))
  await harness.openBrowser().send('GET', '/v1/audit', { token })
  const setup = (await browser.send('POST', '/v1/account/mfa/totp')).body as { secret: string }
  const code = await generate({ secret: setup.secret, epoch: Math.floor(harness.clock.now().getTime() / 1000) })
  expect((await browser.send('POST', '/v1/account/mfa/totp/confirm', { body: { code } })).status).toBe(200)
  await browser.send('POST', '/v1/account/invitations', { body: { email: 'guest@example.com', role: 'viewer' } })
  const invitation = await harness.mailedSecret('guest@example.com')
  expect((await browser.send('GET', `/v1/auth/invitation?invitation=${invitation}`)).status).toBe(200)
  await browser.send('POST', '/v1/auth/password-reset', { body: { email: 'logged@example.com' } })
  const reset = await harness.mailedSecret('logged@example.com')
  expect(
    (
      await browser.send('POST', '/v1/auth/password-reset/confirm', {
        body: { token: reset, password: 'the next fine passphrase' },
      })
    ).status,
  ).toBe(204)
  expect(harness.guard.searched()).toBeGreaterThan(10)
})

test('the search finds what it looks for: in messages, fields and the causes of errors', () => {
  for (const fields of [
    { path: '/x?token=0123456789abcdef' },
    { deep: { body: ['0123456789abcdef'] } },
    { error: new Error('outside', { cause: new Error('0123456789abcdef') }) },
  ]) {
    const guard = openLogGuard()
    guard.learnFrom({ api_token: { token: '0123456789abcdef' } })
    guard.log.info('fine', { status: 200 })
    expect(() => guard.check()).not.toThrow()
    guard.log.info('not fine', fields)
    expect(() => guard.check()).toThrow('a secret was logged')
  }
})
