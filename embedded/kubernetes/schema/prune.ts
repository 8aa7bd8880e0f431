/** Removes members that a structural schema does not contain, and nulls where null is not allowed. Returns the same
 *  value when there was nothing to remove; the paths of unknown members are added to `unknown`. */
import { defined } from '../../../domain/defined.ts'
import { isList, isObject, setMember, type Json, type JsonObject, type MutableObject } from '../core/json.ts'
import { unknownMetadata } from '../core/metadata.ts'
import { allowsUnknown, memberSchema, type Schema } from './schema.ts'

/** Removes members that the schema does not contain; their paths are added to `unknown`. */
export function pruned<T extends Json>(value: T, schema: Schema, unknown: string[], path = ''): T {
  if (schema['x-kubernetes-embedded-resource'] && isObject(value)) {
    const { apiVersion, kind, metadata, ...rest }: JsonObject = value
    const result = prunedObject(rest, schema, unknown, path)
    const odd = isObject(metadata) ? unknownMetadata(metadata) : []
    if (result === rest && odd.length === 0) return value
    unknown.push(...odd.map((name) => `${path}.${name}`))
    const known = isObject(metadata)
      ? Object.fromEntries(Object.entries(metadata).filter(([key]) => !odd.includes(`metadata.${key}`)))
      : metadata
    // An embedded resource keeps its type and metadata regardless of its schema.
    const resource: JsonObject = {
      ...defined({ apiVersion, kind, metadata: known }),
      ...result,
    }
    return resource as T // an object for an object
  }
  if (isObject(value)) return prunedObject(value, schema, unknown, path) as T // as above
  if (isList(value) && schema.items) {
    const { items } = schema
    const results = value.map((item, index) => pruned(item, items, unknown, `${path}[${index}]`))
    return results.every((item, index) => item === value[index]) ? value : (results as Json as T) // a list for a list
  }
  return value
}

function prunedObject(value: JsonObject, schema: Schema, unknown: string[], path: string): JsonObject {
  const result: MutableObject = {}
  let isChanged = false
  for (const [key, member] of Object.entries(value)) {
    const known = memberSchema(schema, key)
    const here = path === '' ? key : `${path}.${key}`
    if (member === undefined) continue
    if (known === undefined) {
      if (allowsUnknown(schema)) setMember(result, key, member)
      else {
        unknown.push(here)
        isChanged = true
      }
    } else if (member === null && known.nullable !== true)
      isChanged = true // absent, and so defaulted
    else {
      const inner = pruned(member, known, unknown, here)
      isChanged ||= inner !== member
      setMember(result, key, inner)
    }
  }
  return isChanged ? result : value
}
