/** Sets of field paths, in the shape that managedFields stores: a tree whose nodes are path elements (`f:name` a
 *  member, `k:{"name":"x"}` an item by its keys, `v:"a"` an item by its value). */
import { isObject, type JsonObject, type MutableObject } from '../core/json.ts'

export interface FieldSet {
  /** The path to this node itself is in the set. */
  readonly isMember: boolean
  readonly children: ReadonlyMap<string, FieldSet>
}

const NONE: ReadonlyMap<string, FieldSet> = new Map()
export const EMPTY: FieldSet = { isMember: false, children: NONE }
export const LEAF: FieldSet = { isMember: true, children: NONE }

export const isEmpty = (set: FieldSet): boolean => !set.isMember && set.children.size === 0

/** Drops empty branches. */
export function fieldSet(isMember: boolean, children: Iterable<readonly [string, FieldSet]>): FieldSet {
  const nonEmpty = new Map([...children].filter(([, child]) => !isEmpty(child)))
  return nonEmpty.size === 0 ? (isMember ? LEAF : EMPTY) : { isMember, children: nonEmpty }
}

export function fromFieldsV1(value: JsonObject): FieldSet {
  const children: [string, FieldSet][] = []
  for (const [key, child] of Object.entries(value)) {
    if (key !== '.' && isObject(child))
      children.push([
        key,
        Object.keys(child).length === 0 ? LEAF : { ...fromFieldsV1(child), isMember: Object.hasOwn(child, '.') },
      ])
  }
  return fieldSet(Object.hasOwn(value, '.'), children)
}

export function toFieldsV1(set: FieldSet): JsonObject {
  const fields: MutableObject = {}
  if (set.isMember && set.children.size > 0) fields['.'] = {}
  for (const key of [...set.children.keys()].sort()) {
    const child = set.children.get(key)
    if (child) fields[key] = toFieldsV1(child)
  }
  return fields
}

export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmpty(a)) return b
  if (isEmpty(b)) return a
  const children = new Map(a.children)
  for (const [key, child] of b.children) children.set(key, union(children.get(key) ?? EMPTY, child))
  return fieldSet(a.isMember || b.isMember, children)
}

export function difference(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmpty(a) || isEmpty(b)) return a
  return fieldSet(
    a.isMember && !b.isMember,
    [...a.children].map(([key, child]) => [key, difference(child, b.children.get(key) ?? EMPTY)] as const),
  )
}

export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmpty(a) || isEmpty(b)) return EMPTY
  return fieldSet(
    a.isMember && b.isMember,
    [...a.children].map(([key, child]) => [key, intersection(child, b.children.get(key) ?? EMPTY)] as const),
  )
}

/** Without the branches below the given paths of member names. */
export function without(set: FieldSet, paths: readonly (readonly string[])[]): FieldSet {
  return paths.reduce((rest, path) => cut(rest, path), set)
}

function cut(set: FieldSet, [first, ...rest]: readonly string[]): FieldSet {
  if (first === undefined) return EMPTY
  const child = set.children.get(`f:${first}`)
  if (!child) return set
  const children = new Map(set.children)
  children.set(`f:${first}`, cut(child, rest))
  return fieldSet(set.isMember, children)
}

/** Only the branch of one member. */
export function onlyMember(set: FieldSet, name: string): FieldSet {
  const child = set.children.get(`f:${name}`)
  return child ? fieldSet(false, [[`f:${name}`, child]]) : EMPTY
}

/** The paths as people read them: `.spec.parts[name="a"].weight`. */
export function pathsOf(set: FieldSet, before = ''): string[] {
  const below = [...set.children]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([key, child]) => pathsOf(child, before + readable(key)))
  return set.isMember ? [before, ...below] : below
}

function readable(element: string): string {
  const [kind, text] = [element.slice(0, 2), element.slice(2)]
  if (kind === 'f:') return `.${text}`
  if (kind === 'v:') return `[=${text}]`
  if (kind !== 'k:') return `[${text}]`
  const keys: unknown = JSON.parse(text)
  return `[${Object.entries(isObject(keys) ? keys : {})
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .join(',')}]`
}
