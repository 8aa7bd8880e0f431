import { beforeAll, expect, test } from 'vitest'
import { useDatabase } from '../../../database.ts'
import { type Browser, GOOD_PASSWORD, openHarness } from '../../identity/harness.ts'

const database = useDatabase()
let harness: Awaited<ReturnType<typeof openHarness>>
beforeAll(async () => void (harness = await openHarness(database.db)))

interface Me {
  readonly account_id: string
  readonly user: { readonly id: string; readonly role: string }
}
const meOf = async (browser: Browser) => (await browser.send('GET', '/v1/auth/me')).body as unknown as Me
const invite = async (owner: Browser, email: string, role: string) => {
  const reply = await owner.send('POST', '/v1/account/invitations', { body: { email, role } })
  return { reply, id: (reply.body['invitation'] as { id: string } | undefined)?.id ?? '' }
}
async function join(owner: Browser, email: string, role: string): Promise<Browser> {
  await invite(owner, email, role)
  const browser = harness.openBrowser()
  harness.clock.move(7)
  const accepted = await browser.send('POST', '/v1/auth/accept-invitation', {
    body: { invitation: await harness.mailedSecret(email), password: GOOD_PASSWORD },
  })
  expect(accepted.status).toBe(201)
  return browser
}

test('who joins with a browser keeps its language for mails, and loses none that was chosen', async () => {
  const owner = await harness.signUpAndIn('speaks@example.com')
  await owner.send('PUT', '/v1/account/preferences', { body: { preferences: { locale: 'en' } } })
  const accept = async (email: string, from: Browser) => {
    await invite(from, email, 'member')
    const browser = harness.openBrowser()
    harness.clock.move(7)
    await browser.send('POST', '/v1/auth/accept-invitation', {
      body: { invitation: await harness.mailedSecret(email), password: GOOD_PASSWORD },
      headers: { 'accept-language': 'de-DE,de;q=0.9' },
    })
    return (await browser.send('GET', '/v1/account/preferences')).body
  }
  expect(await accept('joins@example.com', owner)).toMatchObject({ preferences: { locale: 'de' } })
  const other = await harness.signUpAndIn('invites@example.com')
  expect(await accept('speaks@example.com', other)).toMatchObject({ preferences: { locale: 'en' } })
})

test('a stranger is invited, looks the invitation up, joins with a password and is signed in', async () => {
  const owner = await harness.signUpAndIn('owner@example.com')
  const { reply } = await invite(owner, ' New@Example.com ', 'member')
  expect(reply.body).toMatchObject({
    invitation: { email: 'new@example.com', role: 'member', state: 'pending', invited_by_email: 'owner@example.com' },
  })
  expect((await invite(owner, 'new@example.com', 'viewer')).reply).toMatchObject({
    status: 409,
    body: { resource: { type: 'invitation', id: (reply.body['invitation'] as { id: string }).id } },
  })
  const invitation = await harness.mailedSecret('new@example.com')
  const browser = harness.openBrowser()
  expect((await browser.send('GET', `/v1/auth/invitation?invitation=${invitation}`)).body).toMatchObject({
    email: 'new@example.com',
    role: 'member',
    account_name: 'Ada',
  })
  const accept = (password: string) =>
    browser.send('POST', '/v1/auth/accept-invitation', { body: { invitation, password } })
  expect((await accept('short')).status).toBe(400)
  const accepted = await accept(GOOD_PASSWORD)
  expect(accepted.body).toMatchObject({
    user: { email: 'new@example.com', role: 'member', account_id: (await meOf(owner)).account_id },
  })
  expect(await meOf(browser)).toMatchObject({ email_verified: true })
  expect((await accept(GOOD_PASSWORD)).status).toBe(409)
  expect((await browser.send('GET', `/v1/auth/invitation?invitation=${invitation}`)).status).toBe(404)
  expect((await browser.send('GET', '/v1/auth/invitation?invitation=x')).status).toBe(400)
  const members = (await browser.send('GET', '/v1/account/members')).body['items'] as object[]
  expect(members).toMatchObject([
    { email: 'owner@example.com', role: 'owner', is_self: false },
    {
      email: 'new@example.com',
      role: 'member',
      is_self: true,
      name: null,
      second_factor_enabled: false,
      last_active_at: harness.clock.now().toISOString(),
    },
  ])
  expect((await invite(owner, 'new@example.com', 'viewer')).reply, 'a member already').toMatchObject({
    status: 409,
    body: { resource: { type: 'user', id: (accepted.body['user'] as { id: string }).id } },
  })
})

test('a person with a user joins with their own password and goes back to their own account when removed', async () => {
  const owner = await harness.signUpAndIn('owner2@example.com')
  const person = await harness.signUpAndIn('person@example.com')
  const own = await meOf(person)
  await invite(owner, 'person@example.com', 'admin')
  const invitation = await harness.mailedSecret('person@example.com')
  const other = harness.openBrowser()
  const accept = (password: string) =>
    other.send('POST', '/v1/auth/accept-invitation', { body: { invitation, password } })
  expect((await accept('not their password')).status).toBe(400)
  expect((await accept(GOOD_PASSWORD)).body).toMatchObject({
    user: { role: 'admin', account_id: (await meOf(owner)).account_id },
  })
  harness.clock.move(1)
  expect((await meOf(person)).account_id).toBe((await meOf(owner)).account_id) // every session acts for it now
  const { token } = (await other.send('POST', '/v1/account/tokens', { body: { name: 'their token', scope: 'read' } }))
    .body
  expect((await owner.send('DELETE', `/v1/account/members/${own.user.id}`)).status).toBe(204)
  expect((await other.send('GET', '/v1/auth/me')).status).toBe(401)
  expect((await harness.openBrowser().send('GET', '/v1/audit', { token: String(token) })).status).toBe(401)
  const again = await harness
    .openBrowser()
    .send('POST', '/v1/auth/login', { body: { email: 'person@example.com', password: GOOD_PASSWORD } })
  expect(again.body['user']).toMatchObject({ account_id: own.account_id, role: 'owner' })
})

test('the tokens of a member who was removed stay dead when they join again', async () => {
  const owner = await harness.signUpAndIn('owner3@example.com')
  const member = await join(owner, 'returning@example.com', 'admin')
  const { user } = await meOf(member)
  const { token } = (await member.send('POST', '/v1/account/tokens', { body: { name: 'old', scope: 'read' } })).body
  const use = async () => (await harness.openBrowser().send('GET', '/v1/audit', { token: String(token) })).status
  expect(await use()).toBe(200)
  expect((await owner.send('DELETE', `/v1/account/members/${user.id}`)).status).toBe(204)
  const again = await join(owner, 'returning@example.com', 'admin')
  expect((await meOf(again)).user.id).toBe(user.id)
  harness.clock.move(1)
  expect(await use()).toBe(401)
})

test('who guesses at the password of an invited user is locked out, and the right one waits too', async () => {
  const owner = await harness.signUpAndIn('owner4@example.com')
  await harness.signUpAndIn('guessed@example.com')
  await invite(owner, 'guessed@example.com', 'viewer')
  const invitation = await harness.mailedSecret('guessed@example.com')
  const accept = async (password: string, address: string) => {
    harness.clock.move(7)
    const body = { invitation, password }
    return (await harness.openBrowser(address).send('POST', '/v1/auth/accept-invitation', { body })).status
  }
  // Each from another address: it is the user who is guessed at.
  for (let guess = 0; guess < 5; guess++)
    expect(await accept(`not the password ${guess}`, `203.0.113.${guess + 70}`)).toBe(400)
  expect(await accept(GOOD_PASSWORD, '203.0.113.80')).toBe(429)
  const logIn = await harness
    .openBrowser('203.0.113.81')
    .send('POST', '/v1/auth/login', { body: { email: 'guessed@example.com', password: GOOD_PASSWORD } })
  expect(logIn.status).toBe(429)
  harness.clock.move(900)
  expect(await accept(GOOD_PASSWORD, '203.0.113.82')).toBe(201)
})

test('roles change at once; nobody changes the owner or themselves; only those who manage members may', async () => {
  const owner = await harness.signUpAndIn('roles@example.com')
  const [admin, member] = [
    await join(owner, 'admin@example.com', 'admin'),
    await join(owner, 'plain@example.com', 'member'),
  ]
  const [ownerId, adminId, memberId] = [
    (await meOf(owner)).user.id,
    (await meOf(admin)).user.id,
    (await meOf(member)).user.id,
  ]
  const change = async (by: Browser, id: string, role: string) =>
    (await by.send('PATCH', `/v1/account/members/${id}`, { body: { role } })).status
  expect(await change(admin, ownerId, 'viewer')).toBe(403)
  expect(await change(admin, adminId, 'viewer')).toBe(403)
  expect(await change(member, adminId, 'viewer')).toBe(403)
  expect(await change(admin, memberId, 'owner')).toBe(400)
  expect(await change(admin, memberId, 'viewer')).toBe(200)
  expect((await meOf(member)).user.role).toBe('viewer')
  expect((await member.send('GET', '/v1/account/invitations')).status).toBe(403)
  const stranger = await harness.signUpAndIn('stranger@example.com')
  expect(await change(stranger, memberId, 'admin')).toBe(404)
  expect((await stranger.send('DELETE', `/v1/account/members/${memberId}`)).status).toBe(404)
  expect((await member.send('DELETE', `/v1/account/members/${adminId}`)).status).toBe(403)
  expect((await owner.send('DELETE', `/v1/account/members/${ownerId}`)).status).toBe(403)
  expect((await member.send('DELETE', `/v1/account/members/${memberId}`)).status).toBe(204) // a viewer may leave
  expect((await member.send('GET', '/v1/auth/me')).status).toBe(401)
  const alone = await harness
    .openBrowser()
    .send('POST', '/v1/auth/login', { body: { email: 'plain@example.com', password: GOOD_PASSWORD } })
  expect(alone.status).toBe(403) // no longer belongs to an account
})

test('an invitation is sent again, revoked, and expires', async () => {
  const owner = await harness.signUpAndIn('life@example.com')
  const { id } = await invite(owner, 'guest@example.com', 'viewer')
  const first = await harness.mailedSecret('guest@example.com')
  harness.clock.move(3600)
  expect((await owner.send('POST', `/v1/account/invitations/${id}/resend`)).status).toBe(200)
  const second = await harness.mailedSecret('guest@example.com')
  const status = async (invitation: string) =>
    (await harness.openBrowser().send('GET', `/v1/auth/invitation?invitation=${invitation}`)).status
  expect([await status(first), await status(second)]).toEqual([404, 200])
  expect((await owner.send('DELETE', `/v1/account/invitations/${id}`)).status).toBe(204)
  expect(await status(second)).toBe(404)
  expect((await owner.send('DELETE', `/v1/account/invitations/${id}`)).status).toBe(409)
  expect((await owner.send('POST', `/v1/account/invitations/${id}/resend`)).status).toBe(409)

  await invite(owner, 'guest@example.com', 'viewer')
  const third = await harness.mailedSecret('guest@example.com')
  harness.clock.move(7 * 86_400)
  expect(await status(third)).toBe(404)
  const again = await harness
    .openBrowser()
    .send('POST', '/v1/auth/login', { body: { email: 'life@example.com', password: GOOD_PASSWORD } })
  expect(again.status).toBe(200)
  for (const [name, value] of [again.headers['set-cookie'] ?? []]
    .flat()
    .map((cookie) => cookie.split(';')[0]!.split('=')))
    owner.cookies.set(name!, value!)
  expect(
    ((await owner.send('GET', '/v1/account/invitations')).body['items'] as { state: string }[]).map(
      ({ state }) => state,
    ),
  ).toEqual(['expired', 'revoked'])
})

test(
  'fifty invitations may be pending; an unverified owner invites ' + 'nobody; without mail nobody is invited',
  async () => {
    const owner = await harness.signUpAndIn('fifty@example.com')
    const replies = await Promise.all(
      Array.from({ length: 52 }, (_, index) => invite(owner, `guest-${index}@example.com`, 'viewer')),
    )
    expect(replies.filter(({ reply }) => reply.status === 201)).toHaveLength(50)
    expect(replies.filter(({ reply }) => reply.status === 422)).toHaveLength(2)
    const unverified = harness.openBrowser('203.0.113.60')
    await unverified.send('POST', '/v1/auth/signup', {
      body: { name: 'U', email: 'unverified@example.com', password: GOOD_PASSWORD },
    })
    await unverified.send('POST', '/v1/auth/login', {
      body: { email: 'unverified@example.com', password: GOOD_PASSWORD },
    })
    const refused = (await invite(unverified, 'x@example.com', 'viewer')).reply
    expect([refused.status, refused.body['reason']]).toEqual([403, 'email_unverified'])
    const silent = await openHarness(database.db, { canSendMail: false })
    const browser = silent.openBrowser()
    await browser.send('POST', '/v1/auth/login', { body: { email: 'fifty@example.com', password: GOOD_PASSWORD } })
    expect((await invite(browser, 'y@example.com', 'viewer')).reply.status).toBe(503)
  },
)

test('a password is reset by mail: one answer for everybody, once, within half an hour, ending sessions', async () => {
  const browser = await harness.signUpAndIn('forgot@example.com')
  const stranger = harness.openBrowser('203.0.113.61')
  const request = async (email: string) => {
    harness.clock.move(13)
    return await stranger.send('POST', '/v1/auth/password-reset', { body: { email } })
  }
  const [known, unknown] = [await request('forgot@example.com'), await request('nobody@example.com')]
  expect([known.status, known.body['detail']]).toEqual([unknown.status, unknown.body['detail']])
  const first = await harness.mailedSecret('forgot@example.com')
  await request('forgot@example.com')
  const second = await harness.mailedSecret('forgot@example.com')
  const confirm = async (token: string, password: string) => {
    harness.clock.move(7)
    return (await stranger.send('POST', '/v1/auth/password-reset/confirm', { body: { token, password } })).status
  }
  expect(await confirm(first, 'another fine passphrase 1')).toBe(400)
  expect(await confirm(second, 'short')).toBe(400)
  expect(await confirm(second, 'another fine passphrase 1')).toBe(204)
  expect(await confirm(second, 'another fine passphrase 2')).toBe(400)
  expect((await browser.send('GET', '/v1/auth/me')).status).toBe(401)
  expect(
    (
      await stranger.send('POST', '/v1/auth/login', {
        body: { email: 'forgot@example.com', password: GOOD_PASSWORD },
      })
    ).status,
  ).toBe(401)
  expect(
    (
      await stranger.send('POST', '/v1/auth/login', {
        body: { email: 'forgot@example.com', password: 'another fine passphrase 1' },
      })
    ).status,
  ).toBe(200)
  await request('forgot@example.com')
  const late = await harness.mailedSecret('forgot@example.com')
  harness.clock.move(1800)
  expect(await confirm(late, 'another fine passphrase 3')).toBe(400)
  expect((await request('forgot@example.com')).status).toBe(429) // three an hour for each address
})
