import { generate } from 'otplib'
import { expect, test } from 'vitest'
import { describeError, type LogFields, type Logger } from '../../../kit/sys/log.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { useDatabase } from '../../database.ts'
import { GOOD_PASSWORD, openHarness } from './harness.ts'

const database = useDatabase()

test('no password, token, cookie, code or mailed secret is ever logged', async () => {
  const lines: string[] = []
  const write = (message: string, fields?: LogFields) => void lines.push(JSON.stringify({ message, ...fields, error: fields?.error === undefined ? undefined : describeError(fields.error) }))
  const log: Logger = { debug: write, info: write, warn: write, error: write, with: () => log }
  const harness = await openHarness(database.db, { log, sealingKeys: [{ id: 'k', key: systemRandom.bytes(32) }] })
  const secrets: string[] = [GOOD_PASSWORD, 'a wrong password here', 'the next fine passphrase']
  const browser = harness.openBrowser()
  await browser.send('POST', '/v1/auth/signup', { body: { name: 'L', email: 'logged@example.com', password: GOOD_PASSWORD } })
  const verification = await harness.mailedSecret('logged@example.com')
  await browser.send('POST', '/v1/auth/email-verification/confirm', { body: { token: verification } })
  await browser.send('POST', '/v1/auth/login', { body: { email: 'logged@example.com', password: 'a wrong password here' } })
  await browser.send('POST', '/v1/auth/login', { body: { email: 'logged@example.com', password: GOOD_PASSWORD } })
  const token = String((await browser.send('POST', '/v1/account/tokens', { body: { name: 't', scope: 'read' } })).body['token'])
  await harness.openBrowser().send('GET', '/v1/audit', { token })
  const setup = (await browser.send('POST', '/v1/account/mfa/totp')).body as { secret: string }
  const code = await generate({ secret: setup.secret, epoch: Math.floor(harness.clock.now().getTime() / 1000) })
  const codes = (await browser.send('POST', '/v1/account/mfa/totp/confirm', { body: { code } })).body['recovery_codes'] as string[]
  await browser.send('POST', '/v1/account/invitations', { body: { email: 'guest@example.com', role: 'viewer' } })
  const invitation = await harness.mailedSecret('guest@example.com')
  await browser.send('GET', `/v1/auth/invitation?invitation=${invitation}`)
  await browser.send('POST', '/v1/auth/password-reset', { body: { email: 'logged@example.com' } })
  const reset = await harness.mailedSecret('logged@example.com')
  await browser.send('POST', '/v1/auth/password-reset/confirm', { body: { token: reset, password: 'the next fine passphrase' } })
  secrets.push(verification, token, token.slice(11, 40), setup.secret, ...codes, invitation, reset, ...browser.cookies.values())

  expect(lines.length).toBeGreaterThan(10)
  const everything = lines.join('\n')
  for (const secret of secrets) expect(everything).not.toContain(secret)
  expect(everything).not.toMatch(/\$argon2id\$/)
})
