/** Somebody signs up with the address of another person, who takes the user over: by a reset of the password, or by the
 *  link that proves the address. */
import { generate } from 'otplib'
import { beforeAll, expect, test } from 'vitest'
import { linkIdentity } from '../../../../db/identity/index.ts'
import { insertSshKey } from '../../../../db/ssh-key/index.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { useDatabase } from '../../../database.ts'
import { type Browser, GOOD_PASSWORD, openHarness } from '../../identity/harness.ts'

const database = useDatabase()
const OWNERS_PASSWORD = 'the passphrase of the owner 7'
let harness: Awaited<ReturnType<typeof openHarness>>
beforeAll(async () => {
  harness = await openHarness(database.db, { sealingKeys: [{ id: 'key', key: systemRandom.bytes(32) }] })
})

async function reset(email: string, more: object = {}) {
  harness.clock.move(60)
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
  return insertSshKey(database.db, accountId, { id, name: id, generation: 1, ...key })
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

/** Somebody signs up with the address of another person and makes all that lets them in again later. */
async function occupy(email: string) {
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
  await eve.send('POST', '/v1/account/invitations', { body: { email: `invited-${email}`, role: 'admin' } })
  const accomplice = await harness.signUpAndIn(`accomplice-${email}`)
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
  const identity = { id: newUuid(systemRandom), userId: user.id, provider: 'p', issuer: 'i', subject: email, email }
  await tx.transaction().execute((inside) => linkIdentity(inside, { ...identity, now: joined_at }))
  await unverify(null)
  harness.clock.move(1)
  return { eve, accountId, user, token }
}

/** The owner is signed in, alone in the account, and nothing of what was made before works. */
async function expectEmptied(owner: Browser, { eve, accountId, user, token }: Awaited<ReturnType<typeof occupy>>) {
  expect((await eve.send('GET', '/v1/auth/me')).status).toBe(401)
  expect((await eve.send('GET', '/v1/account', { token })).status).toBe(401)
  expect(await me(owner)).toMatchObject({ account_id: accountId, user: { id: user.id } })
  const itemsOf = async (path: string) => (await owner.send('GET', path)).body['items'] as { state?: string }[]
  expect(await itemsOf('/v1/account/members')).toHaveLength(1)
  expect(await keysOf(accountId)).toEqual([])
  expect((await itemsOf('/v1/account/invitations')).filter(({ state }) => state === 'pending')).toEqual([])
  const live = await database.db
    .selectFrom('api_token')
    .select('name')
    .where('account_id', '=', accountId)
    .where('revoked_at', 'is', null)
    .execute()
  expect(live).toEqual([])
  expect(await database.db.selectFrom('linked_identity').select('id').where('user_id', '=', user.id).execute()).toEqual(
    [],
  )
  expect(
    await database.db.selectFrom('membership').select('account_id').where('user_id', '=', user.id).execute(),
  ).toEqual([{ account_id: accountId }])
}

const detailOf = async (owner: Browser, action: string) =>
  ((await owner.send('GET', '/v1/audit')).body['items'] as { action: string; detail: object }[]).find(
    (entry) => entry.action === action,
  )?.detail
const logIn = (browser: Browser, email: string, password: string) =>
  browser.send('POST', '/v1/auth/login', { body: { email, password } })

test('nothing that was made before a reset proved the address admits anybody afterwards', async () => {
  const email = 'victim@example.com'
  const occupied = await occupy(email)
  const owner = await reset(email, { end_tokens: false })
  expect((await logIn(owner, email, OWNERS_PASSWORD)).body).not.toHaveProperty('mfa_required')
  await expectEmptied(owner, occupied)
  expect(await detailOf(owner, 'auth.password_reset')).toMatchObject({ memberships: '2' })
})

/** Opens the link that proves the address in the browser. */
async function openLink(browser: Browser, token: string) {
  const opened = await browser.send('POST', '/v1/auth/email-verification/confirm', { body: { token } })
  expect(opened.status).toBe(200)
}

test.each([
  ['in a browser without a session', async () => harness.openBrowser('198.51.100.8')],
  ['in a browser with a session of somebody else', () => harness.signUpAndIn('visitor@example.com')],
])('nothing that was made before the link was opened %s admits anybody afterwards', async (where, open) => {
  const email = `linked-${where.length}@example.com`
  const occupied = await occupy(email)
  await occupied.eve.send('POST', '/v1/auth/email-verification')
  const link = await harness.mailedSecret(email)
  await openLink(await open(), link)
  const owner = harness.openBrowser('198.51.100.9')
  expect((await logIn(owner, email, GOOD_PASSWORD)).body).not.toHaveProperty('mfa_required')
  await expectEmptied(owner, occupied)
  expect(await detailOf(owner, 'auth.email_verified')).toMatchObject({ memberships: '2' })
  const again = await reset(email)
  expect((await logIn(again, email, OWNERS_PASSWORD)).body).not.toHaveProperty('mfa_required')
})

test('a person who opens the link in the browser that is signed in keeps everything', async () => {
  const email = 'holder@example.com'
  const { eve: holder, token, accountId } = await occupy(email)
  await holder.send('POST', '/v1/auth/email-verification')
  await openLink(holder, await harness.mailedSecret(email))
  expect((await holder.send('GET', '/v1/account', { token })).status).toBe(200)
  expect((await holder.send('GET', '/v1/account/members')).body['items']).toHaveLength(2)
  expect(await keysOf(accountId)).toHaveLength(1)
  expect((await logIn(harness.openBrowser('198.51.100.10'), email, GOOD_PASSWORD)).body).toHaveProperty('mfa_required')
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
