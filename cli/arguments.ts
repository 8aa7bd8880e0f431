/** A command line as values: flags that a table knows, and the rest in order. Everything unknown is refused by name. */
import type { Command, Flag } from './commands.ts'
import { usage } from './exit.ts'

export interface GlobalFlag {
  readonly flag: string
  readonly short?: string
  /** What the value is called in help; a switch without. */
  readonly value?: string
  readonly choices?: readonly string[]
  readonly description: string
}

export const GLOBAL_FLAGS = [
  {
    flag: 'output',
    short: 'o',
    value: 'FORMAT',
    choices: ['table', 'json', 'yaml', 'name'],
    description: 'How answers are shown (default table; name shows ids alone).',
  },
  {
    flag: 'columns',
    value: 'A,B,…',
    description: 'Fields to show in tables; a dot reads inside, as in active_operation.status.',
  },
  { flag: 'profile', value: 'NAME', description: 'Another profile than the current one (or SVCCLOUD_PROFILE).' },
  {
    flag: 'file',
    short: 'f',
    value: 'PATH',
    description: 'JSON or YAML of the request; flags win over it. - reads the input.',
  },
  { flag: 'all', description: 'Follow a list to its end.' },
  { flag: 'no-wait', description: 'Do not wait for the operation that was started.' },
  { flag: 'if-match', value: 'ETAG', description: 'Change only this version of the resource.' },
  { flag: 'yes', short: 'y', description: 'Do not ask before something is destroyed.' },
  { flag: 'help', short: 'h', description: 'Say what a command takes.' },
  { flag: 'version', description: 'Print the version.' },
] as const satisfies readonly GlobalFlag[]

export type Globals = Readonly<Partial<Record<(typeof GLOBAL_FLAGS)[number]['flag'], string>>>

export interface Split {
  readonly globals: Globals
  /** Flags that are the command's own, by name, each with every value it was given; undefined values were switches. */
  readonly own: ReadonlyMap<string, readonly (string | undefined)[]>
  readonly words: readonly string[]
}

interface Known {
  readonly flag: string
  readonly takesValue: boolean
}

/** Splits a command line. `known` are the command's own flags. */
export function split(line: readonly string[], known: readonly Known[]): Split {
  const globals: Record<string, string> = {}
  const own = new Map<string, (string | undefined)[]>()
  const words: string[] = []
  for (let index = 0; index < line.length; index += 1) {
    const text = line[index] ?? ''
    if (text === '--') {
      words.push(...line.slice(index + 1))
      break
    }
    if (!text.startsWith('-') || text === '-') {
      words.push(text)
      continue
    }
    const equals = text.indexOf('=')
    const name = text.slice(0, equals < 0 ? undefined : equals)
    const mine = known.find(({ flag }) => `--${flag}` === name || `--no-${flag}` === name)
    const global: GlobalFlag | undefined =
      mine === undefined
        ? GLOBAL_FLAGS.find((candidate: GlobalFlag) => `--${candidate.flag}` === name || `-${candidate.short}` === name)
        : undefined
    if (mine === undefined && global === undefined) throw usage(`there is no flag ${name}`)
    const takesValue = mine === undefined ? global?.value !== undefined : mine.takesValue && name === `--${mine.flag}`
    const value = equals >= 0 ? text.slice(equals + 1) : takesValue ? line[(index += 1)] : undefined
    if (takesValue && value === undefined) throw usage(`${name} needs a value`)
    if (!takesValue && equals >= 0 && mine === undefined) throw usage(`${name} takes no value`)
    if (mine !== undefined)
      own.set(mine.flag, [...(own.get(mine.flag) ?? []), name === `--no-${mine.flag}` ? 'false' : value])
    else if (global !== undefined) globals[global.flag] = oneOf(global, value ?? 'true')
  }
  return { globals, own, words }
}

function oneOf({ flag, choices }: GlobalFlag, value: string): string {
  if (choices !== undefined && !choices.includes(value)) throw usage(`--${flag} is one of ${choices.join(', ')}`)
  return value
}

export const knownOf = ({ flags }: Command): readonly Known[] =>
  flags.map(({ flag, type }) => ({ flag, takesValue: type !== 'boolean' }))

/** The fields that the flags stand for, in the types of the API. */
export function fieldsOf(flags: readonly Flag[], own: Split['own'], place: Flag['place']): Record<string, unknown> {
  return Object.fromEntries(
    flags
      .filter((flag) => flag.place === place && own.has(flag.flag))
      .map((flag) => [flag.field, valueOf(flag, own.get(flag.flag) ?? [])]),
  )
}

function valueOf({ flag, type, isNullable }: Flag, given: readonly (string | undefined)[]): unknown {
  const texts = given.map((text) => text ?? 'true')
  const last = texts.at(-1) ?? ''
  if (isNullable && last === 'null') return null
  switch (type) {
    case 'text':
      return last
    case 'integer':
      return /^-?\d+$/.test(last) ? Number(last) : fail(flag, 'a whole number')
    case 'boolean':
      return last === 'true' ? true : last === 'false' ? false : fail(flag, 'true or false')
    // A public key holds no comma, and neither does anything else that comes in lists.
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
  throw usage(`--${flag} takes ${what}`)
}
