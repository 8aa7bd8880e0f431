/** Adds the defaults of a structural schema. Returns the same value when nothing was missing. */
import { isList, isObject, setMember, type Json, type JsonObject, type MutableObject } from '../core/json.ts'
import { memberSchema, type Schema } from './schema.ts'

export function withDefaults<T extends Json>(value: T, schema: Schema): T {
  if (isObject(value)) return objectWithDefaults(value, schema) as T // an object for an object
  if (isList(value) && schema.items) {
    const { items } = schema
    const filled = value.map((item) => withDefaults(item, items))
    return filled.every((item, index) => item === value[index]) ? value : (filled as Json as T) // a list for a list
  }
  return value
}

function objectWithDefaults(value: JsonObject, schema: Schema): JsonObject {
  let filled: MutableObject | undefined
  for (const [key, member] of Object.entries(schema.properties ?? {})) {
    const isMissing =
      !Object.hasOwn(value, key) || value[key] === undefined || (value[key] === null && member.nullable !== true)
    if (isMissing && member.default !== undefined) setMember((filled ??= { ...value }), key, member.default)
  }
  for (const key of Object.keys(filled ?? value)) {
    const member = memberSchema(schema, key)
    const before = (filled ?? value)[key]
    if (member === undefined || before === undefined) continue
    const after = withDefaults(before, member)
    if (after !== before) setMember((filled ??= { ...value }), key, after)
  }
  return filled ?? value
}
