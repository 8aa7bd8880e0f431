/** Parses request bodies, JSON or YAML, and reports duplicate members, which a parser would hide. */
import { parse as parseYaml } from 'yaml'
import { asObject, asString, isList, isObject, type Json, type JsonObject } from './json.ts'
import { metadataTypeError } from './metadata.ts'
import {
  badRequest,
  bodyTooLarge,
  fieldInvalid,
  invalid,
  MEDIA_TYPES,
  Refusal,
  unsupportedMediaType,
} from './status.ts'
import { groupVersionOf, type Definition } from './definition.ts'

export const BODY_MOST_BYTES = 3 * 1024 * 1024
const DEPTH_MOST = 200
const TOO_DEEP = `the object is nested deeper than ${DEPTH_MOST} levels`

/** Approximate length of the JSON text of the value. It stops counting above the limit, so that a value with shared
 *  parts costs no more than others. Throws 400 when the value is nested too deeply. */
export function lettersOf(value: Json | undefined, limit: number, depth = 0): number {
  if (depth > DEPTH_MOST) throw badRequest(TOO_DEEP)
  if (typeof value === 'string') return value.length + 2
  if (typeof value !== 'object' || value === null) return 1
  let letters = 2
  for (const [key, member] of Object.entries(value)) {
    letters += (isList(value) ? 1 : key.length + 4) + lettersOf(member, limit - letters, depth + 1)
    if (letters > limit) break
  }
  return letters
}

/** Throws 413 for a value larger than the limit of bodies, 400 for one that is nested too deeply. */
export function checkSize(value: Json): void {
  if (lettersOf(value, BODY_MOST_BYTES) > BODY_MOST_BYTES) throw bodyTooLarge(BODY_MOST_BYTES)
}

export interface Body {
  readonly value: Json
  /** Paths of members that occur twice in their object. */
  readonly duplicates: readonly string[]
}

/** Throws 400 for invalid JSON, 413 for a body that is too long. */
export function parseJson(text: string): Body {
  if (text.length > BODY_MOST_BYTES) throw bodyTooLarge(BODY_MOST_BYTES)
  try {
    // JSON.parse returns only JSON.
    return { value: JSON.parse(text) as Json, duplicates: duplicateMembers(text) }
  } catch (error) {
    if (error instanceof Refusal) throw error
    throw badRequest(
      'the object provided is unrecognized (must be of type json): ' +
        `${error instanceof Error ? error.message : String(error)}`,
    )
  }
}

/** Throws the same as `parseJson`. */
export function parseYamlOrJson(text: string): Body {
  if (text.trimStart().startsWith('{')) return parseJson(text)
  if (text.length > BODY_MOST_BYTES) throw bodyTooLarge(BODY_MOST_BYTES)
  try {
    const value = (parseYaml(text, { maxAliasCount: 100, schema: 'core' }) ?? null) as Json // restricted to JSON values
    checkSize(value) // aliases can multiply their content
    return { value: JSON.parse(JSON.stringify(value)) as Json, duplicates: [] } // plain JSON after the round trip
  } catch (error) {
    if (error instanceof Refusal) throw error
    throw badRequest(`error decoding YAML: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** The object in a create or an update. */
export function parseObject(
  text: string | undefined,
  contentType: string | undefined,
): { readonly object: JsonObject; readonly duplicates: readonly string[] } {
  const type = mediaType(contentType)
  if (type !== '' && type !== 'application/json' && type !== 'application/yaml') throw unsupportedMediaType(MEDIA_TYPES)
  const { value, duplicates } = type === 'application/yaml' ? parseYamlOrJson(text ?? '') : parseJson(text ?? '')
  if (!isObject(value)) throw badRequest('the object provided is unrecognized (must be of type object)')
  return { object: value, duplicates }
}

export const mediaType = (contentType: string | undefined): string =>
  (contentType ?? '').split(';')[0]?.trim().toLowerCase() ?? ''

/** Refuses an object whose type differs from that of the path, or whose metadata cannot be read. */
export function checkType(
  object: JsonObject,
  definition: Pick<Definition, 'group' | 'version' | 'kind' | 'isCustom'>,
  text = '',
): void {
  const { apiVersion, kind } = object
  const expected = groupVersionOf(definition)
  const missing =
    kind === undefined || kind === ''
      ? 'Kind'
      : apiVersion === undefined || apiVersion === ''
        ? 'apiVersion'
        : undefined
  if (missing !== undefined && definition.isCustom)
    throw badRequest(
      `the object provided is unrecognized (must be of type ${definition.kind}): Object '${missing}' is missing ` +
        `in '${clipped(text, TEXT_MOST_LETTERS)}' (${clipped(text, CLIP_LETTERS)})`,
    )
  const isOther = apiVersion !== undefined && apiVersion !== '' && apiVersion !== expected
  if (isOther)
    throw badRequest(
      `the API version in the data (${String(apiVersion)}) does not match the expected API version (${expected})`,
    )
  const isOtherKind = kind !== undefined && kind !== '' && kind !== definition.kind
  if (isOtherKind && definition.isCustom)
    throw invalid({ group: definition.group, kind: String(kind) }, asString(asObject(object.metadata).name), [
      fieldInvalid('kind', kind, `must be ${definition.kind}`),
    ])
  if (isOtherKind)
    throw badRequest(
      `${String(kind)} in version ${JSON.stringify(definition.version)} cannot be handled as a ` +
        `${definition.kind}: the kind in the data does not match the path`,
    )
  const fault = metadataTypeError(object.metadata)
  if (fault !== undefined)
    throw badRequest(
      `${definition.kind} in version ${JSON.stringify(definition.version)} cannot be handled as a ` +
        `${definition.kind}: ${fault}`,
    )
}

const CLIP_LETTERS = 30
const TEXT_MOST_LETTERS = 1_000
const clipped = (text: string, letters: number): string =>
  text.length > letters ? `${text.slice(0, letters)} ...` : text

/** Searches valid JSON text for duplicate members, of which JSON.parse silently keeps the last. */
function duplicateMembers(text: string): readonly string[] {
  const found: string[] = []
  let position = 0
  const skipSpace = () => {
    while (position < text.length && text.charCodeAt(position) <= 32) position++
  }
  const readString = (): string => {
    const start = position++
    while (text[position] !== '"') position += text[position] === '\\' ? 2 : 1
    position++
    return text.slice(start, position)
  }
  const readValue = (path: string, depth: number): void => {
    if (depth > DEPTH_MOST) throw badRequest(TOO_DEEP)
    skipSpace()
    const first = text[position]
    if (first === '"') return void readString()
    if (first !== '{' && first !== '[') {
      while (position < text.length && !',]} \t\r\n'.includes(text[position] ?? '')) position++
      return
    }
    const isMap = first === '{'
    const keys = new Set<string>()
    let index = 0
    position++
    for (skipSpace(); text[position] !== '}' && text[position] !== ']'; skipSpace()) {
      let inner = `${path}[${index++}]`
      if (isMap) {
        const quoted = readString()
        const key = quoted.includes('\\') ? String(JSON.parse(quoted)) : quoted.slice(1, -1)
        inner = path === '' ? key : `${path}.${key}`
        if (keys.has(key)) found.push(inner)
        keys.add(key)
        skipSpace()
        position++ // the colon
      }
      readValue(inner, depth + 1)
      skipSpace()
      if (text[position] === ',') position++
    }
    position++
  }
  readValue('', 0)
  return found
}
