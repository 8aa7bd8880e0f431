/** Takes out of a transcript what two correct servers may answer differently: identities, times, revisions, addresses.
 *  Identities keep their relation: the first uid of a scenario is always `<uid-1>`, wherever it appears again. */

import { parse, stringify } from 'yaml'
import { pick } from './field.ts'
import type { FieldPath } from './scenario.ts'

export interface Normaliser {
  /** A JSON value from the server, or only parts of it, rendered as YAML with sorted keys. */
  value(value: unknown, only?: readonly FieldPath[]): string
  /** Text that kubectl printed for people. */
  text(text: string): string
  /** From here on the value is shown as `<name>`. */
  name(name: string, value: string): void
}

const UID = /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g
const TIME = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)/g
const JWT = /\beyJ[\w-]+\.[\w-]+\.[\w-]+/g
const AGE = /^(\d+[smhd]){1,2}$/
const AGE_IN_COLUMN = /(?<=\s)(?:\d+[smhd]){1,2}(?: +|$)/gm
const BULLETS = /(?:^\* .*\n?)+/gm
const REVISION_LINE = /((?:Resource Version|resourceVersion):\s+)"?\d+"?$/gm
const REVISION_IN_JSON = /("resourceVersion\\?":\\?")\d+/g
const FILE_TIME = /\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}/g
/** What kubectl's libraries log depends on the moment. */
const LOG_LINE = /^[IWE]\d{4} \d\d:\d\d:.*\n?/gm
const TEMPORARY_FILE = /\/tmp\/[\w./-]+/g

type Json = Record<string, unknown>
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Managers are ordered by the second of their last write, which is chance; their own order is not. */
function sortManagers(entries: readonly unknown[]): unknown[] {
  const key = (entry: unknown) =>
    isObject(entry)
      ? [entry['operation'], entry['manager'], entry['subresource'] ?? '', entry['apiVersion']].join(' ')
      : ''
  return entries.toSorted((a, b) => (key(a) < key(b) ? -1 : 1))
}

const causeText = (cause: unknown) => (isObject(cause) ? `${String(cause['field'])}: ${String(cause['message'])}` : '')

/** The causes of a refusal come in the order of a map; so they do inside its message. */
function messageInOrder(status: Json): unknown {
  const { message, details } = status
  const causes = isObject(details) && Array.isArray(details['causes']) ? details['causes'].map(causeText) : []
  if (typeof message !== 'string' || causes.length < 2 || !causes.every((cause) => message.includes(cause)))
    return message
  return message.replace(/is invalid: \[.*\]$/s, `is invalid: [${[...new Set(causes)].toSorted().join(', ')}]`)
}

/** Resources of a group are listed in the order in which they came to be known, which is chance too. */
function inOrder(key: string, items: readonly unknown[]): readonly unknown[] {
  if (key === 'managedFields') return sortManagers(items)
  if (key === 'causes') return items.toSorted((a, b) => (causeText(a) < causeText(b) ? -1 : 1))
  if (key === 'resources')
    return items.toSorted((a, b) =>
      isObject(a) && isObject(b) ? String(a['name']).localeCompare(String(b['name'])) : 0,
    )
  return items
}

/** `server` is the address under test, without a trailing slash. */
export function newNormaliser(server: string): Normaliser {
  const uids = new Map<string, string>()
  const revisions = new Map<string, string>()
  const named = new Map<string, string>()
  const label = (known: Map<string, string>, prefix: string, value: string) => {
    const found = known.get(value) ?? `<${prefix}-${known.size + 1}>`
    known.set(value, found)
    return found
  }

  const scrub = (text: string): string => {
    let clean = text.replaceAll(server, '<server>').replaceAll(server.replace('https://', ''), '<server>')
    for (const [value, name] of named) clean = clean.replaceAll(value, name)
    return clean
      .replace(JWT, '<jwt>')
      .replace(UID, (uid) => label(uids, 'uid', uid))
      .replace(TIME, '<time>')
      .replace(REVISION_IN_JSON, '$1<revision>')
  }

  const clean = (value: unknown, key: string, parent: Json | undefined): unknown => {
    if (key === 'resourceVersion' && typeof value === 'string') {
      if (value === '' || value === '0') return value
      return parent && 'uid' in parent ? label(revisions, 'revision', value) : '<revision>'
    }
    if (key === 'continue' && typeof value === 'string' && value !== '') return '<continue>'
    if (typeof value === 'string') return AGE.test(value) ? '<age>' : scrub(value)
    if (Array.isArray(value)) return inOrder(key, value).map((item) => clean(item, '', undefined))
    if (!isObject(value)) return value
    const shown: Json =
      value['kind'] === 'Status' && 'message' in value ? { ...value, message: messageInOrder(value) } : value
    // In the order of names, so that labels are given in the same order whoever wrote the JSON.
    return Object.fromEntries(
      Object.keys(shown)
        .sort()
        .map((name) => [scrub(name), clean(shown[name], name, shown)]),
    )
  }

  return {
    value: (value, only) =>
      stringify(only ? pick(clean(value, '', undefined), only) : clean(value, '', undefined), {
        sortMapEntries: true,
        lineWidth: 0,
      }).trimEnd(),
    text: (text) =>
      scrub(text)
        .replace(LOG_LINE, '')
        .replace(AGE_IN_COLUMN, '<age> ')
        .replace(BULLETS, (bullets) => `${bullets.trimEnd().split('\n').toSorted().join('\n')}\n`)
        .replace(REVISION_LINE, '$1<revision>')
        .replace(FILE_TIME, '<time>')
        .replace(TEMPORARY_FILE, '<file>')
        .replace(/[ \t]+$/gm, '')
        .trimEnd(),
    name: (name, value) => void named.set(value, `<${name}>`),
  }
}

/** What kubectl printed with `-o yaml` or `-o json`, as a value; undefined when it is not an object. */
export function parseOutput(text: string): unknown {
  try {
    const value: unknown = parse(text)
    return isObject(value) && 'kind' in value ? value : undefined
  } catch {
    return undefined
  }
}
