import { beforeAll, expect, test } from 'vitest'
import { readOrganisations } from '../../../../domain/account/organisations.ts'
import { parseProviders } from '../../../../apiserver/identity/providers/configuration.ts'
import { Namespace } from '../../../../kit/kube/object.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { useDatabase } from '../../../database.ts'
import { type Browser, openHarness } from '../../identity/harness.ts'
import { fakeProvider } from '../../identity/openid-provider.ts'

const database = useDatabase()
const ISSUER = 'https://platform.example'
let harness: Awaited<ReturnType<typeof openHarness>>
let platform: Awaited<ReturnType<typeof fakeProvider>>
beforeAll(async () => {
  platform = await fakeProvider(ISSUER, 'client')
  harness = await openHarness(database.db, {
    startsAt: new Date().toISOString(),
    providerFetch: platform.fetch,
    providers: parseProviders(
      JSON.stringify([
        {
          name: 'platform',
          display_name: 'Platform',
          client_id: 'client',
          client_secret: 's',
          issuer: ISSUER,
          organisations_claim: 'organisations',
          create_organisation_url: 'https://platform.example/new',
        },
      ]),
    ),
  })
})

let address = 0
/** Signs the person in with the platform, which lists these organisations. */
async function signIn(name: string, organisations: readonly object[]): Promise<Browser> {
  const browser = harness.openBrowser(`2001:db8:20:${((address += 1)).toString(16)}::1`)
  const url = new URL(String((await browser.send('GET', '/v1/auth/oidc/login')).headers['location']))
  platform.nonce = url.searchParams.get('nonce') ?? ''
  platform.answer = { claims: { sub: name, email: `${name}@example.com`, name, organisations } }
  expect(
    (await browser.send('GET', `/v1/auth/oidc/callback/platform?code=c&state=${url.searchParams.get('state')}`))
      .headers['location'],
  ).toBe('/dashboard')
  return browser
}
const organisation = (name: string, id = newUuid(systemRandom)) => ({
  id,
  name,
  as: (role: string) => ({ id, name, role }),
})
const meOf = async (browser: Browser) =>
  (await browser.send('GET', '/v1/auth/me')).body as { account_id: string; user: { id: string; role: string } }
const switchTo = (browser: Browser, body: object) => browser.send('POST', '/v1/accounts/active', { body })

test('the claim is read strictly, and what is malformed is left out', () => {
  const id = newUuid(systemRandom)
  expect(
    readOrganisations([
      { id, name: 'A', role: 'admin' },
      { id: 'x', name: 'B', role: 'admin' },
      null,
      'text',
      { id, name: 'Again', role: 'viewer' },
    ]),
  ).toEqual([{ id, name: 'Again', platformRole: 'viewer' }])
  expect(readOrganisations('all of them')).toBeUndefined()
})

test(
  'an administrator opens the account of an organisation, its ' + 'members reach it, and everybody switches',
  async () => {
    const acme = organisation('Acme')
    const ada = await signIn('ada', [acme.as('owner')])
    const own = (await meOf(ada)).account_id
    expect((await ada.send('GET', '/v1/accounts')).body).toMatchObject({
      items: [{ id: own, is_own_account: true, is_active: true, organisation: null }],
      organisations: [{ organisation: { name: 'Acme' }, platform_role: 'owner', role: 'admin', is_current: false }],
      connected: true,
      create_organisation_url: 'https://platform.example/new',
    })
    const opened = await switchTo(ada, { organisation_id: acme.id })
    expect(opened.body['account']).toMatchObject({
      name: 'Acme',
      role: 'owner',
      is_own_account: false,
      is_active: true,
      organisation: { id: acme.id, is_owner_retained: false },
    })
    const account = (await meOf(ada)).account_id
    expect(await harness.store.get(Namespace, { name: accountNamespace(account) })).toBeDefined()
    expect(
      ((await ada.send('GET', '/v1/audit')).body['items'] as { action: string }[]).map(({ action }) => action),
    ).toEqual(['account.switched', 'organisation.account_opened'])

    const bob = await signIn('bob', [acme.as('developer')])
    expect((await meOf(bob)).account_id).not.toBe(account)
    expect((await switchTo(bob, { account_id: account })).body['account']).toMatchObject({ role: 'member' })
    expect(await meOf(bob)).toMatchObject({ account_id: account, user: { role: 'member' } })
    expect((await bob.send('GET', '/v1/account/organisation')).body).toMatchObject({
      link: { organisation: { id: acme.id }, has_owner_seat: true, is_owner_retained: false },
      members: [{ email: 'ada@example.com', is_owner: true }, { role: 'member' }],
      candidates: [],
    })
    const bobId = (await meOf(bob)).user.id
    // the platform says so
    expect((await ada.send('PATCH', `/v1/account/members/${bobId}`, { body: { role: 'viewer' } })).status).toBe(409)
    expect((await switchTo(ada, { account_id: own })).status).toBe(200)
    expect((await switchTo(ada, { account_id: newUuid(systemRandom) })).status).toBe(404)
    expect((await switchTo(ada, { organisation_id: newUuid(systemRandom) })).status).toBe(404)
    expect((await switchTo(ada, {})).status).toBe(400)

    await signIn('bob', []) // the platform lists him no more
    expect((await bob.send('GET', '/v1/auth/me')).status).toBe(401)
    await signIn('ada', []) // the owner keeps the seat
    expect((await switchTo(ada, { account_id: account })).body['account']).toMatchObject({
      role: 'owner',
      organisation: { is_owner_retained: true },
    })
  },
)

test('what the platform said counts for an hour', async () => {
  const slow = organisation('Slow')
  const eve = await signIn('eve', [slow.as('admin')])
  await switchTo(eve, { organisation_id: slow.id })
  const account = (await meOf(eve)).account_id
  const dan = await signIn('dan', [slow.as('member')])
  expect((await dan.send('GET', '/v1/accounts')).body['organisations']).toMatchObject([
    { is_stale: false, account_id: account },
  ])
  harness.clock.move(3_601)
  const refused = await switchTo(dan, { account_id: account })
  expect([refused.status, refused.body['reason']]).toEqual([403, 'sign_in_with_platform_required'])
  expect((await switchTo(dan, { organisation_id: slow.id })).status).toBe(403)
  const said = (await dan.send('GET', '/v1/accounts')).body['organisations']
  expect(said).toMatchObject([{ is_stale: true }])
  expect(said).not.toMatchObject([{ account_id: account }]) // a fresh sign-in comes first
})

test(
  'an owner links their own account; the organisation has one ' + 'account at most; pending invitations end',
  async () => {
    const linked = organisation('Linked')
    const fay = await signIn('fay', [linked.as('admin'), organisation('Other').as('member')])
    await fay.send('POST', '/v1/account/invitations', { body: { email: 'waiting@example.com', role: 'viewer' } })
    expect(
      (
        (await fay.send('GET', '/v1/account/organisation')).body['candidates'] as { organisation: { name: string } }[]
      ).map((item) => item.organisation.name),
    ).toEqual(['Linked'])
    expect(
      (await fay.send('POST', '/v1/account/organisation', { body: { organisation_id: newUuid(systemRandom) } })).body[
        'reason'
      ],
    ).toBe('sign_in_with_platform_required')
    expect(
      (await fay.send('POST', '/v1/account/organisation', { body: { organisation_id: linked.id } })).body['link'],
    ).toMatchObject({ organisation: { name: 'Linked' }, has_owner_seat: true })
    expect((await fay.send('GET', '/v1/account/invitations')).body['items']).toMatchObject([{ state: 'revoked' }])
    const gus = await signIn('gus', [linked.as('admin')])
    expect((await gus.send('POST', '/v1/account/organisation', { body: { organisation_id: linked.id } })).status).toBe(
      409,
    )
    expect((await switchTo(gus, { organisation_id: linked.id })).body['account']).toMatchObject({
      role: 'admin',
      name: 'fay',
    })
  },
)

test('two administrators who open an organisation at the same moment get one account', async () => {
  const race = organisation('Race')
  const people = [await signIn('r1', [race.as('admin')]), await signIn('r2', [race.as('admin')])]
  const replies = await Promise.all(people.map((browser) => switchTo(browser, { organisation_id: race.id })))
  for (const { status } of replies) expect([200, 409]).toContain(status) // 409: opened just now, try again
  expect(await database.db.selectFrom('account').select('id').where('name', '=', 'Race').execute()).toHaveLength(1)
  harness.clock.move(1)
  const roles = []
  for (const [index, browser] of people.entries()) {
    await signIn(`r${index + 1}`, [race.as('admin')])
    roles.push(((await switchTo(browser, { organisation_id: race.id })).body['account'] as { role: string }).role)
  }
  expect(roles.sort()).toEqual(['admin', 'owner'])
})

test('linking is for the owner, also where no platform is followed', async () => {
  const plain = await openHarness(database.db)
  const owner = await plain.signUpAndIn('links@example.com')
  const admin = await plain.signUpAndIn('links-not@example.com')
  const { account_id: accountId } = (await owner.send('GET', '/v1/auth/me')).body
  const { id } = (await admin.send('GET', '/v1/auth/me')).body['user'] as { id: string }
  const membership = { account_id: String(accountId), user_id: id, role: 'admin', joined_at: new Date() } as const
  await database.db.insertInto('membership').values(membership).execute()
  expect((await admin.send('POST', '/v1/accounts/active', { body: { account_id: accountId } })).status).toBe(200)
  const body = { organisation_id: newUuid(systemRandom) }
  expect((await admin.send('POST', '/v1/account/organisation', { body })).status).toBe(403)
  const unconfigured = await owner.send('POST', '/v1/account/organisation', { body })
  expect([unconfigured.status, unconfigured.body['reason']]).toEqual([503, 'not_configured'])
})
