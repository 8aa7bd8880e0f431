/** Structure of values for field sets and merging, from a schema: which objects and lists are atomic, and which have
 *  parts. */
import { asObject, isList, isObject, type Json } from '../core/json.ts'
import { memberSchema, type Schema } from '../schema/schema.ts'

export type Shape = 'scalar' | 'atomic' | 'map' | 'set' | 'keyed'

/** Objects have parts and lists are atomic, unless the schema specifies otherwise. */
export function shapeOf(value: Json, schema: Schema | undefined): Shape {
  if (isObject(value)) return schema?.['x-kubernetes-map-type'] === 'atomic' ? 'atomic' : 'map'
  if (!isList(value)) return 'scalar'
  const listType = schema?.['x-kubernetes-list-type']
  return listType === 'map' ? 'keyed' : listType === 'set' ? 'set' : 'atomic'
}

export interface Part {
  /** The path element that names the part. */
  readonly element: string
  readonly value: Json
  readonly schema: Schema | undefined
}

/** The parts of a value, in their order. */
export function partsOf(value: Json, schema: Schema | undefined): Part[] {
  const shape = shapeOf(value, schema)
  if (shape === 'map') {
    return Object.entries(asObject(value)).flatMap(([key, member]) =>
      member === undefined ? [] : [{ element: `f:${key}`, value: member, schema: memberSchema(schema, key) }],
    )
  }
  if (!isList(value)) return []
  if (shape === 'set')
    return value.map((item) => ({ element: `v:${JSON.stringify(item)}`, value: item, schema: schema?.items }))
  if (shape === 'keyed')
    return value.map((item) => ({ element: keyElement(item, schema), value: item, schema: schema?.items }))
  return []
}

function keyElement(item: Json, schema: Schema | undefined): string {
  const keys: Record<string, Json> = {}
  for (const key of [...(schema?.['x-kubernetes-list-map-keys'] ?? [])].sort()) {
    const value = asObject(item)[key] ?? schema?.items?.properties?.[key]?.default
    if (value !== undefined) keys[key] = value
  }
  return `k:${JSON.stringify(keys)}`
}

/** Combines parts to a value. */
export const assemble = (shape: Shape, parts: readonly Part[]): Json =>
  shape === 'map'
    ? Object.fromEntries(parts.map(({ element, value }) => [element.slice(2), value]))
    : parts.map(({ value }) => value)

export const hasParts = (value: Json, schema: Schema | undefined): boolean => {
  const shape = shapeOf(value, schema)
  return shape === 'map' || shape === 'set' || shape === 'keyed'
}
