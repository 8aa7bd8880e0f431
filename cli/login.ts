/** Signing in: with a token as it is, or with email, password and second factor, which makes a token for this
 *  machine. */
import { hostname } from 'node:os'
import type { Clock } from '../kit/sys/clock.ts'
import type { Terminal } from '../kit/sys/terminal.ts'
import { createApi, membersOf } from './api.ts'
import { EXIT, Failure, usage } from './exit.ts'
import { DEFAULT_PROFILE, DEFAULT_URL, type Environment, readProfiles, writeProfiles } from './profiles.ts'

export interface LoginOptions {
  readonly environment: Environment
  readonly terminal: Terminal
  readonly clock: Clock
  readonly userAgent: string
  readonly profile: string | undefined
  readonly url: string | undefined
  readonly token: string | undefined
  readonly email: string | undefined
  readonly code: string | undefined
  readonly scope: string | undefined
}

/** Answers what to tell the person. */
export async function logIn(options: LoginOptions): Promise<string> {
  const { environment, userAgent } = options
  const known = await readProfiles(environment)
  const name =
    options.profile ??
    environment['SVCCLOUD_PROFILE'] ??
    (known.profiles[known.current] === undefined ? DEFAULT_PROFILE : known.current)
  const url = (options.url ?? environment['SVCCLOUD_URL'] ?? known.profiles[name]?.url ?? DEFAULT_URL).replace(
    /\/+$/,
    '',
  )
  const token =
    options.token === undefined
      ? await makeToken(options, url)
      : options.token === '-'
        ? (await options.terminal.readAll()).trim()
        : options.token
  await checkToken(createApi({ url, token, userAgent }))
  await writeProfiles(environment, { current: name, profiles: { ...known.profiles, [name]: { url, token } } })
  return `Logged in to ${url} (profile ${name}).`
}

const HOST_CHARACTERS_MAXIMUM = 60

/** A token that may do nothing at all is still good. */
async function checkToken(api: ReturnType<typeof createApi>): Promise<void> {
  await api.send({ method: 'GET', path: '/v1/regions' }).catch((error: unknown) => {
    if (!(error instanceof Failure) || !error.message.startsWith('403')) throw error
  })
}

async function makeToken(
  { environment, terminal, clock, userAgent, email, code, scope }: LoginOptions,
  url: string,
): Promise<string> {
  const canAsk = terminal.isInputTerminal
  if (!canAsk && (email === undefined || environment['SVCCLOUD_PASSWORD'] === undefined))
    throw usage('give --token, or --email with the password in SVCCLOUD_PASSWORD')
  const address = email ?? (await terminal.ask('Email: '))
  const password = environment['SVCCLOUD_PASSWORD'] ?? (await terminal.ask('Password: ', true))
  const api = createApi({ url, token: undefined, userAgent })
  let session = await api.send({ method: 'POST', path: '/v1/auth/login', body: { email: address, password } })
  const step = membersOf(session.body)
  if (step['mfa_required'] === true) {
    if (step['mfa_step'] !== 'verify')
      throw new Failure(
        EXIT.notAllowed,
        'this account wants a second factor of you, and you have none yet: set it up in the portal first',
      )
    if (code === undefined && !canAsk) throw usage('this account has a second factor: give --code')
    const proof = (code ?? (await terminal.ask('Code of your authenticator, or a recovery code: '))).trim()
    session = await api.send({
      method: 'POST',
      path: '/v1/auth/login/mfa',
      body: { challenge: step['challenge'], ...(/^\d{6}$/.test(proof) ? { code: proof } : { recovery_code: proof }) },
    })
  }
  const headers = {
    cookie: session.headers
      .getSetCookie()
      .map((cookie) => cookie.split(';')[0])
      .join('; '),
    'x-csrf-token': String(membersOf(session.body)['csrf_token']),
  }
  try {
    // names of tokens are unique
    const name = `svccloud on ${hostname().slice(0, HOST_CHARACTERS_MAXIMUM)} at ${clock.now().toISOString()}`
    const made = await api.send({
      method: 'POST',
      path: '/v1/account/tokens',
      headers,
      body: { name, scope: scopeOf(scope) },
    })
    return String(membersOf(made.body)['token'])
  } finally {
    await api.send({ method: 'POST', path: '/v1/auth/logout', headers })
  }
}

const scopeOf = (scope = 'read_write'): string | string[] =>
  scope === 'read' || scope === 'read_write' ? scope : scope.split(',')
