/** Checks whether a status is complete as its kind requires. The API server refuses an incomplete one; this detects it
 *  before the request. */
import type { z } from 'zod'
import { type JsonSchema, schemaOf } from '../kube/crd.ts'

const schemas = new WeakMap<z.ZodType, JsonSchema>()

/** Paths of the fields that the kind's CustomResourceDefinition requires and the value lacks, at any depth, such as
 *  `status.state`; empty when it is complete. Nothing else about the value is checked. */
export function missingFields(status: z.ZodType, value: unknown): readonly string[] {
  const schema = schemas.get(status) ?? schemaOf(status, 'status')
  schemas.set(status, schema)
  return lacking(schema, value, 'status')
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isThere = (value: unknown): boolean => value !== undefined && value !== null

function lacking(
  { required = [], properties = {}, items, additionalProperties }: JsonSchema,
  value: unknown,
  at: string,
): readonly string[] {
  if (Array.isArray(value))
    return items === undefined ? [] : value.flatMap((item, index) => lacking(items, item, `${at}[${index}]`))
  if (!isRecord(value)) return []
  const others = typeof additionalProperties === 'object' ? additionalProperties : undefined
  return [
    ...required.filter((name) => !isThere(value[name])).map((name) => `${at}.${name}`),
    ...Object.entries(value).flatMap(([name, member]) => {
      const schema = properties[name] ?? others
      return schema === undefined || !isThere(member) ? [] : lacking(schema, member, `${at}.${name}`)
    }),
  ]
}
