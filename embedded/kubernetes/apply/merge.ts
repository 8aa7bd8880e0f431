/** Merges a configuration into a live value, and removes fields. */
import type { Json } from '../core/json.ts'
import type { Schema } from '../schema/schema.ts'
import { EMPTY, isEmpty, type FieldSet } from './field-set.ts'
import { assemble, hasParts, partsOf, shapeOf, type Part } from './typed.ts'

/** The live value with all fields of the configuration. Items keep their place. New items are inserted at the
 *  configuration's position, between the items that both have. */
export function merged(live: Json | undefined, config: Json, schema: Schema | undefined): Json {
  if (live === undefined || !hasParts(config, schema) || shapeOf(live, schema) !== shapeOf(config, schema))
    return config
  const shape = shapeOf(config, schema)
  const before = partsOf(live, schema)
  const wanted = new Map(partsOf(config, schema).map((part) => [part.element, part]))
  const known = new Map(before.map((part) => [part.element, part]))
  const join = (part: Part): Part => ({
    ...part,
    value: merged(known.get(part.element)?.value, part.value, part.schema),
  })
  if (shape === 'map') {
    return assemble(shape, [
      ...before.map((part) => (wanted.has(part.element) ? join(wanted.get(part.element) ?? part) : part)),
      ...[...wanted.values()].filter(({ element }) => !known.has(element)),
    ])
  }
  const out: Part[] = []
  const placed = new Set<string>()
  const rest = [...wanted.values()]
  const place = (part: Part) => {
    if (!placed.has(part.element)) out.push(part)
    placed.add(part.element)
  }
  for (const part of before) {
    if (!wanted.has(part.element)) {
      place(part)
      continue
    }
    if (placed.has(part.element)) continue
    for (let next = rest.shift(); next; next = rest.shift()) {
      place(join(next))
      if (next.element === part.element) break
    }
  }
  for (const part of rest) place(join(part))
  return assemble(shape, out)
}

/** The value without the fields of `removals`, except for those that `survivors` contains or has fields below. */
export function removed(
  value: Json,
  removals: FieldSet,
  survivors: FieldSet,
  schema: Schema | undefined,
): Json | undefined {
  if (!hasParts(value, schema)) return value
  const before = partsOf(value, schema)
  const after = before.flatMap((part): Part[] => {
    const mine = removals.children.get(part.element) ?? EMPTY
    const theirs = survivors.children.get(part.element) ?? EMPTY
    if (isEmpty(mine)) return [part]
    if (mine.isMember && isEmpty(theirs)) return []
    const inner = removed(part.value, mine, theirs, part.schema)
    return inner === undefined ? [] : [{ ...part, value: inner }]
  })
  if (after.length === 0 && before.length > 0 && isEmpty(survivors)) return undefined
  return assemble(shapeOf(value, schema), after)
}
