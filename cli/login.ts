/** Signs in and out: with an existing token, or with email, password and second factor to create a token for this
 *  machine. */
import { hostname } from 'node:os'
import type { Clock } from '../kit/sys/clock.ts'
import { createApi, asMembers } from './api.ts'
import { noSuch } from '../domain/suggestion.ts'
import { Failure, usageFailure } from './exit.ts'
import { type SignIn, withSession } from './password-session.ts'
import { changeProfiles, DEFAULT_PROFILE, DEFAULT_URL, parseUrl, readProfiles } from './profiles.ts'

export interface LoginOptions extends Omit<SignIn, 'url'> {
  readonly clock: Clock
  readonly profile: string | undefined
  readonly url: string | undefined
  readonly token: string | undefined
  readonly scope: string | undefined
}

/** Returns the message for the user. */
export async function logIn(options: LoginOptions): Promise<string> {
  const { environment, userAgent, terminal } = options
  const known = await readProfiles(environment)
  const name =
    options.profile ??
    environment['SVCCLOUD_PROFILE'] ??
    (known.profiles[known.current] === undefined ? DEFAULT_PROFILE : known.current)
  const url = parseUrl(options.url ?? environment['SVCCLOUD_URL'] ?? known.profiles[name]?.url ?? DEFAULT_URL)
  const isMade = options.token === undefined
  const token = isMade
    ? await makeToken(options, url)
    : options.token === '-'
      ? (await terminal.readAll()).trim()
      : (options.token ?? '')
  await checkToken(createApi({ url, token, userAgent }))
  const profile = { url, token, ...(isMade ? { isTokenOurs: true } : {}) }
  await changeProfiles(environment, options.clock, ({ profiles }) => ({
    current: name,
    profiles: { ...profiles, [name]: profile },
  }))
  const isSwitch = name !== known.current && known.profiles[known.current] !== undefined
  const change = isSwitch ? ` Commands now use it instead of ${known.current}.` : ''
  return `Logged in to ${url} (profile ${name}).${change}`
}

/** Deletes the profile and revokes the token that `login` created for it. Returns the message for the user. Throws a
 *  Failure when the profile does not exist, or when the service cannot be reached; the profile then stays. */
export async function logOut(
  { environment, clock, userAgent }: Pick<LoginOptions, 'environment' | 'clock' | 'userAgent'>,
  name: string | undefined,
): Promise<string> {
  const { current, profiles } = await readProfiles(environment)
  const wanted = name ?? environment['SVCCLOUD_PROFILE'] ?? current
  const profile = profiles[wanted]
  if (profile === undefined) throw usageFailure(noSuch('profile', wanted, Object.keys(profiles)))
  const { url, token } = profile
  if (profile.isTokenOurs === true)
    await createApi({ url, token, userAgent })
      .send({ method: 'DELETE', path: '/v1/account/token' })
      .catch((error: unknown) => {
        // already revoked or expired
        if (!(error instanceof Failure) || !error.message.startsWith('401')) throw error
      })
  let next = current
  await changeProfiles(environment, clock, ({ current: latest, profiles: { [wanted]: _, ...others } }) => {
    next = wanted === latest ? (Object.keys(others)[0] ?? latest) : latest
    return { current: next, profiles: others }
  })
  return [
    `Logged out of ${url} (profile ${wanted}).`,
    profile.isTokenOurs === true ? 'Its token is revoked.' : 'Its token was not created by login: it stays valid.',
    ...(next !== current ? [`Commands now use the profile ${next}.`] : []),
  ].join(' ')
}

const HOST_CHARACTERS_MAXIMUM = 60

/** Throws the service's refusal of an invalid token. */
const checkToken = (api: ReturnType<typeof createApi>): Promise<unknown> =>
  api.send({ method: 'GET', path: '/v1/account' })

const makeToken = (options: LoginOptions, url: string): Promise<string> =>
  withSession({ ...options, url }, async (api) => {
    // names of tokens must be unique
    const at = options.clock.now().toISOString()
    const name = `svccloud on ${hostname().slice(0, HOST_CHARACTERS_MAXIMUM)} at ${at}`
    const body = { name, scope: scopeOf(options.scope) }
    return String(asMembers((await api.send({ method: 'POST', path: '/v1/account/tokens', body })).body)['token'])
  })

/** In the API's form: the name of a scope, or a list of permissions. */
export const scopeOf = (scope = 'read_write'): string | string[] =>
  scope === 'read' || scope === 'read_write' ? scope : scope.split(',')
