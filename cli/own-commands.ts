/** The commands that no route stands for. Their names, flags and texts are in `help.ts`. */
import { readFile } from 'node:fs/promises'
import { verifyAudit } from '../tools/verify-audit.ts'
import type { Globals, Split } from './arguments.ts'
import { completionScript, SHELLS } from './completion.ts'
import { attach } from './console.ts'
import { execCredential } from './exec-credential.ts'
import { EXIT, Failure, usage } from './exit.ts'
import type { OWN_COMMANDS } from './help.ts'
import { logIn } from './login.ts'
import { idOf } from './names.ts'
import { render } from './output.ts'
import { readProfiles, writeProfiles } from './profiles.ts'
import { COMMANDS, followPages, openApi, print, readFileFlag, type RunParts, styleOf, USER_AGENT } from './session.ts'

/** Answers the exit code. `words` come without the name of the command. */
export type OwnRun = (given: Split, parts: RunParts) => Promise<number>

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

const logout: OwnRun = async ({ globals }, { environment }) => {
  const { current, profiles } = await readProfiles(environment)
  const { [globals.profile ?? current]: gone, ...kept } = profiles
  if (gone === undefined) throw usage(`there is no profile ${globals.profile ?? current}`)
  await writeProfiles(environment, {
    current: current in kept ? current : (Object.keys(kept)[0] ?? current),
    profiles: kept,
  })
  return EXIT.ok
}

const attachConsole: OwnRun = async (given, parts) => {
  const { globals, words } = given
  const [server] = words
  if (server === undefined || words.length > 1) throw usage('console takes a server')
  const api = await openApi(parts, globals)
  const leaving = new AbortController()
  const seconds = flagOf(given, 'for')
  if (seconds !== undefined && !/^\d+$/.test(seconds)) throw usage('--for takes a whole number')
  if (seconds !== undefined) parts.clock.after(Number(seconds) * 1000, () => leaving.abort())
  await attach(
    { ...parts, api, signal: AbortSignal.any([parts.signal, leaving.signal]) },
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
    throw new Failure(EXIT.invalid, `this is no export of an audit log: ${String(error)}`)
  }
  terminal.write(`${verdict.text}\n`)
  return verdict.isWhole ? EXIT.ok : EXIT.refused
}

const printCredential: OwnRun = async (given, parts) => {
  const { globals, words } = given
  const { terminal } = parts
  const cluster = flagOf(given, 'cluster')
  if (cluster === undefined || words.length > 0) throw usage('exec-credential takes --cluster KIND/ID and nothing else')
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
    throw usage('api takes a method and a path that begins with /')
  const body = globals.file === undefined ? undefined : await readFileFlag(parts, globals)
  const reply = await (await openApi(parts, globals, false)).send({
    method: method.toUpperCase(),
    path,
    signal: parts.signal,
    ...(body === undefined ? {} : { body }),
  })
  return print(
    parts.terminal,
    reply.body === undefined ? reply.text : render(reply.body, styleOf(parts, globals, 'json')),
  )
}

const printCompletion: OwnRun = async ({ words }, { terminal }) => {
  const script = completionScript(words[0] ?? '')
  if (script === undefined) throw usage(`completion takes one of ${SHELLS.join(', ')}`)
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
  if (verb !== 'use' || name === undefined || more.length > 0) throw usage('profile takes list, or use and a name')
  if (!Object.hasOwn(known.profiles, name)) throw usage(`there is no profile ${name}`)
  await writeProfiles(parts.environment, { ...known, current: name })
  return EXIT.ok
}

async function auditText([file, ...more]: readonly string[], globals: Globals, parts: RunParts): Promise<string> {
  if (more.length > 0) throw usage('audit verify takes one file')
  if (file === '-') return parts.terminal.readAll()
  if (file !== undefined)
    return readFile(file, 'utf8').catch((error: Error) => {
      throw usage(`${file} cannot be read: ${error.message}`)
    })
  const api = await openApi(parts, globals)
  const ask = (search: string) => api.send({ method: 'GET', path: `/v1/audit/export?${search}`, signal: parts.signal })
  const query = new URLSearchParams({ limit: '1000' })
  return (await followPages(await ask(String(query)), query, ask)).text
}

/** Every command but help, which run.ts answers itself. */
export const OWN_RUNS: Readonly<Record<Exclude<(typeof OWN_COMMANDS)[number]['name'], 'help'>, OwnRun>> = {
  login,
  logout,
  profile,
  console: attachConsole,
  'audit verify': verify,
  'exec-credential': printCredential,
  api: sendRequest,
  completion: printCompletion,
}
