/** Somebody signs up with the address of another person, who takes the user over by a reset of the password. */
import { generate } from 'otplib'
import { beforeAll, expect, test } from 'vitest'
import { linkIdentity } from '../../../db/identity/index.ts'
import { insertSshKey } from '../../../db/ssh-key/index.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { useDatabase } from '../../database.ts'
import { type Browser, GOOD_PASSWORD, openHarness } from '../identity/harness.ts'

const database = useDatabase()
const OWNERS_PASSWORD = 'the passphrase of the owner 7'
let harness: Awaited<ReturnType<typeof openHarness>>
beforeAll(async () => {
  harness = await openHarness(database.db, { sealingKeys: [{ id: 'key', key: systemRandom.bytes(32) }] })
})

async function reset(email: string, more: object = {}) {
  const owner = harness.openBrowser('198.51.100.7')
  await owner.send('POST', '/v1/auth/password-reset', { body: { email } })
  const token = await harness.mailedSecret(email)
  const body = { token, password: OWNERS_PASSWORD, ...more }
  expect((await owner.send('POST', '/v1/auth/password-reset/confirm', { body })).status).toBe(204)
  return owner
}

const tokenOf = async (browser: Browser, name: string) =>
  String((await browser.send('POST', '/v1/account/tokens', { body: { name, scope: 'read' } })).body['token'])
const addKey = (accountId: string) => {
  const id = newUuid(systemRandom)
  const key = { public_key: `ssh-ed25519 ${id}`, fingerprint: id, created_at: harness.clock.now() }
  return insertSshKey(database.db, accountId, { id, name: id, ...key })
}
const keysOf = (account_id: string) =>
  database.db.selectFrom('ssh_key').select('id').where('account_id', '=', account_id).execute()
const me = async (browser: Browser) =>
  (await browser.send('GET', '/v1/auth/me')).body as { account_id: string; user: { id: string } }

async function signUpUnproven(email: string): Promise<Browser> {
  const browser = harness.openBrowser('203.0.113.66')
  await browser.send('POST', '/v1/auth/signup', { body: { name: 'Eve', email, password: GOOD_PASSWORD } })
  const signedIn = await browser.send('POST', '/v1/auth/login', { body: { email, password: GOOD_PASSWORD } })
  expect(signedIn.status).toBe(200)
  return browser
}

test('nothing that was made before the address was proven lets anybody in afterwards', async () => {
  const email = 'victim@example.com'
  const eve = await signUpUnproven(email)
  const { account_id: accountId, user } = await me(eve)
  // What needs a proven address may have been made by other means, or before it did.
  const tx = database.db
  const unverify = (at: Date | null) =>
    tx.updateTable('app_user').set({ email_verified_at: at }).where('id', '=', user.id).execute()
  await unverify(harness.clock.now())
  harness.clock.move(1)
  const token = await tokenOf(eve, 'kept')
  const { secret } = (await eve.send('POST', '/v1/account/mfa/totp')).body as { secret: string }
  const code = await generate({ secret, epoch: Math.floor(harness.clock.now().getTime() / 1000) })
  expect((await eve.send('POST', '/v1/account/mfa/totp/confirm', { body: { code } })).status).toBe(200)
  await addKey(accountId)
  await eve.send('POST', '/v1/account/invitations', { body: { email: 'accomplice-2@example.com', role: 'admin' } })
  const accomplice = await harness.signUpAndIn('accomplice@example.com')
  const { account_id: theirs, user: other } = await me(accomplice)
  const joined_at = harness.clock.now()
  await tx
    .insertInto('membership')
    .values([
      { account_id: accountId, user_id: other.id, role: 'admin', joined_at },
      { account_id: theirs, user_id: user.id, role: 'member', joined_at },
    ])
    .execute()
  await accomplice.send('POST', '/v1/account/active', { body: { account_id: accountId } })
  const theirToken = newUuid(systemRandom)
  await tx
    .insertInto('api_token')
    .columns(['id', 'account_id', 'user_id', 'name', 'secret_hash', 'scope', 'created_at', 'token_hint'])
    .expression((from) =>
      from
        .selectFrom('api_token')
        .select((column) => [
          column.val(theirToken).as('id'),
          'account_id',
          column.val(other.id).as('user_id'),
          column.val('theirs').as('name'),
          column.val(Buffer.from(theirToken)).as('secret_hash'),
          'scope',
          'created_at',
          'token_hint',
        ])
        .where('account_id', '=', accountId),
    )
    .execute()
  const identity = { id: newUuid(systemRandom), userId: user.id, provider: 'p', issuer: 'i', subject: 'eve', email }
  await tx.transaction().execute((inside) => linkIdentity(inside, { ...identity, now: joined_at }))
  await unverify(null)
  harness.clock.move(1)

  const owner = await reset(email, { end_tokens: false })
  expect((await eve.send('GET', '/v1/auth/me')).status).toBe(401)
  expect((await eve.send('GET', '/v1/account', { token })).status).toBe(401)
  const signedIn = await owner.send('POST', '/v1/auth/login', { body: { email, password: OWNERS_PASSWORD } })
  expect(signedIn.body).not.toHaveProperty('mfa_required')
  expect(await me(owner)).toMatchObject({ account_id: accountId, user: { id: user.id } })
  const itemsOf = async (path: string) => (await owner.send('GET', path)).body['items'] as { state?: string }[]
  expect(await itemsOf('/v1/account/members')).toHaveLength(1)
  expect(await keysOf(accountId)).toEqual([])
  expect((await itemsOf('/v1/account/invitations')).filter(({ state }) => state === 'pending')).toEqual([])
  const live = await tx
    .selectFrom('api_token')
    .select('name')
    .where('account_id', '=', accountId)
    .where('revoked_at', 'is', null)
    .execute()
  expect(live).toEqual([])
  expect(await tx.selectFrom('linked_identity').select('id').where('user_id', '=', user.id).execute()).toEqual([])
  expect(await tx.selectFrom('membership').select('account_id').where('user_id', '=', user.id).execute()).toEqual([
    { account_id: accountId },
  ])
  const entries = (await owner.send('GET', '/v1/audit')).body['items'] as { action: string; detail: object }[]
  expect(entries.find(({ action }) => action === 'auth.password_reset')?.detail).toMatchObject({ memberships: '2' })
})

test('of a user who had proven the address everything but sessions stays, and tokens when asked', async () => {
  const email = 'forgetful@example.com'
  const browser = await harness.signUpAndIn(email)
  const token = await tokenOf(browser, 'kept')
  const { account_id: accountId } = await me(browser)
  await addKey(accountId)
  const owner = await reset(email, { end_tokens: false })
  expect((await owner.send('GET', '/v1/account', { token })).status).toBe(200)
  expect((await browser.send('GET', '/v1/auth/me')).status).toBe(401)
  expect(await keysOf(accountId)).toHaveLength(1)
  await reset(email)
  expect((await owner.send('GET', '/v1/account', { token })).status).toBe(401)
})
