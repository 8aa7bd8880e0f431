/** The fields of a value, and the fields that differ between two values. */
import { isEqual, isList, isObject, type Json } from '../core/json.ts'
import type { Schema } from '../schema/schema.ts'
import { EMPTY, fieldSet, LEAF, type FieldSet } from './field-set.ts'
import { hasParts, partsOf, shapeOf } from './typed.ts'

/** The fields in a configuration: leaves, and the items of keyed lists. */
export function valueFields(value: Json, schema: Schema | undefined): FieldSet {
  if (!hasParts(value, schema)) return LEAF
  const parts = partsOf(value, schema)
  const shape = shapeOf(value, schema)
  if (parts.length === 0) return shape === 'map' ? LEAF : EMPTY
  return fieldSet(
    false,
    parts.map((part) => {
      const inner = valueFields(part.value, part.schema)
      // Items are fields themselves, and so are objects without a schema.
      const isField = shape === 'keyed' || (part.schema === undefined && isObject(part.value))
      return [part.element, isField ? { ...inner, isMember: true } : inner] as const
    }),
  )
}

/** Every field of a new value, including containers. */
const allFields = (value: Json, schema: Schema | undefined): FieldSet => ({
  isMember: true,
  children: hasParts(value, schema)
    ? new Map(partsOf(value, schema).map((part) => [part.element, allFields(part.value, part.schema)]))
    : LEAF.children,
})

export interface Comparison {
  readonly added: FieldSet
  readonly modified: FieldSet
  readonly removed: FieldSet
}

const SAME: Comparison = { added: EMPTY, modified: EMPTY, removed: EMPTY }
const CHANGED: Comparison = { added: EMPTY, modified: LEAF, removed: EMPTY }

export function compare(before: Json | undefined, after: Json | undefined, schema: Schema | undefined): Comparison {
  if (before === after) return SAME
  if (before === undefined) return after === undefined ? SAME : { ...SAME, added: allFields(after, schema) }
  if (after === undefined) return { ...SAME, removed: allFields(before, schema) }
  const isSameShape = (isObject(before) && isObject(after)) || (isList(before) && isList(after))
  if (!isSameShape || !hasParts(before, schema)) return isEqual(before, after) ? SAME : CHANGED
  const old = new Map(partsOf(before, schema).map((part) => [part.element, part]))
  const now = new Map(partsOf(after, schema).map((part) => [part.element, part]))
  const inner = [...new Set([...old.keys(), ...now.keys()])].map((element) => {
    const part = now.get(element) ?? old.get(element)
    return [element, compare(old.get(element)?.value, now.get(element)?.value, part?.schema)] as const
  })
  const collect = (which: keyof Comparison) =>
    fieldSet(
      false,
      inner.map(([element, comparison]) => [element, comparison[which]] as const),
    )
  return { added: collect('added'), modified: collect('modified'), removed: collect('removed') }
}
