/** Parses a command line: flags that a table knows, and the other words in order. Refuses everything unknown by
 *  name. */
import { parseArgs } from 'node:util'
import { defined } from '../domain/defined.ts'
import { closest, didYouMean } from '../domain/suggestion.ts'
import type { Command, Flag } from './commands.ts'
import { usageFailure } from './exit.ts'
import { FORMATS } from './output.ts'

export interface GlobalFlag {
  readonly flag: string
  readonly short?: string
  /** Name of the value in help; absent for a switch. */
  readonly value?: string
  readonly choices?: readonly string[]
  readonly description: string
}

export const GLOBAL_FLAGS = [
  {
    flag: 'output',
    short: 'o',
    value: 'FORMAT',
    choices: FORMATS,
    description: 'Output format (default table; name prints ids only).',
  },
  {
    flag: 'columns',
    value: 'A,B,…',
    description: 'Fields to show; a dot selects a nested field, as in active_operation.status.',
  },
  { flag: 'profile', value: 'NAME', description: 'Profile to use instead of the current one (or SVCCLOUD_PROFILE).' },
  {
    flag: 'file',
    short: 'f',
    value: 'PATH',
    description: 'Request in JSON or YAML; flags override it. - reads standard input.',
  },
  { flag: 'all', description: 'Get all pages of a list.' },
  { flag: 'no-wait', description: 'Do not wait for the started operation.' },
  { flag: 'if-match', value: 'ETAG', description: 'Change only this version of the resource.' },
  { flag: 'yes', short: 'y', description: 'Do not ask for confirmation before deleting something.' },
  { flag: 'help', short: 'h', description: 'Show the help of a command.' },
  { flag: 'version', description: 'Print the version.' },
] as const satisfies readonly GlobalFlag[]

export type Globals = Readonly<Partial<Record<(typeof GLOBAL_FLAGS)[number]['flag'], string>>>

export interface Split {
  readonly globals: Globals
  /** The command's flags by name, each with all given values; undefined values were switches. */
  readonly own: ReadonlyMap<string, readonly (string | undefined)[]>
  readonly words: readonly string[]
}

export interface KnownFlag {
  readonly flag: string
  readonly short?: string
  readonly takesValue: boolean
}

const tokensOf = (line: readonly string[], known: readonly KnownFlag[]) =>
  parseArgs({
    args: [...line],
    // the checks of `split` report errors in the same words as the other refusals
    strict: false,
    allowPositionals: true,
    tokens: true,
    options: Object.fromEntries([
      ...GLOBAL_FLAGS.map((flag: GlobalFlag) => [flag.flag, optionOf(flag.value !== undefined, flag.short)] as const),
      ...known.map(({ flag, short, takesValue }) => [flag, optionOf(takesValue, short)] as const),
    ]),
  })

/** Words of a line that are neither flags nor their values, for any command: global flags may be anywhere. */
export const wordsOf = (line: readonly string[]): readonly string[] => tokensOf(line, []).positionals

/** Splits the line after the first `count` words and the flags among them. The rest stays as typed: a command that a
 *  guest runs has its own flags. */
export function splitAfter(
  line: readonly string[],
  count: number,
  known: readonly KnownFlag[],
): { readonly before: readonly string[]; readonly rest: readonly string[] } {
  let words = 0
  for (const token of tokensOf(line, known).tokens) {
    if (token.kind === 'option-terminator')
      return { before: line.slice(0, token.index), rest: line.slice(token.index + 1) }
    if (token.kind === 'positional' && (words += 1) > count)
      return { before: line.slice(0, token.index), rest: line.slice(token.index) }
  }
  return { before: line, rest: [] }
}

/** Splits a command line. `known` are the flags of the command; a boolean flag may also be given as `--no-FLAG`. Throws
 *  a Failure for unknown flags, for missing values and for unexpected values. */
export function split(line: readonly string[], known: readonly KnownFlag[]): Split {
  const globals: Record<string, string> = {}
  const own = new Map<string, (string | undefined)[]>()
  const { tokens, positionals } = tokensOf(line, known)
  for (const token of tokens) {
    if (token.kind !== 'option') continue
    const { name, rawName, inlineValue } = token
    // -o=json, as in kubectl
    const value = rawName.startsWith('--') ? token.value : token.value?.replace(/^=/, '')
    const mine = known.find(({ flag }) => flag === name || `no-${flag}` === name)
    const global: GlobalFlag | undefined = GLOBAL_FLAGS.find(({ flag }) => flag === name)
    if (mine === undefined && global === undefined)
      throw usageFailure(`there is no flag ${rawName}${meantFlag(name, known)}`)
    const takesValue = mine === undefined ? global?.value !== undefined : mine.takesValue && mine.flag === name
    if (takesValue && value === undefined) throw usageFailure(`${rawName} needs a value`)
    if (mine !== undefined) own.set(mine.flag, [...(own.get(mine.flag) ?? []), mine.flag === name ? value : 'false'])
    else if (!takesValue && inlineValue === true) throw usageFailure(`${rawName} takes no value`)
    else if (global !== undefined) globals[global.flag] = oneOf(global, value ?? 'true')
  }
  return { globals, own, words: positionals }
}

function meantFlag(name: string, known: readonly KnownFlag[]): string {
  const suggestion = closest(
    name,
    [...known, ...GLOBAL_FLAGS].map(({ flag }) => flag),
  )
  return suggestion === undefined ? '; --help lists them' : `; did you mean --${suggestion}?`
}

const optionOf = (takesValue: boolean, short?: string) => ({
  type: takesValue ? ('string' as const) : ('boolean' as const),
  ...defined({ short }),
})

function oneOf({ flag, choices }: GlobalFlag, value: string): string {
  if (choices !== undefined && !choices.includes(value)) throw usageFailure(notAmong(flag, value, choices))
  return value
}

export const knownOf = ({ flags }: Command): readonly KnownFlag[] =>
  flags.map(({ flag, type }) => ({ flag, takesValue: type !== 'boolean' }))

/** The request fields that the flags set, in the types of the API. */
export function requestFields(
  flags: readonly Flag[],
  own: Split['own'],
  place: Flag['place'],
): Record<string, unknown> {
  return Object.fromEntries(
    flags
      .filter((flag) => flag.place === place && own.has(flag.flag))
      .map((flag) => [flag.field, valueOf(flag, own.get(flag.flag) ?? [])]),
  )
}

const notAmong = (flag: string, value: string, choices: readonly string[]): string =>
  `--${flag} is one of ${choices.join(', ')}${didYouMean(value, choices)}`

function valueOf({ flag, type, isNullable, choices }: Flag, values: readonly (string | undefined)[]): unknown {
  const texts = values.map((text) => text ?? 'true')
  const last = texts.at(-1) ?? ''
  if (isNullable && last === 'null') return null
  if (type === 'text' && choices.length > 0 && !choices.includes(last))
    throw usageFailure(notAmong(flag, last, choices))
  switch (type) {
    case 'text':
      return last
    case 'integer':
      return /^-?\d+$/.test(last) ? Number(last) : fail(flag, 'a whole number')
    case 'boolean':
      return last === 'true' ? true : last === 'false' ? false : fail(flag, 'true or false')
    // Public keys contain no comma, and neither do other values in lists.
    case 'list':
      return texts.flatMap((text) => (text === '' ? [] : text.split(',')))
    case 'map':
      return Object.fromEntries(
        texts
          .flatMap((text) => (text === '' ? [] : text.split(',')))
          .map((pair) =>
            pair.includes('=')
              ? [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]
              : fail(flag, 'key=value'),
          ),
      )
    case 'json':
      return parsed(flag, last)
  }
}

function parsed(flag: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Plain words need no quotes.
    return /^[[{"]/.test(text) ? fail(flag, 'JSON') : text
  }
}

function fail(flag: string, what: string): never {
  throw usageFailure(`--${flag} takes ${what}`)
}
