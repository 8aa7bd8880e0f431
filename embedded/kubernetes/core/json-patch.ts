/** RFC 6902 and RFC 7386 for immutable values. */
import { isEqual, isList, isObject, setMember, type Json, type JsonObject, type MutableObject } from './json.ts'
import { BODY_MOST_BYTES, lettersOf } from './body.ts'
import { badRequest, Refusal } from './status.ts'

const PATCH_MOST_OPERATIONS = 10_000
/** Limit of what all copies of one patch may add. */
const COPIES_MOST_LETTERS = BODY_MOST_BYTES

/** A JSON merge patch: null removes, objects merge, anything else replaces. */
export function mergePatch(target: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch
  const merged: MutableObject = isObject(target) ? { ...target } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (value === undefined) continue
    if (value === null) delete merged[key]
    else setMember(merged, key, mergePatch(Object.hasOwn(merged, key) ? merged[key] : undefined, value))
  }
  return merged
}

const rejected = (): Refusal =>
  new Refusal(422, 'Invalid', 'the server rejected our request due to an error in our request', {})

/** A list of add, remove, replace, move, copy and test operations, all or nothing. */
export function jsonPatch(target: Json, operations: Json): Json {
  if (!isList(operations)) throw badRequest('error decoding patch: a JSON patch must be a list of operations')
  if (operations.length > PATCH_MOST_OPERATIONS)
    throw new Refusal(
      413,
      'RequestEntityTooLarge',
      `The allowed maximum operations in a JSON patch is ${PATCH_MOST_OPERATIONS}, got ${operations.length}`,
    )
  let copied = 0
  return operations.reduce<Json>((document, operation) => {
    if (!isObject(operation)) throw badRequest('error decoding patch: an operation must be an object')
    if (operation.op === 'copy')
      copied += lettersOf(lookup(document, pointer(operation.from)), COPIES_MOST_LETTERS - copied)
    if (copied > COPIES_MOST_LETTERS) throw copiesTooLarge(copied)
    return apply(document, operation)
  }, target)
}

const copiesTooLarge = (letters: number): Refusal =>
  new Refusal(
    422,
    'Invalid',
    `Unable to complete the copy, the accumulated size increase of copy is ${letters}, exceeding the limit ` +
      `${COPIES_MOST_LETTERS}`,
    {},
  )

function apply(document: Json, operation: JsonObject): Json {
  const path = pointer(operation.path)
  const from = () => pointer(operation.from)
  switch (operation.op) {
    case 'add':
      return put(document, path, required(operation.value), true)
    case 'remove':
      return removed(document, path)
    case 'replace':
      return put(document, path, required(operation.value), false)
    case 'move':
      return put(removed(document, from()), path, valueAt(document, from()), true)
    case 'copy':
      return put(document, path, valueAt(document, from()), true)
    case 'test':
      if (isEqual(lookup(document, path) ?? null, operation.value ?? null)) return document
      throw rejected()
    default:
      throw rejected()
  }
}

function pointer(text: Json | undefined): readonly string[] {
  if (typeof text !== 'string' || (text !== '' && !text.startsWith('/'))) throw rejected()
  return text
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function required(value: Json | undefined): Json {
  if (value === undefined) throw rejected()
  return value
}

function lookup(document: Json, path: readonly string[]): Json | undefined {
  let here: Json | undefined = document
  for (const key of path) {
    if (isList(here)) here = here[indexIn(key, here.length - 1)]
    else if (isObject(here) && Object.hasOwn(here, key)) here = here[key]
    else return undefined
  }
  return here
}

const valueAt = (document: Json, path: readonly string[]): Json => required(lookup(document, path))

function indexIn(key: string, most: number): number {
  if (!/^(0|[1-9]\d*)$/.test(key) || Number(key) > most) throw rejected()
  return Number(key)
}

/** A copy with a change in the parent of the path's last part. */
function changed(
  document: Json,
  path: readonly string[],
  change: (parent: MutableObject | Json[], key: string) => void,
): Json {
  const [key, ...rest] = path
  if (key === undefined) throw rejected()
  const copy: MutableObject | Json[] | undefined = isList(document)
    ? [...document]
    : isObject(document)
      ? { ...document }
      : undefined
  if (!copy) throw rejected()
  if (rest.length === 0) change(copy, key)
  else if (Array.isArray(copy)) copy[indexIn(key, copy.length - 1)] = changed(copy[Number(key)] ?? null, rest, change)
  else {
    if (!Object.hasOwn(copy, key)) throw rejected()
    setMember(copy, key, changed(copy[key] ?? null, rest, change))
  }
  return copy
}

/** `isNew`: the member may be missing, and lists insert the value. Otherwise the member must exist. */
const put = (document: Json, path: readonly string[], value: Json, isNew: boolean): Json =>
  path.length === 0
    ? value
    : changed(document, path, (parent, key) => {
        if (Array.isArray(parent))
          parent.splice(
            isNew && key === '-' ? parent.length : indexIn(key, parent.length - (isNew ? 0 : 1)),
            isNew ? 0 : 1,
            value,
          )
        else if (isNew || Object.hasOwn(parent, key)) setMember(parent, key, value)
        else throw rejected()
      })

const removed = (document: Json, path: readonly string[]): Json =>
  changed(document, path, (parent, key) => {
    if (Array.isArray(parent)) parent.splice(indexIn(key, parent.length - 1), 1)
    else if (Object.hasOwn(parent, key)) delete parent[key]
    else throw rejected()
  })
