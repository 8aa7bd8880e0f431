/** Sign-in with identity providers: the starts, the callbacks, the linked identities. Browsers are navigated here, so
 *  every outcome is a redirect. */
import { defined } from '../../../domain/defined.ts'
import { badField, conflict, notFound, unavailable } from '../../../domain/problem.ts'
import { readOrganisations } from '../../../domain/account/organisations.ts'
import { lockUser, stateOrganisations } from '../../../db/account/index.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import { type LinkedIdentityRow, listIdentities, unlinkIdentity } from '../../../db/identity/index.ts'
import { countRequest } from '../../../db/request/index.ts'
import type { Answer, Call, Cookie, Customer, RequestFacts } from '../../../kit/http/call.ts'
import { customerEndpoint, type Endpoint, publicEndpoint } from '../../../kit/http/endpoint.ts'
import * as routes from '../../../resources/identity-provider/index.ts'
import { auditEntryOf, userEntry } from '../../kit/change/audit.ts'
import { openNamespace } from '../../kit/change/namespaces.ts'
import { mailVerification } from '../../identity/verification.ts'
import type { IdentityParts } from '../../identity/parts.ts'
import type { ProviderConfiguration } from '../../identity/providers/configuration.ts'
import { type Provider, SignInFailed } from '../../identity/providers/protocol.ts'
import { resolvePerson } from '../../identity/providers/resolve.ts'
import { challengeFor, type SignIn, signingIn } from '../../identity/sign-in.ts'

const STATE_COOKIE = 'svccloud_oidc'
export const PROVIDER_COOKIE = 'svccloud_sign_in_provider'
const STATE_SECONDS = 600
const PROVIDER_COOKIE_SECONDS = 7 * 86_400
const COUPON = /^[A-Za-z0-9_-]{3,32}$/
const HOME = '/dashboard'

export const identityProviderEndpoints = (parts: IdentityParts): readonly Endpoint[] => [
  publicEndpoint(routes.getIdentityProviderStatus, async () => ({
    status: 200,
    body: statusOf(parts.providers.map(({ configuration }) => configuration)),
  })),
  publicEndpoint(routes.startIdentityProviderLogin, (call) => start(parts, call, false)),
  publicEndpoint(routes.startIdentityProviderSignup, (call) => start(parts, call, true)),
  publicEndpoint(routes.finishIdentityProviderLogin, (call) => finish(parts, call, undefined)),
  publicEndpoint(routes.finishIdentityProviderLoginAtProvider, (call) => finish(parts, call, call.params.provider)),
  customerEndpoint(routes.unlinkSignInIdentity, (call) => unlink(parts, call)),
]

const providerView = (provider: ProviderConfiguration) => ({
  name: provider.name,
  display_name: provider.display_name,
  ...defined({ icon: provider.icon }),
  silent_sign_in: provider.silent_sign_in,
  connections: provider.connections,
})

function statusOf(providers: readonly ProviderConfiguration[]) {
  const [first] = providers
  const { name: _name, ...primary } = first === undefined ? { name: '', connections: [] } : providerView(first)
  return { configured: first !== undefined, ...primary, providers: providers.map(providerView) }
}

/** A path of our own origin; anything else becomes the dashboard. */
export function safeReturnTo(text: unknown, origin: string): string {
  if (typeof text !== 'string' || !/^\/(?![/\\])/.test(text) || !URL.canParse(text, origin)) return HOME
  const url = new URL(text, origin)
  return url.origin === origin ? `${url.pathname}${url.search}${url.hash}` : HOME
}

const redirectUriOf = (parts: IdentityParts, { name, callback }: ProviderConfiguration): string =>
  `${parts.origin}/v1/auth/oidc/callback${callback === 'own' ? `/${name}` : ''}`

async function start(
  parts: IdentityParts,
  { query }: Call<typeof routes.startIdentityProviderLogin>,
  isSignUp: boolean,
): Promise<Answer> {
  const provider =
    query.provider === undefined
      ? parts.providers[0]
      : parts.providers.find(({ configuration }) => configuration.name === query.provider)
  if (provider === undefined)
    throw query.provider === undefined
      ? unavailable('not_configured', 'No identity provider is configured.')
      : badField('provider', 'is not a provider of this deployment')
  const { configuration } = provider
  const isSilent = query.prompt === 'none'
  if (
    !isSilent &&
    query.connection !== undefined &&
    !configuration.connections.some(({ name }) => name === query.connection)
  )
    throw badField('connection', 'is not a connection of this provider')
  const hasSignUpScreen = Object.keys(configuration.sign_up_parameters).length > 0
  const connection = isSilent || (isSignUp && !hasSignUpScreen) ? undefined : query.connection
  const parameters = {
    ...(isSilent ? { prompt: 'none' } : query.prompt === 'login' ? { prompt: configuration.forced_prompt } : {}),
    ...(connection === undefined ? {} : { [configuration.connection_parameter]: connection }),
    ...(isSignUp && !isSilent ? configuration.sign_up_parameters : {}),
  }
  const started = await provider
    .start({ redirectUri: redirectUriOf(parts, configuration), parameters })
    .catch((error: unknown) => {
      parts.log.warn('an identity provider does not answer', { provider: configuration.name, error })
      throw unavailable('host_unreachable', 'The identity provider does not answer. Try again later.')
    })
  const content = {
    provider: configuration.name,
    state: started.state,
    nonce: started.nonce,
    verifier: started.verifier,
    return_to: safeReturnTo(query.return_to, parts.origin),
    is_silent: isSilent,
    coupon: query.coupon !== undefined && COUPON.test(query.coupon) ? query.coupon : undefined,
    connection,
  }
  const value = await parts.tickets.seal(
    'identity-provider',
    content,
    new Date(parts.clock.now().getTime() + STATE_SECONDS * 1000),
  )
  return {
    status: 302,
    headers: { location: started.url.href },
    cookies: [{ name: STATE_COOKIE, value, maxAgeSeconds: STATE_SECONDS, isHttpOnly: true }],
  }
}

const CLEARED_STATE: Cookie = { name: STATE_COOKIE, value: '', maxAgeSeconds: 0, isHttpOnly: true }
const redirect = (location: string, cookies: readonly Cookie[] = []): Answer => ({
  status: 302,
  headers: { location },
  cookies: [CLEARED_STATE, ...cookies],
})

interface Journey {
  readonly provider: Provider
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  readonly returnTo: string
  readonly isSilent: boolean
  readonly coupon: string | undefined
  readonly connection: string | undefined
}

/** The state of the start that the cookie holds; undefined when it is missing, not ours or expired. */
async function journeyOf(parts: IdentityParts, request: RequestFacts): Promise<Journey | undefined> {
  const ticket = request.cookie(STATE_COOKIE)
  const content = ticket === undefined ? undefined : await parts.tickets.open('identity-provider', ticket)
  const provider = parts.providers.find(({ configuration }) => configuration.name === content?.['provider'])
  if (content === undefined || provider === undefined) return undefined
  const text = (name: string) => (typeof content[name] === 'string' ? content[name] : undefined)
  return {
    provider,
    state: text('state') ?? '',
    nonce: text('nonce') ?? '',
    verifier: text('verifier') ?? '',
    returnTo: safeReturnTo(content['return_to'], parts.origin),
    isSilent: content['is_silent'] === true,
    coupon: text('coupon'),
    connection: text('connection'),
  }
}

async function finish(
  parts: IdentityParts,
  { query, request }: Pick<Call<typeof routes.finishIdentityProviderLogin>, 'query' | 'request'>,
  pathProvider: string | undefined,
): Promise<Answer> {
  const journey = await journeyOf(parts, request)
  const named = journey?.provider.configuration.name ?? query.provider ?? pathProvider ?? ''
  try {
    if (journey === undefined) throw new SignInFailed('state_mismatch')
    return await arrive(parts, journey, { query, request, pathProvider })
  } catch (error) {
    if (!(error instanceof SignInFailed)) throw error
    if (error.cause !== undefined)
      parts.log.warn('a sign-in with an identity provider failed', {
        provider: named,
        code: error.code,
        error: error.cause,
      })
    if (error.code === 'silent_miss')
      return redirect(
        journey?.isSilent === true
          ? '/login?silent=failed'
          : `/login?${new URLSearchParams({ error: 'provider_error', provider: named })}`,
      )
    const connection =
      error.code === 'email_unverified' && journey?.connection !== undefined ? { connection: journey.connection } : {}
    return redirect(`/login?${new URLSearchParams({ error: error.code, provider: named, ...connection })}`)
  }
}

interface Arrival {
  readonly query: Readonly<Record<string, unknown>>
  readonly request: RequestFacts
  readonly pathProvider: string | undefined
}

async function arrive(parts: IdentityParts, journey: Journey, arrival: Arrival): Promise<Answer> {
  const { provider } = journey
  const { configuration } = provider
  const { query, request } = arrival
  await requireFirstReturn(parts, journey, arrival)
  const callback = new URL(redirectUriOf(parts, configuration))
  for (const [name, value] of Object.entries(query))
    if (typeof value === 'string' && name !== 'provider') callback.searchParams.set(name, value)
  const person = await provider.finish(callback, journey)
  const resolved = await parts.db.transaction().execute(async (tx) => {
    const found = await resolvePerson(tx, parts, { person, provider, request, coupon: journey.coupon })
    const stated =
      configuration.organisations_claim === undefined
        ? undefined
        : readOrganisations(person.claims[configuration.organisations_claim])
    if (stated !== undefined) await stateOrganisations(tx, found.user.id, stated, parts.clock.now())
    return found
  })
  const { user } = resolved
  if (resolved.isNewAccount) await openNamespace(parts, user.active_account_id)
  if (user.disabled_at !== null) {
    await auditDisabled(parts, user, request)
    throw new SignInFailed('provider_error')
  }
  if (resolved.isNewAccount && user.email_verified_at === null) await mailVerification(parts.db, parts, user, request)
  const returnTo = new URL(journey.returnTo, parts.origin)
  if (resolved.couponOutcome !== undefined) returnTo.searchParams.set('coupon_status', resolved.couponOutcome)
  const landing = `${returnTo.pathname}${returnTo.search}${returnTo.hash}`
  return signInBy(parts, configuration.name, { user, request, endsOthers: false, returnTo: landing })
}

/** Throws when the browser returns from another provider, with another state, or with a state that was used before. */
async function requireFirstReturn(
  parts: IdentityParts,
  { provider: { configuration }, state }: Journey,
  { query, pathProvider }: Arrival,
): Promise<void> {
  const isElsewhere = [query['provider'], pathProvider].some(
    (name) => name !== undefined && name !== configuration.name,
  )
  if (isElsewhere || query['state'] !== state) throw new SignInFailed('state_mismatch')
  const waitSeconds = await countRequest(
    parts.db,
    `oidc_state ${state}`,
    { requestsMaximum: 1, windowSeconds: STATE_SECONDS },
    parts.clock.now(),
  )
  if (waitSeconds > 0) throw new SignInFailed('state_mismatch')
}

type SignedInUser = Awaited<ReturnType<typeof resolvePerson>>['user']

const auditDisabled = (parts: IdentityParts, user: SignedInUser, request: RequestFacts): Promise<void> =>
  parts.db.transaction().execute(async (tx) => {
    const entry = userEntry(user, request, {
      action: 'auth.login_failed',
      outcome: 'denied',
      detail: { reason: 'user_disabled' },
    })
    await appendAudit(tx, entry, parts)
  })

/** Sends the browser to its destination, or to the second factor first, and remembers the provider. */
async function signInBy(
  parts: IdentityParts,
  provider: string,
  signIn: SignIn & { readonly returnTo: string },
): Promise<Answer> {
  const remembered: Cookie = {
    name: PROVIDER_COOKIE,
    value: provider,
    maxAgeSeconds: PROVIDER_COOKIE_SECONDS,
    isHttpOnly: true,
  }
  const challenge = await challengeFor(parts, signIn)
  if (challenge !== undefined) {
    const fragment = new URLSearchParams({
      challenge: challenge.challenge,
      mfa_step: challenge.step,
      challenge_expires_at: challenge.expiresAt.toISOString(),
    })
    return redirect(`/login/mfa#${fragment}`, [remembered])
  }
  const { cookies } = await signingIn(parts, (tx, complete) => complete(tx, parts, signIn, { provider }))
  return redirect(signIn.returnTo, [...cookies, remembered])
}

/** The page where the browser ends its session at the provider that it signed in with, or else at the first one, whose
 *  silent sign-in would undo the sign-out; undefined when there is none. */
export async function logoutUrlOf(parts: IdentityParts, request: RequestFacts): Promise<string | undefined> {
  const name = request.cookie(PROVIDER_COOKIE)
  const provider = parts.providers.find(({ configuration }) => configuration.name === name) ?? parts.providers[0]
  return await provider?.logoutUrl(`${parts.origin}/login`)
}

const SHOWN_CHARACTERS = 4

/** `connection|subject`: the upstream provider is the part before the bar. */
export function linkedIdentityView(row: LinkedIdentityRow, providers: readonly Provider[]) {
  const configuration = providers.find((provider) => provider.configuration.name === row.provider)?.configuration
  const bar = row.subject.indexOf('|')
  const prefix = bar > 0 ? row.subject.slice(0, bar) : undefined
  const own = configuration?.display_name ?? 'Platform account'
  const connection =
    prefix === undefined
      ? undefined
      : (configuration?.connections.find(({ name }) => name === prefix)?.display_name ?? prefix)
  return {
    id: row.id,
    provider: row.issuer,
    provider_name: connection ?? own,
    subject_hint: `${prefix === undefined ? '' : `${prefix} `}…${row.subject.slice(bar + 1).slice(-SHOWN_CHARACTERS)}`,
    linked_at: row.linkedAt.toISOString(),
    last_login_at: row.lastLoginAt?.toISOString() ?? null,
  }
}

async function unlink(parts: IdentityParts, call: Call<typeof routes.unlinkSignInIdentity, Customer>): Promise<Answer> {
  const { caller, params } = call
  await parts.db.transaction().execute(async (tx) => {
    const user = await lockUser(tx, caller.userId)
    const identities = await listIdentities(tx, caller.userId)
    const identity = identities.find(({ id }) => id === params.id)
    if (identity === undefined) throw notFound('identity')
    if (user.password_hash === null && identities.length === 1)
      throw conflict('state_not_allowed', 'This is your last way to sign in. Set a password first.')
    await unlinkIdentity(tx, caller.userId, identity.id)
    await appendAudit(
      tx,
      auditEntryOf(call, {
        resourceType: 'identity',
        resourceId: identity.id,
        detail: { provider: identity.provider },
      }),
      parts,
    )
  })
  return { status: 204 }
}
