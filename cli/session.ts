/** Common means of all commands: the session with the service, files, pages, and output of answers. */
import { readFile } from 'node:fs/promises'
import { parse } from 'yaml'
import type { Clock } from '../kit/sys/clock.ts'
import type { Random } from '../kit/sys/random.ts'
import type { Terminal } from '../kit/sys/terminal.ts'
import { ROUTES } from '../resources/index.ts'
import { VERSION } from '../domain/version.ts'
import { type Api, createApi, isMembers, type Members, asMembers, type Reply } from './api.ts'
import type { Globals } from './arguments.ts'
import { commandsOf } from './commands.ts'
import { EXIT, Failure, usageFailure } from './exit.ts'
import { type Format, FORMATS, type Style } from './output.ts'
import { chooseProfile, type Environment } from './profiles.ts'

export interface RunParts {
  readonly environment: Environment
  readonly terminal: Terminal
  readonly clock: Clock
  readonly random: Random
  /** Aborts when the user interrupts. */
  readonly signal: AbortSignal
}

export const USER_AGENT = `svccloud-cli/${VERSION}`
/** Every command with a route. */
export const COMMANDS = commandsOf(ROUTES)

/** https://no-color.org: any non-empty value. */
export const hasNoColor = ({ NO_COLOR }: Environment): boolean => NO_COLOR !== undefined && NO_COLOR !== ''

/** Prints the text and returns the exit code of success. */
export const print = (terminal: Terminal, text: string): number => {
  terminal.write(text)
  return EXIT.ok
}

/** The service with the profile's credentials. Throws a Failure when they are missing, unless none are needed. */
export async function openApi({ environment }: RunParts, globals: Globals, needsToken = true): Promise<Api> {
  const { url, token } = await chooseProfile(environment, globals.profile)
  if (token === undefined && needsToken)
    throw new Failure(
      EXIT.notAllowed,
      'not logged in: run svccloud login (svccloud signup creates an account), or set SVCCLOUD_URL and SVCCLOUD_TOKEN',
    )
  return createApi({ url, token, userAgent: USER_AGENT })
}

/** The output format; `whenAbsent` is the default when no flag names one. */
export const styleOf = (
  { environment, terminal }: RunParts,
  globals: Globals,
  whenAbsent: Format = 'table',
): Style => ({
  format: FORMATS.find((format) => format === globals.output) ?? whenAbsent,
  columns: globals.columns?.split(',').map((name) => name.trim()),
  hasColor: terminal.isOutputTerminal && !hasNoColor(environment),
})

/** The object in the file of `--file`; empty without one. Throws a Failure for a file without an object. */
export async function readFileFlag({ terminal }: RunParts, { file }: Globals): Promise<Members> {
  if (file === undefined) return {}
  const text =
    file === '-'
      ? await terminal.readAll()
      : await readFile(file, 'utf8').catch((error: Error) => {
          throw usageFailure(`${file} cannot be read: ${error.message}`)
        })
  let value: unknown
  try {
    value = parse(text)
  } catch (error) {
    throw usageFailure(`${file} is neither JSON nor YAML: ${String(error)}`)
  }
  if (!isMembers(value)) throw usageFailure(`${file} must contain an object`)
  return value
}

/** Reads a list through its cursor, and an export through its header, to the end. */
export async function followPages(
  first: Reply,
  query: URLSearchParams,
  ask: (search: string) => Promise<Reply>,
): Promise<Reply> {
  const items: unknown[] = []
  let text = ''
  let reply = first
  for (;;) {
    const { items: page, next_cursor: cursor } = asMembers(reply.body)
    if (Array.isArray(page)) items.push(...page)
    else text += reply.text
    const after = reply.headers.get('x-next-after')
    if (typeof cursor === 'string') query.set('cursor', cursor)
    else if (after !== null) query.set('after', after)
    else
      return {
        ...reply,
        text: Array.isArray(page) ? reply.text : text,
        body: Array.isArray(page) ? { items, next_cursor: null } : reply.body,
      }
    reply = await ask(String(query))
  }
}
