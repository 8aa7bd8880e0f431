/** Examples of answers, composed from their schemas: a field with a value for its name shows that value; others show
 *  what their schema says. So every answer has a valid example, and a new noun only needs values for its new names. */
import type { createDocument } from 'zod-openapi'
import {
  describeFields,
  descriptionOf,
  type Descriptions,
  eachField,
  KNOWN_VALUES,
  type Schema,
} from './openapi-fields.ts'

type Values = Readonly<Record<string, unknown>>
interface Media {
  schema?: Schema
  example?: unknown
}
type Content = Readonly<Record<string, Media>>
interface Parameter {
  readonly name: string
  readonly schema?: Schema
  description?: string
  example?: unknown
}
interface Operation {
  readonly operationId: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>
    readonly responses?: Readonly<Record<string, { readonly content?: Content }>>
  }
}

/** Gives every field and parameter without a description one, and an example when there are values. Entries
 *  `parameter.limit` describe parameters of that name. */
export function completeFields(
  document: ReturnType<typeof createDocument>,
  { descriptions, values }: { readonly descriptions: Descriptions; readonly values: Values | undefined },
): void {
  const { paths, components } = document as unknown as Document // what createDocument makes
  const source = values === undefined ? undefined : { values, named: components.schemas }
  const complete = (schema: Schema | undefined, shape: string) => {
    describeFields(schema, shape, descriptions)
    if (source === undefined) return
    eachField(schema, (name, field) => {
      field.examples ??= [exampleOf(field, name, source)]
    })
  }
  const completeContent = (content: Content | undefined, shape: string) => {
    for (const { schema } of Object.values(content ?? {})) complete(schema, shape)
  }
  for (const [name, schema] of Object.entries(components.schemas)) complete(schema, name)
  for (const [name, { content }] of Object.entries(components.responses ?? {})) completeContent(content, name)
  for (const operation of Object.values(paths).flatMap((methods) => Object.values(methods))) {
    const { operationId, parameters = [], requestBody, responses } = operation
    for (const parameter of parameters) {
      const { name, schema = {} } = parameter
      const text =
        parameter.description ?? schema.description ?? descriptionOf(descriptions, name, operationId, 'parameter')
      if (text !== undefined) parameter.description = text
      if (source !== undefined) parameter.example ??= exampleOf(schema, name, source)
    }
    completeContent(requestBody?.content, operationId)
    for (const { content } of Object.values(responses)) completeContent(content, operationId)
  }
}

/** Gives every JSON answer of the document an example. `values` are by field name, by format or pattern, or by the last
 *  word of names. */
export function addExamples(document: ReturnType<typeof createDocument>, values: Values): void {
  const { paths, components } = document as unknown as Document // what createDocument makes
  for (const operation of Object.values(paths).flatMap((methods) => Object.values(methods))) {
    for (const { content } of Object.values(operation.responses)) {
      const media = content?.['application/json']
      if (media?.schema !== undefined)
        media.example = exampleOf(media.schema, '', { values, named: components.schemas })
    }
  }
}

/** The document as text, as it is and without its examples, which are a third of it and fill the comments of generated
 *  clients. */
export const textsOf = (document: object): { readonly whole: string; readonly bare: string } => ({
  whole: JSON.stringify(document),
  bare: JSON.stringify(document, (key, value: unknown) =>
    key === 'example' || key === 'examples' ? undefined : value,
  ),
})

/** Which of the two a request for `/openapi.json?examples=no` is for. */
export const textAsked = (url: string | undefined): 'whole' | 'bare' =>
  new URLSearchParams(url?.split('?')[1]).get('examples') === 'no' ? 'bare' : 'whole'

interface Source {
  readonly values: Values
  readonly named: Readonly<Record<string, Schema>>
}

function exampleOf(schema: Schema, field: string, source: Source): unknown {
  const value = source.values[field]
  if (value !== undefined && fits(schema, value, source)) return value
  if (schema.$ref !== undefined) return exampleOf(resolve(schema.$ref, source), field, source)
  if ('const' in schema) return schema.const
  const values = schema.enum ?? schema[KNOWN_VALUES]
  if (values !== undefined) return values[0]
  const choices = choicesOf(schema)
  if (choices !== undefined)
    return choices.some(({ type }) => type === 'null') ? null : exampleOf(choices[0] ?? {}, field, source)
  switch (schema.type) {
    case 'object':
      return objectExample(schema, source)
    case 'array':
      return schema.items === undefined || schema.maxItems === 0
        ? []
        : [exampleOf(schema.items, field.replace(/s$/, ''), source)]
    case 'integer':
    case 'number':
      return likeNamed(schema, field, source) ?? Math.max(0, schema.minimum ?? 0)
    case 'boolean':
      return false
    case 'string':
      return (
        source.values[schema.format ?? schema.pattern ?? ''] ??
        likeNamed(schema, field, source) ??
        field.replaceAll('_', ' ')
      )
    default:
      return null
  }
}

/** By the last word of the name: created_at is a time, and so is everything else with that ending. */
function likeNamed(schema: Schema, field: string, source: Source): unknown {
  const value = source.values[field.split('_').at(-1) ?? '']
  return value !== undefined && fits(schema, value, source) ? value : undefined
}

/** Always the required members; others only where there is a value for them. */
function objectExample({ properties = {}, required = [] }: Schema, source: Source): object {
  const shown = Object.entries(properties).filter(
    ([name, schema]) => required.includes(name) || (name in source.values && fits(schema, source.values[name], source)),
  )
  return Object.fromEntries(shown.map(([name, schema]) => [name, exampleOf(schema, name, source)]))
}

const resolve = ($ref: string, { named }: Source): Schema => named[$ref.slice('#/components/schemas/'.length)] ?? {}

/** The schemas of which one must hold; undefined when there is only one. */
const choicesOf = (schema: Schema): readonly Schema[] | undefined =>
  schema.anyOf ??
  schema.oneOf ??
  (Array.isArray(schema.type) ? schema.type.map((type: string) => ({ ...schema, type })) : undefined)

/** Whether the value has the type that the schema requires: the same name can mean a text here and an object there. */
function fits(schema: Schema, value: unknown, source: Source): boolean {
  if (schema.$ref !== undefined) return fits(resolve(schema.$ref, source), value, source)
  if ('const' in schema) return schema.const === value
  const values: readonly unknown[] | undefined = schema.enum ?? schema[KNOWN_VALUES]
  if (values !== undefined) return values.includes(value)
  const choices = choicesOf(schema)
  if (choices !== undefined) return choices.some((choice) => fits(choice, value, source))
  if (schema.type === 'integer') return Number.isInteger(value)
  if (schema.type === 'array')
    return (
      Array.isArray(value) &&
      value.length <= (schema.maxItems ?? value.length) &&
      value.every((item) => fits(schema.items ?? {}, item, source))
    )
  if (schema.type === 'object')
    return (
      typeof value === 'object' &&
      value !== null &&
      !Array.isArray(value) &&
      Object.keys(schema.properties ?? {}).every((name) => name in value)
    )
  if (schema.format === 'date-time' && Number.isNaN(Date.parse(String(value)))) return false
  if (typeof value === 'string' && schema.pattern !== undefined && !new RegExp(schema.pattern).test(value)) return false
  return schema.type === (value === null ? 'null' : typeof value)
}
