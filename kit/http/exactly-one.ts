/** How the interfaces state that a body needs exactly one of several fields, as its schema declares with
 *  `exactlyOneOf`. */
import { z } from 'zod'
import { defined } from '../../domain/defined.ts'
import { EXACTLY_ONE, exactlyOneIn } from './route.ts'

/** For people: `Exactly one of a and b is given.` Undefined for other schemas. */
export const exactlyOneText = (schema: z.ZodType | null): string | undefined => {
  const fields = exactlyOneIn(schema)
  return fields.length === 0 ? undefined : `Exactly one of ${joinedNames(fields)} is given.`
}

/** `a`, `a and b`, `a, b and c`. */
export const joinedNames = (names: readonly string[]): string =>
  names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`

/** Expresses it in the JSON Schema of such an object: one option for each field, in which that field is present and not
 *  null. */
export function sayExactlyOne(jsonSchema: Record<string, unknown>, schema: unknown): void {
  Reflect.deleteProperty(jsonSchema, EXACTLY_ONE)
  if (!(schema instanceof z.ZodObject)) return
  const fields = exactlyOneIn(schema)
  if (fields.length > 0)
    jsonSchema['oneOf'] = fields.map((field) => ({
      required: [field],
      properties: { [field]: optionOf(schema.shape[field] as z.ZodType) }, // a member of a shape
    }))
}

const optionOf = (field: z.ZodType): object => ({
  type: typeOf(field),
  ...defined({ description: field.description }),
})

/** The type of its values, apart from null. Throws for values of several types. */
function typeOf(field: z.ZodType): string {
  // schemas that zod wraps are zod's too
  if (field instanceof z.ZodOptional || field instanceof z.ZodNullable) return typeOf(field.unwrap() as z.ZodType)
  const { id: _name, ...unnamed } = field.meta() ?? {}
  // a named schema would be a reference to itself
  const { type } = z.toJSONSchema(field.clone().meta(unnamed), { io: 'input', reused: 'inline' })
  if (typeof type !== 'string') throw new Error('only a field of one type can be one of several')
  return type
}
