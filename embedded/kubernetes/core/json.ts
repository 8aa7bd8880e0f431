/** JSON values. Stored objects are never changed in place: every change creates a new value. */

export type Json = null | boolean | number | string | readonly Json[] | JsonObject
export interface JsonObject {
  readonly [key: string]: Json | undefined
}
/** For values under construction only. */
export type MutableObject = Record<string, Json | undefined>

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
export const isList = (value: unknown): value is readonly Json[] => Array.isArray(value)
export const asObject = (value: Json | undefined): JsonObject => (isObject(value) ? value : {})
export const asList = (value: Json | undefined): readonly Json[] => (isList(value) ? value : [])
export const asString = (value: Json | undefined): string => (typeof value === 'string' ? value : '')
export const strings = (value: Json | undefined): string[] => asList(value).filter((item) => typeof item === 'string')

/** The own member of that name; never an inherited one such as `constructor`. */
export const ownMember = <Value>(value: Readonly<Record<string, Value>>, key: string): Value | undefined =>
  Object.hasOwn(value, key) ? value[key] : undefined

/** Deep equality; a member that is undefined counts as absent, the order of members does not matter. */
export function isEqual(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true
  if (isList(a)) return isList(b) && a.length === b.length && a.every((item, index) => isEqual(item, b[index]))
  if (!isObject(a) || !isObject(b)) return false
  for (const key of Object.keys(a)) if (!isEqual(a[key], ownMember(b, key))) return false
  for (const key of Object.keys(b)) if (b[key] !== undefined && ownMember(a, key) === undefined) return false
  return true
}

/** The value at a path of member names; undefined as soon as one is missing. */
export function at(value: Json | undefined, ...path: readonly string[]): Json | undefined {
  let here: Json | undefined = value
  for (const key of path) {
    if (!isObject(here) || !Object.hasOwn(here, key)) return undefined
    here = here[key]
  }
  return here
}

/** A copy with the value at the path replaced, or removed when `leaf` is undefined. Creates missing parents. */
export function withAt(value: JsonObject, path: readonly string[], leaf: Json | undefined): JsonObject {
  const [key, ...rest] = path
  if (key === undefined) return value
  if (rest.length > 0) return { ...value, [key]: withAt(asObject(value[key]), rest, leaf) }
  if (leaf !== undefined) return { ...value, [key]: leaf }
  const { [key]: _removed, ...others } = value
  return others
}

/** Sets a member from an external source: `__proto__` becomes an ordinary member, never the prototype. */
export function setMember(target: MutableObject, key: string, value: Json): void {
  if (key === '__proto__')
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true })
  else target[key] = value
}

const texts = new WeakMap<object, string>()

/** The JSON text of a stored object, created once for each object; the log, lists and watches share it. */
export function jsonText(value: JsonObject): string {
  let text = texts.get(value)
  if (text === undefined) texts.set(value, (text = JSON.stringify(value)))
  return text
}

/** JSON text with the members of every object sorted. */
export const sortedText = (value: Json): string =>
  JSON.stringify(value, (_key, member: unknown) =>
    isObject(member) ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1))) : member,
  )
