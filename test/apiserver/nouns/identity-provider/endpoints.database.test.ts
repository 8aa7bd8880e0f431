import { generate } from 'otplib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { safeReturnTo } from '../../../../apiserver/nouns/identity-provider/endpoints.ts'
import { parseProviders } from '../../../../apiserver/identity/providers/configuration.ts'
import { Namespace } from '../../../../kit/kube/object.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { useDatabase } from '../../../database.ts'
import { type Browser, GOOD_PASSWORD, openHarness } from '../../identity/harness.ts'
import { fakeProvider, ORIGIN, type RealProvider, startProvider } from '../../identity/openid-provider.ts'

const database = useDatabase()
const startsAt = new Date().toISOString()
let real: RealProvider
let harness: Awaited<ReturnType<typeof openHarness>>
const configure = (list: readonly object[]) =>
  parseProviders(
    JSON.stringify(
      list.map((part) => ({ display_name: 'Provider', client_secret: 'secret-of-the-client-0123456789', ...part })),
    ),
  )

beforeAll(async () => {
  const person = (sub: string, rest: object = {}) => ({
    sub,
    email: `${sub.replace('|', '-')}@example.com`,
    email_verified: true,
    name: `Person ${sub}`,
    ...rest,
  })
  real = await startProvider([
    person('new'),
    person('silent'),
    person('linked'),
    person('hijacked'),
    person('invited'),
    person('speaker'),
    person('silent-speaker'),
    person('asked'),
    person('coupon'),
    person('elliptic'),
    person('github|octocat'),
    person('factor'),
    person('claims-anything'),
    person('unverified', { email_verified: false }),
    person('nameless', { email: undefined }),
    person('late'),
    person('shut'),
  ])
  harness = await openHarness(database.db, {
    startsAt,
    sealingKeys: [{ id: 'k', key: systemRandom.bytes(32) }],
    providers: configure([
      {
        name: 'rs256',
        client_id: 'rs256',
        issuer: real.issuer,
        silent_sign_in: true,
        icon: 'platform',
        display_name: 'Platform',
        connections: [{ name: 'github', display_name: 'GitHub' }],
        sign_up_parameters: { screen_hint: 'signup' },
      },
      { name: 'es256', client_id: 'es256', issuer: real.issuer, forced_prompt: 'select_account', callback: 'shared' },
      { name: 'anyone', client_id: 'rs256', issuer: real.issuer, vouches_for_email: false, callback: 'shared' },
      { name: 'gone', client_id: 'x', issuer: 'http://127.0.0.1:9' },
    ]),
  })
})
afterAll(() => real.stop())

let address = 0
const open = () => harness.openBrowser(`2001:db8:9:${((address += 1)).toString(16)}::1`)
const locationOf = (reply: { readonly headers: Readonly<Record<string, unknown>> }): string =>
  String(reply.headers['location'])

async function signIn(
  person: string,
  query = '',
  browser: Browser = open(),
): Promise<{ browser: Browser; location: string; callback: string }> {
  const started = await browser.send('GET', `/v1/auth/oidc/login${query}`)
  expect(started.status).toBe(302)
  const callback = await real.visit(locationOf(started), person)
  return { browser, callback, location: locationOf(await browser.send('GET', callback)) }
}

test('the portal learns which buttons to draw', async () => {
  const { body } = await open().send('GET', '/v1/auth/oidc')
  expect(body).toMatchObject({
    configured: true,
    display_name: 'Platform',
    icon: 'platform',
    silent_sign_in: true,
    connections: [{ name: 'github', display_name: 'GitHub', icon: 'generic' }],
  })
  expect((body['providers'] as { name: string }[]).map(({ name }) => name)).toEqual([
    'rs256',
    'es256',
    'anyone',
    'gone',
  ])
  const without = await openHarness(database.db)
  expect((await without.openBrowser().send('GET', '/v1/auth/oidc')).body).toEqual({
    configured: false,
    connections: [],
    providers: [],
  })
  expect((await without.openBrowser().send('GET', '/v1/auth/oidc/login')).status).toBe(503)
})

test('a start sends the browser with state, nonce and PKCE; the cookie reveals nothing', async () => {
  const browser = open()
  const url = new URL(locationOf(await browser.send('GET', '/v1/auth/oidc/login?prompt=login&connection=github')))
  expect(Object.fromEntries(url.searchParams)).toMatchObject({
    response_type: 'code',
    client_id: 'rs256',
    scope: 'openid profile email',
    code_challenge_method: 'S256',
    prompt: 'login',
    connection: 'github',
    redirect_uri: `${ORIGIN}/v1/auth/oidc/callback/rs256`,
  })
  for (const name of ['state', 'nonce', 'code_challenge'])
    expect(url.searchParams.get(name)?.length).toBeGreaterThan(30)
  expect(Buffer.from(browser.cookies.get('svccloud_oidc')?.split('.')[3] ?? '', 'base64url').toString()).not.toContain(
    url.searchParams.get('state'),
  )
  const signUp = new URL(locationOf(await open().send('GET', '/v1/auth/oidc/signup?connection=github')))
  expect(signUp.searchParams.get('screen_hint')).toBe('signup')
  const direct = new URL(locationOf(await open().send('GET', '/v1/auth/oidc/signup?provider=es256&prompt=login')))
  expect([
    direct.searchParams.get('screen_hint'),
    direct.searchParams.get('prompt'),
    direct.searchParams.get('redirect_uri'),
  ]).toEqual([null, 'select_account', `${ORIGIN}/v1/auth/oidc/callback`])
  for (const query of ['?provider=nobody', '?connection=nothing', '?prompt=consent'])
    expect((await open().send('GET', `/v1/auth/oidc/login${query}`)).status).toBe(400)
  // ignored there
  expect((await open().send('GET', '/v1/auth/oidc/login?connection=nothing&prompt=none')).status).toBe(302)
  expect((await open().send('GET', '/v1/auth/oidc/login?provider=gone')).status).toBe(503)
})

test(
  'a new identity gets an account; the same one is signed in the next ' + 'time; signing out ends the provider session',
  async () => {
    const { browser, location } = await signIn('new', '?return_to=/servers%3Fzone%3Da')
    expect(location).toBe('/servers?zone=a')
    const me = (await browser.send('GET', '/v1/auth/me')).body
    expect(me).toMatchObject({
      email_verified: true,
      user: { email: 'new@example.com', name: 'Person new', role: 'owner' },
      identities: [{ provider: real.issuer, provider_name: 'Platform', subject_hint: '…new' }],
    })
    expect(await harness.store.get(Namespace, { name: accountNamespace(String(me['account_id'])) })).toBeDefined()
    const again = await signIn('new')
    expect(again.location).toBe('/dashboard')
    expect((await again.browser.send('GET', '/v1/auth/me')).body['account_id']).toBe(me['account_id'])
    const out = await again.browser.send('POST', '/v1/auth/logout')
    expect([out.status, new URL(String(out.body['logout_url'])).searchParams.get('post_logout_redirect_uri')]).toEqual([
      200,
      `${ORIGIN}/login`,
    ])
    expect(again.browser.cookies.size).toBe(0)
    expect((await again.browser.send('POST', '/v1/auth/logout')).status).toBe(204)

    const byPassword = await harness.signUpAndIn('by-password@example.com')
    const left = await byPassword.send('POST', '/v1/auth/logout')
    expect([left.status, new URL(String(left.body['logout_url'])).origin]).toEqual([200, new URL(real.issuer).origin])
  },
)

test('ES256 and the shared callback work as well; a subject with a prefix names its connection', async () => {
  expect((await signIn('elliptic', '?provider=es256')).location).toBe('/dashboard')
  const { browser } = await signIn('github|octocat')
  expect((await browser.send('GET', '/v1/auth/me')).body['identities']).toMatchObject([
    { provider_name: 'GitHub', subject_hint: 'github …ocat' },
  ])
})

test('silent sign-in succeeds with a session at the provider and misses without one', async () => {
  expect((await signIn('silent', '?prompt=none')).location).toBe('/login?silent=failed')
  await signIn('silent')
  expect((await signIn('silent', '?prompt=none')).location).toBe('/dashboard')
})

describe('an address that has a user', () => {
  test('is linked when both sides verified it', async () => {
    await harness.signUpAndIn('linked@example.com')
    const { browser, location } = await signIn('linked')
    expect(location).toBe('/dashboard')
    const { identities } = (await browser.send('GET', '/v1/auth/me')).body as { identities: { id: string }[] }
    expect((await browser.send('DELETE', `/v1/account/identities/${newUuid(systemRandom)}`)).status).toBe(404)
    expect((await browser.send('DELETE', `/v1/account/identities/${identities[0]!.id}`)).status).toBe(204)
  })
  test('is never linked when our side did not verify it', async () => {
    await open().send('POST', '/v1/auth/signup', {
      body: { name: 'Mallory', email: 'hijacked@example.com', password: GOOD_PASSWORD },
    })
    expect((await signIn('hijacked')).location).toBe('/login?error=account_exists&provider=rs256')
  })
  test('is never linked from a provider that does not vouch, which opens unverified accounts only', async () => {
    await harness.signUpAndIn('claims-anything@example.com')
    expect((await signIn('claims-anything', '?provider=anyone')).location).toBe(
      '/login?error=account_exists&provider=anyone',
    )
    const { browser, location } = await signIn('late', '?provider=anyone')
    expect(location).toBe('/dashboard')
    expect((await browser.send('GET', '/v1/auth/me')).body).toMatchObject({ email_verified: false })
    const { identities } = (await browser.send('GET', '/v1/auth/me')).body as { identities: { id: string }[] }
    // the last way to sign in
    expect((await browser.send('DELETE', `/v1/account/identities/${identities[0]!.id}`)).status).toBe(409)
  })
})

test('a new person keeps the language of the browser for mails', async () => {
  const german = (): Browser => {
    const browser = open()
    return {
      ...browser,
      send: (method, path, sent = {}) =>
        browser.send(method, path, { ...sent, headers: { ...sent.headers, 'accept-language': 'de' } }),
    }
  }
  const localeOf = async (browser: Browser) =>
    (await browser.send('GET', '/v1/account/preferences')).body['preferences'] as object
  expect(await localeOf((await signIn('speaker', '', german())).browser)).toEqual({ locale: 'de' })
  expect(await localeOf((await signIn('silent-speaker')).browser)).toEqual({})
  const owner = await harness.signUpAndIn('asks@example.com')
  await owner.send('POST', '/v1/account/invitations', { body: { email: 'asked@example.com', role: 'viewer' } })
  expect(await localeOf((await signIn('asked', '', german())).browser)).toEqual({ locale: 'de' })
})

test('a pending invitation of the address is accepted', async () => {
  const owner = await harness.signUpAndIn('inviter@example.com')
  await owner.send('POST', '/v1/account/invitations', { body: { email: 'invited@example.com', role: 'viewer' } })
  const { browser } = await signIn('invited')
  expect((await browser.send('GET', '/v1/auth/me')).body).toMatchObject({
    account_id: (await owner.send('GET', '/v1/auth/me')).body['account_id'],
    user: { role: 'viewer' },
  })
})

test('a coupon rides along to a new account, and its outcome lands with the browser', async () => {
  await database.db
    .insertInto('coupon')
    .values({
      id: newUuid(systemRandom),
      code: 'ride',
      label: 'Ride',
      amount_cents: 500,
      max_redemptions: null,
      credit_days: null,
      created_at: new Date(),
    })
    .execute()
  expect((await signIn('coupon', '?coupon=RIDE&return_to=/welcome')).location).toBe('/welcome?coupon_status=applied')
  expect((await signIn('coupon', '?coupon=RIDE&return_to=/welcome')).location).toBe('/welcome')
})

test(
  'a second factor is asked for after the provider too, and the portal ' + 'continues where the browser wanted to go',
  async () => {
    const { browser } = await signIn('factor')
    const { secret } = (await browser.send('POST', '/v1/account/mfa/totp')).body as { secret: string }
    const code = () => generate({ secret, epoch: Math.floor(harness.clock.now().getTime() / 1000) })
    await browser.send('POST', '/v1/account/mfa/totp/confirm', { body: { code: await code() } })
    harness.clock.move(31)
    const again = await signIn('factor', '?return_to=/servers')
    const landing = new URL(again.location, ORIGIN)
    expect(landing.pathname).toBe('/login/mfa')
    expect(again.browser.cookies.has('svccloud_session')).toBe(false)
    const done = await again.browser.send('POST', '/v1/auth/login/mfa', {
      body: { challenge: new URLSearchParams(landing.hash.slice(1)).get('challenge'), code: await code() },
    })
    expect(done.body).toMatchObject({ return_to: '/servers' })
  },
)

test('what the provider says about the address decides: none, unverified, disabled user', async () => {
  expect((await signIn('nameless')).location).toBe('/login?error=email_missing&provider=rs256')
  expect((await signIn('unverified', '?connection=github')).location).toBe(
    '/login?error=email_unverified&provider=rs256&connection=github',
  )
  await signIn('shut')
  await database.db
    .updateTable('app_user')
    .set({ disabled_at: new Date() })
    .where('email', '=', 'shut@example.com')
    .execute()
  expect((await signIn('shut')).location).toBe('/login?error=provider_error&provider=rs256')
})

describe('a callback is refused', () => {
  const start = async (query = '') => {
    const browser = open()
    return {
      browser,
      callback: await real.visit(locationOf(await browser.send('GET', `/v1/auth/oidc/login${query}`)), 'new'),
    }
  }
  const end = async (browser: Browser, callback: string) => locationOf(await browser.send('GET', callback))
  test('from a browser that did not start it', async () => {
    const { callback } = await start()
    expect(await end(open(), callback)).toBe('/login?error=state_mismatch&provider=rs256')
  })
  test('with another state', async () => {
    const { browser, callback } = await start()
    expect(await end(browser, callback.replace(/state=[^&]*/, 'state=other'))).toBe(
      '/login?error=state_mismatch&provider=rs256',
    )
  })
  test('a second time, even with the cookie kept', async () => {
    const { browser, callback } = await start()
    const kept = browser.cookies.get('svccloud_oidc') ?? ''
    expect(await end(browser, callback)).toBe('/dashboard')
    browser.cookies.set('svccloud_oidc', kept)
    expect(await end(browser, callback)).toBe('/login?error=state_mismatch&provider=rs256')
  })
  test('at the path, or with the parameter, of another provider', async () => {
    const one = await start()
    expect(await end(one.browser, one.callback.replace('/callback/rs256', '/callback/es256'))).toBe(
      '/login?error=state_mismatch&provider=rs256',
    )
    const other = await start()
    expect(await end(other.browser, `${other.callback}&provider=es256`)).toBe(
      '/login?error=state_mismatch&provider=rs256',
    )
  })
  test('after ten minutes', async () => {
    const { browser, callback } = await start()
    harness.clock.move(601)
    expect(await end(browser, callback)).toBe('/login?error=state_mismatch&provider=rs256')
  })
  test('when the provider says error', async () => {
    const { browser, callback } = await start()
    expect(
      await end(
        browser,
        '/v1/auth/oidc/callback/rs256?error=access_denied&' +
          `state=${new URLSearchParams(callback.split('?')[1]).get('state')}`,
      ),
    ).toBe('/login?error=provider_error&provider=rs256')
  })
  test('more than ten times a minute', async () => {
    const browser = harness.openBrowser('203.0.113.200')
    for (let index = 0; index < 10; index++)
      expect((await browser.send('GET', '/v1/auth/oidc/callback?state=x')).status).toBe(302)
    expect((await browser.send('GET', '/v1/auth/oidc/callback?state=x')).status).toBe(429)
  })
})

describe('an ID token', () => {
  const now = () => Math.floor(Date.now() / 1000)
  test.each<[string, object, string]>([
    ['that is right', {}, '/dashboard'],
    ['of ES256', { alg: 'ES256' }, '/dashboard'],
    ['with another nonce', { claims: { nonce: 'other' } }, 'provider_error'],
    ['of another issuer', { claims: { iss: 'https://other.example' } }, 'provider_error'],
    ['for another audience', { claims: { aud: 'other' } }, 'provider_error'],
    ['that has expired', { claims: { exp: now() - 600, iat: now() - 700 } }, 'provider_error'],
    ['signed by a stranger', { hasForeignKey: true }, 'provider_error'],
    ['of another algorithm', { alg: 'PS256' }, 'provider_error'],
    ['that never comes', { tokenStatus: 400 }, 'provider_error'],
    ['from a provider that is down', { tokenStatus: 503 }, 'provider_unavailable'],
    ['without an address', { claims: { email: undefined } }, 'email_missing'],
    ['with an address verified as text', { claims: { email_verified: 'true' } }, 'email_unverified'],
  ])('%s ends as %s', async (_what, answer, end) => {
    const fake = await fakeProvider('https://issuer.example', 'client')
    const at = await openHarness(database.db, {
      startsAt,
      providerFetch: fake.fetch,
      providers: configure([{ name: 'fake', client_id: 'client', issuer: 'https://issuer.example' }]),
    })
    const browser = at.openBrowser(`2001:db8:10:${((address += 1)).toString(16)}::1`)
    const url = new URL(locationOf(await browser.send('GET', '/v1/auth/oidc/login')))
    fake.nonce = url.searchParams.get('nonce') ?? ''
    fake.answer = answer
    const location = locationOf(
      await browser.send('GET', `/v1/auth/oidc/callback/fake?code=c&state=${url.searchParams.get('state')}`),
    )
    expect(location).toBe(end.startsWith('/') ? end : `/login?error=${end}&provider=fake`)
  })

  test.each<[string, object, string]>([
    ['of its tenant, with the verified claim', {}, '/dashboard'],
    ['of a tenant other than its issuer says', { tid: 'other-tenant' }, '/login?error=provider_error&provider=many'],
    ['without the verified claim', { xms_edov: undefined }, '/login?error=email_unverified&provider=many'],
  ])('of the multi-tenant provider %s', async (_what, claims, end) => {
    const issuer = 'https://login.microsoftonline.com/{tenantid}/v2.0'
    const fake = await fakeProvider(issuer, 'client')
    const at = await openHarness(database.db, {
      startsAt,
      providerFetch: fake.fetch,
      providers: configure([
        {
          name: 'many',
          client_id: 'client',
          issuer: 'https://login.microsoftonline.com/common/v2.0',
          is_multi_tenant: true,
        },
      ]),
    })
    const browser = at.openBrowser(`2001:db8:11:${((address += 1)).toString(16)}::1`)
    const url = new URL(locationOf(await browser.send('GET', '/v1/auth/oidc/login')))
    fake.nonce = url.searchParams.get('nonce') ?? ''
    fake.answer = {
      claims: {
        iss: issuer.replace('{tenantid}', 'tenant-1'),
        tid: 'tenant-1',
        oid: 'object-1',
        sub: 'pairwise',
        email: 'tenant@example.com',
        email_verified: undefined,
        xms_edov: true,
        ...claims,
      },
    }
    expect(
      locationOf(
        await browser.send('GET', `/v1/auth/oidc/callback/many?code=c&state=${url.searchParams.get('state')}`),
      ),
    ).toBe(end)
    if (end === '/dashboard')
      expect(
        await database.db.selectFrom('linked_identity').select('subject').where('provider', '=', 'many').execute(),
      ).toEqual([{ subject: 'tenant-1:object-1' }])
  })
})

test('a provider that comes back is asked again', async () => {
  const fake = await fakeProvider('https://issuer.example', 'client')
  const at = await openHarness(database.db, {
    startsAt,
    providerFetch: fake.fetch,
    providers: configure([{ name: 'fake', client_id: 'client', issuer: 'https://issuer.example' }]),
  })
  fake.answer = { discoveryStatus: 500 }
  expect((await at.openBrowser().send('GET', '/v1/auth/oidc/login')).status).toBe(503)
  fake.answer = {}
  expect((await at.openBrowser().send('GET', '/v1/auth/oidc/login')).status).toBe(302)
})

test.each([
  ['/servers?a=1#b', '/servers?a=1#b'],
  ['https://evil.example/', '/dashboard'],
  ['//evil.example', '/dashboard'],
  ['/\\evil.example', '/dashboard'],
  ['/\t/evil.example', '/dashboard'],
  ['javascript:alert(1)', '/dashboard'],
  [undefined, '/dashboard'],
  ['', '/dashboard'],
])('return_to %j continues at %s', (text, path) => expect(safeReturnTo(text, ORIGIN)).toBe(path))
