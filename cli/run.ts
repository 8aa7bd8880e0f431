/** Runs one command line, from its words to its exit code. All dependencies are passed in. */
import { defined } from '../domain/defined.ts'
import { joinedNames } from '../kit/http/exactly-one.ts'
import { isGiven } from '../kit/http/route.ts'
import { printable } from '../domain/printable.ts'
import { closest } from '../domain/suggestion.ts'
import { VERSION } from '../domain/version.ts'
import { type Api, isMembers, type Members, asMembers, type Reply } from './api.ts'
import {
  requestFields,
  type GlobalFlag,
  type Globals,
  knownOf,
  split,
  splitAfter,
  type Split,
  wordsOf,
} from './arguments.ts'
import { type Command, nameOf } from './commands.ts'
import { candidates } from './completion.ts'
import { EXIT, Failure, programFailure, usageFailure } from './exit.ts'
import { commandHelp, nounHelp, OWN_COMMANDS, overview, type OwnCommand, ownHelp, placeholderOf } from './help.ts'
import { idOf, withIds } from './names.ts'
import { render } from './output.ts'
import { withFiles } from './file-values.ts'
import { OWN_RUNS } from './own-commands.ts'
import { screenOn } from './screen.ts'
import { COMMANDS, followPages, hasNoColor, openApi, print, readFileFlag, type RunParts, styleOf } from './session.ts'
import { waitFor } from './wait.ts'

/** Runs a command line and returns the exit code. Never throws for errors of the user or the service. */
export async function run(line: readonly string[], base: RunParts): Promise<number> {
  const parts = { ...base, terminal: screenOn(base.terminal) }
  try {
    return await dispatch(line, parts)
  } catch (error) {
    const failure = programFailure(error)
    const isColored = parts.terminal.isErrorTerminal && !hasNoColor(parts.environment)
    const name = isColored ? '\u001b[31msvccloud:\u001b[0m' : 'svccloud:'
    parts.terminal.writeError(`${name} ${printable(failure.message)}\n`)
    return failure.code
  }
}

async function dispatch(line: readonly string[], parts: RunParts): Promise<number> {
  const { terminal } = parts
  const words = wordsOf(line)
  const [first = 'help', second = ''] = words
  if (words.length === 0 && line.includes('--version')) return print(terminal, `svccloud ${VERSION}\n`)
  if (first === 'complete')
    return print(
      terminal,
      candidates(COMMANDS, line.slice(line.indexOf('--') + 1))
        .map((word) => `${word}\n`)
        .join(''),
    )
  if (first === 'help') return print(terminal, helpOf(words.slice(1)))
  const own = OWN_COMMANDS.find(({ name }) => name === first || name === `${first} ${second}`)
  if (own !== undefined && own.name !== 'help') return runOwn(own, line, parts)
  const command = COMMANDS.find(({ noun, verb }) => noun === first && verb === second)
  if (command === undefined) {
    const isHelp = line.includes('--help') || line.includes('-h')
    if (!NAMES.some((name) => name.startsWith(`${first} `)) || (second !== '' && !isHelp))
      throw unknownCommand(first, second)
    return print(terminal, nounHelp(first, COMMANDS))
  }
  const invocation = split(line, knownOf(command))
  if (invocation.globals.help !== undefined) return print(terminal, commandHelp(command))
  return runCommand(command, { ...invocation, words: invocation.words.slice(2) }, parts)
}

/** Words after the server of `ssh` belong to another program. */
function runOwn(
  own: Exclude<(typeof OWN_COMMANDS)[number], { name: 'help' }>,
  line: readonly string[],
  parts: RunParts,
) {
  const flags: readonly GlobalFlag[] = own.flags
  const known = flags.map(({ flag, short, value }) => ({
    flag,
    takesValue: value !== undefined,
    ...defined({ short }),
  }))
  const { before, rest } = own.name === 'ssh' ? splitAfter(line, 2, known) : { before: line, rest: [] }
  const invocation = split(before, known)
  if (invocation.globals.help !== undefined) return print(parts.terminal, ownHelp(own))
  return OWN_RUNS[own.name]({ ...invocation, rest, words: invocation.words.slice(own.name.split(' ').length) }, parts)
}

const NAMES: readonly string[] = [...OWN_COMMANDS.map(({ name }) => name), ...COMMANDS.map(nameOf)]

/** A suggestion: another order of the words, another spelling, or the verbs of the noun. */
function unknownCommand(first: string, second: string): Failure {
  const commandName = `${first} ${second}`.trim()
  const verbs = NAMES.filter((name) => name.startsWith(`${first} `)).map((name) => name.slice(first.length + 1))
  const nouns = [...new Set(NAMES.map((name) => name.split(' ')[0] ?? ''))]
  const noun = closest(first, nouns)
  const turned = [`${second} ${first}`, `${closest(second, nouns) ?? ''} ${first}`].find((name) => NAMES.includes(name))
  const suggestion =
    turned ?? (verbs.length > 0 ? undefined : noun === undefined ? closest(commandName, NAMES) : nearNoun(noun, second))
  if (suggestion !== undefined) return usageFailure(`there is no command ${commandName}; did you mean ${suggestion}?`)
  const verb = closest(second, verbs)
  if (verb !== undefined) return usageFailure(`there is no command ${commandName}; did you mean ${first} ${verb}?`)
  return usageFailure(
    verbs.length > 0
      ? `there is no command ${commandName}; ${first} has ${verbs.join(', ')}`
      : `there is no command ${commandName}; svccloud help lists them`,
  )
}

/** The command of the noun with the closest verb; only the noun when there is none. */
function nearNoun(noun: string, verb: string): string {
  const names = NAMES.filter((name) => name === noun || name.startsWith(`${noun} `))
  return names.find((name) => name === `${noun} ${verb}`) ?? closest(`${noun} ${verb}`, names) ?? noun
}

function helpOf(words: readonly string[]): string {
  const name = words.join(' ')
  if (name === '') return overview(COMMANDS)
  const own: OwnCommand | undefined = OWN_COMMANDS.find((candidate) => candidate.name === name)
  const command = COMMANDS.find((candidate) => nameOf(candidate) === name)
  if (own !== undefined) return ownHelp(own)
  if (command !== undefined) return commandHelp(command)
  if (NAMES.some((each) => each.startsWith(`${name} `))) return nounHelp(name, COMMANDS)
  throw unknownCommand(words[0] ?? '', words.slice(1).join(' '))
}

async function runCommand(command: Command, invocation: Split, parts: RunParts): Promise<number> {
  const { route, parameters, flags } = command
  const { globals, words } = invocation
  const own = await withFiles(flags, invocation.own)
  if (words.length !== parameters.length) {
    const names = parameters.map(placeholderOf)
    throw usageFailure(`${nameOf(command)} takes ${names.length === 0 ? 'no arguments' : names.join(' and ')}`)
  }
  const api = await openApi(parts, globals)
  const ids = await Promise.all(
    parameters.map(({ name, noun }, index) => {
      const word = words[index] ?? ''
      return name === 'id' ? idOf(api, COMMANDS, noun, word) : word
    }),
  )
  const body =
    route.body === null
      ? undefined
      : {
          ...(await readFileFlag(parts, globals)),
          ...(await withIds(api, COMMANDS, requestFields(flags, own, 'body'))),
        }
  if (body !== undefined) requireFlags(command, body)
  const isDryRun = own.has('dry-run') && own.get('dry-run')?.at(-1) !== 'false'
  if (!isDryRun && (route.isDestructive || route.method === 'DELETE')) await confirm(command, words, globals, parts)
  const path = parameters.reduce(
    (text, { name }, index) => text.replace(`{${name}}`, encodeURIComponent(ids[index] ?? '')),
    route.path,
  )
  const query = queryOf(requestFields(flags, own, 'query'))
  const ask = (search: string) =>
    api.send({
      method: route.method,
      path: search === '' ? path : `${path}?${search}`,
      signal: parts.signal,
      ...defined({ body }),
      headers: globals['if-match'] === undefined ? {} : { 'if-match': globals['if-match'] },
    })
  const reply = await ask(String(query))
  const answer = globals.all === undefined ? reply : await followPages(reply, query, ask)
  return show(command, answer, { api, parts, globals, ids })
}

function queryOf(fields: Members): URLSearchParams {
  return new URLSearchParams(
    Object.entries(fields).flatMap(([name, value]): [string, string][] =>
      Array.isArray(value) ? value.map((item) => [name, String(item)]) : [[name, String(value)]],
    ),
  )
}

/** Throws a Failure that names every missing flag. */
function requireFlags({ flags, exactlyOne }: Command, body: Members): void {
  const missing = flags
    .filter(({ isRequired, field, place }) => place === 'body' && isRequired && !(field in body))
    .map(({ flag }) => `--${flag}`)
  if (exactlyOne.length > 0 && !exactlyOne.some(({ field }) => isGiven(body, field)))
    missing.push(`one of ${joinedNames(exactlyOne.map(({ flag }) => `--${flag}`))}`)
  if (missing.length > 0) throw usageFailure(`${joinedNames(missing)} ${missing.length === 1 ? 'is' : 'are'} required`)
}

async function confirm(
  command: Command,
  words: readonly string[],
  { yes }: Globals,
  { terminal }: RunParts,
): Promise<void> {
  if (yes !== undefined) return
  const what = `${command.verb} ${command.noun} ${words.join(' ')}`.trim()
  if (!terminal.isInputTerminal) throw usageFailure(`${what} cannot be undone: confirm with --yes`)
  const answer = await terminal.ask(`Really ${what}? It cannot be undone. (yes/no) `)
  if (answer.trim() !== 'yes') throw usageFailure('cancelled; nothing was changed')
}

interface Showing {
  readonly api: Api
  readonly parts: RunParts
  readonly globals: Globals
  /** Values of the command's arguments. */
  readonly ids: readonly string[]
}

async function show(command: Command, reply: Reply, { api, parts, globals, ids }: Showing): Promise<number> {
  const { terminal } = parts
  const style = styleOf(parts, globals)
  if (reply.body === undefined) return print(terminal, reply.text)
  const { operation, ...rest } = asMembers(reply.body)
  if (reply.status !== 202 || !isMembers(operation) || globals['no-wait'] !== undefined) {
    const { next_cursor } = asMembers(reply.body)
    terminal.write(render(reply.body, style))
    if (style.format === 'table' && isEmptyList(reply.body)) terminal.writeError(`There are no ${pluralOf(command)}.\n`)
    if (typeof next_cursor === 'string' && style.format === 'table')
      terminal.writeError('There are more: --all shows them.\n')
    return EXIT.ok
  }
  const { events: _events, ...finished } = await waitFor({ ...parts, api }, String(operation['id']))
  terminal.write(render(await asItIsNow(api, idIn(rest) ?? ids[0], command.noun, finished), style))
  return EXIT.ok
}

const isEmptyList = (body: unknown): boolean => {
  const { items } = asMembers(body)
  return Array.isArray(items) && items.length === 0
}

/** Names as in the path. */
const pluralOf = ({ route: { path } }: Command): string => {
  const last = path.split('/').at(-1) ?? ''
  return last.endsWith('s') ? last.replaceAll('-', ' ') : 'entries'
}

/** The id of the resource that an asynchronous answer contains beside its operation. */
function idIn(rest: Members): string | undefined {
  const { id } = asMembers(Object.values(rest)[0])
  return typeof id === 'string' ? id : undefined
}

/** The resource after its operation; the operation when the resource was deleted. */
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
