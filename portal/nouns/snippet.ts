/** The same as a command: what a form holds, as a command line and as a request. Pure; nothing here is a secret. */
import type { OperationRule } from '../api/operations.ts'
import type { Values } from './noun.ts'

export type FlagTypes = Readonly<Record<string, string>>

/** Quoted for a POSIX shell. */
export const quoted = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`

const isSaid = (value: unknown): boolean =>
  value !== undefined && value !== '' && !(Array.isArray(value) && value.length === 0)

function flagOf(field: string, value: unknown, type: string): readonly string[] {
  const flag = `--${field.replaceAll('_', '-')}`
  if (value === null) return [`${flag} null`]
  if (type === 'boolean') return [value === true ? flag : `${flag}=false`]
  if (type === 'list' && Array.isArray(value)) return value.map((each) => `${flag} ${quoted(String(each))}`)
  if (type === 'map')
    return Object.entries(Object(value)).map(([key, text]) => `${flag} ${quoted(`${key}=${String(text)}`)}`)
  return [`${flag} ${quoted(typeof value === 'object' ? JSON.stringify(value) : String(value))}`]
}

/** `svccloud server create --hostname web …`. Undefined where there is no command. */
export function commandLine(
  rule: OperationRule,
  path: Readonly<Record<string, string>>,
  body: Values,
  types: FlagTypes,
): string | undefined {
  if (rule.command === undefined) return undefined
  const flags = Object.entries(body)
    .filter(([field, value]) => isSaid(value) && types[field] !== undefined)
    .flatMap(([field, value]) => flagOf(field, value, types[field] ?? 'text'))
  const words = ['svccloud', rule.command, ...Object.values(path).map(quoted)]
  return [words.join(' '), ...flags].join(flags.length > 2 ? ' \\\n  ' : ' ')
}

/** The request with curl. The token is a variable of the shell. */
export function curlOf(
  rule: OperationRule,
  path: Readonly<Record<string, string>>,
  body: Values,
  origin: string,
): string {
  const filled = rule.path.replace(/\{(\w+)\}/g, (_match, name: string) => encodeURIComponent(path[name] ?? ''))
  const said = Object.fromEntries(Object.entries(body).filter(([, value]) => isSaid(value)))
  const lines = [
    `curl ${rule.method === 'GET' ? '' : `-X ${rule.method} `}${quoted(origin + filled)}`,
    '-H "Authorization: Bearer $TOKEN"',
    ...(Object.keys(said).length === 0
      ? []
      : [`-H 'Content-Type: application/json'`, `-d ${quoted(JSON.stringify(said, null, 2))}`]),
  ]
  return lines.join(' \\\n  ')
}
