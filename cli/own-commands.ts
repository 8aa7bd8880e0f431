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
import { watch } from './watch.ts'
import { CHANGE_TYPES } from '../resources/change/index.ts'
import { SEARCH_TYPES } from '../resources/search/index.ts'

/** Returns the exit code. `words` exclude the name of the command. */
export type OwnRun = (input: OwnSplit, parts: RunParts) => Promise<number>

export interface OwnSplit extends Split {
  /** Words that the command passes on as typed. */
  readonly rest: readonly string[]
}

const flagOf = ({ own }: Split, name: string): string | undefined => own.get(name)?.at(-1)

const login: OwnRun = async (input, { terminal, environment, clock }) => {
  const message = await logIn({
    environment,
    terminal,
    clock,
    userAgent: USER_AGENT,
    profile: input.globals.profile,
    url: flagOf(input, 'url'),
    token: flagOf(input, 'token'),
    email: flagOf(input, 'email'),
    code: flagOf(input, 'code'),
    scope: flagOf(input, 'scope'),
  })
  terminal.writeError(`${message}\n`)
  return EXIT.ok
}

const logout: OwnRun = async ({ globals }, parts) => {
  parts.terminal.writeError(`${await logOut({ ...parts, userAgent: USER_AGENT }, globals.profile)}\n`)
  return EXIT.ok
}

/** Service for the sign-up: from the flag, else from the profile. */
async function urlOf(input: Split, { environment }: RunParts): Promise<string> {
  const url = flagOf(input, 'url')
  return parseUrl(url ?? (await chooseProfile(environment, input.globals.profile)).url)
}

const signup: OwnRun = async (input, parts) => {
  if (input.words.length > 0) throw usageFailure('signup takes no arguments')
  const message = await signUp({
    ...parts,
    userAgent: USER_AGENT,
    url: await urlOf(input, parts),
    name: flagOf(input, 'name'),
    email: flagOf(input, 'email'),
    mails: flagOf(input, 'mails'),
  })
  parts.terminal.writeError(`${message}\n`)
  return EXIT.ok
}

const confirmAddress: OwnRun = async (input, parts) => {
  const [link] = input.words
  if (link === undefined || input.words.length > 1) throw usageFailure('confirm-email takes the link from the email')
  await confirmEmail({ userAgent: USER_AGENT, url: await urlOf(input, parts) }, link)
  parts.terminal.writeError('The address is confirmed. Next: svccloud login\n')
  return EXIT.ok
}

const whoami: OwnRun = async ({ globals, words }, parts) => {
  if (words.length > 0) throw usageFailure('whoami takes no arguments')
  const { body } = await (await openApi(parts, globals)).send({ method: 'GET', path: '/v1/account' })
  return print(parts.terminal, render(body, styleOf(parts, globals)))
}

/** Runs the work in a session of the profile's user, unless another email is set. */
async function asPerson<Result>(
  input: Split,
  parts: RunParts,
  work: (api: Pick<Api, 'send'>) => Promise<Result>,
): Promise<Result> {
  const api = await openApi(parts, input.globals, false)
  const known = async () => {
    const { account } = asMembers((await api.send({ method: 'GET', path: '/v1/account' })).body)
    return String(asMembers(account)['email'])
  }
  const flag = flagOf(input, 'email')
  const email = flag ?? (await known().catch(() => undefined))
  if (flag === undefined && email !== undefined) parts.terminal.writeError(`Signing in as ${email}.\n`)
  return withSession({ ...parts, userAgent: USER_AGENT, url: api.url, email, code: flagOf(input, 'code') }, work)
}

const TOKEN_COLUMNS = ['name', 'scope', 'status', 'created_at', 'expires_at', 'last_used_at', 'user_email', 'id']

const listTokensOf = async (api: Pick<Api, 'send'>) => {
  const query = new URLSearchParams({ limit: '100' })
  const ask = (search: string) => api.send({ method: 'GET', path: `/v1/account/tokens?${search}` })
  return followPages(await ask(String(query)), query, ask)
}

const listTokens: OwnRun = async (input, parts) => {
  const { body } = await asPerson(input, parts, listTokensOf)
  const style = styleOf(parts, input.globals)
  return print(parts.terminal, render(body, { ...style, columns: style.columns ?? TOKEN_COLUMNS }))
}

const createToken: OwnRun = async (input, parts) => {
  const [name] = input.words
  if (name === undefined || input.words.length > 1) throw usageFailure('token create takes a name')
  const expiresAt = flagOf(input, 'expires-at')
  const body = {
    name,
    scope: scopeOf(flagOf(input, 'scope')),
    ...(expiresAt === undefined ? {} : { expires_at: expiresAt === 'never' ? null : expiresAt }),
  }
  const answer = await asPerson(input, parts, (api) => api.send({ method: 'POST', path: '/v1/account/tokens', body }))
  const { format } = styleOf(parts, input.globals)
  parts.terminal.writeError('This is the token. It is shown only once.\n')
  return print(
    parts.terminal,
    format === 'json' || format === 'yaml'
      ? render(answer.body, styleOf(parts, input.globals))
      : `${String(asMembers(answer.body)['token'])}\n`,
  )
}

const revokeToken: OwnRun = async (input, parts) => {
  const [wanted] = input.words
  if (wanted === undefined || input.words.length > 1) throw usageFailure('token revoke takes a name or an id')
  const name = await asPerson(input, parts, async (api) => {
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

const choiceOf = (input: Split): SshChoice => ({
  identity: flagOf(input, 'identity'),
  user: flagOf(input, 'user'),
  acceptsNewKey: input.own.has('accept-new-key'),
})

async function sshParts(input: Split, parts: RunParts): Promise<SshParts> {
  const { name } = await chooseProfile(parts.environment, input.globals.profile)
  const api = await openApi(parts, input.globals)
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

const ssh: OwnRun = async (input, parts) => {
  const [server, ...more] = input.words
  if (server === undefined || more.length > 0) throw usageFailure('ssh takes a server, and optionally a command')
  const connection = await sshParts(input, parts)
  const id = await idOf(connection.api, COMMANDS, 'server', server)
  return runSsh(connection, id, input.rest, choiceOf(input)).catch(installed('ssh'))
}

const scp: OwnRun = async (input, parts) => {
  const connection = await sshParts(input, parts)
  const find = (name: string) => idOf(connection.api, COMMANDS, 'server', name)
  const choice = { ...choiceOf(input), isRecursive: input.own.has('recursive') }
  return runScp(connection, input.words, find, choice).catch(installed('scp'))
}

const waitForOperation: OwnRun = async ({ globals, words }, parts) => {
  const [id] = words
  if (id === undefined || words.length > 1) throw usageFailure('operation wait takes the id of an operation')
  const { events: _events, ...operation } = await waitFor({ ...parts, api: await openApi(parts, globals) }, id)
  return print(parts.terminal, render({ operation }, styleOf(parts, globals)))
}

const attachConsole: OwnRun = async (input, parts) => {
  const { globals, words } = input
  const [server] = words
  if (server === undefined || words.length > 1) throw usageFailure('console takes a server')
  const api = await openApi(parts, globals)
  await attach(
    { ...parts, api, staysOpen: flagOf(input, 'for') !== undefined, signal: signalFor(input, parts) },
    await idOf(api, COMMANDS, 'server', server),
  )
  return EXIT.ok
}

/** Aborts when the user interrupts, and after the seconds of `--for`. */
function signalFor(input: Split, { clock, signal }: RunParts): AbortSignal {
  const seconds = flagOf(input, 'for')
  if (seconds === undefined) return signal
  if (!/^\d+$/.test(seconds)) throw usageFailure('--for takes a whole number')
  const leaving = new AbortController()
  clock.after(Number(seconds) * 1000, () => leaving.abort())
  return AbortSignal.any([signal, leaving.signal])
}

/** Types as people type them, in the words of the API. Throws for an unknown one. */
function typesOf(words: readonly string[], known: readonly string[]): readonly string[] {
  const types = words.map((word) => word.replaceAll('-', '_'))
  const unknown = types.find((type) => !known.includes(type))
  if (unknown !== undefined) throw usageFailure(noSuch('type', unknown, known))
  return types
}

const search: OwnRun = async (input, parts) => {
  const { globals, own, words } = input
  const text = words.join(' ')
  if (text === '') throw usageFailure('search takes the text to find')
  const types = typesOf(own.get('type')?.filter((type) => type !== undefined) ?? [], SEARCH_TYPES)
  const query = new URLSearchParams([['q', text], ...types.map((type): [string, string] => ['type', type])])
  const api = await openApi(parts, globals)
  const { body } = await api.send({ method: 'GET', path: `/v1/search?${query}` })
  return print(parts.terminal, render(body, styleOf(parts, globals)))
}

const watchChanges: OwnRun = async (input, parts) => {
  const { globals, words } = input
  const types = typesOf(words, CHANGE_TYPES)
  const signal = signalFor(input, parts)
  const api = await openApi(parts, globals)
  await watch({ ...parts, api, signal }, { types, isJson: styleOf(parts, globals).format === 'json' })
  return EXIT.ok
}

const verify: OwnRun = async (input, parts) => {
  const { globals, words } = input
  const { terminal } = parts
  const text = await auditText(words, globals, parts)
  let verdict: ReturnType<typeof verifyAudit>
  try {
    verdict = verifyAudit(text.split('\n'), flagOf(input, 'start'))
  } catch (error) {
    throw new Failure(EXIT.invalid, `this is not an export of an audit log: ${String(error)}`)
  }
  terminal.write(`${verdict.text}\n`)
  return verdict.isWhole ? EXIT.ok : EXIT.refused
}

const restoreBackup: OwnRun = async (input, parts) => {
  const [backup, ...more] = input.words
  const [location, keyFile, output] = ['from', 'key-file', 'to'].map((name) => flagOf(input, name))
  if (backup === undefined || more.length > 0 || !location || !keyFile || !output)
    throw usageFailure('backup restore-offline takes a backup, --from PLACE, --key-file FILE and --to FILE')
  const bytes = await restoreOffline({ backup, location, keyFile, output }, parts)
  return print(parts.terminal, `${output}: ${bytes} bytes\n`)
}

const printCredential: OwnRun = async (input, parts) => {
  const { globals, words } = input
  const { terminal } = parts
  const cluster = flagOf(input, 'cluster')
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
  search,
  watch: watchChanges,
  'audit verify': verify,
  'backup restore-offline': restoreBackup,
  'exec-credential': printCredential,
  api: sendRequest,
  completion: printCompletion,
}
