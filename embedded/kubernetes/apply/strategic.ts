/** Strategic merge patches of built-in kinds. They are like merge patches, but lists with keys are merged item by item,
 *  and directives (`$patch`, `$deleteFromPrimitiveList`, `$setElementOrder`, `$retainKeys`) control the merge. */
import {
  asList,
  asObject,
  isEqual,
  isList,
  isObject,
  setMember,
  strings,
  type Json,
  type JsonObject,
  type MutableObject,
} from '../core/json.ts'
import { memberSchema, type Schema } from '../schema/schema.ts'

const DELETE_FROM = '$deleteFromPrimitiveList/'
const ORDER = '$setElementOrder/'

/** Lists of objects are merged by the keys that the schema names. */
export function strategicMerge(target: Json | undefined, patch: Json, schema: Schema | undefined): Json {
  return isObject(patch) ? mergeObjects(asObject(target), patch, schema) : patch
}

function mergeObjects(target: JsonObject, patch: JsonObject, schema: Schema | undefined): JsonObject {
  if (patch.$patch === 'replace') return withoutDirectives(patch)
  const merged: MutableObject = { ...target }
  const retained = isList(patch.$retainKeys) ? new Set(strings(patch.$retainKeys)) : undefined
  for (const key of retained ? Object.keys(merged) : []) if (!retained?.has(key)) delete merged[key]
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith(DELETE_FROM)) {
      const name = key.slice(DELETE_FROM.length)
      const removals = asList(value)
      if (merged[name] !== undefined)
        merged[name] = asList(merged[name]).filter((item) => !removals.some((one) => isEqual(one, item)))
    } else if (key.startsWith('$') || value === undefined) continue
    else if (value === null) delete merged[key]
    else setMember(merged, key, mergeMember(merged[key], value, memberSchema(schema, key)))
  }
  for (const [key, order] of Object.entries(patch)) {
    const name = key.slice(ORDER.length)
    if (key.startsWith(ORDER) && isList(merged[name]))
      merged[name] = ordered(merged[name], asList(order), memberSchema(schema, name))
  }
  return merged
}

function mergeMember(target: Json | undefined, patch: Json, schema: Schema | undefined): Json {
  if (isList(patch)) return mergeLists(asList(target), patch, schema)
  if (isObject(patch) && patch.$patch === 'delete') return {}
  return strategicMerge(target, patch, schema)
}

function mergeLists(target: readonly Json[], patch: readonly Json[], schema: Schema | undefined): Json {
  const listType = schema?.['x-kubernetes-list-type']
  const key = schema?.['x-kubernetes-list-map-keys']?.[0]
  if (listType === 'set') return [...patch, ...target.filter((item) => !patch.some((one) => isEqual(one, item)))]
  if (listType !== 'map' || key === undefined || patch.some((item) => asObject(item).$patch === 'replace')) {
    return patch.filter((item) => asObject(item).$patch !== 'replace')
  }
  let merged = [...target]
  for (const item of patch) {
    const index = merged.findIndex((one) => isEqual(asObject(one)[key], asObject(item)[key]))
    if (asObject(item).$patch === 'delete') merged = merged.filter((_one, position) => position !== index)
    else if (index < 0) merged.push(withoutDirectives(asObject(item)))
    else merged[index] = mergeObjects(asObject(merged[index]), asObject(item), schema?.items)
  }
  return merged
}

/** First the listed items, in the order of the list; the others keep their relative order after them. */
function ordered(list: readonly Json[], order: readonly Json[], schema: Schema | undefined): readonly Json[] {
  const key = schema?.['x-kubernetes-list-map-keys']?.[0]
  const identity = (item: Json): Json => (key !== undefined && isObject(item) ? (item[key] ?? null) : item)
  const place = (item: Json): number => {
    const index = order.findIndex((one) => isEqual(identity(one), identity(item)))
    return index < 0 ? order.length : index
  }
  return [...list].sort((a, b) => place(a) - place(b))
}

const withoutDirectives = (value: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(value).filter(([key]) => !key.startsWith('$')))
