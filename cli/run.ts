/** One command line from its words to its exit code. Everything that it touches is given to it. */
import { readFile } from 'node:fs/promises'
import { parse } from 'yaml'
import type { Clock } from '../kit/sys/clock.ts'
import type { Random } from '../kit/sys/random.ts'
import type { Terminal } from '../kit/sys/terminal.ts'
import { ROUTES } from '../resources/index.ts'
import { VERSION } from '../resources/version.ts'
import { verifyAudit } from '../tools/verify-audit.ts'
import { type Api, createApi, type Members, type Reply } from './api.ts'
import { fieldsOf, type Globals, knownOf, split, type Split } from './arguments.ts'
import { type Command, commandsOf, nameOf } from './commands.ts'
import { candidates, completionScript, SHELLS } from './completion.ts'
import { attach } from './console.ts'
import { execCredential } from './exec-credential.ts'
import { EXIT, Failure, usage } from './exit.ts'
import { commandHelp, nounHelp, OWN_COMMANDS, overview, type OwnCommand, ownHelp } from './help.ts'
import { logIn } from './login.ts'
import { idOf, withIds } from './names.ts'
import { type Format, render, type Style } from './output.ts'
import { chooseProfile, type Environment, readProfiles, writeProfiles } from './profiles.ts'
import { waitFor } from './wait.ts'

export interface RunParts {
  readonly environment: Environment
  readonly terminal: Terminal
  readonly clock: Clock
  readonly random: Random
  /** Aborts when the person interrupts. */
  readonly signal: AbortSignal
}

const USER_AGENT = `svccloud-cli/${VERSION}`
export const COMMANDS = commandsOf(ROUTES)

/** Runs a command line; answers the exit code. Never throws for what a person or the service can do wrong. */
export async function run(line: readonly string[], parts: RunParts): Promise<number> {
  try {
    return await dispatch(line, parts)
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const isColored = parts.terminal.isErrorTerminal && !hasNoColor(parts.environment)
    parts.terminal.writeError(`${isColored ? '\u001b[31msvccloud:\u001b[0m' : 'svccloud:'} ${error.message}\n`)
    return error.code
  }
}

/** https://no-color.org: any value but the empty one. */
const hasNoColor = ({ NO_COLOR }: Environment): boolean => NO_COLOR !== undefined && NO_COLOR !== ''

async function dispatch(line: readonly string[], parts: RunParts): Promise<number> {
  const { terminal } = parts
  const [first = 'help', second = ''] = line.filter((word) => !word.startsWith('-'))
  if (line[0] === '--version') return say(terminal, `svccloud ${VERSION}\n`)
  if (first === 'complete')
    return say(
      terminal,
      candidates(COMMANDS, line.slice(line.indexOf('--') + 1))
        .map((word) => `${word}\n`)
        .join(''),
    )
  if (first === 'help') return say(terminal, helpOf(line.filter((word) => word !== 'help' && !word.startsWith('-'))))
  const own: OwnCommand | undefined = OWN_COMMANDS.find(({ name }) => name === first || name === `${first} ${second}`)
  if (own !== undefined) {
    const given = split(
      line,
      own.flags.map(({ flag, value }) => ({ flag, takesValue: value !== undefined })),
    )
    if (given.globals.help !== undefined) return say(terminal, ownHelp(own))
    return runOwn(
      own.name as (typeof OWN_COMMANDS)[number]['name'],
      { ...given, words: given.words.slice(own.name.split(' ').length) },
      parts,
    )
  }
  const command = COMMANDS.find(({ noun, verb }) => noun === first && verb === second)
  if (command === undefined) {
    if (!COMMANDS.some(({ noun }) => noun === first))
      throw usage(`there is no command ${first}; svccloud help lists them`)
    if (second !== '' && !line.includes('--help') && !line.includes('-h'))
      throw usage(`there is no command ${first} ${second}; svccloud ${first} --help lists them`)
    return say(terminal, nounHelp(first, COMMANDS))
  }
  const given = split(line, knownOf(command))
  if (given.globals.help !== undefined) return say(terminal, commandHelp(command))
  return runCommand(command, { ...given, words: given.words.slice(2) }, parts)
}

const say = (terminal: Terminal, text: string): number => {
  terminal.write(text)
  return EXIT.ok
}

function helpOf(words: readonly string[]): string {
  const name = words.join(' ')
  if (name === '') return overview(COMMANDS)
  const own: OwnCommand | undefined = OWN_COMMANDS.find((candidate) => candidate.name === name)
  const command = COMMANDS.find((candidate) => nameOf(candidate) === name)
  if (own !== undefined) return ownHelp(own)
  if (command !== undefined) return commandHelp(command)
  if (COMMANDS.some(({ noun }) => noun === name)) return nounHelp(name, COMMANDS)
  throw usage(`there is no command ${name}`)
}

async function openApi({ environment }: RunParts, globals: Globals, needsToken = true): Promise<Api> {
  const { url, token } = await chooseProfile(environment, globals.profile)
  if (token === undefined && needsToken)
    throw new Failure(EXIT.notAllowed, 'not logged in: run svccloud login, or set SVCCLOUD_URL and SVCCLOUD_TOKEN')
  return createApi({ url, token, userAgent: USER_AGENT })
}

const styleOf = ({ environment, terminal }: RunParts, globals: Globals): Style => ({
  format: (globals.output ?? 'table') as Format,
  columns: globals.columns?.split(',').map((name) => name.trim()),
  hasColor: terminal.isOutputTerminal && !hasNoColor(environment), // one of the flag's choices
})

async function runCommand(command: Command, given: Split, parts: RunParts): Promise<number> {
  const { route, parameters, flags, noun } = command
  const { globals, own, words } = given
  if (words.length !== parameters.length)
    throw usage(`${nameOf(command)} takes ${parameters.length === 0 ? 'no arguments' : parameters.join(' and ')}`)
  const api = await openApi(parts, globals)
  const ids = await Promise.all(
    words.map((word, index) => (parameters[index] === 'id' ? idOf(api, COMMANDS, noun, word) : word)),
  )
  const body =
    route.body === null
      ? undefined
      : { ...(await readFileFlag(parts, globals)), ...(await withIds(api, COMMANDS, fieldsOf(flags, own, 'body'))) }
  const missing =
    body === undefined
      ? undefined
      : flags.find(({ isRequired, field, place }) => place === 'body' && isRequired && !(field in body))
  if (missing !== undefined) throw usage(`--${missing.flag} is required`)
  if (route.isDestructive || route.method === 'DELETE') await confirm(command, words, globals, parts)
  const path = parameters.reduce(
    (text, name, index) => text.replace(`{${name}}`, encodeURIComponent(ids[index] ?? '')),
    route.path,
  )
  const query = queryOf(fieldsOf(flags, own, 'query'))
  const ask = (search: string) =>
    api.send({
      method: route.method,
      path: search === '' ? path : `${path}?${search}`,
      signal: parts.signal,
      ...(body === undefined ? {} : { body }),
      headers: { ...(globals['if-match'] === undefined ? {} : { 'if-match': globals['if-match'] }) },
    })
  const reply = await ask(String(query))
  const answer = globals.all === undefined ? reply : await theRest(reply, query, ask)
  return show(command, answer, { api, parts, globals, ids })
}

function queryOf(fields: Members): URLSearchParams {
  return new URLSearchParams(
    Object.entries(fields).flatMap(([name, value]): [string, string][] =>
      Array.isArray(value) ? value.map((item) => [name, String(item)]) : [[name, String(value)]],
    ),
  )
}

async function readFileFlag({ terminal }: RunParts, { file }: Globals): Promise<Members> {
  if (file === undefined) return {}
  const text =
    file === '-'
      ? await terminal.readAll()
      : await readFile(file, 'utf8').catch((error: Error) => {
          throw usage(`${file} cannot be read: ${error.message}`)
        })
  let value: unknown
  try {
    value = parse(text)
  } catch (error) {
    throw usage(`${file} is neither JSON nor YAML: ${String(error)}`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw usage(`${file} must hold an object`)
  return value as Members
}

async function confirm(
  command: Command,
  words: readonly string[],
  { yes }: Globals,
  { terminal }: RunParts,
): Promise<void> {
  if (yes !== undefined) return
  const what = `${command.verb} ${command.noun} ${words.join(' ')}`.trim()
  if (!terminal.isInputTerminal) throw usage(`${what} cannot be undone: say --yes`)
  const answer = await terminal.ask(`Really ${what}? It cannot be undone. (yes/no) `)
  if (answer.trim() !== 'yes') throw usage('nothing was done')
}

/** Follows a list by its cursor, and an export by its header, to the end. */
async function theRest(first: Reply, query: URLSearchParams, ask: (search: string) => Promise<Reply>): Promise<Reply> {
  const items: unknown[] = []
  let text = ''
  let reply = first
  for (;;) {
    const { items: page, next_cursor: cursor } = (reply.body ?? {}) as {
      readonly items?: readonly unknown[]
      readonly next_cursor?: string | null
    } // lists have this shape
    if (page !== undefined) items.push(...page)
    else text += reply.text
    const after = reply.headers.get('x-next-after')
    if (typeof cursor === 'string') query.set('cursor', cursor)
    else if (after !== null) query.set('after', after)
    else
      return {
        ...reply,
        text: page === undefined ? text : reply.text,
        body: page === undefined ? reply.body : { items, next_cursor: null },
      }
    reply = await ask(String(query))
  }
}

interface Showing {
  readonly api: Api
  readonly parts: RunParts
  readonly globals: Globals
  /** What the arguments of the command stand for. */
  readonly ids: readonly string[]
}

async function show(command: Command, reply: Reply, { api, parts, globals, ids }: Showing): Promise<number> {
  const { terminal } = parts
  const style = styleOf(parts, globals)
  if (reply.body === undefined) return say(terminal, reply.text)
  // asynchronous answers have it
  const { operation, ...rest } = reply.body as { readonly operation?: { readonly id: string } } & Members
  if (reply.status !== 202 || operation === undefined || globals['no-wait'] !== undefined) {
    const { next_cursor } = reply.body as Members
    terminal.write(render(reply.body, style))
    if (typeof next_cursor === 'string' && style.format === 'table')
      terminal.writeError('There are more: --all shows them.\n')
    return EXIT.ok
  }
  const { events: _events, ...finished } = await waitFor({ ...parts, api }, operation.id)
  terminal.write(render(await asItIsNow(api, idIn(rest) ?? ids[0], command.noun, finished), style))
  return EXIT.ok
}

/** The id of a resource that the answer shows beside its operation. */
// asynchronous answers have at most this one
const idIn = (rest: Members): string | undefined => (Object.values(rest)[0] as { readonly id?: string } | undefined)?.id

/** The resource as it is after its operation; the operation where the resource is gone. */
async function asItIsNow(api: Api, id: string | undefined, noun: string, operation: object): Promise<unknown> {
  const read = COMMANDS.find(
    (command) => command.noun === noun && command.verb === 'get' && command.parameters.length === 1,
  )
  if (id === undefined || read === undefined) return { operation }
  try {
    return (await api.send({ method: 'GET', path: read.route.path.replace(/\{\w+\}/, encodeURIComponent(id)) })).body
  } catch (error) {
    if (error instanceof Failure && error.message.startsWith('404')) return { operation }
    throw error
  }
}

async function runOwn(
  name: (typeof OWN_COMMANDS)[number]['name'],
  { globals, own, words }: Split,
  parts: RunParts,
): Promise<number> {
  const { terminal, environment } = parts
  const flag = (wanted: string) => own.get(wanted)?.at(-1)
  switch (name) {
    case 'login': {
      const message = await logIn({
        environment,
        terminal,
        clock: parts.clock,
        userAgent: USER_AGENT,
        profile: globals.profile,
        url: flag('url'),
        token: flag('token'),
        email: flag('email'),
        code: flag('code'),
        scope: flag('scope'),
      })
      terminal.writeError(`${message}\n`)
      return EXIT.ok
    }
    case 'logout': {
      const { current, profiles } = await readProfiles(environment)
      const { [globals.profile ?? current]: gone, ...kept } = profiles
      if (gone === undefined) throw usage(`there is no profile ${globals.profile ?? current}`)
      await writeProfiles(environment, {
        current: current in kept ? current : (Object.keys(kept)[0] ?? current),
        profiles: kept,
      })
      return EXIT.ok
    }
    case 'profile':
      return runProfile(words, globals, parts)
    case 'console': {
      const [server] = words
      if (server === undefined || words.length > 1) throw usage('console takes a server')
      const api = await openApi(parts, globals)
      const leaving = new AbortController()
      const seconds = flag('for')
      if (seconds !== undefined && !/^\d+$/.test(seconds)) throw usage('--for takes a whole number')
      if (seconds !== undefined) parts.clock.after(Number(seconds) * 1000, () => leaving.abort())
      await attach(
        { ...parts, api, signal: AbortSignal.any([parts.signal, leaving.signal]) },
        await idOf(api, COMMANDS, 'server', server),
      )
      return EXIT.ok
    }
    case 'audit verify': {
      const text = await auditText(words, globals, parts)
      let verdict: ReturnType<typeof verifyAudit>
      try {
        verdict = verifyAudit(text.split('\n'), flag('start'))
      } catch (error) {
        throw new Failure(EXIT.invalid, `this is no export of an audit log: ${String(error)}`)
      }
      terminal.write(`${verdict.text}\n`)
      return verdict.isWhole ? EXIT.ok : EXIT.refused
    }
    case 'exec-credential': {
      const cluster = flag('cluster')
      if (cluster === undefined || words.length > 0)
        throw usage('exec-credential takes --cluster KIND/ID and nothing else')
      const credential = await execCredential({
        api: await openApi(parts, globals),
        commands: COMMANDS,
        cluster,
        signal: parts.signal,
      })
      return say(terminal, render(credential, { ...styleOf(parts, globals), format: 'json' }))
    }
    case 'api': {
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
      return say(
        terminal,
        reply.body === undefined
          ? reply.text
          : render(reply.body, { ...styleOf(parts, globals), format: (globals.output ?? 'json') as Format }),
      ) // as in styleOf
    }
    case 'completion': {
      const script = completionScript(words[0] ?? '')
      if (script === undefined) throw usage(`completion takes one of ${SHELLS.join(', ')}`)
      return say(terminal, script)
    }
    case 'help':
      return say(terminal, helpOf(words))
  }
}

async function runProfile(
  [verb = 'list', name, ...more]: readonly string[],
  globals: Globals,
  parts: RunParts,
): Promise<number> {
  const known = await readProfiles(parts.environment)
  if (verb === 'list' && name === undefined) {
    const items = Object.entries(known.profiles).map(([each, { url }]) => ({
      name: each,
      url,
      is_current: each === known.current,
    }))
    return say(
      parts.terminal,
      render({ items }, { ...styleOf(parts, globals), columns: ['name', 'url', 'is_current'] }),
    )
  }
  if (verb !== 'use' || name === undefined || more.length > 0) throw usage('profile takes list, or use and a name')
  if (known.profiles[name] === undefined) throw usage(`there is no profile ${name}`)
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
  return (await theRest(await ask(String(query)), query, ask)).text
}
