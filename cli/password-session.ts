/** A portal session for actions that no token may perform: opened with email, password and second factor, and ended
 *  immediately afterwards. */
import type { Terminal } from '../kit/sys/terminal.ts'
import { type Api, createApi, asMembers, type Reply } from './api.ts'
import { EXIT, Failure, usageFailure } from './exit.ts'
import type { Environment } from './profiles.ts'

export interface SignIn {
  readonly environment: Environment
  readonly terminal: Terminal
  readonly userAgent: string
  readonly url: string
  readonly email: string | undefined
  readonly code: string | undefined
}

/** Prompts for missing values, and runs the work with an API client in the session. */
export async function withSession<Result>(signIn: SignIn, work: (api: Api) => Promise<Result>): Promise<Result> {
  const { environment, terminal, userAgent, url, email } = signIn
  const canAsk = terminal.isInputTerminal
  if (!canAsk && (email === undefined || environment['SVCCLOUD_PASSWORD'] === undefined))
    throw usageFailure('no terminal for prompts: give --email, and the password in SVCCLOUD_PASSWORD')
  const address = email ?? (await terminal.ask('Email: '))
  const password = environment['SVCCLOUD_PASSWORD'] ?? (await terminal.ask('Password: ', true))
  const api = createApi({ url, token: undefined, userAgent })
  const first = await api.send({ method: 'POST', path: '/v1/auth/login', body: { email: address, password } })
  const session = await proveSecondFactor(api, signIn, first)
  const headers = {
    cookie: session.headers
      .getSetCookie()
      .map((cookie) => cookie.split(';')[0])
      .join('; '),
    'x-csrf-token': String(asMembers(session.body)['csrf_token']),
  }
  try {
    return await work({
      ...api,
      send: (request) => api.send({ ...request, headers: { ...headers, ...request.headers } }),
    })
  } finally {
    await api.send({ method: 'POST', path: '/v1/auth/logout', headers })
  }
}

async function proveSecondFactor(api: Api, { terminal, code }: SignIn, first: Reply): Promise<Reply> {
  const step = asMembers(first.body)
  if (step['mfa_required'] !== true) return first
  if (step['mfa_step'] !== 'verify')
    throw new Failure(
      EXIT.notAllowed,
      'this account requires a second factor and you have none yet: set it up in the portal first',
    )
  if (code === undefined && !terminal.isInputTerminal)
    throw usageFailure('this account has a second factor: give --code')
  const proof = (code ?? (await terminal.ask('Code of your authenticator, or a recovery code: '))).trim()
  return api.send({
    method: 'POST',
    path: '/v1/auth/login/mfa',
    body: { challenge: step['challenge'], ...(/^\d{6}$/.test(proof) ? { code: proof } : { recovery_code: proof }) },
  })
}
