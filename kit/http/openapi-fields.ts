/** Descriptions and examples of every field: descriptions that a shape lacks come from lists by field name, so that a
 *  name is explained once. */
/** The key in an answer's schema for the values of a text that exist today. Clients accept others. */
export const KNOWN_VALUES = 'x-extensible-enum'

/** The parts of JSON Schema that describe a value. */
export interface Schema {
  readonly description?: string
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly [KNOWN_VALUES]?: readonly string[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly format?: string
  readonly pattern?: string
  readonly maxItems?: number
  readonly minimum?: number
}

/** Removes from a schema what is for this service alone: bounds that only mean "a number of JavaScript", patterns that
 *  the format states in short, and rules of Kubernetes. Some programs misread Unicode classes, or do not read patterns
 *  as Unicode. */
export function simplify(jsonSchema: {
  readonly format?: string
  pattern?: string
  maximum?: number
  minimum?: number
}): void {
  if (jsonSchema.format !== undefined || jsonSchema.pattern?.includes('\\p{') === true) delete jsonSchema.pattern
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  for (const name of Object.keys(jsonSchema))
    if (name.startsWith('x-kubernetes-')) Reflect.deleteProperty(jsonSchema, name)
}

/** By `field`, or by `Shape.field` where it means something else in a shape. */
export type Descriptions = Readonly<Record<string, string>>

/** A schema whose fields are described. */
interface FieldSchema extends Omit<Schema, 'description'> {
  description?: string
  examples?: readonly unknown[]
  readonly additionalProperties?: boolean | Schema
  readonly allOf?: readonly Schema[]
}

/** Calls `visit` with each field of the schema, including nested ones, but not behind references. */
export function eachField(schema: Schema | undefined, visit: (name: string, field: FieldSchema) => void): void {
  if (schema === undefined) return
  // as JSON Schema has it
  const { properties = {}, items, anyOf, oneOf, allOf, additionalProperties } = schema as FieldSchema
  for (const [name, field] of Object.entries(properties)) {
    visit(name, field)
    eachField(field, visit)
  }
  eachField(items, visit)
  if (typeof additionalProperties === 'object') eachField(additionalProperties, visit)
  for (const one of [...(anyOf ?? []), ...(oneOf ?? []), ...(allOf ?? [])]) eachField(one, visit)
}

/** The lists' descriptions for a field of these shapes, the nearest first. */
export const descriptionOf = (
  descriptions: Descriptions,
  name: string,
  ...shapes: readonly string[]
): string | undefined =>
  [...shapes.map((shape) => `${shape}.${name}`), name]
    .map((key) => (Object.hasOwn(descriptions, key) ? descriptions[key] : undefined))
    .find((text) => text !== undefined)

/** Describes the fields of a schema that do not describe themselves. Changes it. */
export function describeFields(schema: Schema | undefined, shape: string, descriptions: Descriptions): void {
  eachField(schema, (name, field) => {
    const text = field.description ?? descriptionOf(descriptions, name, shape)
    if (text !== undefined) field.description = text
  })
}
