/** OpenID Connect with one provider: authorization code flow with state, nonce and PKCE; the ID token's signature is
 *  always verified. Faults are distinguished as the sign-in page needs it. */
import { decodeProtectedHeader } from 'jose'
import * as client from 'openid-client'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { ProviderConfiguration } from './configuration.ts'

const TIMEOUT_SECONDS = 10
const KEPT_MILLISECONDS = 3_600_000
const NAME_CHARACTERS_MAXIMUM = 200
const ALGORITHMS: readonly string[] = ['RS256', 'ES256']
const SILENT_MISSES: readonly string[] = [
  'login_required',
  'interaction_required',
  'consent_required',
  'account_selection_required',
]

export type SignInFailure =
  | 'email_unverified'
  | 'email_missing'
  | 'state_mismatch'
  | 'provider_error'
  | 'provider_unavailable'
  | 'account_exists'
  | 'silent_miss'

export class SignInFailed extends Error {
  readonly code: SignInFailure
  constructor(code: SignInFailure, cause?: unknown) {
    super(code, cause === undefined ? undefined : { cause })
    this.name = 'SignInFailed'
    this.code = code
  }
}

export interface SignInStart {
  readonly url: URL
  readonly state: string
  readonly nonce: string
  readonly verifier: string
}

/** The person as the provider identifies them. */
export interface Person {
  readonly issuer: string
  readonly subject: string
  /** Lower-cased. */
  readonly email: string
  readonly name: string | null
  readonly claims: Readonly<Record<string, unknown>>
}

export interface Provider {
  readonly configuration: ProviderConfiguration
  /** Throws SignInFailed provider_unavailable when the provider does not answer. */
  start(options: {
    readonly redirectUri: string
    readonly parameters: Readonly<Record<string, string>>
  }): Promise<SignInStart>
  /** `callback` is the complete public address to which the browser returned. Throws SignInFailed. */
  finish(
    callback: URL,
    expected: { readonly state: string; readonly nonce: string; readonly verifier: string },
  ): Promise<Person>
  /** Where the provider's own session ends; undefined when it has no such page or does not answer. */
  logoutUrl(returnTo: string): Promise<string | undefined>
}

interface ProviderParts {
  readonly clock: Clock
  readonly fetch?: client.CustomFetch
}

/** The endpoints of the provider, requested on first use and cached for an hour. */
function openDiscovery(configuration: ProviderConfiguration, parts: ProviderParts) {
  let discovered: { readonly until: number; readonly found: Promise<client.Configuration> } | undefined
  return (): Promise<client.Configuration> => {
    const now = parts.clock.monotonicMilliseconds()
    if (discovered !== undefined && discovered.until > now) return discovered.found
    const issuer = new URL(configuration.issuer)
    const execute = [
      client.enableNonRepudiationChecks,
      ...(issuer.protocol === 'http:' ? [client.allowInsecureRequests] : []),
    ]
    const found = client.discovery(
      issuer,
      configuration.client_id,
      configuration.client_secret,
      client.ClientSecretPost(configuration.client_secret),
      {
        execute,
        timeout: TIMEOUT_SECONDS,
        ...(parts.fetch === undefined ? {} : { [client.customFetch]: parts.fetch }),
      },
    )
    discovered = { until: now + KEPT_MILLISECONDS, found }
    found.catch(() => {
      discovered = undefined
    }) // the next sign-in requests them again
    return found.catch((error: unknown) => {
      throw new SignInFailed('provider_unavailable', error)
    })
  }
}

/** Requests the provider's endpoints on first use. */
export function createProvider(configuration: ProviderConfiguration, parts: ProviderParts): Provider {
  const discover = openDiscovery(configuration, parts)
  return {
    configuration,
    async start({ redirectUri, parameters }) {
      const config = await discover()
      const [state, nonce, verifier] = [client.randomState(), client.randomNonce(), client.randomPKCECodeVerifier()]
      const url = client.buildAuthorizationUrl(config, {
        ...parameters,
        redirect_uri: redirectUri,
        scope: 'openid profile email',
        state,
        nonce,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      })
      return { url, state, nonce, verifier }
    },
    async finish(callback, expected) {
      const config = await discover()
      try {
        const tokens = await client.authorizationCodeGrant(config, callback, {
          pkceCodeVerifier: expected.verifier,
          expectedState: expected.state,
          expectedNonce: expected.nonce,
          idTokenExpected: true,
        })
        const claims = tokens.claims()
        if (claims === undefined || !ALGORITHMS.includes(decodeProtectedHeader(tokens.id_token ?? '').alg ?? ''))
          throw new SignInFailed('provider_error')
        return personOf(configuration, claims)
      } catch (error) {
        throw error instanceof SignInFailed ? error : new SignInFailed(failureOf(error), error)
      }
    },
    async logoutUrl(returnTo) {
      const config = await discover().catch(() => undefined)
      return config?.serverMetadata().end_session_endpoint === undefined
        ? undefined
        : client.buildEndSessionUrl(config, { post_logout_redirect_uri: returnTo }).href
    },
  }
}

function personOf(configuration: ProviderConfiguration, claims: client.IDToken): Person {
  const { email, name } = claims
  if (typeof email !== 'string' || email === '') throw new SignInFailed('email_missing')
  const isVerified = configuration.is_multi_tenant
    ? claims['xms_edov'] === true || claims['xms_edov'] === 1 || claims['xms_edov'] === '1'
    : claims['email_verified'] === true
  if (!isVerified) throw new SignInFailed('email_unverified')
  if (configuration.is_multi_tenant && (typeof claims['tid'] !== 'string' || typeof claims['oid'] !== 'string'))
    throw new SignInFailed('provider_error')
  const subject = configuration.is_multi_tenant ? `${String(claims['tid'])}:${String(claims['oid'])}` : claims.sub
  return {
    issuer: claims.iss,
    subject,
    email: email.trim().toLowerCase(),
    name: typeof name === 'string' && name.trim() !== '' ? name.trim().slice(0, NAME_CHARACTERS_MAXIMUM) : null,
    claims,
  }
}

/** A provider that does not answer, answers 5xx, or answers only after the timeout is unavailable. Anything else that
 *  it answers or signs wrongly is an error. */
function failureOf(error: unknown): SignInFailure {
  if (error instanceof client.AuthorizationResponseError)
    return SILENT_MISSES.includes(error.error) ? 'silent_miss' : 'provider_error'
  if (error instanceof client.ResponseBodyError) return error.status >= 500 ? 'provider_unavailable' : 'provider_error'
  if (error instanceof client.ClientError) {
    const response: unknown = error.cause
    if (response instanceof Response && response.status >= 500) return 'provider_unavailable'
    return error.code === 'OAUTH_TIMEOUT' ? 'provider_unavailable' : 'provider_error'
  }
  return error instanceof TypeError ? 'provider_unavailable' : 'provider_error' // fetch fails with a TypeError
}
