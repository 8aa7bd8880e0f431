/** Commands without a route. `help.ts` has their names, flags and texts. */
import { readFile } from 'node:fs/promises'
import { defined } from '../domain/defined.ts'
import { noSuch } from '../domain/suggestion.ts'
import { verifyAudit } from '../tools/verify-audit.ts'
import { type Api, isMembers, asMembers } from './api.ts'
import type { Globals, Split } from './arguments.ts'
import { completionScript, SHELLS } from './completion.ts'
import { attach } from './console.ts'
import { execCredential } from './exec-credential.ts'
import { EXIT, Failure, usageFailure } from './exit.ts'
import type { OWN_COMMANDS } from './help.ts'
import { logIn, logOut, scopeOf } from './login.ts'
import { idOf } from './names.ts'
import { render } from './output.ts'
import { withSession } from './password-session.ts'
import { changeProfiles, chooseProfile, knownHostsFile, parseUrl, readProfiles } from './profiles.ts'
import { restoreOffline } from './restore-offline.ts'
import { COMMANDS, followPages, openApi, print, readFileFlag, type RunParts, styleOf, USER_AGENT } from './session.ts'
import { confirmEmail, signUp } from './signup.ts'
import { runScp, runSsh, type SshChoice, type SshParts } from './ssh.ts'
import { waitFor } from './wait.ts'

/** Returns the exit code. `words` exclude the name of the command. */
export type OwnRun = (given: OwnSplit, parts: RunParts) => Promise<number>

export interface OwnSplit extends Split {
  /** Words that the command passes on as typed. */
  readonly rest: readonly string[]
}

const flagOf = ({ own }: Split, name: string): string | undefined => own.get(name)?.at(-1)

const login: OwnRun = async (given, { terminal, environment, clock }) => {
  const message = await logIn({
    environment,
    terminal,
    clock,
    userAgent: USER_AGENT,
    profile: given.globals.profile,
    url: flagOf(given, 'url'),
    token: flagOf(given, 'token'),
    email: flagOf(given, 'email'),
    code: flagOf(given, 'code'),
    scope: flagOf(given, 'scope'),
  })
  terminal.writeError(`${message}\n`)
  return EXIT.ok
}

const logout: OwnRun = async ({ globals }, parts) => {
  parts.terminal.writeError(`${await logOut({ ...parts, userAgent: USER_AGENT }, globals.profile)}\n`)
  return EXIT.ok
}

/** Service for the sign-up: from the flag, else from the profile. */
async function urlOf(given: Split, { environment }: RunParts): Promise<string> {
  const url = flagOf(given, 'url')
  return parseUrl(url ?? (await chooseProfile(environment, given.globals.profile)).url)
}

const signup: OwnRun = async (given, parts) => {
  if (given.words.length > 0) throw usageFailure('signup takes no arguments')
  const message = await signUp({
    ...parts,
    userAgent: USER_AGENT,
    url: await urlOf(given, parts),
    name: flagOf(given, 'name'),
    email: flagOf(given, 'email'),
    mails: flagOf(given, 'mails'),
  })
  parts.terminal.writeError(`${message}\n`)
  return EXIT.ok
}

const confirmAddress: OwnRun = async (given, parts) => {
  const [link] = given.words
  if (link === undefined || given.words.length > 1) throw usageFailure('confirm-email takes the link from the email')
  await confirmEmail({ userAgent: USER_AGENT, url: await urlOf(given, parts) }, link)
  parts.terminal.writeError('The address is confirmed. Next: svccloud login\n')
  return EXIT.ok
}

const whoami: OwnRun = async ({ globals, words }, parts) => {
  if (words.length > 0) throw usageFailure('whoami takes no arguments')
  const { body } = await (await openApi(parts, globals)).send({ method: 'GET', path: '/v1/account' })
  return print(parts.terminal, render(body, styleOf(parts, globals)))
}

/** Runs the work in a session of the profile's user, unless another email is given. */
async function asPerson<Result>(
  given: Split,
  parts: RunParts,
  work: (api: Pick<Api, 'send'>) => Promise<Result>,
): Promise<Result> {
  const api = await openApi(parts, given.globals, false)
  const known = async () => {
    const { account } = asMembers((await api.send({ method: 'GET', path: '/v1/account' })).body)
    return String(asMembers(account)['email'])
  }
  const flag = flagOf(given, 'email')
  const email = flag ?? (await known().catch(() => undefined))
  if (flag === undefined && email !== undefined) parts.terminal.writeError(`Signing in as ${email}.\n`)
  return withSession({ ...parts, userAgent: USER_AGENT, url: api.url, email, code: flagOf(given, 'code') }, work)
}

const TOKEN_COLUMNS = ['name', 'scope', 'status', 'created_at', 'expires_at', 'last_used_at', 'user_email', 'id']

const listTokensOf = async (api: Pick<Api, 'send'>) => {
  const query = new URLSearchParams({ limit: '100' })
  const ask = (search: string) => api.send({ method: 'GET', path: `/v1/account/tokens?${search}` })
  return followPages(await ask(String(query)), query, ask)
}

const listTokens: OwnRun = async (given, parts) => {
  const { body } = await asPerson(given, parts, listTokensOf)
  const style = styleOf(parts, given.globals)
  return print(parts.terminal, render(body, { ...style, columns: style.columns ?? TOKEN_COLUMNS }))
}

const createToken: OwnRun = async (given, parts) => {
  const [name] = given.words
  if (name === undefined || given.words.length > 1) throw usageFailure('token create takes a name')
  const expiresAt = flagOf(given, 'expires-at')
  const body = {
    name,
    scope: scopeOf(flagOf(given, 'scope')),
    ...(expiresAt === undefined ? {} : { expires_at: expiresAt === 'never' ? null : expiresAt }),
  }
  const made = await asPerson(given, parts, (api) => api.send({ method: 'POST', path: '/v1/account/tokens', body }))
  const { format } = styleOf(parts, given.globals)
  parts.terminal.writeError('This is the token. It is shown only once.\n')
  return print(
    parts.terminal,
    format === 'json' || format === 'yaml'
      ? render(made.body, styleOf(parts, given.globals))
      : `${String(asMembers(made.body)['token'])}\n`,
  )
}

const revokeToken: OwnRun = async (given, parts) => {
  const [wanted] = given.words
  if (wanted === undefined || given.words.length > 1) throw usageFailure('token revoke takes a name or an id')
  const name = await asPerson(given, parts, async (api) => {
    const { items } = asMembers((await listTokensOf(api)).body)
    const tokens = Array.isArray(items) ? items.filter(isMembers).filter(({ status }) => status !== 'revoked') : []
    const token = tokens.find((each) => each['id'] === wanted || each['name'] === wanted)
    if (token === undefined)
      throw usageFailure(
        noSuch(
          'token',
          wanted,
          tokens.map((each) => String(each['name'])),
        ),
      )
    await api.send({ method: 'DELETE', path: `/v1/account/tokens/${String(token['id'])}` })
    return String(token['name'])
  })
  parts.terminal.writeError(`The token ${name} is revoked.\n`)
  return EXIT.ok
}

const choiceOf = (given: Split): SshChoice => ({
  identity: flagOf(given, 'identity'),
  user: flagOf(given, 'user'),
  acceptsNewKey: given.own.has('accept-new-key'),
})

async function sshParts(given: Split, parts: RunParts): Promise<SshParts> {
  const { name } = await chooseProfile(parts.environment, given.globals.profile)
  const api = await openApi(parts, given.globals)
  return { ...parts, api, knownHostsFile: knownHostsFile(parts.environment, name) }
}

/** Error message for a missing program. */
const installed =
  (program: string) =>
  (error: NodeJS.ErrnoException): never => {
    throw error.code === 'ENOENT'
      ? usageFailure(`${program} is not installed: install it with apt-get install openssh-client`)
      : error
  }

const ssh: OwnRun = async (given, parts) => {
  const [server, ...more] = given.words
  if (server === undefined || more.length > 0) throw usageFailure('ssh takes a server, and optionally a command')
  const connection = await sshParts(given, parts)
  const id = await idOf(connection.api, COMMANDS, 'server', server)
  return runSsh(connection, id, given.rest, choiceOf(given)).catch(installed('ssh'))
}

const scp: OwnRun = async (given, parts) => {
  const connection = await sshParts(given, parts)
  const find = (name: string) => idOf(connection.api, COMMANDS, 'server', name)
  const choice = { ...choiceOf(given), isRecursive: given.own.has('recursive') }
  return runScp(connection, given.words, find, choice).catch(installed('scp'))
}

const waitForOperation: OwnRun = async ({ globals, words }, parts) => {
  const [id] = words
  if (id === undefined || words.length > 1) throw usageFailure('operation wait takes the id of an operation')
  const { events: _events, ...operation } = await waitFor({ ...parts, api: await openApi(parts, globals) }, id)
  return print(parts.terminal, render({ operation }, styleOf(parts, globals)))
}

const attachConsole: OwnRun = async (given, parts) => {
  const { globals, words } = given
  const [server] = words
  if (server === undefined || words.length > 1) throw usageFailure('console takes a server')
  const api = await openApi(parts, globals)
  const leaving = new AbortController()
  const seconds = flagOf(given, 'for')
  if (seconds !== undefined && !/^\d+$/.test(seconds)) throw usageFailure('--for takes a whole number')
  if (seconds !== undefined) parts.clock.after(Number(seconds) * 1000, () => leaving.abort())
  await attach(
    { ...parts, api, staysOpen: seconds !== undefined, signal: AbortSignal.any([parts.signal, leaving.signal]) },
    await idOf(api, COMMANDS, 'server', server),
  )
  return EXIT.ok
}

const verify: OwnRun = async (given, parts) => {
  const { globals, words } = given
  const { terminal } = parts
  const text = await auditText(words, globals, parts)
  let verdict: ReturnType<typeof verifyAudit>
  try {
    verdict = verifyAudit(text.split('\n'), flagOf(given, 'start'))
  } catch (error) {
    throw new Failure(EXIT.invalid, `this is not an export of an audit log: ${String(error)}`)
  }
  terminal.write(`${verdict.text}\n`)
  return verdict.isWhole ? EXIT.ok : EXIT.refused
}

const restoreBackup: OwnRun = async (given, parts) => {
  const [backup, ...more] = given.words
  const [location, keyFile, output] = ['from', 'key-file', 'to'].map((name) => flagOf(given, name))
  if (backup === undefined || more.length > 0 || !location || !keyFile || !output)
    throw usageFailure('backup restore-offline takes a backup, --from PLACE, --key-file FILE and --to FILE')
  const bytes = await restoreOffline({ backup, location, keyFile, output }, parts)
  return print(parts.terminal, `${output}: ${bytes} bytes\n`)
}

const printCredential: OwnRun = async (given, parts) => {
  const { globals, words } = given
  const { terminal } = parts
  const cluster = flagOf(given, 'cluster')
  if (cluster === undefined || words.length > 0)
    throw usageFailure('exec-credential takes --cluster KIND/ID and nothing else')
  const credential = await execCredential({
    api: await openApi(parts, globals),
    commands: COMMANDS,
    cluster,
    signal: parts.signal,
  })
  return print(terminal, render(credential, { ...styleOf(parts, globals), format: 'json' }))
}

const sendRequest: OwnRun = async ({ globals, words }, parts) => {
  const [method, path] = words
  if (method === undefined || path?.startsWith('/') !== true || words.length > 2)
    throw usageFailure('api takes a method and a path that starts with /')
  const body = globals.file === undefined ? undefined : await readFileFlag(parts, globals)
  const reply = await (await openApi(parts, globals, false)).send({
    method: method.toUpperCase(),
    path,
    signal: parts.signal,
    ...defined({ body }),
  })
  return print(
    parts.terminal,
    reply.body === undefined ? reply.text : render(reply.body, styleOf(parts, globals, 'json')),
  )
}

const printCompletion: OwnRun = async ({ words }, { terminal }) => {
  const script = completionScript(words[0] ?? '')
  if (script === undefined) throw usageFailure(`completion takes one of ${SHELLS.join(', ')}`)
  return print(terminal, script)
}

const profile: OwnRun = async ({ words, globals }, parts) => {
  const [verb = 'list', name, ...more] = words
  const known = await readProfiles(parts.environment)
  if (verb === 'list' && name === undefined) {
    const items = Object.entries(known.profiles).map(([each, { url }]) => ({
      name: each,
      url,
      is_current: each === known.current,
    }))
    return print(
      parts.terminal,
      render({ items }, { ...styleOf(parts, globals), columns: ['name', 'url', 'is_current'] }),
    )
  }
  if (verb !== 'use' || name === undefined || more.length > 0)
    throw usageFailure('profile takes list, or use and a name')
  const chosen = Object.hasOwn(known.profiles, name) ? known.profiles[name] : undefined
  if (chosen === undefined) throw usageFailure(noSuch('profile', name, Object.keys(known.profiles)))
  await changeProfiles(parts.environment, parts.clock, (latest) => ({ ...latest, current: name }))
  parts.terminal.writeError(`Commands now use the profile ${name} (${chosen.url}).\n`)
  return EXIT.ok
}

async function auditText([file, ...more]: readonly string[], globals: Globals, parts: RunParts): Promise<string> {
  if (more.length > 0) throw usageFailure('audit verify takes one file')
  if (file === '-') return parts.terminal.readAll()
  if (file !== undefined)
    return readFile(file, 'utf8').catch((error: Error) => {
      throw usageFailure(`${file} cannot be read: ${error.message}`)
    })
  const api = await openApi(parts, globals)
  const ask = (search: string) => api.send({ method: 'GET', path: `/v1/audit/export?${search}`, signal: parts.signal })
  const query = new URLSearchParams({ limit: '1000' })
  return (await followPages(await ask(String(query)), query, ask)).text
}

/** Every command except help, which run.ts handles. */
export const OWN_RUNS: Readonly<Record<Exclude<(typeof OWN_COMMANDS)[number]['name'], 'help'>, OwnRun>> = {
  signup,
  'confirm-email': confirmAddress,
  whoami,
  login,
  logout,
  'token list': listTokens,
  'token create': createToken,
  'token revoke': revokeToken,
  ssh,
  scp,
  'operation wait': waitForOperation,
  profile,
  console: attachConsole,
  'audit verify': verify,
  'backup restore-offline': restoreBackup,
  'exec-credential': printCredential,
  api: sendRequest,
  completion: printCompletion,
}
